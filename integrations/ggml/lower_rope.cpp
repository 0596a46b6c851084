// SPDX-License-Identifier: MIT
// Rotary position embedding. The angle of pair i at position p is p * w[i], also with YaRN, whose mix
// of interpolated and extrapolated angle is linear in p: w is computed here, the angles on the
// device. With several position streams (M-RoPE) each pair belongs to one of them.
#include <algorithm>
#include <cmath>

#include "lower.h"

namespace enpu::ggml {
namespace {

using lowering::fail;

struct Rope {
    int64_t dims;    // that are turned
    int64_t offset;  // before them
    int32_t mode;
    int32_t context;  // the model was trained with
    float base, scale, extrapolation, attention, beta_fast, beta_slow;
    int32_t sections[4];

    explicit Rope(const ggml_tensor* node)
        : dims(param_i32(node, 1)),
          offset(param_i32(node, 15)),
          mode(param_i32(node, 2)),
          context(param_i32(node, 4)),
          base(param_f32(node, 5)),
          scale(param_f32(node, 6)),
          extrapolation(param_f32(node, 7)),
          attention(param_f32(node, 8)),
          beta_fast(param_f32(node, 9)),
          beta_slow(param_f32(node, 10)) {
        for (int i = 0; i < 4; ++i) sections[i] = param_i32(node, 11 + i);
    }

    bool streams() const { return mode & GGML_ROPE_TYPE_MROPE; }
    bool vision() const { return mode == GGML_ROPE_TYPE_VISION; }
    bool halves() const { return mode != GGML_ROPE_TYPE_NORMAL; }  // pairs are dims i and i + n/2

    // Dim at which a wave turns `beta` times within the trained context.
    float correction_dim(float beta) const {
        constexpr float kTwoPi = 6.28318530717958647692f;
        return static_cast<float>(dims) * std::log(static_cast<float>(context) / (beta * kTwoPi)) /
               (2 * std::log(base));
    }
    float magnitude() const {
        return extrapolation == 0 ? attention : attention * (1.0f + 0.1f * std::log(1.0f / scale));
    }
    // Of a pair: which position stream, and which power of the base.
    int stream(int64_t pair, int64_t& power) const;
    float frequency(int64_t pair, int64_t power) const;
};

int Rope::stream(int64_t pair, int64_t& power) const {
    power = pair;
    if (!streams()) return 0;
    const int64_t all = int64_t{sections[0]} + sections[1] + sections[2] + sections[3];
    if (all < 1) fail("the sections of the positions are empty");
    const int64_t at = pair % all;
    if (mode == GGML_ROPE_TYPE_IMROPE) {
        for (int s : {1, 2, 0}) {
            if (at % 3 == s && at < 3 * int64_t{sections[s]}) return s;
        }
        return 3;
    }
    int64_t start = 0;
    for (int s = 0; s < 4; ++s) {
        if (at < start + sections[s] || s == 3) {
            if (vision()) power = at - start;
            return s;
        }
        start += sections[s];
    }
    return 3;
}

float Rope::frequency(int64_t pair, int64_t power) const {
    const float full = static_cast<float>(std::pow(
        static_cast<double>(base), -2.0 * static_cast<double>(power) / static_cast<double>(dims)));
    const float interpolated = scale * full;
    if (extrapolation == 0) return interpolated;
    const float low = std::max(0.0f, std::floor(correction_dim(beta_fast)));
    const float high = std::min(static_cast<float>(dims - 1), std::ceil(correction_dim(beta_slow)));
    const float ramp = (static_cast<float>(pair) - low) / std::max(0.001f, high - low);
    const float mix = (1 - std::min(1.0f, std::max(0.0f, ramp))) * extrapolation;
    return interpolated * (1 - mix) + full * mix;
}

// Every second element from `first`, or a run of half the dims.
View half_of(const View& view, const Rope& rope, int64_t turned, int64_t which) {
    const int64_t first = rope.halves() ? which * turned / 2 : which;
    View result = slice(view, 3, rope.offset + first, turned / 2);
    if (!rope.halves()) result.strides[3] *= 2;
    return result;
}

}  // namespace

void Lowering::rope(const ggml_tensor* node) {
    const Rope rope(node);
    const View y = tensor(node);
    const View x = as_f32(tensor(node->src[0]));
    // Vision pairs dim i with i + n, n being half of all dims.
    const int64_t turned = rope.vision() ? 2 * rope.dims : rope.dims;
    if (turned < 2 || turned % 2 || rope.offset < 0 || turned > x.dims[3] - rope.offset)
        fail("the number of turned dims is wrong");
    const int64_t pairs = turned / 2, tokens = x.dims[1];

    View positions = as_f32(tensor(node->src[1]));  // i32 [tokens] or [4 tokens]
    View angles;
    for (int s = 0; s < (rope.streams() ? 4 : 1); ++s) {
        std::vector<float> w(static_cast<size_t>(pairs));
        for (int64_t i = 0; i < pairs; ++i) {
            int64_t power = 0;
            if (rope.stream(i, power) == s) w[static_cast<size_t>(i)] = rope.frequency(i, power);
        }
        View p = slice(positions, 3, s * tokens, tokens);
        p.dims = {1, tokens, 1, pairs};
        p.strides = {0, p.strides[3], 0, 0};
        const View turn = binary(ENPU_OP_BINARY_MUL, p, constant(w, {1, 1, 1, pairs}));
        angles = s == 0 ? turn : binary(ENPU_OP_BINARY_ADD, angles, turn);
    }
    if (node->src[2]) {
        const View factors = slice(as_f32(tensor(node->src[2])), 3, 0, pairs);
        angles = binary(ENPU_OP_BINARY_DIV, angles, factors);
    }
    const float magnitude = rope.magnitude();
    const float sign = node->op == GGML_OP_ROPE_BACK ? -1.0f : 1.0f;
    View cosine = unary(ENPU_OP_UNARY_COS, angles), sine = unary(ENPU_OP_UNARY_SIN, angles);
    if (magnitude != 1) cosine = unary(ENPU_OP_UNARY_SCALE, cosine, magnitude, 0);
    if (magnitude * sign != 1) sine = unary(ENPU_OP_UNARY_SCALE, sine, magnitude * sign, 0);

    const View result = result_f32(y);
    const View a = half_of(x, rope, turned, 0), b = half_of(x, rope, turned, 1);
    const View a_cos = binary(ENPU_OP_BINARY_MUL, a, cosine);
    const View b_sin = binary(ENPU_OP_BINARY_MUL, b, sine);
    const View a_sin = binary(ENPU_OP_BINARY_MUL, a, sine);
    const View b_cos = binary(ENPU_OP_BINARY_MUL, b, cosine);
    const bool in_place = node->src[0]->data == node->data && result.buffer == y.buffer;
    if (turned < x.dims[3] && !in_place) move(x, result);  // the dims that are not turned
    binary_into(ENPU_OP_BINARY_SUB, a_cos, b_sin, half_of(result, rope, turned, 0));
    binary_into(ENPU_OP_BINARY_ADD, a_sin, b_cos, half_of(result, rope, turned, 1));
    finish(result, y);
}

}  // namespace enpu::ggml
