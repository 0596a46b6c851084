// SPDX-License-Identifier: MIT
// Convolutions of images. PyTorch brings rows (1d) into this form itself. The backward passes are
// convolutions, too: no unfolded copy of the input is made.
#include <torch/library.h>

#include "launch.h"

namespace enpu::pytorch {
namespace {

struct Window {
    int64_t stride[2], padding[2], dilation[2], groups;
};

Window window_of(const Tensor& input, const Tensor& weight, IntArrayRef stride, IntArrayRef padding,
                 IntArrayRef dilation, int64_t groups) {
    TORCH_CHECK_NOT_IMPLEMENTED(input.dim() == 4 && weight.dim() == 4,
                                "enpu: the device convolves over one or two axes, not ",
                                input.dim() - 2);
    TORCH_CHECK(groups >= 1, "groups must be at least 1, not ", groups);
    Window w{};
    for (int i = 0; i < 2; ++i) {
        w.stride[i] = stride[i];
        w.padding[i] = padding[i];
        w.dilation[i] = dilation[i];
        TORCH_CHECK(
            stride[i] >= 1 && padding[i] >= 0 && dilation[i] >= 1,
            "enpu: convolution: stride and dilation must be at least 1, padding at least 0");
    }
    w.groups = groups;
    return w;
}

uint32_t number(int64_t value) {
    TORCH_CHECK(value >= 0 && value <= UINT32_MAX, "enpu: convolution: ", value,
                " is out of range");
    return static_cast<uint32_t>(value);
}

enpu_op_conv_params params_of(const Window& w) {
    enpu_op_conv_params params{};
    for (int i = 0; i < 2; ++i) {
        params.stride[i] = number(w.stride[i]);
        params.pad[i] = params.pad[2 + i] = number(w.padding[i]);
        params.dilation[i] = number(w.dilation[i]);
    }
    params.groups = number(w.groups);
    return params;
}

Tensor convolve(const Tensor& x, const Tensor& weight, const Tensor& bias, const Window& w) {
    int64_t sizes[4] = {x.size(0), weight.size(0), 0, 0};
    for (int i = 0; i < 2; ++i) {
        const int64_t kernel = w.dilation[i] * (weight.size(2 + i) - 1) + 1;
        const int64_t room = x.size(2 + i) + 2 * w.padding[i] - kernel;
        TORCH_CHECK(room >= 0, "Calculated padded input size: ", x.size(2 + i) + 2 * w.padding[i],
                    ". Kernel size: ", kernel,
                    ". Kernel size can't be greater than actual input size");
        sizes[2 + i] = room / w.stride[i] + 1;
    }
    const Tensor y = new_tensor(sizes, x.scalar_type());
    if (y.numel() == 0) return y;
    launch(ENPU_OP_CONV2D_FWD, params_of(w), {x, weight, bias, Tensor(), Tensor(), y});
    return y;
}

// The transposed convolution with a result of these sizes.
Tensor spread(const Tensor& x, const Tensor& weight, const Tensor& bias, const Window& w,
              IntArrayRef sizes) {
    const Tensor y = new_tensor(sizes, x.scalar_type());
    if (y.numel() == 0) return y;
    launch(ENPU_OP_CONV_TRANSPOSE2D_FWD, params_of(w), {x, weight, bias, y});
    return y;
}

Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                   IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
                   IntArrayRef output_padding, int64_t groups) {
    const Window w = window_of(input, weight, stride, padding, dilation, groups);
    const Tensor b = bias.value_or(Tensor());
    if (!transposed) return convolve(input, weight, b, w);
    int64_t sizes[4] = {input.size(0), weight.size(1) * groups, 0, 0};
    for (int i = 0; i < 2; ++i) {
        sizes[2 + i] = (input.size(2 + i) - 1) * w.stride[i] - 2 * w.padding[i] +
                       w.dilation[i] * (weight.size(2 + i) - 1) + 1 + output_padding[i];
    }
    return spread(input, weight, b, w, sizes);
}

// Gradient of the weights [O,C/groups,KH,KW] of a convolution of `x` that gave `grad`: a convolution
// over the batch, in which x is the input [C/groups, groups N, H, W], grad the weights [O,N,OH,OW],
// and stride and dilation have changed places.
Tensor weight_gradient(const Tensor& x, const Tensor& grad, const Window& w, IntArrayRef kernel) {
    const int64_t n = x.size(0), per_group = x.size(1) / w.groups;
    const Tensor images = x.reshape({n, w.groups, per_group, x.size(2), x.size(3)})
                              .permute({2, 1, 0, 3, 4})
                              .reshape({per_group, w.groups * n, x.size(2), x.size(3)});
    Window swapped = w;
    for (int i = 0; i < 2; ++i) std::swap(swapped.stride[i], swapped.dilation[i]);
    const Tensor all = convolve(images, grad.transpose(0, 1).contiguous(), {}, swapped);
    // Rows and columns that no whole stride reached give more than the kernel.
    return all.narrow(2, 0, kernel[0]).narrow(3, 0, kernel[1]).transpose(0, 1).contiguous();
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& grad, const Tensor& input,
                                                        const Tensor& weight, IntArrayRef stride,
                                                        IntArrayRef padding, IntArrayRef dilation,
                                                        bool transposed, IntArrayRef output_padding,
                                                        int64_t groups,
                                                        std::array<bool, 3> wanted) {
    const Window w = window_of(input, weight, stride, padding, dilation, groups);
    const IntArrayRef kernel = weight.sizes().slice(2);
    Tensor grad_input, grad_weight, grad_bias;
    if (wanted[0] && transposed) {
        grad_input =
            convolve(grad, weight, {}, w).narrow(2, 0, input.size(2)).narrow(3, 0, input.size(3));
    } else if (wanted[0]) {
        grad_input = spread(grad, weight, {}, w, input.sizes());
    }
    if (wanted[1]) {
        grad_weight = transposed ? weight_gradient(grad, input, w, kernel)
                                 : weight_gradient(input, grad, w, kernel);
    }
    if (wanted[2]) grad_bias = grad.sum({0, 2, 3});
    return {grad_input, grad_weight, grad_bias};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("convolution_overrideable", convolution);
    m.impl("convolution_backward_overrideable", convolution_backward);
}

}  // namespace
}  // namespace enpu::pytorch
