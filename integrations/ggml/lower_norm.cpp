// SPDX-License-Identifier: MIT
// Norms, softmax, reductions.
#include <cmath>

#include "lower.h"

namespace enpu::ggml {
namespace {

using lowering::fail;

enpu_op_norm_params norm_params(uint32_t kind, uint32_t axis, uint32_t groups, float epsilon) {
    return {kind, axis, groups, epsilon, ENPU_OP_UNARY_IDENTITY, 0, 0};
}

}  // namespace

void Lowering::norm(const ggml_tensor* node) {
    const View y = tensor(node);
    const View x = input_apart(node);
    const View result = result_f32(y);
    switch (node->op) {
        case GGML_OP_NORM:
            add(ENPU_OP_NORM_FWD, norm_params(ENPU_OP_NORM_LAYER, 3, 1, param_f32(node, 0)),
                {x, View{}, View{}, View{}, View{}, result});
            break;
        case GGML_OP_RMS_NORM:
            add(ENPU_OP_NORM_FWD, norm_params(ENPU_OP_NORM_RMS, 3, 1, param_f32(node, 0)),
                {x, View{}, View{}, View{}, View{}, result});
            break;
        case GGML_OP_GROUP_NORM: {
            // The channels are ggml's third dim; the groups are of ceil(C / n) of them.
            const auto groups = static_cast<int64_t>(param_i32(node, 0));
            if (groups < 1 || x.dims[1] % groups) fail("the channels do not divide into groups");
            add(ENPU_OP_NORM_FWD,
                norm_params(ENPU_OP_NORM_GROUP, 1, static_cast<uint32_t>(groups),
                            param_f32(node, 1)),
                {x, View{}, View{}, View{}, View{}, result});
            break;
        }
        default: {  // L2_NORM: x / max(length, epsilon)
            Dims rows = x.dims;
            rows[3] = 1;
            const View length = temporary(ENPU_OP_F32, rows);
            add(ENPU_OP_REDUCE, enpu_op_reduce_params{ENPU_OP_REDUCE_L2, 1u << 3}, {x, length});
            const View floor = constant({param_f32(node, 0)}, {1, 1, 1, 1});
            const View bounded = binary(ENPU_OP_BINARY_MAX, length, floor);
            binary_into(ENPU_OP_BINARY_DIV, x, bounded, result);
        }
    }
    finish(result, y);
}

namespace {

// ALiBi: one slope a head, halving geometrically; heads past the power of two lie between.
std::vector<float> alibi_slopes(int64_t heads, float max_bias) {
    const auto power = static_cast<int64_t>(1) << static_cast<int>(std::floor(std::log2(heads)));
    const float m0 = std::pow(2.0f, -max_bias / static_cast<float>(power));
    const float m1 = std::pow(2.0f, -max_bias / 2.0f / static_cast<float>(power));
    std::vector<float> slopes;
    for (int64_t h = 0; h < heads; ++h) {
        slopes.push_back(h < power ? std::pow(m0, static_cast<float>(h + 1))
                                   : std::pow(m1, static_cast<float>(2 * (h - power) + 1)));
    }
    return slopes;
}

}  // namespace

// softmax(x + slope * mask) along the first dim of ggml; `sinks` holds one more logit a head that
// only takes its share.
View Lowering::masked_softmax(View x, const ggml_tensor* masks, const ggml_tensor* sink_logits,
                              float max_bias) {
    if (masks) {
        View mask = as_f32(tensor(masks));
        mask = slice(mask, 2, 0, x.dims[2]);  // it may have more rows than x
        if (max_bias > 0) {
            const int64_t heads = x.dims[1];
            const View slopes = constant(alibi_slopes(heads, max_bias), {1, heads, 1, 1});
            const View spread = temporary(ENPU_OP_F32, x.dims);
            View target = spread;
            const View copies = repeat_view(mask, x.dims, {&target});
            move(copies, target);
            mask = binary(ENPU_OP_BINARY_MUL, spread, slopes);
        }
        x = binary(ENPU_OP_BINARY_ADD, x, mask);
    }
    const enpu_op_softmax_params along{3, 0};
    if (!sink_logits) {
        const View shares = temporary(ENPU_OP_F32, x.dims);
        add(ENPU_OP_SOFTMAX_FWD, along, {x, shares});
        return shares;
    }
    Dims wide = x.dims;
    const int64_t columns = wide[3]++;
    View sinks = tensor(sink_logits);  // [heads]
    sinks.dims = {1, x.dims[1], 1, 1};
    sinks.strides = {0, sinks.strides[3], 0, 0};
    const View logits = temporary(ENPU_OP_F32, wide);
    move(x, slice(logits, 3, 0, columns));
    const View last = slice(logits, 3, columns, 1);
    move(lowering::broadcast_view(as_f32(sinks), last.dims), last);
    const View shares = temporary(ENPU_OP_F32, wide);
    add(ENPU_OP_SOFTMAX_FWD, along, {logits, shares});
    return slice(shares, 3, 0, columns);
}

void Lowering::soft_max(const ggml_tensor* node) {
    View x = input_apart(node);
    const float scale = param_f32(node, 0);
    if (scale != 1) x = unary(ENPU_OP_UNARY_SCALE, x, scale, 0);
    store(masked_softmax(x, node->src[1], node->src[2], param_f32(node, 1)), tensor(node));
}

void Lowering::reduce(const ggml_tensor* node) {
    const View x = tensor(node->src[0]);
    View y = tensor(node);
    if (node->op == GGML_OP_ARGMAX) {  // [columns, rows] -> [rows]
        y.dims = {1, 1, x.dims[2], 1};
        y.strides = {0, 0, y.strides[3], 0};
        add(ENPU_OP_ARG_REDUCE, enpu_op_arg_params{0, 3, 0}, {x, y});
        return;
    }
    // ggml defines its sums for rows without gaps only; its own CPU kernel reads past others.
    if (x.strides[3] != 1) fail("the elements of a row do not follow each other");
    const uint32_t function = node->op == GGML_OP_MEAN ? ENPU_OP_REDUCE_MEAN : ENPU_OP_REDUCE_SUM;
    const uint32_t axes = node->op == GGML_OP_SUM ? 0xfu : 1u << 3;
    if (x.dtype != y.dtype) fail("input and output have different types");
    add(ENPU_OP_REDUCE, enpu_op_reduce_params{function, axes}, {x, y});
}

}  // namespace enpu::ggml
