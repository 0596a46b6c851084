// SPDX-License-Identifier: MIT
// Layer, group and batch normalisation. The forward passes use the device's norm kernel; PyTorch wants
// mean and 1 / standard deviation beside it for the backward passes.
#include <torch/library.h>

#include "launch.h"

namespace enpu::pytorch {
namespace {

using OptTensor = std::optional<Tensor>;

Tensor given(const OptTensor& t) {
    return t && t->defined() ? *t : Tensor();
}

// Mean and 1 / sqrt(variance + epsilon) over the last axis.
std::pair<Tensor, Tensor> statistics(const Tensor& rows, double epsilon) {
    const Tensor mean = rows.mean(-1, true);
    const Tensor variance = (rows - mean).square_().mean(-1, true);
    return {mean, variance.add_(epsilon).rsqrt_()};
}

// What the norm kernel does last; for an epsilon below 0, which PyTorch takes and the kernel does not.
Tensor affine(const Tensor& xhat, const Tensor& scale, const Tensor& shift) {
    const Tensor scaled = scale.defined() ? xhat * scale : xhat;
    return shift.defined() ? scaled + shift : scaled;
}

// The gradient of x for xhat = (x - mean) rstd over the last axis, where `grad` is that of xhat.
Tensor normalised_gradient(const Tensor& grad, const Tensor& xhat, const Tensor& rstd) {
    const Tensor centred = grad - grad.mean(-1, true) - xhat * (grad * xhat).mean(-1, true);
    return centred * rstd;
}

// ---- layer norm

std::tuple<Tensor, Tensor, Tensor> layer_norm(const Tensor& input, IntArrayRef shape,
                                              const OptTensor& weight, const OptTensor& bias,
                                              double epsilon) {
    const auto axes = static_cast<int64_t>(shape.size());
    const int64_t axis = input.dim() - axes;
    TORCH_CHECK(
        axis >= 0 && input.sizes().slice(static_cast<size_t>(std::max<int64_t>(axis, 0))) == shape,
        "Given normalized_shape=", shape, ", expected input with shape [*, ", shape,
        "], but got input of size ", input.sizes());
    const Tensor x = input.contiguous();
    c10::SmallVector<int64_t, 8> kept(x.sizes().begin(), x.sizes().end());
    for (int64_t i = axis; i < x.dim(); ++i) kept[static_cast<size_t>(i)] = 1;
    const Tensor y = new_tensor(x.sizes(), x.scalar_type());
    if (x.numel() == 0) return {y, at::zeros(kept, x.options()), at::zeros(kept, x.options())};
    auto [mean, rstd] = statistics(x.flatten(axis), epsilon);
    Tensor scale = given(weight), shift = given(bias);
    if (scale.defined()) scale = scale.expand(x.sizes());
    if (shift.defined()) shift = shift.expand(x.sizes());
    if (epsilon < 0) {
        y.copy_(affine((x.flatten(axis) - mean).mul_(rstd).view(x.sizes()), scale, shift));
        return {y, mean.view(kept), rstd.view(kept)};
    }
    enpu_op_norm_params params{};
    params.kind = ENPU_OP_NORM_LAYER;
    params.axis = static_cast<uint32_t>(axis);
    params.epsilon = static_cast<float>(epsilon);
    launch(ENPU_OP_NORM_FWD, params, {x, scale, shift, Tensor(), Tensor(), y});
    return {y, mean.view(kept), rstd.view(kept)};
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward(const Tensor& grad, const Tensor& input,
                                                       IntArrayRef shape, const Tensor& mean,
                                                       const Tensor& rstd, const OptTensor& weight,
                                                       const OptTensor&,
                                                       std::array<bool, 3> wanted) {
    const int64_t axis = input.dim() - static_cast<int64_t>(shape.size());
    c10::SmallVector<int64_t, 8> outer;
    for (int64_t i = 0; i < axis; ++i) outer.push_back(i);
    const auto over_outer = [&](const Tensor& t) {
        return outer.empty() ? t.clone() : t.sum(outer);
    };
    const Tensor xhat = (input - mean) * rstd;
    Tensor dx, dw, db;
    if (wanted[0]) {
        const Tensor w = given(weight);
        const Tensor scaled = w.defined() ? grad * w : grad;
        dx = normalised_gradient(scaled.flatten(axis), xhat.flatten(axis), rstd.flatten(axis))
                 .view(input.sizes());
    }
    if (wanted[1]) dw = over_outer(grad * xhat);
    if (wanted[2]) db = over_outer(grad);
    return {dx, dw, db};
}

// ---- group norm

std::tuple<Tensor, Tensor, Tensor> group_norm(const Tensor& input, const OptTensor& weight,
                                              const OptTensor& bias, int64_t n, int64_t c,
                                              int64_t area, int64_t groups, double epsilon) {
    TORCH_CHECK(groups > 0 && c % groups == 0, "group_norm: ", c, " channels are no multiple of ",
                groups, " groups");
    const Tensor x = input.contiguous();
    const Tensor y = new_tensor(x.sizes(), x.scalar_type());
    if (x.numel() == 0)
        return {y, at::zeros({n, groups}, x.options()), at::zeros({n, groups}, x.options())};
    auto [mean, rstd] = statistics(x.view({n, groups, c / groups * area}), epsilon);
    if (epsilon < 0) {
        const Tensor xhat = (x.view({n, groups, c / groups * area}) - mean).mul_(rstd);
        const auto channels = [&](const Tensor& t) { return t.defined() ? t.view({1, c, 1}) : t; };
        y.copy_(affine(xhat.view({n, c, area}), channels(given(weight)), channels(given(bias)))
                    .view(x.sizes()));
        return {y, mean.squeeze(-1), rstd.squeeze(-1)};
    }
    enpu_op_norm_params params{};
    params.kind = ENPU_OP_NORM_GROUP;
    params.groups = static_cast<uint32_t>(groups);
    params.epsilon = static_cast<float>(epsilon);
    launch(ENPU_OP_NORM_FWD, params, {x, given(weight), given(bias), Tensor(), Tensor(), y});
    return {y, mean.squeeze(-1), rstd.squeeze(-1)};
}

std::tuple<Tensor, Tensor, Tensor> group_norm_backward(const Tensor& grad, const Tensor& input,
                                                       const Tensor& mean, const Tensor& rstd,
                                                       const OptTensor& weight, int64_t n,
                                                       int64_t c, int64_t area, int64_t groups,
                                                       std::array<bool, 3> wanted) {
    const Tensor g = grad.contiguous().view({n, c, area});
    const Tensor rows = input.contiguous().view({n, groups, c / groups * area});
    const Tensor spread = rstd.view({n, groups, 1});
    const Tensor xhat = (rows - mean.view({n, groups, 1})) * spread;
    Tensor dx, dw, db;
    if (wanted[0]) {
        const Tensor w = given(weight);
        const Tensor scaled = w.defined() ? g * w.view({1, c, 1}) : g;
        dx = normalised_gradient(scaled.reshape(rows.sizes()), xhat, spread).view(input.sizes());
    }
    if (wanted[1]) dw = (g * xhat.view({n, c, area})).sum({0, 2});
    if (wanted[2]) db = g.sum({0, 2});
    return {dx, dw, db};
}

// ---- batch norm

// A view with one row for each channel would need a copy; these are the axes to sum over instead.
c10::SmallVector<int64_t, 8> all_but_channels(const Tensor& x) {
    c10::SmallVector<int64_t, 8> axes{0};
    for (int64_t i = 2; i < x.dim(); ++i) axes.push_back(i);
    return axes;
}

Tensor per_channel(const Tensor& t, const Tensor& x) {
    c10::SmallVector<int64_t, 8> sizes(static_cast<size_t>(x.dim()), 1);
    sizes[1] = t.numel();
    return t.view(sizes);
}

void update_running(const Tensor& running, const Tensor& now, double momentum) {
    if (running.defined()) running.copy_(running * (1 - momentum) + now * momentum);
}

std::tuple<Tensor, Tensor, Tensor> batch_norm(const Tensor& x, const OptTensor& weight,
                                              const OptTensor& bias, const OptTensor& running_mean,
                                              const OptTensor& running_var, bool training,
                                              double momentum, double epsilon) {
    TORCH_CHECK(x.dim() >= 2, "batch_norm: expected at least 2 axes, got ", x.dim());
    const Tensor y = at::empty_like(x);
    const int64_t channels = x.size(1);
    Tensor mean = given(running_mean), variance = given(running_var), saved_mean, saved_rstd;
    if (training) {
        const auto axes = all_but_channels(x);
        mean = x.mean(axes);
        variance = (x - per_channel(mean, x)).square_().mean(axes);
        saved_mean = mean;
        saved_rstd = (variance + epsilon).rsqrt_();
        const double count =
            static_cast<double>(x.numel()) / static_cast<double>(std::max<int64_t>(channels, 1));
        update_running(given(running_mean), mean, momentum);
        update_running(given(running_var), variance * (count / (count - 1)), momentum);
    } else {
        saved_mean = saved_rstd = at::empty({0}, x.options());
    }
    if (x.numel() == 0) return {y, saved_mean, saved_rstd};
    TORCH_CHECK_NOT_IMPLEMENTED(epsilon >= 0, "enpu: batch_norm: epsilon is below 0: ", epsilon);
    enpu_op_norm_params params{};
    params.kind = ENPU_OP_NORM_BATCH;
    params.epsilon = static_cast<float>(epsilon);
    launch(ENPU_OP_NORM_FWD, params, {x, given(weight), given(bias), mean, variance, y});
    return {y, saved_mean, saved_rstd};
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_no_stats(const Tensor& x, const OptTensor& weight,
                                                       const OptTensor& bias, bool training,
                                                       double momentum, double epsilon) {
    TORCH_CHECK(training, "batch_norm: without running statistics it can only train");
    return batch_norm(x, weight, bias, {}, {}, true, momentum, epsilon);
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_legit(const Tensor& x, const OptTensor& weight,
                                                    const OptTensor& bias, Tensor& running_mean,
                                                    Tensor& running_var, bool training,
                                                    double momentum, double epsilon) {
    return batch_norm(x, weight, bias, running_mean, running_var, training, momentum, epsilon);
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward(
    const Tensor& grad, const Tensor& x, const OptTensor& weight, const OptTensor& running_mean,
    const OptTensor& running_var, const OptTensor& saved_mean, const OptTensor& saved_rstd,
    bool training, double epsilon, std::array<bool, 3> wanted) {
    const auto axes = all_but_channels(x);
    const Tensor mean = training ? *saved_mean : *running_mean;
    const Tensor rstd = training ? *saved_rstd : (*running_var + epsilon).rsqrt_();
    const Tensor xhat = (x - per_channel(mean, x)) * per_channel(rstd, x);
    const Tensor sum_grad = grad.sum(axes), sum_product = (grad * xhat).sum(axes);
    Tensor dx;
    if (wanted[0]) {
        Tensor scale = rstd;
        if (const Tensor w = given(weight); w.defined()) scale = rstd * w;
        Tensor centred = grad;
        if (training) {
            const double count = static_cast<double>(x.numel()) / static_cast<double>(x.size(1));
            centred = grad - per_channel(sum_grad / count, x) -
                      xhat * per_channel(sum_product / count, x);
        }
        dx = centred * per_channel(scale, x);
    }
    return {dx, wanted[1] ? sum_product : Tensor(), wanted[2] ? sum_grad : Tensor()};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("native_layer_norm", layer_norm);
    m.impl("native_layer_norm_backward", layer_norm_backward);
    m.impl("native_group_norm", group_norm);
    m.impl("native_group_norm_backward", group_norm_backward);
    m.impl("native_batch_norm", batch_norm);
    m.impl("_native_batch_norm_legit", batch_norm_legit);
    m.impl("_native_batch_norm_legit.no_stats", batch_norm_no_stats);
    m.impl("native_batch_norm_backward", batch_norm_backward);
}

}  // namespace
}  // namespace enpu::pytorch
