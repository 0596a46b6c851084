// SPDX-License-Identifier: MIT
#include <algorithm>

#include "formulas.h"
#include "functions.h"

namespace enpu::ops {
namespace {

// x and y may be the same array but never overlap otherwise, which the compiler cannot know.
template <class Function>
inline void map(const float* x, float* y, int64_t count, Function function) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) y[i] = function(x[i]);
}

template <class Function>
inline void map2(const float* a, const float* b, float* y, int64_t count, Function function) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) y[i] = function(a[i], b[i]);
}

void apply_rectifier(const Activation& f, const float* x, float* y, int64_t n) {
    const float a = f.alpha;
    const float b = f.beta;
    switch (f.function) {
        case ENPU_UNARY_RELU:
            return map(x, y, n, relu);
        case ENPU_UNARY_LEAKY_RELU:
            return map(x, y, n, [=](float v) { return v < 0.0f ? a * v : v; });
        case ENPU_UNARY_CLIP:
            return map(x, y, n, [=](float v) { return clip(v, a, b); });
        case ENPU_UNARY_HARD_SIGMOID:
            return map(x, y, n, [=](float v) { return clip(a * v + b, 0.0f, 1.0f); });
        case ENPU_UNARY_HARD_SWISH:
            return map(x, y, n,
                       [](float v) { return gated(v, clip(v * (1.0f / 6) + 0.5f, 0.0f, 1.0f)); });
        case ENPU_UNARY_THRESHOLDED_RELU:
            return map(x, y, n, [=](float v) { return v <= a ? 0.0f : v; });
        case ENPU_UNARY_SHRINK:
            return map(x, y, n, [=](float v) {
                const float upper = v > a ? v - b : 0.0f;
                return v < -a ? v + b : (v == v ? upper : v);
            });
        default:
            return map(x, y, n, [](float v) { return v; });
    }
}

void apply_exponential(const Activation& f, const float* x, float* y, int64_t n) {
    const float a = f.alpha;
    const float b = f.beta;
    switch (f.function) {
        case ENPU_UNARY_SIGMOID:
            return map(x, y, n, math::sigmoid);
        case ENPU_UNARY_TANH:
            return map(x, y, n, math::tanh);
        case ENPU_UNARY_GELU:
            return map(x, y, n, [](float v) { return gated(v, math::normal_cdf(v)); });
        case ENPU_UNARY_GELU_TANH:
            return map(x, y, n, [](float v) { return v < -13.0f ? -0.0f : gelu_tanh(v); });
        case ENPU_UNARY_SILU:
            return map(x, y, n, [](float v) { return gated(v, math::sigmoid(v)); });
        case ENPU_UNARY_QUICK_GELU:
            return map(x, y, n, [=](float v) { return gated(v, math::sigmoid(a * v)); });
        case ENPU_UNARY_ELU:
            return map(x, y, n, [=](float v) { return v < 0.0f ? a * math::expm1(v) : v; });
        case ENPU_UNARY_SELU:
            return map(x, y, n, [=](float v) { return b * (v < 0.0f ? a * math::expm1(v) : v); });
        case ENPU_UNARY_CELU:
            return map(x, y, n, [=](float v) { return v < 0.0f ? a * math::expm1(v / a) : v; });
        case ENPU_UNARY_SOFTPLUS:
            return map(x, y, n, math::softplus);
        case ENPU_UNARY_SOFTSIGN:
            return map(x, y, n, [](float v) { return v / (1.0f + std::fabs(v)); });
        case ENPU_UNARY_MISH:
            return map(x, y, n, [](float v) { return v < -104.0f ? -0.0f : mish(v); });
        case ENPU_UNARY_EXP:
            return map(x, y, n, math::exp);
        case ENPU_UNARY_LOG:
            return map(x, y, n, math::log);
        default:
            return map(x, y, n, math::erf);
    }
}

void apply_arithmetic(const Activation& f, const float* x, float* y, int64_t n) {
    const float a = f.alpha;
    const float b = f.beta;
    switch (f.function) {
        case ENPU_UNARY_SQRT:
            return map(x, y, n, [](float v) { return __builtin_sqrtf(v); });
        case ENPU_UNARY_RSQRT:
            return map(x, y, n, [](float v) { return 1.0f / __builtin_sqrtf(v); });
        case ENPU_UNARY_RECIPROCAL:
            return map(x, y, n, [](float v) { return 1.0f / v; });
        case ENPU_UNARY_ABS:
            return map(x, y, n, [](float v) { return std::fabs(v); });
        case ENPU_UNARY_NEG:
            return map(x, y, n, [](float v) { return -v; });
        case ENPU_UNARY_SIGN:
            return map(x, y, n, [](float v) {
                const float sign = v < 0.0f ? -1.0f : v;
                return v > 0.0f ? 1.0f : sign;
            });
        case ENPU_UNARY_FLOOR:
            return map(x, y, n, [](float v) { return __builtin_floorf(v); });
        case ENPU_UNARY_CEIL:
            return map(x, y, n, [](float v) { return __builtin_ceilf(v); });
        case ENPU_UNARY_ROUND:
            return map(x, y, n, [](float v) { return __builtin_rintf(v); });
        case ENPU_UNARY_SQUARE:
            return map(x, y, n, [](float v) { return v * v; });
        case ENPU_UNARY_ISNAN:
            return map(x, y, n, [](float v) { return v != v ? 1.0f : 0.0f; });
        case ENPU_UNARY_ISINF:
            return map(x, y, n, [=](float v) { return infinite_as_asked(v, a) ? 1.0f : 0.0f; });
        default:
            return map(x, y, n, [=](float v) { return a * v + b; });  // SCALE
    }
}

void apply_library(const Activation& f, const float* x, float* y, int64_t n) {
    switch (f.function) {
        case ENPU_UNARY_SIN:
            return map(x, y, n, [](float v) { return std::sin(v); });
        case ENPU_UNARY_COS:
            return map(x, y, n, [](float v) { return std::cos(v); });
        case ENPU_UNARY_TAN:
            return map(x, y, n, [](float v) { return std::tan(v); });
        case ENPU_UNARY_ASIN:
            return map(x, y, n, [](float v) { return std::asin(v); });
        case ENPU_UNARY_ACOS:
            return map(x, y, n, [](float v) { return std::acos(v); });
        case ENPU_UNARY_ATAN:
            return map(x, y, n, [](float v) { return std::atan(v); });
        case ENPU_UNARY_SINH:
            return map(x, y, n, [](float v) { return std::sinh(v); });
        case ENPU_UNARY_COSH:
            return map(x, y, n, [](float v) { return std::cosh(v); });
        case ENPU_UNARY_ASINH:
            return map(x, y, n, [](float v) { return std::asinh(v); });
        case ENPU_UNARY_ACOSH:
            return map(x, y, n, [](float v) { return std::acosh(v); });
        default:
            return map(x, y, n, [](float v) { return std::atanh(v); });
    }
}

void apply_comparison(uint32_t function, const float* a, const float* b, float* y, int64_t n) {
    switch (function) {
        case ENPU_BINARY_EQ:
            return map2(a, b, y, n, [](float p, float q) { return p == q ? 1.0f : 0.0f; });
        case ENPU_BINARY_NE:
            return map2(a, b, y, n, [](float p, float q) { return p != q ? 1.0f : 0.0f; });
        case ENPU_BINARY_LT:
            return map2(a, b, y, n, [](float p, float q) { return p < q ? 1.0f : 0.0f; });
        case ENPU_BINARY_LE:
            return map2(a, b, y, n, [](float p, float q) { return p <= q ? 1.0f : 0.0f; });
        case ENPU_BINARY_GT:
            return map2(a, b, y, n, [](float p, float q) { return p > q ? 1.0f : 0.0f; });
        default:
            return map2(a, b, y, n, [](float p, float q) { return p >= q ? 1.0f : 0.0f; });
    }
}

}  // namespace

void apply_unary(const Activation& activation, const float* x, float* y, int64_t count) {
    switch (activation.function) {
        case ENPU_UNARY_IDENTITY:
            if (x != y) std::copy_n(x, count, y);
            return;
        case ENPU_UNARY_RELU:
        case ENPU_UNARY_LEAKY_RELU:
        case ENPU_UNARY_CLIP:
        case ENPU_UNARY_HARD_SIGMOID:
        case ENPU_UNARY_HARD_SWISH:
        case ENPU_UNARY_THRESHOLDED_RELU:
        case ENPU_UNARY_SHRINK:
            return apply_rectifier(activation, x, y, count);
        case ENPU_UNARY_SIGMOID:
        case ENPU_UNARY_TANH:
        case ENPU_UNARY_GELU:
        case ENPU_UNARY_GELU_TANH:
        case ENPU_UNARY_SILU:
        case ENPU_UNARY_QUICK_GELU:
        case ENPU_UNARY_ELU:
        case ENPU_UNARY_SELU:
        case ENPU_UNARY_CELU:
        case ENPU_UNARY_SOFTPLUS:
        case ENPU_UNARY_SOFTSIGN:
        case ENPU_UNARY_MISH:
        case ENPU_UNARY_EXP:
        case ENPU_UNARY_LOG:
        case ENPU_UNARY_ERF:
            return apply_exponential(activation, x, y, count);
        case ENPU_UNARY_SIN:
        case ENPU_UNARY_COS:
        case ENPU_UNARY_TAN:
        case ENPU_UNARY_ASIN:
        case ENPU_UNARY_ACOS:
        case ENPU_UNARY_ATAN:
        case ENPU_UNARY_SINH:
        case ENPU_UNARY_COSH:
        case ENPU_UNARY_ASINH:
        case ENPU_UNARY_ACOSH:
        case ENPU_UNARY_ATANH:
            return apply_library(activation, x, y, count);
        default:
            return apply_arithmetic(activation, x, y, count);
    }
}

void apply_binary(uint32_t function, const float* a, const float* b, float* y, int64_t n) {
    switch (function) {
        case ENPU_BINARY_ADD:
            return map2(a, b, y, n, [](float p, float q) { return p + q; });
        case ENPU_BINARY_SUB:
            return map2(a, b, y, n, [](float p, float q) { return p - q; });
        case ENPU_BINARY_MUL:
            return map2(a, b, y, n, [](float p, float q) { return p * q; });
        case ENPU_BINARY_DIV:
            return map2(a, b, y, n, [](float p, float q) { return p / q; });
        case ENPU_BINARY_MIN:
            return map2(a, b, y, n, [](float p, float q) { return p < q || p != p ? p : q; });
        case ENPU_BINARY_MAX:
            return map2(a, b, y, n, [](float p, float q) { return p > q || p != p ? p : q; });
        case ENPU_BINARY_POW:
            return map2(a, b, y, n, [](float p, float q) { return std::pow(p, q); });
        case ENPU_BINARY_MOD:
            return map2(a, b, y, n, floor_mod);
        case ENPU_BINARY_FMOD:
            return map2(a, b, y, n, [](float p, float q) { return std::fmod(p, q); });
        case ENPU_BINARY_PRELU:
            return map2(a, b, y, n, [](float p, float q) { return p < 0.0f ? p * q : p; });
        default:
            return apply_comparison(function, a, b, y, n);
    }
}

}  // namespace enpu::ops
