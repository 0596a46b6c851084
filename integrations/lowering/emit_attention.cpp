// SPDX-License-Identifier: MIT
// Attention and rotary position embedding.
#include <cmath>
#include <limits>

#include "blocks.h"
#include "emit_common.h"
#include "shapes.h"

namespace enpu::lowering {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

// [B, S, heads * D] as [B, heads, S, D], without a copy.
View split_heads(Emitter& e, const View& x, int64_t heads) {
    if (x.dims.size() == 4) return x;
    if (x.dims.size() != 3 || heads < 1 || x.dims[2] % heads != 0) {
        fail("operands must be [B,S,heads*D] with the number of heads, or [B,heads,S,D]");
    }
    return swapped(e.reshape(x, {x.dims[0], x.dims[1], heads, x.dims[2] / heads}), 1, 2);
}

// Heads of keys and values shared by groups of query heads: head h of `heads` reads h / group.
View repeat_heads(Emitter& e, const View& x, int64_t heads) {
    if (x.dims[1] == heads) return x;
    if (x.dims[1] < 1 || heads % x.dims[1] != 0) fail("query heads are no multiple of key heads");
    const View wide = with_axis(x, 2);
    Dims dims = wide.dims;
    dims[2] = heads / x.dims[1];
    return e.reshape(copied(e, e.broadcast(wide, dims)), {x.dims[0], heads, x.dims[2], x.dims[3]});
}

// A bias of 0 where a condition holds and minus infinity elsewhere.
View bias_of(Emitter& e, const View& condition, uint32_t dtype) {
    return select(e, condition, scalar(e, dtype, 0), scalar(e, dtype, kNone));
}

View causal_bias(Emitter& e, int64_t queries, int64_t keys, int64_t past, uint32_t dtype) {
    HostTensor allowed = make_table(ENPU_OP_BOOL, {queries, keys});
    for (int64_t q = 0; q < queries; ++q) {
        for (int64_t k = 0; k < keys; ++k) store(allowed, q * keys + k, int64_t{k <= q + past});
    }
    return bias_of(e, e.upload(std::make_shared<const HostTensor>(std::move(allowed))), dtype);
}

View mask_bias(Emitter& e, const View& mask, uint32_t dtype, int64_t keys) {
    View bias = mask.dtype == ENPU_OP_BOOL ? bias_of(e, mask, dtype) : cast(e, mask, dtype);
    if (bias.dims.empty() || bias.dims.back() == keys) return bias;
    if (bias.dims.back() > keys) fail("the mask has more keys than there are");
    Dims rest = bias.dims;  // a mask shorter than the keys: the others are masked
    rest.back() = keys - bias.dims.back();
    return join(e, {bias, filled(e, dtype, rest, kNone)}, bias.dims.size() - 1);
}

View with_past(Emitter& e, int past, const View& x) {
    return past < 0 ? x : join(e, {e.device(past), x}, 2);
}

struct Scores {
    View raw, biased, capped, weights;
};

Scores attend(Emitter& e, const Node& node, const View& q, const View& k, int64_t past) {
    const float scale = node.real("scale", 1.0f / std::sqrt(static_cast<float>(q.dims.back())));
    if (scale == 0) fail("scale 0 is unsupported");
    Scores s;
    const View kt = swapped(k, 2, 3);
    s.raw = matmul(e, q, kt, scale);
    s.biased = s.raw;
    const int64_t queries = q.dims[2], keys = k.dims[2];
    if (node.integer("is_causal", 0)) {
        s.biased =
            binary(e, ENPU_OP_BINARY_ADD, s.biased, causal_bias(e, queries, keys, past, q.dtype));
    }
    if (node.input(3) >= 0) {
        s.biased = binary(e, ENPU_OP_BINARY_ADD, s.biased,
                          mask_bias(e, e.device(node.inputs[3]), q.dtype, keys));
    }
    s.capped = s.biased;
    if (const float cap = node.real("softcap", 0); cap > 0) {
        const View t = unary(e, ENPU_OP_UNARY_SCALE, s.biased, 1 / cap, 0);
        s.capped = unary(e, ENPU_OP_UNARY_SCALE, unary(e, ENPU_OP_UNARY_TANH, t), cap, 0);
    }
    s.weights = softmax(e, s.capped, 3);
    return s;
}

void emit_attention(Emitter& e, const Node& node) {
    const View first = e.device(node.input(0));
    const int64_t kv_heads = node.integer("kv_num_heads", 0);
    const View q = split_heads(e, first, node.integer("q_num_heads", 0));
    const View own_k = split_heads(e, e.device(node.input(1)), kv_heads);
    const View present_k = with_past(e, node.input(4), own_k);
    const View present_v =
        with_past(e, node.input(5), split_heads(e, e.device(node.input(2)), kv_heads));
    const View k = repeat_heads(e, present_k, q.dims[1]);
    const View v = repeat_heads(e, present_v, q.dims[1]);
    const Scores s = attend(e, node, q, k, present_k.dims[2] - own_k.dims[2]);
    View y = matmul(e, s.weights, v);
    if (first.dims.size() == 3) {
        y = e.reshape(swapped(y, 1, 2), {y.dims[0], y.dims[2], y.dims[1] * y.dims[3]});
    }
    e.define(node.outputs[0], y);
    if (node.outputs.size() > 1) e.define(node.outputs[1], present_k);
    if (node.outputs.size() > 2) e.define(node.outputs[2], present_v);
    if (node.outputs.size() > 3) {
        const View modes[] = {s.raw, s.biased, s.capped, s.weights};
        const int64_t mode = node.integer("qk_matmul_output_mode", 0);
        if (mode < 0 || mode > 3) fail("qk_matmul_output_mode is out of range");
        e.define(node.outputs[3], modes[mode]);
    }
}

// cos or sin for each position: [B or 1, S, 1, half].
View rotary_table(Emitter& e, int table, int positions, int64_t half) {
    View view = e.device(table);
    if (positions >= 0) view = take(e, view, e.device(positions), 0);
    if (view.dims.size() != 3 || view.dims[2] < half) fail("a cache of another shape");
    return with_axis(part(view, 2, 0, half), 2);
}

void emit_rotary(Emitter& e, const Node& node) {
    const View input = e.device(node.input(0));
    const bool flat = input.dims.size() == 3;
    const int64_t heads = node.integer("num_heads", 0);
    const View x = swapped(split_heads(e, input, heads), 1, 2);  // [B, S, heads, D]
    int64_t rotated = node.integer("rotary_embedding_dim", 0);
    if (rotated == 0) rotated = x.dims[3];
    if (rotated < 2 || rotated % 2 || rotated > x.dims[3]) fail("rotary_embedding_dim is wrong");
    const int64_t half = rotated / 2;
    const View c = rotary_table(e, node.input(1), node.input(3), half);
    const View s = rotary_table(e, node.input(2), node.input(3), half);
    const bool pairs = node.integer("interleaved", 0) != 0;
    const auto halves = [&](const View& view, int64_t which) {
        return pairs ? part(view, 3, which, half, 2) : part(view, 3, which * half, half);
    };
    const View a = halves(x, 0), b = halves(x, 1);
    const View y = e.temporary(x.dtype, x.dims);
    const auto product = [&](const View& u, const View& v) {
        return binary(e, ENPU_OP_BINARY_MUL, u, v);
    };
    e.move(binary(e, ENPU_OP_BINARY_SUB, product(a, c), product(b, s)), halves(y, 0));
    e.move(binary(e, ENPU_OP_BINARY_ADD, product(a, s), product(b, c)), halves(y, 1));
    if (rotated < x.dims[3]) {
        const int64_t rest = x.dims[3] - rotated;
        e.move(part(x, 3, rotated, rest), part(y, 3, rotated, rest));
    }
    e.define(node.outputs[0], flat ? e.reshape(y, input.dims) : swapped(y, 1, 2));
}

}  // namespace

const EmitTable& attention_emitters() {
    static const EmitTable kTable = {{"Attention", emit_attention},
                                     {"RotaryEmbedding", emit_rotary}};
    return kTable;
}

}  // namespace enpu::lowering
