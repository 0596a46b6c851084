// SPDX-License-Identifier: MIT
// The functions of UNARY and BINARY by number, one element at a time.
#pragma once

#include <cmath>

#include "device.h"
#include "formulas.h"

namespace enpu::hal::cuda {

ENPU_DEVICE float apply_rare(uint32_t function, float v) {
    switch (function) {
        case ENPU_UNARY_SIN:
            return ::sinf(v);
        case ENPU_UNARY_COS:
            return ::cosf(v);
        case ENPU_UNARY_TAN:
            return ::tanf(v);
        case ENPU_UNARY_ASIN:
            return ::asinf(v);
        case ENPU_UNARY_ACOS:
            return ::acosf(v);
        case ENPU_UNARY_ATAN:
            return ::atanf(v);
        case ENPU_UNARY_SINH:
            return ::sinhf(v);
        case ENPU_UNARY_COSH:
            return ::coshf(v);
        case ENPU_UNARY_ASINH:
            return ::asinhf(v);
        case ENPU_UNARY_ACOSH:
            return ::acoshf(v);
        default:
            return ::atanhf(v);
    }
}

ENPU_DEVICE float apply_exponential(uint32_t function, float a, float b, float v) {
    namespace math = ops::math;
    switch (function) {
        case ENPU_UNARY_SIGMOID:
            return math::sigmoid(v);
        case ENPU_UNARY_TANH:
            return math::tanh(v);
        case ENPU_UNARY_GELU:
            return ops::gated(v, math::normal_cdf(v));
        case ENPU_UNARY_GELU_TANH:
            return v < -13.0f ? -0.0f : ops::gelu_tanh(v);
        case ENPU_UNARY_SILU:
            return ops::gated(v, math::sigmoid(v));
        case ENPU_UNARY_QUICK_GELU:
            return ops::gated(v, math::sigmoid(a * v));
        case ENPU_UNARY_ELU:
            return v < 0.0f ? a * math::expm1(v) : v;
        case ENPU_UNARY_SELU:
            return b * (v < 0.0f ? a * math::expm1(v) : v);
        case ENPU_UNARY_CELU:
            return v < 0.0f ? a * math::expm1(v / a) : v;
        case ENPU_UNARY_SOFTPLUS:
            return math::softplus(v);
        case ENPU_UNARY_MISH:
            return v < -104.0f ? -0.0f : ops::mish(v);
        case ENPU_UNARY_EXP:
            return math::exp(v);
        case ENPU_UNARY_LOG:
            return math::log(v);
        case ENPU_UNARY_ERF:
            return math::erf(v);
        default:
            return apply_rare(function, v);
    }
}

ENPU_DEVICE float apply_rectifier(uint32_t function, float a, float b, float v) {
    switch (function) {
        case ENPU_UNARY_RELU:
            return ops::relu(v);
        case ENPU_UNARY_LEAKY_RELU:
            return v < 0.0f ? a * v : v;
        case ENPU_UNARY_CLIP:
            return ops::clip(v, a, b);
        case ENPU_UNARY_HARD_SIGMOID:
            return ops::clip(a * v + b, 0.0f, 1.0f);
        case ENPU_UNARY_HARD_SWISH:
            return ops::gated(v, ops::clip(v * (1.0f / 6) + 0.5f, 0.0f, 1.0f));
        case ENPU_UNARY_THRESHOLDED_RELU:
            return v <= a ? 0.0f : v;
        default: {  // SHRINK
            const float upper = v > a ? v - b : 0.0f;
            return v < -a ? v + b : (v == v ? upper : v);
        }
    }
}

ENPU_DEVICE float apply_unary(const Act& f, float v) {
    const float a = f.alpha;
    const float b = f.beta;
    switch (f.function) {
        case ENPU_UNARY_IDENTITY:
            return v;
        case ENPU_UNARY_RELU:
        case ENPU_UNARY_LEAKY_RELU:
        case ENPU_UNARY_CLIP:
        case ENPU_UNARY_HARD_SIGMOID:
        case ENPU_UNARY_HARD_SWISH:
        case ENPU_UNARY_THRESHOLDED_RELU:
        case ENPU_UNARY_SHRINK:
            return apply_rectifier(f.function, a, b, v);
        case ENPU_UNARY_SOFTSIGN:
            return v / (1.0f + ::fabsf(v));
        case ENPU_UNARY_SQRT:
            return ::sqrtf(v);
        case ENPU_UNARY_RSQRT:
            return 1.0f / ::sqrtf(v);
        case ENPU_UNARY_RECIPROCAL:
            return 1.0f / v;
        case ENPU_UNARY_ABS:
            return ::fabsf(v);
        case ENPU_UNARY_NEG:
            return -v;
        case ENPU_UNARY_SIGN:
            return v > 0.0f ? 1.0f : v < 0.0f ? -1.0f : v;
        case ENPU_UNARY_FLOOR:
            return ::floorf(v);
        case ENPU_UNARY_CEIL:
            return ::ceilf(v);
        case ENPU_UNARY_ROUND:
            return ::rintf(v);
        case ENPU_UNARY_SQUARE:
            return v * v;
        case ENPU_UNARY_ISNAN:
            return v != v ? 1.0f : 0.0f;
        case ENPU_UNARY_ISINF:
            return ops::infinite_as_asked(v, a) ? 1.0f : 0.0f;
        case ENPU_UNARY_SCALE:
            return a * v + b;
        default:
            return apply_exponential(f.function, a, b, v);
    }
}

ENPU_DEVICE int64_t apply_unary(const Act& f, int64_t v) {
    switch (f.function) {
        case ENPU_UNARY_RELU:
            return v < 0 ? 0 : v;
        case ENPU_UNARY_CLIP: {
            const int64_t low = ops::saturate_i64(::ceil(double(f.alpha)));
            const int64_t high = ops::saturate_i64(::floor(double(f.beta)));
            const int64_t above = v < low ? low : v;
            return high < above ? high : above;
        }
        case ENPU_UNARY_ABS:
            return v < 0 ? ops::subtract(0, v) : v;
        case ENPU_UNARY_NEG:
            return ops::subtract(0, v);
        case ENPU_UNARY_SIGN:
            return int64_t(v > 0) - int64_t(v < 0);
        case ENPU_UNARY_SQUARE:
            return ops::multiply(v, v);
        case ENPU_UNARY_NOT:
            return int64_t(v == 0);
        case ENPU_UNARY_BIT_NOT:
            return ~v;
        case ENPU_UNARY_SCALE:
            return ops::saturate_i64(double(v) * double(f.alpha) + double(f.beta));
        default:  // IDENTITY, and the roundings, which change no integer
            return v;
    }
}

ENPU_DEVICE float apply_binary(uint32_t function, float p, float q) {
    switch (function) {
        case ENPU_BINARY_ADD:
            return p + q;
        case ENPU_BINARY_SUB:
            return p - q;
        case ENPU_BINARY_MUL:
            return p * q;
        case ENPU_BINARY_DIV:
            return p / q;
        case ENPU_BINARY_MIN:
            return p < q || p != p ? p : q;
        case ENPU_BINARY_MAX:
            return p > q || p != p ? p : q;
        case ENPU_BINARY_POW:
            return ::powf(p, q);
        case ENPU_BINARY_MOD:
            return ops::floor_mod(p, q);
        case ENPU_BINARY_FMOD:
            return ::fmodf(p, q);
        case ENPU_BINARY_PRELU:
            return p < 0.0f ? p * q : p;
        case ENPU_BINARY_EQ:
            return p == q ? 1.0f : 0.0f;
        case ENPU_BINARY_NE:
            return p != q ? 1.0f : 0.0f;
        case ENPU_BINARY_LT:
            return p < q ? 1.0f : 0.0f;
        case ENPU_BINARY_LE:
            return p <= q ? 1.0f : 0.0f;
        case ENPU_BINARY_GT:
            return p > q ? 1.0f : 0.0f;
        default:
            return p >= q ? 1.0f : 0.0f;
    }
}

ENPU_DEVICE int64_t apply_logic(uint32_t function, uint32_t dtype, int64_t p, int64_t q) {
    const auto bits = static_cast<int64_t>(8 * bytes_of(dtype));
    switch (function) {
        case ENPU_BINARY_EQ:
            return int64_t(p == q);
        case ENPU_BINARY_NE:
            return int64_t(p != q);
        case ENPU_BINARY_LT:
            return int64_t(p < q);
        case ENPU_BINARY_LE:
            return int64_t(p <= q);
        case ENPU_BINARY_GT:
            return int64_t(p > q);
        case ENPU_BINARY_GE:
            return int64_t(p >= q);
        case ENPU_BINARY_AND:
            return int64_t(p && q);
        case ENPU_BINARY_OR:
            return int64_t(p || q);
        case ENPU_BINARY_XOR:
            return int64_t(!p != !q);
        case ENPU_BINARY_BIT_AND:
            return p & q;
        case ENPU_BINARY_BIT_OR:
            return p | q;
        case ENPU_BINARY_BIT_XOR:
            return p ^ q;
        case ENPU_BINARY_SHIFT_LEFT:
            return ops::shift_left(p, q, bits);
        default:
            return ops::shift_right(p, q, bits);
    }
}

ENPU_DEVICE int64_t apply_binary(uint32_t function, uint32_t dtype, int64_t p, int64_t q) {
    switch (function) {
        case ENPU_BINARY_ADD:
            return ops::add(p, q);
        case ENPU_BINARY_SUB:
            return ops::subtract(p, q);
        case ENPU_BINARY_MUL:
            return ops::multiply(p, q);
        case ENPU_BINARY_DIV:
            return ops::divide(p, q);
        case ENPU_BINARY_MIN:
            return q < p ? q : p;
        case ENPU_BINARY_MAX:
            return p < q ? q : p;
        case ENPU_BINARY_POW:
            return ops::power(p, q);
        case ENPU_BINARY_MOD:
            return ops::modulo(p, q);
        case ENPU_BINARY_FMOD:
            return ops::remainder(p, q);
        case ENPU_BINARY_PRELU:
            return p < 0 ? ops::multiply(p, q) : p;
        default:
            return apply_logic(function, dtype, p, q);
    }
}

}  // namespace enpu::hal::cuda
