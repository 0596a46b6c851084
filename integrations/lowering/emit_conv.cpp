// SPDX-License-Identifier: MIT
// Convolutions and pools: images, kept channels-last.
#include <algorithm>

#include "blocks.h"
#include "emit_common.h"
#include "shapes.h"

namespace enpu::lowering {

enpu_op_conv_params conv_params(const Window& w, int64_t groups, const Activation& activation) {
    enpu_op_conv_params p{};
    for (size_t i = 0; i < 2; ++i) {
        p.stride[i] = static_cast<uint32_t>(w.stride[i]);
        p.dilation[i] = static_cast<uint32_t>(w.dilation[i]);
    }
    for (size_t i = 0; i < 4; ++i) p.pad[i] = static_cast<uint32_t>(w.pad[i]);
    p.groups = static_cast<uint32_t>(groups);
    p.act = activation.function;
    p.alpha = activation.alpha;
    p.beta = activation.beta;
    return p;
}

Dims conv_output(const Dims& x, const Dims& w, int64_t groups, const Window& window) {
    if (w[1] * groups != x[1]) {
        fail("the input has " + std::to_string(x[1]) + " channels, weights and group want " +
             std::to_string(w[1] * groups));
    }
    Dims y = {x[0], w[0], 0, 0};
    for (size_t i = 0; i < 2; ++i) {
        const int64_t room = x[2 + i] + window.pad[i] + window.pad[2 + i] -
                             (window.dilation[i] * (w[2 + i] - 1) + 1);
        if (room < 0) fail("the kernel is larger than the padded input " + to_string(x));
        y[2 + i] = room / window.stride[i] + 1;
    }
    return y;
}

namespace {

struct ConvOperands {
    View x, weights;
    Window window;
    int64_t groups = 1;
    size_t rank = 4;
};

ConvOperands conv_operands(Emitter& e, const Node& node, uint32_t pack_kind) {
    ConvOperands c;
    c.rank = e.dims(node.input(0)).size();
    c.x = as_image(e, e.device(node.input(0)), "a convolution");
    c.weights = as_image(e, e.device(node.input(1)), "a convolution");
    c.groups = node.integer("group", 1);
    const Dims& w = c.weights.dims;
    if (c.groups < 1 || c.groups > 65536) fail("group is out of range");
    c.window = read_window(node, c.rank - 2, c.rank == 4 ? Dims{w[2], w[3]} : Dims{w[3]});
    c.x = e.channels_last(c.x);
    c.weights = e.packable(c.weights, pack_kind, static_cast<uint32_t>(c.groups));
    return c;
}

void emit_conv(Emitter& e, const Node& node) {
    ConvOperands c = conv_operands(e, node, ENPU_OP_PACK_KIND_CONV2D);
    resolve_auto_pad(node, c.x.dims, c.window);
    const Dims y = conv_output(c.x.dims, c.weights.dims, c.groups, c.window);
    const View out = e.temporary(c.x.dtype, y, channels_last_strides(y));
    const bool fused = c.rank == 4 ? e.fits(node, y) : node.residual < 0;
    const Activation activation = fused ? node.activation : Activation{};
    View residual;
    if (fused && node.residual >= 0) residual = e.broadcast(e.device(node.residual), y);
    e.add(ENPU_OP_CONV2D_FWD, conv_params(c.window, c.groups, activation),
          {c.x, c.weights, e.optional_device(node.input(2)), residual, View{}, out});
    const View result = from_image(out, c.rank);
    if (fused) {
        e.define(node.outputs[0], result);
    } else {
        e.finish(node, result);
    }
}

void emit_conv_transpose(Emitter& e, const Node& node) {
    ConvOperands c = conv_operands(e, node, ENPU_OP_PACK_KIND_CONV_TRANSPOSE2D);
    const Dims &x = c.x.dims, &w = c.weights.dims;
    if (w[0] != x[1] || x[1] % c.groups != 0) fail("input channels and weights do not agree");
    const size_t spatial = c.rank - 2;
    int64_t extra[2] = {0, 0};
    const auto output_padding = node.integers("output_padding");
    const auto output_shape = node.integers("output_shape");
    for (size_t i = 0; i < spatial && i < output_padding.size(); ++i) {
        if (output_padding[i] < 0 || output_padding[i] > kMaxDim)
            fail("output_padding is out of range");
        extra[2 - spatial + i] = output_padding[i];
    }
    for (const int64_t wanted : output_shape)
        if (wanted < 0 || wanted > kMaxDim) fail("output_shape is out of range");
    const std::string auto_pad = node.text("auto_pad", "NOTSET");
    Dims y = {x[0], w[1] * c.groups, 0, 0};
    Window& win = c.window;
    for (size_t i = 0; i < 2; ++i) {
        const int64_t full =
            (x[2 + i] - 1) * win.stride[i] + extra[i] + win.dilation[i] * (w[2 + i] - 1) + 1;
        const size_t own = i + spatial - 2;  // index in the attribute; wraps for a missing height
        const bool shaped = own < spatial && !output_shape.empty();
        if (shaped && output_shape.size() < spatial) fail("output_shape has the wrong length");
        const bool same = own < spatial && auto_pad != "NOTSET" && auto_pad != "VALID";
        if (shaped || same) {
            const int64_t wanted = shaped ? output_shape[output_shape.size() - spatial + own]
                                          : x[2 + i] * win.stride[i];
            const int64_t total = std::max<int64_t>(full - wanted, 0);
            const int64_t half = total / 2;
            win.pad[i] = auto_pad == "SAME_UPPER" ? half : total - half;
            win.pad[2 + i] = total - win.pad[i];
            y[2 + i] = std::max(wanted, full - total);
        } else {
            y[2 + i] = full - win.pad[i] - win.pad[2 + i];
        }
        if (y[2 + i] < 1) fail("the result would have no elements");
    }
    const View out = e.temporary(c.x.dtype, y, channels_last_strides(y));
    e.add(ENPU_OP_CONV_TRANSPOSE2D_FWD, conv_params(win, c.groups, node.activation),
          {c.x, c.weights, e.optional_device(node.input(2)), out});
    e.define(node.outputs[0], from_image(out, c.rank));
}

int64_t pooled(int64_t input, const Window& w, size_t i, bool ceil) {
    const int64_t padded = input + w.pad[i] + w.pad[2 + i];
    const int64_t window = w.dilation[i] * (w.kernel[i] - 1) + 1;
    if (window > padded) fail("the window is larger than the padded input");
    const int64_t room = padded - window;
    int64_t output = (ceil ? room + w.stride[i] - 1 : room) / w.stride[i] + 1;
    if (ceil && (output - 1) * w.stride[i] >= input + w.pad[i]) --output;  // starts inside
    return output;
}

// The pool that `node` describes, of `input`.
View pool(Emitter& e, const Node& node, const View& input, uint32_t function) {
    const size_t rank = input.dims.size();
    const View x = e.channels_last(as_image(e, input, "a pool"));
    Window w = read_window(node, rank - 2, node.integers("kernel_shape"));
    resolve_auto_pad(node, x.dims, w);
    const bool ceil = node.integer("ceil_mode", 0) != 0;
    const Dims dims = {x.dims[0], x.dims[1], pooled(x.dims[2], w, 0, ceil),
                       pooled(x.dims[3], w, 1, ceil)};
    enpu_op_pool_params p{};
    p.function = function;
    for (size_t i = 0; i < 2; ++i) {
        p.kernel[i] = static_cast<uint32_t>(w.kernel[i]);
        p.stride[i] = static_cast<uint32_t>(w.stride[i]);
        p.dilation[i] = static_cast<uint32_t>(w.dilation[i]);
    }
    for (size_t i = 0; i < 4; ++i) p.pad[i] = static_cast<uint32_t>(w.pad[i]);
    const View y = e.temporary(x.dtype, dims, channels_last_strides(dims));
    e.add(ENPU_OP_POOL2D_FWD, p, {x, y});
    return from_image(y, rank);
}

void emit_pool(Emitter& e, const Node& node) {
    uint32_t function = ENPU_OP_POOL_MAX;
    if (node.op == "AveragePool") {
        function = node.integer("count_include_pad", 0) ? ENPU_OP_POOL_AVERAGE_INCLUDE_PAD
                                                        : ENPU_OP_POOL_AVERAGE;
    }
    e.define(node.outputs[0], pool(e, node, e.device(node.input(0)), function));
}

// The root of the sum of powers: elements times their mean.
void emit_lp_pool(Emitter& e, const Node& node) {
    if (node.integer("ceil_mode", 0)) fail("LpPool with ceil_mode is unsupported");
    const auto p = static_cast<float>(node.integer("p", 2));
    if (p < 1) fail("p must be at least 1");
    const View size = unary(e, ENPU_OP_UNARY_ABS, e.device(node.input(0)));
    const View power =
        p == 1 ? size : binary(e, ENPU_OP_BINARY_POW, size, scalar(e, size.dtype, p));
    const View mean = pool(e, node, power, ENPU_OP_POOL_AVERAGE_INCLUDE_PAD);
    const auto count = static_cast<float>(element_count(node.integers("kernel_shape")));
    const View sum = unary(e, ENPU_OP_UNARY_SCALE, mean, count, 0);
    e.define(node.outputs[0],
             p == 1 ? sum : binary(e, ENPU_OP_BINARY_POW, sum, scalar(e, sum.dtype, 1 / p)));
}

void emit_global_pool(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    Dims dims = x.dims;
    uint32_t axes = 0;
    for (size_t axis = 2; axis < dims.size(); ++axis) {
        dims[axis] = 1;
        axes |= 1u << axis;
    }
    if (axes == 0) fail("a global pool of a tensor without spatial dims");
    const View y = e.temporary(x.dtype, dims);
    const enpu_op_reduce_params p{
        node.op == "GlobalMaxPool" ? ENPU_OP_REDUCE_MAX : ENPU_OP_REDUCE_MEAN, axes};
    e.add(ENPU_OP_REDUCE, p, {x, y});
    e.define(node.outputs[0], y);
}

}  // namespace

const EmitTable& conv_emitters() {
    static const EmitTable kTable = {
        {"Conv", emit_conv},
        {"ConvTranspose", emit_conv_transpose},
        {"MaxPool", emit_pool},
        {"AveragePool", emit_pool},
        {"LpPool", emit_lp_pool},
        {"GlobalAveragePool", emit_global_pool},
        {"GlobalMaxPool", emit_global_pool},
    };
    return kTable;
}

}  // namespace enpu::lowering
