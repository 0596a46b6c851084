// SPDX-License-Identifier: MIT
// Interpolation. Each axis is resampled by a product with a matrix of weights, made on the host; the
// gradient is the product with its transpose.
#include <ATen/native/UpSample.h>

#include <torch/library.h>

#include <functional>

#include "launch.h"

namespace enpu::pytorch {
namespace {

enum class Mode { kNearest, kNearestExact, kLinear, kCubic };

using OptScale = std::optional<double>;

// Where output `o` lies in the input.
double position(Mode mode, int64_t o, int64_t from, int64_t to, bool align, OptScale scale) {
    if (mode == Mode::kNearest || mode == Mode::kNearestExact) {
        const float step = at::native::compute_scales_value<float>(scale, from, to);
        const float shifted = static_cast<float>(o) + (mode == Mode::kNearestExact ? 0.5f : 0.0f);
        return std::min<double>(std::floor(shifted * step), static_cast<double>(from - 1));
    }
    const float step = at::native::area_pixel_compute_scale<float>(from, to, align, scale);
    return at::native::area_pixel_compute_source_index<float>(step, o, align, mode == Mode::kCubic);
}

// Adds the weights of one output to its column; what lies outside counts for the border.
void add_taps(Mode mode, double at, int64_t from, const std::function<void(int64_t, float)>& add) {
    const auto first = static_cast<int64_t>(std::floor(at));
    const auto t = static_cast<float>(at - static_cast<double>(first));
    const auto put = [&](int64_t i, float w) { add(std::clamp<int64_t>(i, 0, from - 1), w); };
    if (mode == Mode::kCubic) {
        float weights[4];
        at::native::get_cubic_upsample_coefficients<float>(weights, t);
        for (int64_t k = 0; k < 4; ++k) put(first - 1 + k, weights[k]);
    } else if (mode == Mode::kLinear) {
        put(first, 1 - t);
        put(first + 1, t);
    } else {
        put(first, 1);
    }
}

Tensor weights(Mode mode, int64_t from, int64_t to, bool align, OptScale scale,
               const Tensor& like) {
    std::vector<float> matrix(static_cast<size_t>(from * to), 0.0f);
    for (int64_t o = 0; o < to; ++o) {
        add_taps(mode, position(mode, o, from, to, align, scale), from,
                 [&](int64_t i, float w) { matrix[static_cast<size_t>(i * to + o)] += w; });
    }
    return at::tensor(matrix).view({from, to}).to(npu(), like.scalar_type());
}

struct Axes {
    Mode mode;
    bool align;
    c10::SmallVector<int64_t, 3> from, to;  // of the last axes
    c10::SmallVector<OptScale, 3> scales;
};

Tensor resampled(Tensor t, const Axes& axes, bool back) {
    const auto count = static_cast<int64_t>(axes.to.size());
    for (int64_t i = 0; i < count; ++i) {
        const auto n = static_cast<size_t>(i);
        const int64_t axis = t.dim() - count + i;
        const Tensor w =
            weights(axes.mode, axes.from[n], axes.to[n], axes.align, axes.scales[n], t);
        t = t.movedim(axis, -1).matmul(back ? w.t() : w).movedim(-1, axis);
    }
    return t;
}

Axes axes_of(Mode mode, bool align, IntArrayRef input, IntArrayRef output,
             std::initializer_list<OptScale> scales) {
    TORCH_CHECK(input.size() == output.size() + 2, "enpu: interpolate: expected ",
                output.size() + 2, " axes, got ", input.size());
    Axes axes{mode, align, {}, {}, {}};
    for (size_t i = 0; i < output.size(); ++i) {
        axes.from.push_back(input[2 + i]);
        axes.to.push_back(output[i]);
        TORCH_CHECK(input[2 + i] > 0 && output[i] > 0,
                    "Input and output sizes should be greater than 0");
    }
    axes.scales.append(scales.begin(), scales.end());
    return axes;
}

Tensor& give(Tensor& out, const Tensor& result) {
    resize_out(out, result.sizes());
    return out.copy_(result);
}

Tensor& forward(const Tensor& self, const Axes& axes, Tensor& out) {
    return give(out, resampled(self, axes, false));
}
Tensor& backward(const Tensor& grad, const Axes& axes, Tensor& out) {
    return give(out, resampled(grad, axes, true));
}

template <Mode M>
Tensor& nearest1d(const Tensor& x, IntArrayRef size, OptScale s, Tensor& out) {
    return forward(x, axes_of(M, false, x.sizes(), size, {s}), out);
}
template <Mode M>
Tensor& nearest1d_back(const Tensor& g, IntArrayRef size, IntArrayRef in, OptScale s, Tensor& out) {
    return backward(g, axes_of(M, false, in, size, {s}), out);
}
template <Mode M>
Tensor& nearest2d(const Tensor& x, IntArrayRef size, OptScale h, OptScale w, Tensor& out) {
    return forward(x, axes_of(M, false, x.sizes(), size, {h, w}), out);
}
template <Mode M>
Tensor& nearest2d_back(const Tensor& g, IntArrayRef size, IntArrayRef in, OptScale h, OptScale w,
                       Tensor& out) {
    return backward(g, axes_of(M, false, in, size, {h, w}), out);
}
template <Mode M>
Tensor& nearest3d(const Tensor& x, IntArrayRef size, OptScale d, OptScale h, OptScale w,
                  Tensor& out) {
    return forward(x, axes_of(M, false, x.sizes(), size, {d, h, w}), out);
}
template <Mode M>
Tensor& nearest3d_back(const Tensor& g, IntArrayRef size, IntArrayRef in, OptScale d, OptScale h,
                       OptScale w, Tensor& out) {
    return backward(g, axes_of(M, false, in, size, {d, h, w}), out);
}
Tensor& linear1d(const Tensor& x, IntArrayRef size, bool align, OptScale s, Tensor& out) {
    return forward(x, axes_of(Mode::kLinear, align, x.sizes(), size, {s}), out);
}
Tensor& linear1d_back(const Tensor& g, IntArrayRef size, IntArrayRef in, bool align, OptScale s,
                      Tensor& out) {
    return backward(g, axes_of(Mode::kLinear, align, in, size, {s}), out);
}
template <Mode M>
Tensor& smooth2d(const Tensor& x, IntArrayRef size, bool align, OptScale h, OptScale w,
                 Tensor& out) {
    return forward(x, axes_of(M, align, x.sizes(), size, {h, w}), out);
}
template <Mode M>
Tensor& smooth2d_back(const Tensor& g, IntArrayRef size, IntArrayRef in, bool align, OptScale h,
                      OptScale w, Tensor& out) {
    return backward(g, axes_of(M, align, in, size, {h, w}), out);
}
Tensor& linear3d(const Tensor& x, IntArrayRef size, bool align, OptScale d, OptScale h, OptScale w,
                 Tensor& out) {
    return forward(x, axes_of(Mode::kLinear, align, x.sizes(), size, {d, h, w}), out);
}
Tensor& linear3d_back(const Tensor& g, IntArrayRef size, IntArrayRef in, bool align, OptScale d,
                      OptScale h, OptScale w, Tensor& out) {
    return backward(g, axes_of(Mode::kLinear, align, in, size, {d, h, w}), out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("upsample_nearest1d.out", nearest1d<Mode::kNearest>);
    m.impl("upsample_nearest2d.out", nearest2d<Mode::kNearest>);
    m.impl("upsample_nearest3d.out", nearest3d<Mode::kNearest>);
    m.impl("_upsample_nearest_exact1d.out", nearest1d<Mode::kNearestExact>);
    m.impl("_upsample_nearest_exact2d.out", nearest2d<Mode::kNearestExact>);
    m.impl("_upsample_nearest_exact3d.out", nearest3d<Mode::kNearestExact>);
    m.impl("upsample_linear1d.out", linear1d);
    m.impl("upsample_bilinear2d.out", smooth2d<Mode::kLinear>);
    m.impl("upsample_bicubic2d.out", smooth2d<Mode::kCubic>);
    m.impl("upsample_trilinear3d.out", linear3d);
    m.impl("upsample_nearest1d_backward.grad_input", nearest1d_back<Mode::kNearest>);
    m.impl("upsample_nearest2d_backward.grad_input", nearest2d_back<Mode::kNearest>);
    m.impl("upsample_nearest3d_backward.grad_input", nearest3d_back<Mode::kNearest>);
    m.impl("_upsample_nearest_exact1d_backward.grad_input", nearest1d_back<Mode::kNearestExact>);
    m.impl("_upsample_nearest_exact2d_backward.grad_input", nearest2d_back<Mode::kNearestExact>);
    m.impl("_upsample_nearest_exact3d_backward.grad_input", nearest3d_back<Mode::kNearestExact>);
    m.impl("upsample_linear1d_backward.grad_input", linear1d_back);
    m.impl("upsample_bilinear2d_backward.grad_input", smooth2d_back<Mode::kLinear>);
    m.impl("upsample_bicubic2d_backward.grad_input", smooth2d_back<Mode::kCubic>);
    m.impl("upsample_trilinear3d_backward.grad_input", linear3d_back);
}

}  // namespace
}  // namespace enpu::pytorch
