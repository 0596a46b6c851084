// SPDX-License-Identifier: MIT
// f32 functions that are hot in neural networks, free of branches so that loops over them are
// vectorised. They are the same on every host: plain IEEE operations and fused multiply-adds only.
// Errors in ulp of the result: exp, expm1, log, log1p 2; tanh, sigmoid 4; erf, erfc 8.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "portable.h"

namespace enpu::ops::math {

ENPU_PORTABLE float fma(float a, float b, float c) {
    return ::fmaf(a, b, c);
}

// 2^n for n in [-126, 127].
ENPU_PORTABLE float pow2(int32_t n) {
    return std::bit_cast<float>(static_cast<uint32_t>(n + 127) << 23);
}

// x = n ln 2 + r with |r| <= ln(2) / 2; |x| is at most 200.
struct Reduced {
    float r;
    int32_t n;
};
ENPU_PORTABLE Reduced reduce_exp(float x) {
    constexpr float kRound = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
    constexpr float kLn2High = 0x1.62e4p-1f;
    constexpr float kLn2Low = 0x1.7f7d1cp-20f;
    const float shifted = fma(x, 0x1.715476p0f, kRound);
    const float whole = shifted - kRound;
    const float r = fma(-whole, kLn2Low, fma(-whole, kLn2High, x));
    const uint32_t n = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound);
    return {r, static_cast<int32_t>(n)};
}

// e^r - 1 for |r| <= ln(2) / 2: its Taylor series, 6e-9 relative.
ENPU_PORTABLE float expm1_reduced(float r) {
    float p = 1.0f / 5040;
    p = fma(p, r, 1.0f / 720);
    p = fma(p, r, 1.0f / 120);
    p = fma(p, r, 1.0f / 24);
    p = fma(p, r, 1.0f / 6);
    p = fma(p, r, 0.5f);
    return fma(p, r * r, r);
}

ENPU_PORTABLE float exp(float x) {
    // NaN passes both comparisons unchanged. Past the limits the result is infinite, or 0.
    float bounded = x > 89.0f ? 89.0f : x;
    bounded = bounded < -104.5f ? -104.5f : bounded;
    const Reduced reduced = reduce_exp(bounded);
    const int32_t half = reduced.n >> 1;
    // Two factors, because 2^n alone may be out of the range of a normal number.
    return (1.0f + expm1_reduced(reduced.r)) * pow2(half) * pow2(reduced.n - half);
}

ENPU_PORTABLE float expm1(float x) {
    float bounded = x > 89.0f ? 89.0f : x;
    bounded = bounded < -30.0f ? -30.0f : bounded;
    const Reduced reduced = reduce_exp(bounded);
    const int32_t half = reduced.n >> 1;
    const float low = pow2(half);
    const float high = pow2(reduced.n - half);
    const float result = fma(expm1_reduced(reduced.r) * low, high, fma(low, high, -1.0f));
    return bounded > 88.8f ? bounded * 0x1p127f : result;
}

ENPU_PORTABLE float sigmoid(float x) {
    return 1.0f / (1.0f + exp(-x));
}

ENPU_PORTABLE float tanh(float x) {
    const float magnitude = std::fabs(x);
    const float bounded = magnitude > 10.0f ? 10.0f : magnitude;
    const float e = expm1(2.0f * bounded);
    return std::copysign(e / (e + 2.0f), x);
}

// log((1 + s) / (1 - s)) / (2 s) - 1 for s^2 = z <= 1/34 (mantissas) or 1/9 (log1p).
ENPU_PORTABLE float atanh_series(float z) {
    float p = 1.0f / 17;
    p = fma(p, z, 1.0f / 15);
    p = fma(p, z, 1.0f / 13);
    p = fma(p, z, 1.0f / 11);
    p = fma(p, z, 1.0f / 9);
    p = fma(p, z, 1.0f / 7);
    p = fma(p, z, 1.0f / 5);
    p = fma(p, z, 1.0f / 3);
    return p * z;
}

ENPU_PORTABLE float log(float x) {
    constexpr float kLn2High = 0x1.62e4p-1f;
    constexpr float kLn2Low = 0x1.7f7d1cp-20f;
    const bool subnormal = x < 0x1p-126f;
    const float normal = subnormal ? x * 0x1p24f : x;
    const uint32_t bits = std::bit_cast<uint32_t>(normal);
    // The exponent is chosen so that the mantissa lies in [sqrt(1/2), sqrt(2)).
    const int32_t exponent = static_cast<int32_t>(bits - 0x3f3504f3u) >> 23;
    const float mantissa = std::bit_cast<float>(bits - (static_cast<uint32_t>(exponent) << 23));
    const float n = static_cast<float>(exponent) - (subnormal ? 24.0f : 0.0f);
    const float f = mantissa - 1.0f;
    const float s = f / (2.0f + f);
    const float tail = 2.0f * s * atanh_series(s * s);
    // log(1 + f) = 2 s + tail, and 2 s = f - s f exactly.
    const float low = fma(n, kLn2Low, fma(-s, f, tail));
    float result = fma(n, kLn2High, f + low);
    result = x == 0.0f ? -HUGE_VALF : result;
    result = x < 0.0f ? std::bit_cast<float>(0x7fc00000u) : result;
    return x > 0x1.fffffep127f || x != x ? x : result;
}

// log(1 + u) for 0 <= u <= 1.
ENPU_PORTABLE float log1p_unit(float u) {
    const float s = u / (2.0f + u);
    return fma(-s, u, 2.0f * s * atanh_series(s * s)) + u;
}

ENPU_PORTABLE float softplus(float x) {
    const float positive = x < 0.0f ? 0.0f : x;
    return positive + log1p_unit(exp(-std::fabs(x)));
}

// A square in two parts, so that its rounding does not show in exp(-square).
struct Square {
    float high;
    float low;
};
ENPU_PORTABLE Square square_of(float x, float factor) {
    const float scaled = x * factor;  // exact: the factor is a power of two
    const float high = scaled * x;
    return {high, fma(scaled, x, -high)};
}

// erfc(x) for 0.5 <= x: exp(-x^2) times a polynomial in t = 1 / (1 + 0.7 x), fitted to exp(x^2)
// erfc(x).
ENPU_PORTABLE float erfc_tail(float x, Square square) {
    const float bounded = x > 10.1f ? 10.1f : x;
    const float t = 1.0f / fma(0.7f, bounded, 1.0f);
    float p = 0x1.f9110cp-4f;
    p = fma(p, t, -0x1.4447a0p-1f);
    p = fma(p, t, 0x1.406aacp0f);
    p = fma(p, t, -0x1.134c1cp0f);
    p = fma(p, t, 0x1.a22668p-3f);
    p = fma(p, t, 0x1.081bcap-5f);
    p = fma(p, t, 0x1.3b7ce8p-2f);
    p = fma(p, t, 0x1.93a4e0p-2f);
    p = fma(p, t, 0x1.946f7ep-2f);
    const float power = exp(-square.high);
    return p * t * (power - (power == 0.0f ? 0.0f : power * square.low));
}

// erf(x) for |x| <= 0.5: its Taylor series.
ENPU_PORTABLE float erf_small(float x) {
    const float z = x * x;
    float p = 1.0f / 9360;
    p = fma(p, z, -1.0f / 1320);
    p = fma(p, z, 1.0f / 216);
    p = fma(p, z, -1.0f / 42);
    p = fma(p, z, 1.0f / 10);
    p = fma(p, z, -1.0f / 3);
    return 0x1.20dd76p0f * fma(p * z, x, x);
}

ENPU_PORTABLE float erf(float x) {
    const float magnitude = std::fabs(x);
    const float tail = std::copysign(1.0f - erfc_tail(magnitude, square_of(x, 1.0f)), x);
    return magnitude < 0.5f ? erf_small(x) : tail;
}

// The normal distribution function: erfc(-x / sqrt 2) / 2, accurate in the lower tail too.
ENPU_PORTABLE float normal_cdf(float x) {
    const float scaled = x * 0x1.6a09e6p-1f;
    const float magnitude = std::fabs(scaled);
    const float tail = 0.5f * erfc_tail(magnitude, square_of(x, 0.5f));
    const float outer = x < 0.0f ? tail : 1.0f - tail;
    return magnitude < 0.5f ? fma(0.5f, erf_small(scaled), 0.5f) : outer;
}

}  // namespace enpu::ops::math
