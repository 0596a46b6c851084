// SPDX-License-Identifier: MIT
// Sums, extremes, norms and variances over axes.
#include "reduce.h"

#include <torch/library.h>

#include <limits>

#include "pointwise.h"

namespace enpu::pytorch {
namespace {

using OptAxes = at::OptionalIntArrayRef;

c10::SmallVector<int64_t, 8> kept_sizes(const Tensor& self, uint32_t axes) {
    c10::SmallVector<int64_t, 8> sizes(self.sizes().begin(), self.sizes().end());
    for (size_t i = 0; i < sizes.size(); ++i) {
        if (axes >> i & 1) sizes[i] = 1;
    }
    return sizes;
}

c10::SmallVector<int64_t, 8> result_sizes(const Tensor& self, uint32_t axes, bool keepdim) {
    if (keepdim) return kept_sizes(self, axes);
    c10::SmallVector<int64_t, 8> sizes;
    for (int64_t i = 0; i < self.dim(); ++i) {
        if (!(axes >> i & 1)) sizes.push_back(self.size(i));
    }
    return sizes;
}

// `t` without the reduced axes, as if they were there with one element.
Tensor with_kept_axes(const Tensor& t, const Tensor& self, uint32_t axes, bool keepdim) {
    if (keepdim) return t;
    Tensor view = t;
    for (int64_t i = 0; i < self.dim(); ++i) {
        if (axes >> i & 1) view = view.unsqueeze(i);
    }
    return view;
}

int64_t reduced_count(const Tensor& self, uint32_t axes) {
    int64_t count = 1;
    for (int64_t i = 0; i < self.dim(); ++i) {
        if (axes >> i & 1) count *= self.size(i);
    }
    return count;
}

// The result of a reduction over nothing.
Tensor& fill_result(const Tensor& self, uint32_t axes, bool keepdim, const Scalar& value,
                    Tensor& out) {
    resize_out(out, result_sizes(self, axes, keepdim));
    return out.fill_(value);
}

ScalarType sum_type(const Tensor& self, std::optional<ScalarType> given) {
    if (given) return *given;
    return at::isIntegralType(self.scalar_type(), true) ? at::kLong : self.scalar_type();
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor& sum_out(const Tensor& self, OptAxes dims, bool keepdim, std::optional<ScalarType> dtype,
                Tensor& out) {
    const uint32_t axes = axis_mask(self, dims);
    if (self.numel() == 0) return fill_result(self, axes, keepdim, 0, out);
    return reduce_into(ENPU_OP_REDUCE_SUM, self, axes, keepdim, sum_type(self, dtype), out);
}

Tensor& mean_out(const Tensor& self, OptAxes dims, bool keepdim, std::optional<ScalarType> dtype,
                 Tensor& out) {
    const uint32_t axes = axis_mask(self, dims);
    if (self.numel() == 0) return fill_result(self, axes, keepdim, kNan, out);
    return reduce_into(ENPU_OP_REDUCE_MEAN, self, axes, keepdim, dtype.value_or(self.scalar_type()),
                       out);
}

Tensor& prod_int_out(const Tensor& self, int64_t dim, bool keepdim, std::optional<ScalarType> dtype,
                     Tensor& out) {
    const uint32_t axes = axis_mask(self, {{dim}});
    if (self.numel() == 0) return fill_result(self, axes, keepdim, 1, out);
    return reduce_into(ENPU_OP_REDUCE_PROD, self, axes, keepdim, sum_type(self, dtype), out);
}

Tensor prod(const Tensor& self, std::optional<ScalarType> dtype) {
    const ScalarType type = sum_type(self, dtype);
    Tensor out = new_tensor({}, type);
    if (self.numel() == 0) return out.fill_(1);
    return reduce_into(ENPU_OP_REDUCE_PROD, self, axis_mask(self, {}), false, type, out);
}

template <uint32_t F>
Tensor& extreme_out(const Tensor& self, IntArrayRef dims, bool keepdim, Tensor& out) {
    const uint32_t axes = axis_mask(self, dims);
    TORCH_CHECK_INDEX(reduced_count(self, axes) > 0,
                      "enpu: the extreme of no elements was asked for");
    if (self.numel() == 0) {
        resize_out(out, result_sizes(self, axes, keepdim));
        return out;
    }
    return reduce_into(F, self, axes, keepdim, self.scalar_type(), out);
}

template <uint32_t F>
Tensor extreme(const Tensor& self) {
    Tensor out = new_tensor({}, self.scalar_type());
    return extreme_out<F>(self, {}, false, out);
}

Tensor& arg_into(const Tensor& self, int64_t axis, bool smallest, bool keepdim, Tensor& out) {
    const Tensor x = self.dim() ? self : self.unsqueeze(0);
    const uint32_t axes = uint32_t{1} << axis;
    const auto sizes = result_sizes(x, self.dim() ? axes : 1, keepdim && self.dim());
    return write_out(out, sizes, at::kLong, {x}, [&](const Tensor& y) {
        const enpu_op_arg_params params{smallest, static_cast<uint32_t>(axis), 0};
        launch(ENPU_OP_ARG_REDUCE, params, {x, with_kept_axes(y, x, axes, keepdim && self.dim())});
    });
}

template <bool Smallest>
Tensor& arg_out(const Tensor& self, std::optional<int64_t> dim, bool keepdim, Tensor& out) {
    if (dim) {
        const int64_t axis = at::maybe_wrap_dim(*dim, self.dim());
        TORCH_CHECK_INDEX(self.dim() == 0 || self.size(axis) > 0,
                          "enpu: the place of the extreme of no elements was asked for");
        if (self.numel() == 0) {
            resize_out(out, result_sizes(self, uint32_t{1} << axis, keepdim));
            return out;
        }
        return arg_into(self, axis, Smallest, keepdim, out);
    }
    TORCH_CHECK_INDEX(self.numel() > 0,
                      "enpu: the place of the extreme of no elements was asked for");
    const Tensor found = new_tensor({0}, at::kLong);
    Tensor flat_result = found;
    arg_into(self.reshape({-1}), 0, Smallest, false, flat_result);
    resize_out(out, keepdim ? IntArrayRef(kept_sizes(self, ~0u)) : IntArrayRef());
    return out.copy_(flat_result.expand(out.sizes()));
}

template <bool Smallest>
std::tuple<Tensor&, Tensor&> extreme_dim_out(const Tensor& self, int64_t dim, bool keepdim,
                                             Tensor& values, Tensor& indices) {
    const int64_t axis = at::maybe_wrap_dim(dim, self.dim());
    if (Smallest)
        at::amin_out(values, self, {axis}, keepdim);
    else
        at::amax_out(values, self, {axis}, keepdim);
    arg_out<Smallest>(self, axis, keepdim, indices);
    return {values, indices};
}

std::tuple<Tensor&, Tensor&> aminmax_out(const Tensor& self, std::optional<int64_t> dim,
                                         bool keepdim, Tensor& low, Tensor& high) {
    c10::SmallVector<int64_t, 1> axes;
    if (dim) axes.push_back(*dim);
    at::amin_out(low, self, axes, keepdim);
    at::amax_out(high, self, axes, keepdim);
    return {low, high};
}

// ---- truth

template <uint32_t F>
Tensor& truth_into(const Tensor& self, OptAxes dims, bool keepdim, Tensor& out) {
    const uint32_t axes = axis_mask(self, dims);
    if (self.numel() == 0) return fill_result(self, axes, keepdim, F == ENPU_OP_REDUCE_MIN, out);
    return reduce_into(F, self, axes, keepdim, at::kBool, out);
}

template <uint32_t F>
Tensor& truth_dim_out(const Tensor& self, int64_t dim, bool keepdim, Tensor& out) {
    return truth_into<F>(self, {{dim}}, keepdim, out);
}
template <uint32_t F>
Tensor& truth_dims_out(const Tensor& self, OptAxes dims, bool keepdim, Tensor& out) {
    return truth_into<F>(self, dims, keepdim, out);
}
template <uint32_t F>
Tensor& truth_all_out(const Tensor& self, Tensor& out) {
    return truth_into<F>(self, {}, false, out);
}

Tensor count_nonzero(const Tensor& self, IntArrayRef dims) {
    return self.ne(0).sum(dims);
}

bool equal(const Tensor& a, const Tensor& b) {
    return a.sizes() == b.sizes() && (a.numel() == 0 || a.eq(b).all().item<bool>());
}

// ---- norms and variances

Tensor& vector_norm_out(const Tensor& self, const Scalar& order, OptAxes dims, bool keepdim,
                        std::optional<ScalarType> dtype, Tensor& out) {
    const ScalarType type = dtype.value_or(self.scalar_type());
    const uint32_t axes = axis_mask(self, dims);
    const double p = order.toDouble();
    if (self.numel() == 0) return fill_result(self, axes, keepdim, 0, out);
    const Tensor x = to_operand(self, type, "norm");
    if (p == 0) {
        return reduce_into(ENPU_OP_REDUCE_SUM, x.ne(0), axes, keepdim, type, out);
    }
    if (std::isinf(p)) {
        return reduce_into(p > 0 ? ENPU_OP_REDUCE_MAX : ENPU_OP_REDUCE_MIN, x.abs(), axes, keepdim,
                           type, out);
    }
    if (p == 1) return reduce_into(ENPU_OP_REDUCE_L1, x, axes, keepdim, type, out);
    if (p == 2) return reduce_into(ENPU_OP_REDUCE_L2, x, axes, keepdim, type, out);
    Tensor sum = new_tensor({0}, type);
    reduce_into(ENPU_OP_REDUCE_SUM, x.abs().pow(order), axes, keepdim, type, sum);
    return at::pow_out(out, sum, 1 / p);
}

Tensor& norm_out(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dims, bool keepdim,
                 Tensor& out) {
    return vector_norm_out(self, p.value_or(2), dims, keepdim, std::nullopt, out);
}
Tensor& norm_dtype_out(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dims,
                       bool keepdim, ScalarType dtype, Tensor& out) {
    return vector_norm_out(self, p.value_or(2), dims, keepdim, dtype, out);
}

std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptAxes dims,
                                    const std::optional<Scalar>& correction, bool keepdim) {
    TORCH_CHECK(at::isFloatingType(self.scalar_type()),
                "std and var only support floating point dtypes");
    const uint32_t axes = axis_mask(self, dims);
    const double degrees =
        static_cast<double>(reduced_count(self, axes)) - correction.value_or(1).toDouble();
    c10::SmallVector<int64_t, 8> list;
    for (int64_t i = 0; i < self.dim(); ++i) {
        if (axes >> i & 1) list.push_back(i);
    }
    if (list.empty()) {  // an empty list would mean all axes
        const Tensor zero = at::zeros_like(self);
        return {zero.div(std::max(degrees, 0.0)), self.clone()};
    }
    const Tensor mean = self.mean(list, true);
    const Tensor var = (self - mean).square().sum(list, keepdim).div_(std::max(degrees, 0.0));
    return {var, keepdim ? mean : mean.reshape(var.sizes())};
}

Tensor var(const Tensor& self, OptAxes dims, const std::optional<Scalar>& correction,
           bool keepdim) {
    return std::get<0>(at::var_mean(self, dims, correction, keepdim));
}
Tensor std_correction(const Tensor& self, OptAxes dims, const std::optional<Scalar>& correction,
                      bool keepdim) {
    return at::var(self, dims, correction, keepdim).sqrt_();
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptAxes dims,
                                    const std::optional<Scalar>& correction, bool keepdim) {
    auto [variance, mean] = at::var_mean(self, dims, correction, keepdim);
    return {variance.sqrt_(), mean};
}
Tensor& var_out(const Tensor& self, OptAxes dims, const std::optional<Scalar>& correction,
                bool keepdim, Tensor& out) {
    const Tensor result = at::var(self, dims, correction, keepdim);
    resize_out(out, result.sizes());
    return out.copy_(result);
}
Tensor& std_out(const Tensor& self, OptAxes dims, const std::optional<Scalar>& correction,
                bool keepdim, Tensor& out) {
    const Tensor result = at::std(self, dims, correction, keepdim);
    resize_out(out, result.sizes());
    return out.copy_(result);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("sum.IntList_out", sum_out);
    m.impl("mean.out", mean_out);
    m.impl("prod.int_out", prod_int_out);
    m.impl("prod", prod);
    m.impl("amax.out", extreme_out<ENPU_OP_REDUCE_MAX>);
    m.impl("amin.out", extreme_out<ENPU_OP_REDUCE_MIN>);
    m.impl("max", extreme<ENPU_OP_REDUCE_MAX>);
    m.impl("min", extreme<ENPU_OP_REDUCE_MIN>);
    m.impl("max.dim_max", extreme_dim_out<false>);
    m.impl("min.dim_min", extreme_dim_out<true>);
    m.impl("argmax.out", arg_out<false>);
    m.impl("argmin.out", arg_out<true>);
    m.impl("aminmax.out", aminmax_out);
    m.impl("any.out", truth_dim_out<ENPU_OP_REDUCE_MAX>);
    m.impl("all.out", truth_dim_out<ENPU_OP_REDUCE_MIN>);
    m.impl("any.dims_out", truth_dims_out<ENPU_OP_REDUCE_MAX>);
    m.impl("all.dims_out", truth_dims_out<ENPU_OP_REDUCE_MIN>);
    m.impl("any.all_out", truth_all_out<ENPU_OP_REDUCE_MAX>);
    m.impl("all.all_out", truth_all_out<ENPU_OP_REDUCE_MIN>);
    m.impl("count_nonzero.dim_IntList", count_nonzero);
    m.impl("equal", equal);
    m.impl("linalg_vector_norm.out", vector_norm_out);
    m.impl("norm.out", norm_out);
    m.impl("norm.dtype_out", norm_dtype_out);
    m.impl("var.correction", var);
    m.impl("var.correction_out", var_out);
    m.impl("std.correction", std_correction);
    m.impl("std.correction_out", std_out);
    m.impl("var_mean.correction", var_mean);
    m.impl("std_mean.correction", std_mean);
}

}  // namespace

uint32_t axis_mask(const Tensor& self, at::OptionalIntArrayRef axes) {
    TORCH_CHECK_NOT_IMPLEMENTED(self.dim() <= ENPU_OP_MAX_RANK, "enpu: a reduction takes ",
                                ENPU_OP_MAX_RANK, " axes, not ", self.dim());
    const uint32_t all = (uint32_t{1} << self.dim()) - 1;
    if (!axes || axes->empty()) return all;
    uint32_t mask = 0;
    for (int64_t axis : *axes) {
        const int64_t wrapped = at::maybe_wrap_dim(axis, self.dim());
        TORCH_CHECK(!(mask >> wrapped & 1), "dim ", axis,
                    " appears multiple times in the list of dims");
        mask |= uint32_t{1} << wrapped;
    }
    return mask & all;
}

Tensor& reduce_into(uint32_t function, const Tensor& self, uint32_t axes, bool keepdim,
                    ScalarType type, Tensor& out) {
    const Tensor x = to_operand(self, type, "reduction");
    return write_out(out, result_sizes(self, axes, keepdim), type, {x}, [&](const Tensor& y) {
        const enpu_op_reduce_params params{function, axes};
        launch(ENPU_OP_REDUCE, params, {x, with_kept_axes(y, x, axes, keepdim)});
    });
}

}  // namespace enpu::pytorch
