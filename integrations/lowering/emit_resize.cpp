// SPDX-License-Identifier: MIT
// Resize and Upsample.
#include <algorithm>
#include <cmath>

#include "blocks.h"
#include "emit_common.h"
#include "shapes.h"

namespace enpu::lowering {
namespace {

template <size_t n>
uint32_t pick(const std::string& text, const char* const (&names)[n], const char* what) {
    for (size_t i = 0; i < n; ++i) {
        if (text == names[i]) return static_cast<uint32_t>(i);
    }
    fail(std::string(what) + " '" + text + "' is unknown");
}

constexpr const char* kResizeModes[] = {"nearest", "linear", "cubic"};
constexpr const char* kCoordinates[] = {"half_pixel", "pytorch_half_pixel",   "align_corners",
                                        "asymmetric", "half_pixel_symmetric", "tf_crop_and_resize"};
constexpr const char* kRounding[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};

// Dims and scales of a Resize or Upsample; operands differ with the operator set.
void resize_shape(Emitter& e, const Node& node, const Dims& x, Dims& y, enpu_op_resize_params& p) {
    const bool upsample = node.op == "Upsample";
    const bool old = upsample || node.inputs.size() == 2;
    const int scales = node.input(old ? 1 : 2), sizes = old ? -1 : node.input(3);
    std::vector<double> scale;
    if (scales >= 0) {
        const HostTensorPtr tensor = e.host(scales);
        if (!tensor) fail("scales is computed on the device and not known while compiling");
        scale = as_f64(*tensor);
    }
    const auto size = e.integers(sizes, "sizes");
    auto axes = node.integers("axes");
    if (axes.empty()) {
        for (size_t i = 0; i < x.size(); ++i) axes.push_back(static_cast<int64_t>(i));
    }
    if (!node.text("keep_aspect_ratio_policy", "stretch").starts_with("stretch")) {
        fail("keep_aspect_ratio_policy other than stretch is unsupported");
    }
    y = x;
    const bool by_size = scale.empty();
    if ((by_size ? size.size() : scale.size()) != axes.size()) {
        fail("sizes or scales has the wrong length");
    }
    for (size_t i = 0; i < axes.size(); ++i) {
        const auto axis = static_cast<size_t>(normalise_axis(axes[i], x.size()));
        if (by_size) {
            y[axis] = size[i];
        } else {
            if (!(scale[i] > 0 && std::isfinite(scale[i]))) fail("scales is not positive");
            p.scale[axis] = static_cast<float>(scale[i]);
            y[axis] =
                saturate(std::floor(static_cast<float>(x[axis]) * static_cast<float>(scale[i])));
        }
        if (y[axis] < 1 || y[axis] > kMaxDim) fail("the result has no elements or too many");
    }
}

// ---- antialiased: one matrix of weights an axis

double filter(uint32_t mode, double a, double t) {
    t = std::fabs(t);
    if (mode == ENPU_OP_RESIZE_MODE_LINEAR) return t < 1 ? 1 - t : 0;
    if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

double source(uint32_t coord, double at, double scale, double in, double out) {
    switch (coord) {
        case ENPU_OP_RESIZE_COORD_ALIGN_CORNERS:
            return out == 1 ? 0 : at * (in - 1) / (out - 1);
        case ENPU_OP_RESIZE_COORD_ASYMMETRIC:
            return at / scale;
        case ENPU_OP_RESIZE_COORD_PYTORCH_HALF_PIXEL:
            return out > 1 ? (at + 0.5) / scale - 0.5 : 0;
        case ENPU_OP_RESIZE_COORD_HALF_PIXEL_SYMMETRIC:
            return in / 2 * (1 - out / (scale * in)) + (at + 0.5) / scale - 0.5;
        default:
            return (at + 0.5) / scale - 0.5;
    }
}

// [out, in]: the filter is as wide as `scale` shrinks, and what falls outside goes to the edge.
HostTensorPtr resize_weights(const enpu_op_resize_params& p, double scale, int64_t in,
                             int64_t out) {
    const double shrink = std::min(scale, 1.0);
    const double support = (p.mode == ENPU_OP_RESIZE_MODE_CUBIC ? 2 : 1) / shrink;
    std::vector<float> weights(static_cast<size_t>(in * out), 0.0f);
    for (int64_t o = 0; o < out; ++o) {
        const double centre = source(p.coord, static_cast<double>(o), scale,
                                     static_cast<double>(in), static_cast<double>(out));
        const auto first = static_cast<int64_t>(std::floor(centre - support));
        const auto last = static_cast<int64_t>(std::ceil(centre + support));
        double sum = 0;
        std::vector<double> row(static_cast<size_t>(in), 0.0);
        for (int64_t i = first; i <= last; ++i) {
            if (p.exclude_outside && (i < 0 || i >= in)) continue;
            const double w = filter(p.mode, p.cubic_a, (static_cast<double>(i) - centre) * shrink);
            row[static_cast<size_t>(std::clamp<int64_t>(i, 0, in - 1))] += w;
            sum += w;
        }
        for (int64_t i = 0; i < in; ++i) {
            weights[static_cast<size_t>(o * in + i)] =
                static_cast<float>(row[static_cast<size_t>(i)] / sum);
        }
    }
    return host_f32({out, in}, weights);
}

View resize_by_products(Emitter& e, const View& x, const Dims& dims,
                        const enpu_op_resize_params& p) {
    if (x.dtype != ENPU_OP_F32) fail("antialiased resize is for f32");
    View y = x;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
        const int64_t in = x.dims[axis], out = dims[axis];
        const double scale =
            p.scale[axis] != 0 ? p.scale[axis] : static_cast<double>(out) / static_cast<double>(in);
        if (in == out && scale == 1) continue;
        if (in * out > (int64_t{1} << 24)) fail("an axis is too long for an antialiased resize");
        const View weights = e.upload(resize_weights(p, scale, in, out));
        const size_t last = dims.size() - 1;
        View rows = e.dense(swapped(y, axis, last));
        Dims flat = {element_count(rows.dims) / in, in};
        const View product = matmul(e, e.reshape(rows, flat), swapped(weights, 0, 1));
        rows.dims.back() = out;
        y = swapped(e.reshape(product, rows.dims), axis, last);
    }
    return y;
}

void emit_resize(Emitter& e, const Node& node) {
    View x = e.device(node.input(0));
    enpu_op_resize_params p{};
    Dims dims;
    resize_shape(e, node, x.dims, dims, p);
    const bool plain = node.op == "Upsample" || node.inputs.size() == 2;  // before operator set 11
    p.mode = pick(node.text("mode", "nearest"), kResizeModes, "mode");
    p.coord = pick(node.text("coordinate_transformation_mode", plain ? "asymmetric" : "half_pixel"),
                   kCoordinates, "coordinate_transformation_mode");
    p.round = pick(node.text("nearest_mode", plain ? "floor" : "round_prefer_floor"), kRounding,
                   "nearest_mode");
    p.cubic_a = node.real("cubic_coeff_a", -0.75f);
    p.exclude_outside = node.integer("exclude_outside", 0) != 0;
    p.extrapolation = node.real("extrapolation_value", 0);
    if (p.coord == ENPU_OP_RESIZE_COORD_TF_CROP_AND_RESIZE)
        fail("tf_crop_and_resize is unsupported");
    if (dims == x.dims) {
        bool whole = true;
        for (float s : p.scale) whole = whole && (s == 0 || s == 1);
        if (whole) {
            e.define(node.outputs[0], x);
            return;
        }
    }
    if (node.integer("antialias", 0) && p.mode != ENPU_OP_RESIZE_MODE_NEAREST) {
        e.define(node.outputs[0], resize_by_products(e, x, dims, p));
        return;
    }
    if (dims.size() == 4) x = e.channels_last(x);
    const View y = e.temporary(x.dtype, dims, strides_like(x, dims));
    e.add(ENPU_OP_RESIZE, p, {x, y});
    e.define(node.outputs[0], y);
}

}  // namespace

const EmitTable& resize_emitters() {
    static const EmitTable kTable = {{"Resize", emit_resize}, {"Upsample", emit_resize}};
    return kTable;
}

}  // namespace enpu::lowering
