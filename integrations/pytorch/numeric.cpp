// SPDX-License-Identifier: MIT
// Elementwise functions made of several kernels.
#include <torch/library.h>

#include "pointwise.h"

namespace enpu::pytorch {
namespace {

Tensor& addcmul_out(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value,
                    Tensor& out) {
    return at::add_out(out, self, a * b, value);
}
Tensor& addcdiv_out(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value,
                    Tensor& out) {
    return at::add_out(out, self, a / b, value);
}

// From the nearer end, so that the far end is met exactly.
Tensor& lerp_out(const Tensor& start, const Tensor& end, const Tensor& weight, Tensor& out) {
    const Tensor step = end - start;
    return at::where_out(out, weight.abs().lt(0.5), start + step * weight,
                         end - step * (1 - weight));
}
Tensor& lerp_scalar_out(const Tensor& start, const Tensor& end, const Scalar& weight, Tensor& out) {
    const double w = weight.toDouble();
    return std::abs(w) < 0.5 ? at::add_out(out, start, end - start, w)
                             : at::sub_out(out, end, end - start, 1 - w);
}

Tensor& atan2_out(const Tensor& y, const Tensor& x, Tensor& out) {
    const ScalarType type = float_type(at::result_type(y, x));
    const Tensor b = y.to(type), a = x.to(type);
    // The quotient of two zeros, or of two infinities, is no number, but their signs say which corner.
    const Tensor both_zero = a.eq(0).logical_and(b.eq(0)),
                 both_inf = a.isinf().logical_and(b.isinf());
    const Tensor small =
        at::where(both_zero, 0, at::where(both_inf, M_PI / 4, (b / a).abs().atan()));
    const Tensor turned = at::where(a.signbit(), M_PI - small, small);
    return at::copysign_out(out, turned, b);
}

Tensor& copysign_out(const Tensor& magnitude, const Tensor& sign, Tensor& out) {
    const ScalarType type = float_type(at::result_type(magnitude, sign));
    const Tensor size = magnitude.to(type).abs();
    return at::where_out(out, sign.signbit(), size.neg(), size);
}

Tensor& hypot_out(const Tensor& a, const Tensor& b, Tensor& out) {
    const Tensor large = at::maximum(a.abs(), b.abs()), small = at::minimum(a.abs(), b.abs());
    const Tensor ratio = at::where(large.eq(0).logical_or(large.isinf()), 0, small / large);
    return at::mul_out(out, large, (ratio * ratio + 1).sqrt());
}

Tensor& logaddexp_out(const Tensor& a, const Tensor& b, Tensor& out) {
    const Tensor same_infinity = a.eq(b).logical_and(a.isinf());
    const Tensor sum = at::maximum(a, b) + (a - b).abs().neg().exp().log1p();
    return at::where_out(out, same_infinity, a, sum);
}
Tensor& logaddexp2_out(const Tensor& a, const Tensor& b, Tensor& out) {
    const Tensor same_infinity = a.eq(b).logical_and(a.isinf());
    const Tensor sum = at::maximum(a, b) + (a - b).abs().neg().exp2().log1p() * M_LOG2E;
    return at::where_out(out, same_infinity, a, sum);
}

Tensor& xlogy_out(const Tensor& x, const Tensor& y, Tensor& out) {
    return at::where_out(out, x.eq(0).logical_and(y.isnan().logical_not()),
                         at::scalar_tensor(0, float_type(at::result_type(x, y))), x * y.log());
}
Tensor& xlog1py_out(const Tensor& x, const Tensor& y, Tensor& out) {
    return at::where_out(out, x.eq(0).logical_and(y.isnan().logical_not()),
                         at::scalar_tensor(0, float_type(at::result_type(x, y))), x * y.log1p());
}
Tensor& entr_out(const Tensor& x, Tensor& out) {
    const Tensor inside = at::where(x.eq(0), 0, (x * x.log()).neg());
    return at::where_out(out, x.lt(0),
                         at::scalar_tensor(-std::numeric_limits<float>::infinity(), at::kFloat),
                         inside);
}

Tensor& heaviside_out(const Tensor& self, const Tensor& at_zero, Tensor& out) {
    TORCH_CHECK(self.scalar_type() == at_zero.scalar_type(), "heaviside: the input is ",
                self.scalar_type(), " and values is ", at_zero.scalar_type(),
                "; PyTorch wants one dtype for both");
    return at::where_out(out, self.eq(0), at_zero, self.gt(0).to(self.scalar_type()));
}

Tensor& nan_to_num_out(const Tensor& self, std::optional<double> nan, std::optional<double> up,
                       std::optional<double> down, Tensor& out) {
    if (!at::isFloatingType(self.scalar_type())) {
        resize_out(out, self.sizes());
        return out.copy_(self);
    }
    constexpr double kMost = std::numeric_limits<float>::max();
    const Tensor x = at::where(self.isnan(), nan.value_or(0), self);
    const Tensor y = at::where(self.isposinf(), up.value_or(kMost), x);
    return at::where_out(out, self.isneginf(),
                         at::scalar_tensor(down.value_or(-kMost), self.scalar_type()), y);
}

Tensor logit(const Tensor& self, std::optional<double> eps) {
    Tensor x = self.to(float_type(self.scalar_type()));
    if (eps && *eps >= 0) {  // the lower bound wins when they cross
        const double low = *eps, high = 1 - *eps;
        x = at::where(x.lt(low), low, at::where(x.gt(high), high, x));
    }
    return (x / (1 - x)).log();
}
Tensor& logit_out(const Tensor& self, std::optional<double> eps, Tensor& out) {
    const Tensor result = at::logit(self, eps);
    resize_out(out, result.sizes());
    return out.copy_(result);
}
Tensor& logit_backward_out(const Tensor& grad, const Tensor& self, std::optional<double> eps,
                           Tensor& out) {
    const Tensor slope = grad / (self * (1 - self));
    const double low = eps.value_or(0);
    const Tensor outside = self.lt(low).logical_or(self.gt(1 - low));
    const double there = eps && *eps >= 0 ? 0.0 : std::numeric_limits<double>::quiet_NaN();
    return at::where_out(out, outside, at::scalar_tensor(there, grad.scalar_type()), slope);
}

Tensor& sinc_out(const Tensor& self, Tensor& out) {
    const Tensor angle = self * M_PI;
    return at::where_out(out, angle.eq(0), at::scalar_tensor(1, angle.scalar_type()),
                         angle.sin() / angle);
}

Tensor& cross_out(const Tensor& a, const Tensor& b, int64_t dim, Tensor& out) {
    const auto both = at::broadcast_tensors({a, b});
    TORCH_CHECK(both[0].size(dim) == 3, "linalg.cross: inputs dimension ", dim,
                " must have length 3");
    const auto turned = [&](const Tensor& t, int64_t by) { return t.roll(by, dim); };
    return at::sub_out(out, turned(both[0], -1) * turned(both[1], 1),
                       turned(both[0], 1) * turned(both[1], -1));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("addcmul.out", addcmul_out);
    m.impl("addcdiv.out", addcdiv_out);
    m.impl("lerp.Tensor_out", lerp_out);
    m.impl("lerp.Scalar_out", lerp_scalar_out);
    m.impl("atan2.out", atan2_out);
    m.impl("copysign.out", copysign_out);
    m.impl("hypot.out", hypot_out);
    m.impl("logaddexp.out", logaddexp_out);
    m.impl("logaddexp2.out", logaddexp2_out);
    m.impl("xlogy.OutTensor", xlogy_out);
    m.impl("special_xlog1py.out", xlog1py_out);
    m.impl("special_entr.out", entr_out);
    m.impl("heaviside.out", heaviside_out);
    m.impl("nan_to_num.out", nan_to_num_out);
    m.impl("logit", logit);
    m.impl("logit.out", logit_out);
    m.impl("logit_backward.grad_input", logit_backward_out);
    m.impl("sinc.out", sinc_out);
    m.impl("linalg_cross.out", cross_out);
}

}  // namespace
}  // namespace enpu::pytorch
