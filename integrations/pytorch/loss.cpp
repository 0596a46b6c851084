// SPDX-License-Identifier: MIT
// Losses and their gradients.
#include <ATen/core/Reduction.h>
#include <torch/library.h>

#include "launch.h"
#include "pointwise.h"

namespace enpu::pytorch {
namespace {

using OptTensor = std::optional<Tensor>;

Tensor reduced(const Tensor& each, int64_t reduction) {
    if (reduction == at::Reduction::Mean) return each.mean();
    if (reduction == at::Reduction::Sum) return each.sum();
    return each;
}

Tensor& give(Tensor& out, const Tensor& result) {
    resize_out(out, result.sizes());
    return out.copy_(result);
}

// The factor that the mean puts on each element's gradient.
double share(const Tensor& self, int64_t reduction) {
    return reduction == at::Reduction::Mean ? 1.0 / static_cast<double>(self.numel()) : 1.0;
}

// ---- negative log likelihood: classes are axis 1 of [N,C,...], or the only axis

struct Classes {
    Tensor places;  // targets with an axis for the class; ignored ones are 0
    Tensor weight;  // of each element, 0 where ignored
};

Classes classes_of(const Tensor& self, const Tensor& target, const OptTensor& weight,
                   int64_t ignore) {
    const int64_t axis = self.dim() == 1 ? 0 : 1;
    const int64_t count = self.size(axis);
    if (weight && weight->defined()) {
        TORCH_CHECK(weight->dim() == 1 && weight->numel() == count,
                    "weight tensor should be defined either for all ", count,
                    " classes or no classes but got weight tensor of shape: ", weight->sizes());
    }
    const Tensor kept = target.ne(ignore);
    const Tensor safe = at::where(kept, target, at::scalar_tensor(0, target.scalar_type()));
    Tensor each = kept.to(self.scalar_type());
    if (weight && weight->defined())
        each = each * weight->index_select(0, safe.reshape({-1})).view(target.sizes());
    return {safe.unsqueeze(axis), each};
}

std::tuple<Tensor, Tensor> nll_forward(const Tensor& self, const Tensor& target,
                                       const OptTensor& weight, int64_t reduction, int64_t ignore) {
    const int64_t axis = self.dim() == 1 ? 0 : 1;
    const Classes c = classes_of(self, target, weight, ignore);
    const Tensor total = c.weight.sum();
    if (target.numel() == 0)
        return {reduced(at::zeros(target.sizes(), self.options()), reduction), total};
    // What is ignored counts 0 even when it is not finite.
    const Tensor picked = self.gather(axis, c.places).squeeze(axis);
    const Tensor each = at::where(c.weight.eq(0), 0, picked.neg() * c.weight);
    if (reduction == at::Reduction::None) return {each, at::zeros({}, self.options())};
    const Tensor sum = each.sum();
    return {reduction == at::Reduction::Mean ? sum / total : sum, total};
}

std::tuple<Tensor&, Tensor&> nll_forward_out(const Tensor& self, const Tensor& target,
                                             const OptTensor& weight, int64_t reduction,
                                             int64_t ignore, Tensor& out, Tensor& total) {
    const auto [loss, sum] = nll_forward(self, target, weight, reduction, ignore);
    give(out, loss);
    give(total, sum);
    return {out, total};
}

Tensor nll_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                    const OptTensor& weight, int64_t reduction, int64_t ignore,
                    const Tensor& total) {
    const int64_t axis = self.dim() == 1 ? 0 : 1;
    const Classes c = classes_of(self, target, weight, ignore);
    Tensor each = c.weight.neg() * grad;
    if (reduction == at::Reduction::Mean) each = each / total;
    c10::SmallVector<int64_t, 8> numbers(static_cast<size_t>(self.dim()), 1);
    numbers[static_cast<size_t>(axis)] = self.size(axis);
    const Tensor named = iota(self.size(axis)).view(numbers).eq(c.places);
    return at::where(named, each.unsqueeze(axis), 0);
}

Tensor& nll_backward_out(const Tensor& grad, const Tensor& self, const Tensor& target,
                         const OptTensor& weight, int64_t reduction, int64_t ignore,
                         const Tensor& total, Tensor& out) {
    return give(out, nll_backward(grad, self, target, weight, reduction, ignore, total));
}

// ---- distances

Tensor& mse_out(const Tensor& self, const Tensor& target, int64_t reduction, Tensor& out) {
    return give(out, reduced((self - target).square(), reduction));
}
Tensor mse_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                    int64_t reduction) {
    return (self - target) * grad * (2 * share(self, reduction));
}
Tensor& mse_backward_out(const Tensor& grad, const Tensor& self, const Tensor& target,
                         int64_t reduction, Tensor& out) {
    return give(out, mse_backward(grad, self, target, reduction));
}

Tensor& smooth_l1_out(const Tensor& self, const Tensor& target, int64_t reduction, double beta,
                      Tensor& out) {
    const Tensor distance = (self - target).abs();
    if (beta == 0) return give(out, reduced(distance, reduction));
    const Tensor near = distance.square() * (0.5 / beta);
    return give(out, reduced(at::where(distance.lt(beta), near, distance - 0.5 * beta), reduction));
}
Tensor& smooth_l1_backward_out(const Tensor& grad, const Tensor& self, const Tensor& target,
                               int64_t reduction, double beta, Tensor& out) {
    const Tensor difference = self - target;
    const Tensor slope = beta == 0 ? difference.sign() : (difference / beta).clamp(-1, 1);
    return give(out, slope * grad * share(self, reduction));
}

Tensor huber(const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
    const Tensor distance = (self - target).abs();
    const Tensor near = distance.square() * 0.5;
    return reduced(at::where(distance.lt(delta), near, (distance - 0.5 * delta) * delta),
                   reduction);
}
Tensor& huber_out(const Tensor& self, const Tensor& target, int64_t reduction, double delta,
                  Tensor& out) {
    return give(out, huber(self, target, reduction, delta));
}
Tensor& huber_backward_out(const Tensor& grad, const Tensor& self, const Tensor& target,
                           int64_t reduction, double delta, Tensor& out) {
    return give(out, (self - target).clamp(-delta, delta) * grad * share(self, reduction));
}

// ---- binary cross entropy; logarithms are at least -100, as everywhere in PyTorch

Tensor bce(const Tensor& self, const Tensor& target, const OptTensor& weight, int64_t reduction) {
    const Tensor yes = self.log().clamp_min(-100), no = (1 - self).log().clamp_min(-100);
    Tensor each = (target - 1) * no - target * yes;
    if (weight && weight->defined()) each = each * *weight;
    return reduced(each, reduction);
}
Tensor& bce_out(const Tensor& self, const Tensor& target, const OptTensor& weight,
                int64_t reduction, Tensor& out) {
    return give(out, bce(self, target, weight, reduction));
}
Tensor bce_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                    const OptTensor& weight, int64_t reduction) {
    Tensor result = grad * (self - target) / ((1 - self) * self).clamp_min(1e-12);
    if (weight && weight->defined()) result = result * *weight;
    return result * share(self, reduction);
}
Tensor& bce_backward_out(const Tensor& grad, const Tensor& self, const Tensor& target,
                         const OptTensor& weight, int64_t reduction, Tensor& out) {
    return give(out, bce_backward(grad, self, target, weight, reduction));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("nll_loss_forward.output", nll_forward_out);
    m.impl("nll_loss_backward.grad_input", nll_backward_out);
    m.impl("nll_loss2d_forward", nll_forward);
    m.impl("nll_loss2d_forward.output", nll_forward_out);
    m.impl("nll_loss2d_backward", nll_backward);
    m.impl("nll_loss2d_backward.grad_input", nll_backward_out);
    m.impl("mse_loss.out", mse_out);
    m.impl("mse_loss_backward", mse_backward);
    m.impl("mse_loss_backward.grad_input", mse_backward_out);
    m.impl("smooth_l1_loss.out", smooth_l1_out);
    m.impl("smooth_l1_loss_backward.grad_input", smooth_l1_backward_out);
    m.impl("huber_loss", huber);
    m.impl("huber_loss.out", huber_out);
    m.impl("huber_loss_backward.out", huber_backward_out);
    m.impl("binary_cross_entropy", bce);
    m.impl("binary_cross_entropy.out", bce_out);
    m.impl("binary_cross_entropy_backward", bce_backward);
    m.impl("binary_cross_entropy_backward.grad_input", bce_backward_out);
}

}  // namespace
}  // namespace enpu::pytorch
