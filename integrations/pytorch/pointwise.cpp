// SPDX-License-Identifier: MIT
#include "pointwise.h"

#include <ATen/ExpandUtils.h>
#include <torch/library.h>

namespace enpu::pytorch {
namespace {

bool is_test(uint32_t function) {
    return function >= ENPU_OP_BINARY_EQ && function <= ENPU_OP_BINARY_XOR;
}

// Sums and products of truth values are logic.
uint32_t function_for(uint32_t function, ScalarType type) {
    if (type != at::kBool) return function;
    switch (function) {
        case ENPU_OP_BINARY_ADD:
        case ENPU_OP_BINARY_BIT_OR:
            return ENPU_OP_BINARY_OR;
        case ENPU_OP_BINARY_MUL:
        case ENPU_OP_BINARY_BIT_AND:
            return ENPU_OP_BINARY_AND;
        case ENPU_OP_BINARY_BIT_XOR:
            return ENPU_OP_BINARY_XOR;
        default:
            return function;
    }
}

// ---- unary

template <uint32_t F>
Tensor& unary_out(const Tensor& self, Tensor& out) {
    return unary_into(F, self, out);
}

// Functions that also take integers, and leave them integers.
template <uint32_t F>
Tensor& unary_any_out(const Tensor& self, Tensor& out) {
    if (self.scalar_type() == at::kBool)
        return unary_into(ENPU_OP_UNARY_IDENTITY, self, out, 0, 0, false);
    return unary_into(F, self, out, 0, 0, false);
}

Tensor& trunc_out(const Tensor& self, Tensor& out) {
    if (!at::isFloatingType(self.scalar_type()))
        return unary_any_out<ENPU_OP_UNARY_IDENTITY>(self, out);
    // Half a step towards 0 of the neighbours: floor of the positive part, ceil of the negative one.
    const Tensor down = unary(ENPU_OP_UNARY_FLOOR, self), up = unary(ENPU_OP_UNARY_CEIL, self);
    return at::where_out(out, self.lt(0), up, down);
}

Tensor& frac_out(const Tensor& self, Tensor& out) {
    return at::sub_out(out, self, self.trunc());
}

Tensor& exp2_out(const Tensor& self, Tensor& out) {
    const ScalarType type = float_type(self.scalar_type());
    return binary_into(ENPU_OP_BINARY_POW, constant(2, type), self, type, out);
}

// log(1 + x) and e^x - 1 keep their accuracy near 0: the error of 1 + x is divided out.
Tensor& log1p_out(const Tensor& self, Tensor& out) {
    const Tensor x = self.to(float_type(self.scalar_type()));
    const Tensor one_more = x + 1;
    const Tensor near = x * (one_more.log() / (one_more - 1));
    const Tensor as_it_is = one_more.eq(1);
    return at::where_out(out, as_it_is, x, at::where(one_more.isinf(), one_more.log(), near));
}

Tensor& expm1_out(const Tensor& self, Tensor& out) {
    const Tensor x = self.to(float_type(self.scalar_type()));
    return unary_into(ENPU_OP_UNARY_ELU, x, out, 1).copy_(at::where(x.gt(0), x.exp() - 1, out));
}

template <int Base>
Tensor& log_base_out(const Tensor& self, Tensor& out) {
    const Tensor natural = unary(ENPU_OP_UNARY_LOG, self);
    return at::div_out(out, natural, at::scalar_tensor(std::log(double{Base}), at::kFloat));
}

Tensor& erfc_out(const Tensor& self, Tensor& out) {
    return at::rsub_out(out, unary(ENPU_OP_UNARY_ERF, self), 1, 1);
}

Tensor& bitwise_not_out(const Tensor& self, Tensor& out) {
    const bool logic = self.scalar_type() == at::kBool;
    return unary_into(logic ? ENPU_OP_UNARY_NOT : ENPU_OP_UNARY_BIT_NOT, self, out, 0, 0, false);
}

Tensor& logical_not_out(const Tensor& self, Tensor& out) {
    return unary_into(ENPU_OP_UNARY_NOT, to_operand(self, at::kBool, "logical_not"), out, 0, 0,
                      false);
}

template <int Sign>
Tensor& isinf_out(const Tensor& self, Tensor& out) {
    if (!at::isFloatingType(self.scalar_type())) {
        resize_out(out, self.sizes());
        return out.fill_(false);
    }
    return write_out(out, self.sizes(), at::kBool, {self}, [&](const Tensor& y) {
        const enpu_op_unary_params params{ENPU_OP_UNARY_ISINF, Sign, 0};
        launch_elementwise(ENPU_OP_UNARY, &params, sizeof(params), {self, y});
    });
}

Tensor isnan(const Tensor& self) {
    return self.ne(self);
}

Tensor& signbit_out(const Tensor& self, Tensor& out) {
    // -0.0 has its sign, too: its reciprocal is -inf.
    if (!at::isFloatingType(self.scalar_type())) return at::lt_out(out, self, 0);
    const Tensor zero_below = self.eq(0).logical_and_(self.reciprocal().lt(0));
    return at::logical_or_out(out, self.lt(0), zero_below);
}

// ---- binary

// Takes the types of both operands together, as PyTorch does.
template <uint32_t F>
Tensor& binary_out(const Tensor& a, const Tensor& b, Tensor& out) {
    return binary_into(F, a, b, at::result_type(a, b), out);
}

template <uint32_t F>
Tensor& compare_scalar_out(const Tensor& a, const Scalar& b, Tensor& out) {
    const ScalarType type = at::result_type(a, b);
    return binary_into(F, a, constant(b, type), type, out);
}

// Both operands as truth values.
template <uint32_t F>
Tensor& logic_out(const Tensor& a, const Tensor& b, Tensor& out) {
    return binary_into(F, a, b, at::kBool, out);
}

Tensor scaled(const Tensor& t, const Scalar& factor, ScalarType type) {
    if (factor.equal(1)) return t;
    if (type == at::kBool) return factor.toBool() ? t : at::zeros_like(t);
    Tensor result;
    if (on_device(t)) {
        result = new_tensor(t.sizes(), type);
        return binary_into(ENPU_OP_BINARY_MUL, t, constant(factor, type), type, result);
    }
    return t.mul(factor);  // a number on the CPU
}

Tensor& add_out(const Tensor& a, const Tensor& b, const Scalar& alpha, Tensor& out) {
    const ScalarType type = at::result_type(a, b);
    return binary_into(ENPU_OP_BINARY_ADD, a, scaled(b, alpha, type), type, out);
}

Tensor& sub_out(const Tensor& a, const Tensor& b, const Scalar& alpha, Tensor& out) {
    const ScalarType type = at::result_type(a, b);
    return binary_into(ENPU_OP_BINARY_SUB, a, scaled(b, alpha, type), type, out);
}

Tensor rsub(const Tensor& a, const Tensor& b, const Scalar& alpha) {
    return at::sub(b, a, alpha);
}

Tensor& div_out(const Tensor& a, const Tensor& b, Tensor& out) {
    return binary_into(ENPU_OP_BINARY_DIV, a, b, float_type(at::result_type(a, b)), out);
}

// a - (a mod b) is a multiple of b up to rounding, so that the quotient is a whole number.
Tensor& floor_divide_out(const Tensor& a, const Tensor& b, Tensor& out) {
    const ScalarType type = at::result_type(a, b);
    const Tensor x = to_operand(a, type, "div"), y = to_operand(b, type, "div");
    const Tensor exact = (x - x.remainder(y)).true_divide(y);
    if (!at::isFloatingType(type)) {
        Tensor whole = new_tensor(exact.sizes(), type);
        binary_into(ENPU_OP_BINARY_DIV, x - x.remainder(y), y, type, whole);
        resize_out(out, whole.sizes());
        return out.copy_(whole);
    }
    return at::where_out(out, y.eq(0).expand(exact.sizes()), x.true_divide(y), exact.round());
}

Tensor floor_divide(const Tensor& a, const Tensor& b) {
    Tensor out = new_tensor({0}, at::result_type(a, b));
    return floor_divide_out(a, b, out);
}

Tensor& floor_divide_(Tensor& a, const Tensor& b) {
    return a.copy_(at::floor_divide(a, b));
}

Tensor& div_mode_out(const Tensor& a, const Tensor& b, std::optional<std::string_view> mode,
                     Tensor& out) {
    if (!mode) return div_out(a, b, out);
    if (*mode == "floor") return floor_divide_out(a, b, out);
    TORCH_CHECK(*mode == "trunc",
                "div expected rounding_mode to be one of None, 'trunc' or 'floor'");
    const ScalarType type = at::result_type(a, b);
    if (!at::isFloatingType(type)) return binary_into(ENPU_OP_BINARY_DIV, a, b, type, out);
    Tensor quotient = new_tensor({0}, type);
    binary_into(ENPU_OP_BINARY_DIV, a, b, type, quotient);
    return at::trunc_out(out, quotient);
}

Tensor& pow_scalar_out(const Tensor& base, const Scalar& exponent, Tensor& out) {
    const ScalarType type = at::result_type(base, exponent);
    if (exponent.equal(2)) {
        return unary_into(ENPU_OP_UNARY_SQUARE, to_operand(base, type, "pow"), out, 0, 0, false);
    }
    return binary_into(ENPU_OP_BINARY_POW, base, constant(exponent, type), type, out);
}

Tensor& pow_base_out(const Scalar& base, const Tensor& exponent, Tensor& out) {
    const ScalarType type = at::result_type(base, exponent);
    return binary_into(ENPU_OP_BINARY_POW, constant(base, type), exponent, type, out);
}

// One is NaN: the other counts.
template <uint32_t F>
Tensor& without_nan_out(const Tensor& a, const Tensor& b, Tensor& out) {
    const ScalarType type = at::result_type(a, b);
    if (!at::isFloatingType(type)) return binary_into(F, a, b, type, out);
    const Tensor x = to_operand(a, type, "fmax"), y = to_operand(b, type, "fmax");
    return binary_into(F, at::where(x.isnan(), y, x), at::where(y.isnan(), x, y), type, out);
}

Tensor remainder_scalar(const Scalar& a, const Tensor& b) {
    const ScalarType type = at::result_type(a, b);
    return at::remainder(constant(a, type), b);
}

// ---- choice, bounds, filling

Tensor& where_out(const Tensor& condition, const Tensor& a, const Tensor& b, Tensor& out) {
    const ScalarType type = at::result_type(a, b);
    const auto sizes = at::infer_size(at::infer_size(condition.sizes(), a.sizes()), b.sizes());
    const Tensor c = to_operand(condition, at::kBool, "where").expand(sizes),
                 x = to_operand(a, type, "where").expand(sizes),
                 y = to_operand(b, type, "where").expand(sizes);
    // SELECT takes no operand in place.
    const bool aliased = out.storage().is_alias_of(c.storage()) ||
                         out.storage().is_alias_of(x.storage()) ||
                         out.storage().is_alias_of(y.storage());
    if (aliased) {
        const Tensor result = new_tensor(sizes, type);
        if (result.numel()) launch_elementwise(ENPU_OP_SELECT, nullptr, 0, {c, x, y, result});
        return out.copy_(result);
    }
    return write_out(out, sizes, type, {}, [&](const Tensor& y_out) {
        launch_elementwise(ENPU_OP_SELECT, nullptr, 0, {c, x, y, y_out});
    });
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
    Tensor out = new_tensor({0}, at::result_type(a, b));
    return where_out(condition, a, b, out);
}

Tensor& fill_tensor(Tensor& self, const Tensor& value) {
    TORCH_CHECK(value.dim() == 0, "fill_ takes a tensor without axes");
    if (self.numel() == 0) return self;
    return self.copy_(value.expand(self.sizes()));
}

Tensor& fill_(Tensor& self, const Scalar& value) {
    if (self.numel() == 0) return self;
    const Tensor one = at::scalar_tensor(value, at::TensorOptions().dtype(self.scalar_type()));
    const size_t bytes = one.element_size();
    if (bytes > 8 || !self.is_non_overlapping_and_dense())
        return self.copy_(one.expand(self.sizes()));
    uint64_t pattern = 0;
    std::memcpy(&pattern, one.const_data_ptr(), bytes);
    check(rt_fill(Runtime::get().current(), self.mutable_data_ptr(), pattern,
                  static_cast<uint32_t>(bytes), self.nbytes()),
          "fill");
    return self;
}

Tensor& zero_(Tensor& self) {
    return self.fill_(0);
}

using OptScalar = const std::optional<Scalar>&;

Tensor& clamp_tensor_out(const Tensor& self, const std::optional<Tensor>& low,
                         const std::optional<Tensor>& high, Tensor& out) {
    const bool has_low = low && low->defined(), has_high = high && high->defined();
    TORCH_CHECK(has_low || has_high,
                "torch.clamp: At least one of 'min' or 'max' must not be None");
    if (!has_high) return at::maximum_out(out, self, *low);
    if (!has_low) return at::minimum_out(out, self, *high);
    return at::minimum_out(out, at::maximum(self, *low), *high);
}

Tensor& clamp_out(const Tensor& self, OptScalar low, OptScalar high, Tensor& out) {
    ScalarType type = self.scalar_type();
    if (low) type = at::result_type(at::empty({1}, at::TensorOptions().dtype(type)), *low);
    if (high) type = at::result_type(at::empty({1}, at::TensorOptions().dtype(type)), *high);
    std::optional<Tensor> least, most;
    if (low) least = constant(*low, type);
    if (high) most = constant(*high, type);
    return clamp_tensor_out(self, least, most, out);
}

Tensor& clamp_min_out(const Tensor& self, const Scalar& low, Tensor& out) {
    return clamp_out(self, low, std::nullopt, out);
}
Tensor& clamp_max_out(const Tensor& self, const Scalar& high, Tensor& out) {
    return clamp_out(self, std::nullopt, high, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("abs.out", unary_any_out<ENPU_OP_UNARY_ABS>);
    m.impl("neg.out", unary_any_out<ENPU_OP_UNARY_NEG>);
    m.impl("sgn.out", unary_any_out<ENPU_OP_UNARY_SIGN>);
    m.impl("sign.out", unary_any_out<ENPU_OP_UNARY_SIGN>);
    m.impl("floor.out", unary_any_out<ENPU_OP_UNARY_FLOOR>);
    m.impl("ceil.out", unary_any_out<ENPU_OP_UNARY_CEIL>);
    m.impl("round.out", unary_any_out<ENPU_OP_UNARY_ROUND>);
    m.impl("trunc.out", trunc_out);
    m.impl("frac.out", frac_out);
    m.impl("acos.out", unary_out<ENPU_OP_UNARY_ACOS>);
    m.impl("acosh.out", unary_out<ENPU_OP_UNARY_ACOSH>);
    m.impl("asin.out", unary_out<ENPU_OP_UNARY_ASIN>);
    m.impl("asinh.out", unary_out<ENPU_OP_UNARY_ASINH>);
    m.impl("atan.out", unary_out<ENPU_OP_UNARY_ATAN>);
    m.impl("atanh.out", unary_out<ENPU_OP_UNARY_ATANH>);
    m.impl("sin.out", unary_out<ENPU_OP_UNARY_SIN>);
    m.impl("cos.out", unary_out<ENPU_OP_UNARY_COS>);
    m.impl("tan.out", unary_out<ENPU_OP_UNARY_TAN>);
    m.impl("sinh.out", unary_out<ENPU_OP_UNARY_SINH>);
    m.impl("cosh.out", unary_out<ENPU_OP_UNARY_COSH>);
    m.impl("tanh.out", unary_out<ENPU_OP_UNARY_TANH>);
    m.impl("sigmoid.out", unary_out<ENPU_OP_UNARY_SIGMOID>);
    m.impl("exp.out", unary_out<ENPU_OP_UNARY_EXP>);
    m.impl("exp2.out", exp2_out);
    m.impl("expm1.out", expm1_out);
    m.impl("log.out", unary_out<ENPU_OP_UNARY_LOG>);
    m.impl("log1p.out", log1p_out);
    m.impl("log2.out", log_base_out<2>);
    m.impl("log10.out", log_base_out<10>);
    m.impl("sqrt.out", unary_out<ENPU_OP_UNARY_SQRT>);
    m.impl("rsqrt.out", unary_out<ENPU_OP_UNARY_RSQRT>);
    m.impl("reciprocal.out", unary_out<ENPU_OP_UNARY_RECIPROCAL>);
    m.impl("erf.out", unary_out<ENPU_OP_UNARY_ERF>);
    m.impl("erfc.out", erfc_out);
    m.impl("bitwise_not.out", bitwise_not_out);
    m.impl("logical_not.out", logical_not_out);
    m.impl("isposinf.out", isinf_out<1>);
    m.impl("isneginf.out", isinf_out<-1>);
    m.impl("isnan", isnan);
    m.impl("signbit.out", signbit_out);

    m.impl("add.out", add_out);
    m.impl("sub.out", sub_out);
    m.impl("rsub.Tensor", rsub);
    m.impl("mul.out", binary_out<ENPU_OP_BINARY_MUL>);
    m.impl("div.out", div_out);
    m.impl("div.out_mode", div_mode_out);
    m.impl("floor_divide", floor_divide);
    m.impl("floor_divide.out", floor_divide_out);
    m.impl("floor_divide_.Tensor", floor_divide_);
    m.impl("fmod.Tensor_out", binary_out<ENPU_OP_BINARY_FMOD>);
    m.impl("remainder.Tensor_out", binary_out<ENPU_OP_BINARY_MOD>);
    m.impl("remainder.Scalar_Tensor", remainder_scalar);
    m.impl("pow.Tensor_Tensor_out", binary_out<ENPU_OP_BINARY_POW>);
    m.impl("pow.Tensor_Scalar_out", pow_scalar_out);
    m.impl("pow.Scalar_out", pow_base_out);
    m.impl("maximum.out", binary_out<ENPU_OP_BINARY_MAX>);
    m.impl("minimum.out", binary_out<ENPU_OP_BINARY_MIN>);
    m.impl("fmax.out", without_nan_out<ENPU_OP_BINARY_MAX>);
    m.impl("fmin.out", without_nan_out<ENPU_OP_BINARY_MIN>);
    m.impl("eq.Tensor_out", binary_out<ENPU_OP_BINARY_EQ>);
    m.impl("ne.Tensor_out", binary_out<ENPU_OP_BINARY_NE>);
    m.impl("lt.Tensor_out", binary_out<ENPU_OP_BINARY_LT>);
    m.impl("le.Tensor_out", binary_out<ENPU_OP_BINARY_LE>);
    m.impl("gt.Tensor_out", binary_out<ENPU_OP_BINARY_GT>);
    m.impl("ge.Tensor_out", binary_out<ENPU_OP_BINARY_GE>);
    m.impl("eq.Scalar_out", compare_scalar_out<ENPU_OP_BINARY_EQ>);
    m.impl("ne.Scalar_out", compare_scalar_out<ENPU_OP_BINARY_NE>);
    m.impl("lt.Scalar_out", compare_scalar_out<ENPU_OP_BINARY_LT>);
    m.impl("le.Scalar_out", compare_scalar_out<ENPU_OP_BINARY_LE>);
    m.impl("gt.Scalar_out", compare_scalar_out<ENPU_OP_BINARY_GT>);
    m.impl("ge.Scalar_out", compare_scalar_out<ENPU_OP_BINARY_GE>);
    m.impl("logical_and.out", logic_out<ENPU_OP_BINARY_AND>);
    m.impl("logical_or.out", logic_out<ENPU_OP_BINARY_OR>);
    m.impl("logical_xor.out", logic_out<ENPU_OP_BINARY_XOR>);
    m.impl("bitwise_and.Tensor_out", binary_out<ENPU_OP_BINARY_BIT_AND>);
    m.impl("bitwise_or.Tensor_out", binary_out<ENPU_OP_BINARY_BIT_OR>);
    m.impl("bitwise_xor.Tensor_out", binary_out<ENPU_OP_BINARY_BIT_XOR>);
    m.impl("bitwise_left_shift.Tensor_out", binary_out<ENPU_OP_BINARY_SHIFT_LEFT>);
    m.impl("bitwise_right_shift.Tensor_out", binary_out<ENPU_OP_BINARY_SHIFT_RIGHT>);

    m.impl("where.self", where);
    m.impl("where.self_out", where_out);
    m.impl("clamp.out", clamp_out);
    m.impl("clamp.Tensor_out", clamp_tensor_out);
    m.impl("clamp_min.out", clamp_min_out);
    m.impl("clamp_max.out", clamp_max_out);
    m.impl("clamp_min.Tensor_out", binary_out<ENPU_OP_BINARY_MAX>);
    m.impl("clamp_max.Tensor_out", binary_out<ENPU_OP_BINARY_MIN>);
    m.impl("fill_.Scalar", fill_);
    m.impl("fill_.Tensor", fill_tensor);
    m.impl("zero_", zero_);
}

}  // namespace

ScalarType float_type(ScalarType type) {
    return at::isFloatingType(type) || at::isComplexType(type) ? type : at::kFloat;
}

Tensor& unary_into(uint32_t function, const Tensor& self, Tensor& out, float alpha, float beta,
                   bool to_float) {
    const ScalarType type = to_float ? float_type(self.scalar_type()) : self.scalar_type();
    const Tensor x = to_operand(self, type, "elementwise function");
    return write_out(out, x.sizes(), type, {x}, [&](const Tensor& y) {
        const enpu_op_unary_params params{function, alpha, beta};
        launch_elementwise(ENPU_OP_UNARY, &params, sizeof(params), {x, y});
    });
}

Tensor unary(uint32_t function, const Tensor& self, float alpha, float beta) {
    Tensor out = new_like(self, float_type(self.scalar_type()));
    return unary_into(function, self, out, alpha, beta);
}

Tensor& binary_into(uint32_t function, const Tensor& a, const Tensor& b, ScalarType type,
                    Tensor& out) {
    const auto sizes = at::infer_size(a.sizes(), b.sizes());
    const Tensor x = to_operand(a, type, "elementwise function").expand(sizes),
                 y = to_operand(b, type, "elementwise function").expand(sizes);
    const uint32_t used = function_for(function, type);
    return write_out(out, sizes, is_test(used) ? at::kBool : type, {x, y}, [&](const Tensor& z) {
        const enpu_op_binary_params params{used, ENPU_OP_UNARY_IDENTITY, 0, 0};
        launch_elementwise(ENPU_OP_BINARY, &params, sizeof(params), {x, y, z});
    });
}

}  // namespace enpu::pytorch
