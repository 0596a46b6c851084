// SPDX-License-Identifier: MIT
// Products of 8-bit integers: exact 32-bit sums, or rounded to 8 bits again by a scale. Scales and
// zero points are known while compiling, as they are in quantised models.
#include <algorithm>

#include "blocks.h"
#include "emit_common.h"
#include "shapes.h"

namespace enpu::lowering {
namespace {

// The one zero point of a tensor; 0 when left out.
int32_t zero_point(Emitter& e, int value) {
    const auto all = e.integers(value, "a zero point");
    if (all.empty()) return 0;
    if (std::any_of(all.begin(), all.end(), [&](int64_t z) { return z != all[0]; })) {
        fail("zero points that differ by channel are unsupported");
    }
    return static_cast<int32_t>(all[0]);
}

std::vector<double> scales(Emitter& e, int value) {
    const HostTensorPtr tensor = e.host(value);
    if (!tensor) fail("a scale is computed on the device and not known while compiling");
    return as_f64(*tensor);
}

View with_zero_point(View view, int32_t zero) {
    view.zero_point = zero;
    return view;
}

// One factor for each output channel (or one for all): x scale * w scale / y scale.
View requantisation(Emitter& e, const std::vector<double>& x, const std::vector<double>& w,
                    const std::vector<double>& y, int64_t channels) {
    if (x.size() != 1 || y.size() != 1) fail("scales by row are unsupported");
    if (w.size() != 1 && static_cast<int64_t>(w.size()) != channels) {
        fail("the scales of the weights do not fit their channels");
    }
    std::vector<float> factors;
    for (double scale : w) factors.push_back(static_cast<float>(x[0] * scale / y[0]));
    return e.upload(host_f32({static_cast<int64_t>(factors.size())}, factors));
}

struct Quantised {
    size_t weights = 1;  // operand numbers of weights and zero points
    int x_zero = -1, w_zero = -1;
    bool rounded = false;  // to 8 bits; else the sums are the result
};

Quantised describe(const Node& node) {
    if (node.op.starts_with("QLinear")) return {3, node.input(2), node.input(5), true};
    return {1, node.input(2), node.input(3), false};
}

uint32_t result_dtype(Emitter& e, const Node& node, const Quantised& q) {
    return q.rounded ? e.dtype(node.input(7)) : uint32_t{ENPU_OP_I32};
}

View factors_of(Emitter& e, const Node& node, const Quantised& q, int64_t channels) {
    if (!q.rounded) return {};
    return requantisation(e, scales(e, node.input(1)), scales(e, node.input(4)),
                          scales(e, node.input(6)), channels);
}

void emit_conv(Emitter& e, const Node& node) {
    const Quantised q = describe(node);
    const size_t rank = e.dims(node.input(0)).size();
    View x = e.channels_last(as_image(e, e.device(node.input(0)), "a convolution"));
    const View w = as_image(e, e.device(node.input(q.weights)), "a convolution");
    const int64_t groups = node.integer("group", 1);
    if (groups < 1 || groups > 65536) fail("group is out of range");
    Window window =
        read_window(node, rank - 2, rank == 4 ? Dims{w.dims[2], w.dims[3]} : Dims{w.dims[3]});
    resolve_auto_pad(node, x.dims, window);
    const Dims dims = conv_output(x.dims, w.dims, groups, window);
    View y = e.temporary(result_dtype(e, node, q), dims, channels_last_strides(dims));
    if (q.rounded) y.zero_point = zero_point(e, node.input(7));
    const View bias = q.rounded ? e.optional_device(node.input(8)) : View{};
    e.add(ENPU_OP_CONV2D_FWD, conv_params(window, groups, {}),
          {with_zero_point(x, zero_point(e, q.x_zero)), with_zero_point(w, zero_point(e, q.w_zero)),
           bias, View{}, factors_of(e, node, q, w.dims[0]), y});
    e.define(node.outputs[0], from_image(with_zero_point(y, 0), rank));
}

void emit_matmul(Emitter& e, const Node& node) {
    const Quantised q = describe(node);
    View a = e.device(node.input(0)), b = e.device(node.input(q.weights));
    if (a.dims.size() >= 2 && b.dims.size() >= 2 && node.integer("transB", 0)) {
        b = swapped(b, b.dims.size() - 2, b.dims.size() - 1);
    }
    if (a.dims.size() < 2 || b.dims.size() < 2) fail("integer products of vectors are unsupported");
    const Dims batch = broadcast_dims(Dims(a.dims.begin(), a.dims.end() - 2),
                                      Dims(b.dims.begin(), b.dims.end() - 2));
    for (View* view : {&a, &b}) {
        Dims dims = batch;
        dims.insert(dims.end(), view->dims.end() - 2, view->dims.end());
        *view = broadcast_view(*view, dims);
    }
    if (a.dims.back() != b.dims[b.dims.size() - 2]) {
        fail("the inner dims of " + to_string(a.dims) + " and " + to_string(b.dims) + " differ");
    }
    Dims dims = a.dims;
    dims.back() = b.dims.back();
    View y = e.temporary(result_dtype(e, node, q), dims);
    if (q.rounded) y.zero_point = zero_point(e, node.input(7));
    View bias;
    if (q.rounded && node.input(8) >= 0) bias = e.broadcast(e.device(node.inputs[8]), dims);
    e.add(ENPU_OP_MATMUL_FWD, enpu_op_matmul_params{},
          {with_zero_point(a, zero_point(e, q.x_zero)), with_zero_point(b, zero_point(e, q.w_zero)),
           bias, View{}, factors_of(e, node, q, b.dims.back()), y});
    e.define(node.outputs[0], with_zero_point(y, 0));
}

}  // namespace

const EmitTable& integer_emitters() {
    static const EmitTable kTable = {
        {"ConvInteger", emit_conv},
        {"QLinearConv", emit_conv},
        {"MatMulInteger", emit_matmul},
        {"QLinearMatMul", emit_matmul},
    };
    return kTable;
}

}  // namespace enpu::lowering
