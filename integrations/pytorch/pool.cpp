// SPDX-License-Identifier: MIT
// Pooling of images [N,C,H,W] or [C,H,W]. What the pool kernel does not give (the places of maxima,
// gradients) is computed for one offset inside the window after the other, on strided views.
#include <ATen/native/AdaptivePooling.h>
#include <ATen/native/Pool.h>
#include <torch/library.h>

#include "launch.h"

namespace enpu::pytorch {
namespace {

struct Window {
    int64_t kernel[2], stride[2], padding[2], dilation[2], output[2];
};

int64_t pick(IntArrayRef list, int i, int64_t otherwise) {
    return list.empty() ? otherwise : list.size() == 1 ? list[0] : list[static_cast<size_t>(i)];
}

Window window_of(const Tensor& x, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                 IntArrayRef dilation, bool ceil_mode) {
    TORCH_CHECK(x.dim() == 3 || x.dim() == 4, "pool: Expected 3D or 4D (batch mode) tensor, not ",
                x.dim(), " axes");
    Window w{};
    for (int i = 0; i < 2; ++i) {
        w.kernel[i] = pick(kernel, i, 0);
        w.stride[i] = pick(stride, i, w.kernel[i]);
        w.padding[i] = pick(padding, i, 0);
        w.dilation[i] = pick(dilation, i, 1);
        TORCH_CHECK(w.kernel[i] > 0 && w.stride[i] > 0 && w.dilation[i] > 0 && w.padding[i] >= 0,
                    "pool: kernel, stride and dilation must be greater than zero");
        TORCH_CHECK(w.padding[i] <= w.kernel[i] / 2,
                    "pad should be at most half of effective kernel size");
        w.output[i] = at::native::pooling_output_shape<int64_t>(
            x.size(x.dim() - 2 + i), w.kernel[i], w.padding[i], w.stride[i], w.dilation[i],
            ceil_mode);
        TORCH_CHECK(w.output[i] > 0, "pool: Output size is too small");
    }
    return w;
}

Tensor as_images(const Tensor& t) {
    return t.dim() == 4 ? t : t.unsqueeze(0);
}

c10::SmallVector<int64_t, 4> output_sizes(const Tensor& x, const Window& w) {
    c10::SmallVector<int64_t, 4> sizes(x.sizes().begin(), x.sizes().end());
    sizes[sizes.size() - 2] = w.output[0];
    sizes[sizes.size() - 1] = w.output[1];
    return sizes;
}

enpu_op_pool_params params_of(const Window& w, uint32_t function) {
    enpu_op_pool_params params{};
    params.function = function;
    for (int i = 0; i < 2; ++i) {
        params.kernel[i] = static_cast<uint32_t>(w.kernel[i]);
        params.stride[i] = static_cast<uint32_t>(w.stride[i]);
        params.dilation[i] = static_cast<uint32_t>(w.dilation[i]);
        params.pad[i] = params.pad[2 + i] = static_cast<uint32_t>(w.padding[i]);
    }
    return params;
}

// Rows and columns that windows reach, from the first padded one on.
int64_t reach(const Window& w, int i) {
    return (w.output[i] - 1) * w.stride[i] + w.dilation[i] * (w.kernel[i] - 1) + 1;
}

// Of a padded image: what offset (row, column) of each window sees, [N,C,OH,OW].
Tensor seen(const Tensor& padded, const Window& w, int64_t row, int64_t column) {
    return padded
        .slice(2, row * w.dilation[0], row * w.dilation[0] + (w.output[0] - 1) * w.stride[0] + 1,
               w.stride[0])
        .slice(3, column * w.dilation[1],
               column * w.dilation[1] + (w.output[1] - 1) * w.stride[1] + 1, w.stride[1]);
}

// x inside a larger image of `value`; `at` is where x lies in it.
Tensor padded_image(const Tensor& x, const Window& w, const Scalar& value) {
    int64_t sizes[4] = {x.size(0), x.size(1), 0, 0};
    for (int i = 0; i < 2; ++i) sizes[2 + i] = std::max(reach(w, i), x.size(2 + i) + w.padding[i]);
    return new_tensor(sizes, x.scalar_type()).fill_(value);
}

Tensor inner(const Tensor& padded, const Tensor& x, const Window& w) {
    return padded.narrow(2, w.padding[0], x.size(2)).narrow(3, w.padding[1], x.size(3));
}

// For each window, the number in its plane of the element at its first offset, [OH,OW].
Tensor first_places(const Window& w, int64_t width) {
    const auto options = at::TensorOptions().dtype(at::kLong).device(npu());
    const Tensor rows = at::arange(w.output[0], options) * w.stride[0] - w.padding[0];
    const Tensor columns = at::arange(w.output[1], options) * w.stride[1] - w.padding[1];
    return (rows * width).unsqueeze(1) + columns.unsqueeze(0);
}

std::tuple<Tensor&, Tensor&> max_pool_out(const Tensor& self, IntArrayRef kernel,
                                          IntArrayRef stride, IntArrayRef padding,
                                          IntArrayRef dilation, bool ceil_mode, Tensor& out,
                                          Tensor& places) {
    const Window w = window_of(self, kernel, stride, padding, dilation, ceil_mode);
    const auto sizes = output_sizes(self, w);
    resize_out(out, sizes);
    resize_out(places, sizes);
    if (out.numel() == 0) return {out, places};
    check_operand(self, "max_pool2d");
    const Tensor x = as_images(self);
    const Tensor y = new_tensor(as_images(out).sizes(), self.scalar_type());
    launch(ENPU_OP_POOL2D_FWD, params_of(w, ENPU_OP_POOL_MAX), {x, y});
    out.copy_(y.view(out.sizes()));

    const Tensor padded = padded_image(x, w, -std::numeric_limits<double>::infinity());
    inner(padded, x, w).copy_(x);
    const int64_t count = w.kernel[0] * w.kernel[1];
    const Tensor all =
        new_tensor({x.size(0), x.size(1), w.output[0], w.output[1], count}, x.scalar_type());
    for (int64_t k = 0; k < count; ++k)
        all.select(4, k).copy_(seen(padded, w, k / w.kernel[1], k % w.kernel[1]));
    const Tensor best = all.argmax(4);
    const Tensor row = best.floor_divide(w.kernel[1]), column = best.remainder(w.kernel[1]);
    const Tensor place =
        first_places(w, x.size(3)) + row * (w.dilation[0] * x.size(3)) + column * w.dilation[1];
    places.copy_(place.view(places.sizes()));
    return {out, places};
}

Tensor& max_pool_backward_out(const Tensor& grad, const Tensor& self, IntArrayRef kernel,
                              IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                              bool ceil_mode, const Tensor& places, Tensor& out) {
    const Window w = window_of(self, kernel, stride, padding, dilation, ceil_mode);
    resize_out(out, self.sizes());
    if (out.numel() == 0) return out;
    const Tensor x = as_images(self), g = as_images(grad);
    const Tensor from_first = as_images(places) - first_places(w, x.size(3));
    const Tensor sum = padded_image(x, w, 0);
    for (int64_t row = 0; row < w.kernel[0]; ++row) {
        for (int64_t column = 0; column < w.kernel[1]; ++column) {
            const int64_t offset = row * w.dilation[0] * x.size(3) + column * w.dilation[1];
            seen(sum, w, row, column).add_(at::where(from_first.eq(offset), g, 0));
        }
    }
    return out.copy_(inner(sum, x, w).reshape(self.sizes()));
}

// ---- averages

// What each window's sum is divided by, when that is not its size; [OH,OW].
Tensor divisors(const Tensor& x, const Window& w, bool include_pad) {
    c10::SmallVector<Tensor, 2> axes;
    for (int i = 0; i < 2; ++i) {
        std::vector<float> counts;
        const int64_t size = x.size(2 + i);
        for (int64_t o = 0; o < w.output[i]; ++o) {
            const int64_t start = o * w.stride[i] - w.padding[i];
            const int64_t end = std::min(start + w.kernel[i], size + w.padding[i]);
            const int64_t inside = std::min(end, size) - std::max<int64_t>(start, 0);
            counts.push_back(static_cast<float>(include_pad ? end - start : inside));
        }
        axes.push_back(at::tensor(counts).to(npu(), x.scalar_type()));
    }
    return axes[0].unsqueeze(1) * axes[1].unsqueeze(0);
}

Tensor& avg_pool_out(const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                     IntArrayRef padding, bool ceil_mode, bool include_pad,
                     std::optional<int64_t> divisor, Tensor& out) {
    const Window w = window_of(self, kernel, stride, padding, {}, ceil_mode);
    TORCH_CHECK(!divisor || *divisor != 0, "divisor must be not zero");
    resize_out(out, output_sizes(self, w));
    if (out.numel() == 0) return out;
    check_operand(self, "avg_pool2d");
    const Tensor x = as_images(self);
    const Tensor y = new_tensor(as_images(out).sizes(), self.scalar_type());
    const bool sums = divisor.has_value();
    launch(ENPU_OP_POOL2D_FWD,
           params_of(
               w, include_pad && !sums ? ENPU_OP_POOL_AVERAGE_INCLUDE_PAD : ENPU_OP_POOL_AVERAGE),
           {x, y});
    if (sums) y.mul_(divisors(x, w, false)).div_(static_cast<double>(*divisor));
    return out.copy_(y.view(out.sizes()));
}

Tensor& avg_pool_backward_out(const Tensor& grad, const Tensor& self, IntArrayRef kernel,
                              IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                              bool include_pad, std::optional<int64_t> divisor, Tensor& out) {
    const Window w = window_of(self, kernel, stride, padding, {}, ceil_mode);
    resize_out(out, self.sizes());
    if (out.numel() == 0) return out;
    const Tensor x = as_images(self);
    const Tensor share = divisor ? as_images(grad) / static_cast<double>(*divisor)
                                 : as_images(grad) / divisors(x, w, include_pad);
    const Tensor sum = padded_image(x, w, 0);
    for (int64_t row = 0; row < w.kernel[0]; ++row) {
        for (int64_t column = 0; column < w.kernel[1]; ++column)
            seen(sum, w, row, column).add_(share);
    }
    return out.copy_(inner(sum, x, w).reshape(self.sizes()));
}

// ---- adaptive averages: along each axis, a product with a matrix of shares

Tensor shares(int64_t from, int64_t to, const Tensor& like) {
    std::vector<float> matrix(static_cast<size_t>(from * to), 0.0f);
    for (int64_t o = 0; o < to; ++o) {
        const int64_t start = at::native::start_index(o, to, from),
                      end = at::native::end_index(o, to, from);
        for (int64_t i = start; i < end; ++i)
            matrix[static_cast<size_t>(i * to + o)] = 1.0f / static_cast<float>(end - start);
    }
    return at::tensor(matrix).view({from, to}).to(npu(), like.scalar_type());
}

Tensor adaptive_avg_pool(const Tensor& self, IntArrayRef output) {
    TORCH_CHECK(self.dim() == 3 || self.dim() == 4,
                "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got ", self.sizes());
    const Tensor columns = shares(self.size(-1), output[1], self);
    const Tensor rows = shares(self.size(-2), output[0], self);
    return self.matmul(columns).transpose(-1, -2).matmul(rows).transpose(-1, -2).contiguous();
}

Tensor& adaptive_avg_pool_out(const Tensor& self, IntArrayRef output, Tensor& out) {
    const Tensor result = adaptive_avg_pool(self, output);
    resize_out(out, result.sizes());
    return out.copy_(result);
}

Tensor adaptive_avg_pool_backward(const Tensor& grad, const Tensor& self) {
    const Tensor columns = shares(self.size(-1), grad.size(-1), self);
    const Tensor rows = shares(self.size(-2), grad.size(-2), self);
    return grad.matmul(columns.t())
        .transpose(-1, -2)
        .matmul(rows.t())
        .transpose(-1, -2)
        .contiguous();
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("max_pool2d_with_indices.out", max_pool_out);
    m.impl("max_pool2d_with_indices_backward.grad_input", max_pool_backward_out);
    m.impl("avg_pool2d.out", avg_pool_out);
    m.impl("avg_pool2d_backward.grad_input", avg_pool_backward_out);
    m.impl("_adaptive_avg_pool2d", adaptive_avg_pool);
    m.impl("adaptive_avg_pool2d.out", adaptive_avg_pool_out);
    m.impl("_adaptive_avg_pool2d_backward", adaptive_avg_pool_backward);
}

}  // namespace
}  // namespace enpu::pytorch
