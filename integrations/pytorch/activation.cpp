// SPDX-License-Identifier: MIT
// Activations and their gradients.
#include <torch/library.h>

#include "pointwise.h"

namespace enpu::pytorch {
namespace {

Tensor relu(const Tensor& self) {
    Tensor out = new_like(self, self.scalar_type());
    return unary_into(ENPU_OP_UNARY_RELU, self, out, 0, 0, false);
}
Tensor& relu_(Tensor& self) {
    return unary_into(ENPU_OP_UNARY_RELU, self, self, 0, 0, false);
}

// x > threshold ? x : value
Tensor& threshold_out(const Tensor& self, const Scalar& threshold, const Scalar& value,
                      Tensor& out) {
    return at::where_out(out, self.le(threshold), at::scalar_tensor(value, self.scalar_type()),
                         self);
}
Tensor& threshold_backward_out(const Tensor& grad, const Tensor& self, const Scalar& threshold,
                               Tensor& out) {
    return at::where_out(out, self.le(threshold), at::scalar_tensor(0, grad.scalar_type()), grad);
}

Tensor& silu_out(const Tensor& self, Tensor& out) {
    return unary_into(ENPU_OP_UNARY_SILU, self, out);
}
Tensor& silu_backward_out(const Tensor& grad, const Tensor& self, Tensor& out) {
    const Tensor s = self.sigmoid();
    return at::mul_out(out, grad, s * (self * (1 - s) + 1));
}

Tensor& mish_out(const Tensor& self, Tensor& out) {
    return unary_into(ENPU_OP_UNARY_MISH, self, out);
}
Tensor mish_backward(const Tensor& grad, const Tensor& self) {
    const Tensor t = unary(ENPU_OP_UNARY_SOFTPLUS, self).tanh();
    return grad * (t + self * self.sigmoid() * (1 - t * t));
}

Tensor& gelu_out(const Tensor& self, std::string_view approximate, Tensor& out) {
    TORCH_CHECK(approximate == "none" || approximate == "tanh",
                "approximate argument must be either none or tanh.");
    return unary_into(approximate == "tanh" ? ENPU_OP_UNARY_GELU_TANH : ENPU_OP_UNARY_GELU, self,
                      out);
}
Tensor& gelu_backward_out(const Tensor& grad, const Tensor& x, std::string_view approximate,
                          Tensor& out) {
    if (approximate == "tanh") {
        constexpr double kBeta = M_SQRT2 * M_2_SQRTPI * 0.5, kCube = 0.044715;
        const Tensor t = ((x + x * x * x * kCube) * kBeta).tanh();
        const Tensor slope = (1 - t * t) * (1 + x * x * (3 * kCube)) * kBeta;
        return at::mul_out(out, grad, (t + 1) * 0.5 + x * slope * 0.5);
    }
    const Tensor share = (unary(ENPU_OP_UNARY_ERF, x * M_SQRT1_2) + 1) * 0.5;
    const Tensor density = (x * x * -0.5).exp() * (M_2_SQRTPI * M_SQRT1_2 * 0.5);
    return at::mul_out(out, grad, share + x * density);
}

Tensor& sigmoid_backward_out(const Tensor& grad, const Tensor& y, Tensor& out) {
    return at::mul_out(out, grad, (1 - y) * y);
}
Tensor& tanh_backward_out(const Tensor& grad, const Tensor& y, Tensor& out) {
    return at::mul_out(out, grad, 1 - y * y);
}

Tensor& elu_out(const Tensor& self, const Scalar& alpha, const Scalar& scale,
                const Scalar& input_scale, Tensor& out) {
    if (scale.equal(1) && input_scale.equal(1))
        return unary_into(ENPU_OP_UNARY_ELU, self, out, alpha.to<float>());
    const Tensor below = unary(ENPU_OP_UNARY_ELU, self * input_scale, alpha.to<float>());
    return at::mul_out(out, at::where(self.gt(0), self, below),
                       at::scalar_tensor(scale, self.scalar_type()));
}
Tensor& elu_backward_out(const Tensor& grad, const Scalar& alpha, const Scalar& scale,
                         const Scalar& input_scale, bool is_result, const Tensor& t, Tensor& out) {
    const double most = alpha.toDouble() * scale.toDouble();
    const Tensor below = is_result ? (t + most) * input_scale
                                   : (t * input_scale).exp() * (most * input_scale.toDouble());
    return at::mul_out(out, grad,
                       at::where(t.gt(0), at::scalar_tensor(scale, t.scalar_type()), below));
}

Tensor& leaky_relu_out(const Tensor& self, const Scalar& slope, Tensor& out) {
    return unary_into(ENPU_OP_UNARY_LEAKY_RELU, self, out, slope.to<float>());
}
Tensor& leaky_relu_backward_out(const Tensor& grad, const Tensor& self, const Scalar& slope,
                                bool is_result, Tensor& out) {
    return at::where_out(out, self.gt(0), grad, grad * slope);
}

Tensor prelu(const Tensor& self, const Tensor& weight) {
    Tensor out = new_like(self, self.scalar_type());
    return binary_into(ENPU_OP_BINARY_PRELU, self, weight, self.scalar_type(), out);
}
std::tuple<Tensor, Tensor> prelu_backward(const Tensor& grad, const Tensor& self,
                                          const Tensor& weight) {
    const Tensor above = self.gt(0);
    return {at::where(above, grad, grad * weight), at::where(above, 0, grad * self)};
}

// log(1 + e^(beta x)) / beta, x itself above the threshold.
Tensor& softplus_out(const Tensor& self, const Scalar& beta, const Scalar& threshold, Tensor& out) {
    const Tensor scaled = self * beta;
    return at::where_out(out, scaled.gt(threshold), self,
                         unary(ENPU_OP_UNARY_SOFTPLUS, scaled) / beta);
}
Tensor& softplus_backward_out(const Tensor& grad, const Tensor& self, const Scalar& beta,
                              const Scalar& threshold, Tensor& out) {
    const Tensor scaled = self * beta;
    return at::where_out(out, scaled.gt(threshold), grad, grad * scaled.sigmoid());
}

std::tuple<Tensor, Tensor> log_sigmoid_forward(const Tensor& self) {
    // The buffer that the CPU keeps for its backward pass is not needed here.
    return {unary(ENPU_OP_UNARY_SOFTPLUS, self.neg()).neg_(), at::empty({0}, self.options())};
}
std::tuple<Tensor&, Tensor&> log_sigmoid_forward_out(const Tensor& self, Tensor& out,
                                                     Tensor& buffer) {
    resize_out(out, self.sizes());
    resize_out(buffer, {0});
    out.copy_(unary(ENPU_OP_UNARY_SOFTPLUS, self.neg()).neg_());
    return {out, buffer};
}
Tensor log_sigmoid_backward(const Tensor& grad, const Tensor& self, const Tensor&) {
    return grad * self.neg().sigmoid();
}

Tensor& hardtanh_out(const Tensor& self, const Scalar& low, const Scalar& high, Tensor& out) {
    return at::clamp_out(out, self, low, high);
}
Tensor hardtanh(const Tensor& self, const Scalar& low, const Scalar& high) {
    return at::clamp(self, low, high);
}
Tensor& hardtanh_(Tensor& self, const Scalar& low, const Scalar& high) {
    return at::clamp_(self, low, high);
}
Tensor hardtanh_backward(const Tensor& grad, const Tensor& self, const Scalar& low,
                         const Scalar& high) {
    return at::where(self.gt(low).logical_and_(self.lt(high)), grad, 0);
}
Tensor& hardtanh_backward_out(const Tensor& grad, const Tensor& self, const Scalar& low,
                              const Scalar& high, Tensor& out) {
    return at::where_out(out, self.gt(low).logical_and_(self.lt(high)), grad,
                         at::scalar_tensor(0, grad.scalar_type()));
}

constexpr float kSixth = 1.0f / 6;

Tensor& hardsigmoid_out(const Tensor& self, Tensor& out) {
    return unary_into(ENPU_OP_UNARY_HARD_SIGMOID, self, out, kSixth, 0.5f);
}
Tensor& hardsigmoid_backward_out(const Tensor& grad, const Tensor& self, Tensor& out) {
    return at::where_out(out, self.gt(-3).logical_and_(self.lt(3)), grad * kSixth,
                         at::scalar_tensor(0, grad.scalar_type()));
}
Tensor& hardswish_out(const Tensor& self, Tensor& out) {
    return unary_into(ENPU_OP_UNARY_HARD_SWISH, self, out);
}
Tensor hardswish(const Tensor& self) {
    return unary(ENPU_OP_UNARY_HARD_SWISH, self);
}
Tensor& hardswish_(Tensor& self) {
    return unary_into(ENPU_OP_UNARY_HARD_SWISH, self, self);
}
Tensor hardswish_backward(const Tensor& grad, const Tensor& self) {
    const Tensor inside = grad * (self / 3 + 0.5);
    return at::where(self.le(-3), 0, at::where(self.ge(3), grad, inside));
}

Tensor& softshrink_out(const Tensor& self, const Scalar& lambda, Tensor& out) {
    return unary_into(ENPU_OP_UNARY_SHRINK, self, out, lambda.to<float>(), lambda.to<float>());
}
Tensor& hardshrink_out(const Tensor& self, const Scalar& lambda, Tensor& out) {
    return unary_into(ENPU_OP_UNARY_SHRINK, self, out, lambda.to<float>(), 0);
}
Tensor& shrink_backward_out(const Tensor& grad, const Tensor& self, const Scalar& lambda,
                            Tensor& out) {
    return at::where_out(out, self.abs().gt(lambda), grad,
                         at::scalar_tensor(0, grad.scalar_type()));
}

// a sigmoid(b) of both halves.
Tensor& glu_out(const Tensor& self, int64_t dim, Tensor& out) {
    const auto halves = self.chunk(2, dim);
    return at::mul_out(out, halves[0], halves[1].sigmoid());
}
Tensor glu_backward(const Tensor& grad, const Tensor& self, int64_t dim) {
    const auto halves = self.chunk(2, dim);
    const Tensor gate = halves[1].sigmoid();
    return at::cat({grad * gate, grad * halves[0] * gate * (1 - gate)}, dim);
}
Tensor& glu_backward_out(const Tensor& grad, const Tensor& self, int64_t dim, Tensor& out) {
    resize_out(out, self.sizes());
    return out.copy_(at::glu_backward(grad, self, dim));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("relu", relu);
    m.impl("relu_", relu_);
    m.impl("threshold.out", threshold_out);
    m.impl("threshold_backward.grad_input", threshold_backward_out);
    m.impl("silu.out", silu_out);
    m.impl("silu_backward.grad_input", silu_backward_out);
    m.impl("mish.out", mish_out);
    m.impl("mish_backward", mish_backward);
    m.impl("gelu.out", gelu_out);
    m.impl("gelu_backward.grad_input", gelu_backward_out);
    m.impl("sigmoid_backward.grad_input", sigmoid_backward_out);
    m.impl("tanh_backward.grad_input", tanh_backward_out);
    m.impl("elu.out", elu_out);
    m.impl("elu_backward.grad_input", elu_backward_out);
    m.impl("leaky_relu.out", leaky_relu_out);
    m.impl("leaky_relu_backward.grad_input", leaky_relu_backward_out);
    m.impl("_prelu_kernel", prelu);
    m.impl("_prelu_kernel_backward", prelu_backward);
    m.impl("softplus.out", softplus_out);
    m.impl("softplus_backward.grad_input", softplus_backward_out);
    m.impl("log_sigmoid_forward", log_sigmoid_forward);
    m.impl("log_sigmoid_forward.output", log_sigmoid_forward_out);
    m.impl("log_sigmoid_backward", log_sigmoid_backward);
    m.impl("hardtanh", hardtanh);
    m.impl("hardtanh_", hardtanh_);
    m.impl("hardtanh.out", hardtanh_out);
    m.impl("hardtanh_backward", hardtanh_backward);
    m.impl("hardtanh_backward.grad_input", hardtanh_backward_out);
    m.impl("hardsigmoid.out", hardsigmoid_out);
    m.impl("hardsigmoid_backward.grad_input", hardsigmoid_backward_out);
    m.impl("hardswish", hardswish);
    m.impl("hardswish_", hardswish_);
    m.impl("hardswish.out", hardswish_out);
    m.impl("hardswish_backward", hardswish_backward);
    m.impl("softshrink.out", softshrink_out);
    m.impl("softshrink_backward.grad_input", shrink_backward_out);
    m.impl("hardshrink.out", hardshrink_out);
    m.impl("hardshrink_backward.grad_input", shrink_backward_out);
    m.impl("glu.out", glu_out);
    m.impl("glu_backward", glu_backward);
    m.impl("glu_backward.grad_input", glu_backward_out);
}

}  // namespace
}  // namespace enpu::pytorch
