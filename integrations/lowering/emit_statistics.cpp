// SPDX-License-Identifier: MIT
// Operators made of means and sums: norms that show their statistics, quantisation by range, LRN.
#include "blocks.h"
#include "emit_common.h"
#include "shapes.h"

namespace enpu::lowering {

Moments moments(PlanBuilder& b, const View& x, uint32_t axes) {
    Moments m;
    m.mean = reduce(b, ENPU_OP_REDUCE_MEAN, x, axes);
    m.centred = binary(b, ENPU_OP_BINARY_SUB, x, m.mean);
    m.variance = reduce(b, ENPU_OP_REDUCE_MEAN, unary(b, ENPU_OP_UNARY_SQUARE, m.centred), axes);
    return m;
}

View inverse_deviation(PlanBuilder& b, const View& variance, float epsilon) {
    return unary(b, ENPU_OP_UNARY_RSQRT, unary(b, ENPU_OP_UNARY_SCALE, variance, 1, epsilon));
}

namespace {

void emit_mean_variance(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    auto axes = node.integers("axes");
    if (axes.empty()) axes = {0, 2, 3};
    uint32_t mask = 0;
    for (int64_t axis : axes) mask |= 1u << normalise_axis(axis, x.dims.size());
    const Moments m = moments(e, x, mask);
    e.define(node.outputs[0],
             binary(e, ENPU_OP_BINARY_MUL, m.centred, inverse_deviation(e, m.variance, 1e-9f)));
}

// x / (bias + alpha * mean of the squares of the channels around)^beta
void emit_lrn(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    if (x.dims.size() < 2) fail("the input has no channels");
    const int64_t size = node.integer("size", 0);
    if (size < 1 || size > 4096) fail("size is out of range");
    const View squares = copied(e, unary(e, ENPU_OP_UNARY_SQUARE, x));
    const int64_t inner = element_count(Dims(x.dims.begin() + 2, x.dims.end()));
    const Dims image = {x.dims[0], 1, x.dims[1], inner};
    enpu_op_pool_params p{};
    p.function = ENPU_OP_POOL_AVERAGE_INCLUDE_PAD;
    p.kernel[0] = static_cast<uint32_t>(size);
    p.pad[0] = static_cast<uint32_t>((size - 1) / 2);
    p.pad[2] = static_cast<uint32_t>(size - 1 - (size - 1) / 2);
    p.kernel[1] = p.stride[0] = p.stride[1] = p.dilation[0] = p.dilation[1] = 1;
    const View mean = e.temporary(x.dtype, image);
    e.add(ENPU_OP_POOL2D_FWD, p, {e.reshape(squares, image), mean});
    const View base =
        unary(e, ENPU_OP_UNARY_SCALE, mean, node.real("alpha", 1e-4f), node.real("bias", 1));
    const View power =
        binary(e, ENPU_OP_BINARY_POW, base, scalar(e, x.dtype, node.real("beta", 0.75f)));
    e.define(node.outputs[0], binary(e, ENPU_OP_BINARY_DIV, x, e.reshape(power, x.dims)));
}

// Scale and zero point from the range of the input, zero included.
void emit_dynamic_quantize(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    if (x.dtype != ENPU_OP_F32) fail("the input must be f32");
    const uint32_t all = (1u << x.dims.size()) - 1;
    const View zero = scalar(e, ENPU_OP_F32, 0), steps = scalar(e, ENPU_OP_F32, 255);
    const auto bound = [&](uint32_t reduction, uint32_t function) {
        const View extreme = all ? reduce(e, reduction, x, all) : x;
        return binary(e, function, e.reshape(extreme, {}), zero);
    };
    const View low = bound(ENPU_OP_REDUCE_MIN, ENPU_OP_BINARY_MIN);
    const View high = bound(ENPU_OP_REDUCE_MAX, ENPU_OP_BINARY_MAX);
    const View range = binary(e, ENPU_OP_BINARY_SUB, high, low);
    const View flat = binary(e, ENPU_OP_BINARY_EQ, range, zero);
    const View scale =
        select(e, flat, scalar(e, ENPU_OP_F32, 1), binary(e, ENPU_OP_BINARY_DIV, range, steps));
    const View exact =
        binary(e, ENPU_OP_BINARY_DIV, binary(e, ENPU_OP_BINARY_SUB, zero, low), scale);
    const View rounded = unary(e, ENPU_OP_UNARY_ROUND, unary(e, ENPU_OP_UNARY_CLIP, exact, 0, 255));
    const View zero_point = cast(e, rounded, ENPU_OP_U8);
    const View y = e.temporary(ENPU_OP_U8, x.dims, strides_like(x, x.dims));
    e.add(ENPU_OP_QUANTIZE, {x, e.broadcast(scale, x.dims), e.broadcast(zero_point, x.dims), y});
    e.define(node.outputs[0], y);
    if (node.outputs.size() > 1) e.define(node.outputs[1], scale);
    if (node.outputs.size() > 2) e.define(node.outputs[2], zero_point);
}

}  // namespace

const EmitTable& statistics_emitters() {
    static const EmitTable kTable = {{"MeanVarianceNormalization", emit_mean_variance},
                                     {"LRN", emit_lrn},
                                     {"DynamicQuantizeLinear", emit_dynamic_quantize}};
    return kTable;
}

}  // namespace enpu::lowering
