// SPDX-License-Identifier: MIT
// Formulas of single elements that take more than an operator: for the functions of UNARY and
// BINARY.
#pragma once

#include "float_math.h"
#include "scalar.h"

namespace enpu::ops {

ENPU_PORTABLE float relu(float x) {
    return x < 0.0f ? 0.0f : x;
}
ENPU_PORTABLE float clip(float x, float low, float high) {
    const float above = x < low ? low : x;
    return above > high ? high : above;
}

ENPU_PORTABLE float gelu_tanh(float x) {
    constexpr float kTwoSqrt2OverPi = 0x1.988454p0f;
    const float inner = math::fma(0.044715f * x * x, x, x);
    return x * math::sigmoid(kTwoSqrt2OverPi * inner);
}

// x tanh(log(1 + e^x)) without the logarithm.
ENPU_PORTABLE float mish(float x) {
    const float e = math::exp(x > 20.0f ? 20.0f : x);
    const float n = e * (e + 2.0f);
    return x * (n / (n + 2.0f));
}

// 0 * inf would be NaN where the limit is -0.
ENPU_PORTABLE float gated(float x, float gate) {
    return gate == 0.0f ? -0.0f : x * gate;
}

ENPU_PORTABLE bool infinite_as_asked(float x, float sign) {
    const bool positive = x > 0x1.fffffep127f;
    const bool negative = x < -0x1.fffffep127f;
    return (positive && sign >= 0.0f) || (negative && sign <= 0.0f);
}

// The remainder with the sign of the divisor.
ENPU_PORTABLE float floor_mod(float a, float b) {
    const float remainder = std::fmod(a, b);
    return remainder != 0.0f && (remainder < 0.0f) != (b < 0.0f) ? remainder + b : remainder;
}

// ---- integers, in 64 bits --------------------------------------------------------------------

ENPU_PORTABLE int64_t wrap(uint64_t bits) {
    return static_cast<int64_t>(bits);
}
ENPU_PORTABLE int64_t add(int64_t a, int64_t b) {
    return wrap(uint64_t(a) + uint64_t(b));
}
ENPU_PORTABLE int64_t subtract(int64_t a, int64_t b) {
    return wrap(uint64_t(a) - uint64_t(b));
}
ENPU_PORTABLE int64_t multiply(int64_t a, int64_t b) {
    return wrap(uint64_t(a) * uint64_t(b));
}

// Truncates; by 0 it is 0, and the one quotient that does not fit wraps.
ENPU_PORTABLE int64_t divide(int64_t a, int64_t b) {
    if (b == 0) return 0;
    return b == -1 ? subtract(0, a) : a / b;
}
ENPU_PORTABLE int64_t remainder(int64_t a, int64_t b) {
    return b == 0 || b == -1 ? 0 : a % b;
}
ENPU_PORTABLE int64_t modulo(int64_t a, int64_t b) {
    const int64_t r = remainder(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

ENPU_PORTABLE int64_t power(int64_t base, int64_t exponent) {
    if (exponent < 0) {
        if (base == 1) return 1;
        return base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    }
    int64_t result = 1;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) result = multiply(result, base);
        base = multiply(base, base);
    }
    return result;
}

// Shifts by a negative count or by the width of the dtype and more leave 0, or the sign of a right
// shift.
ENPU_PORTABLE int64_t shift_left(int64_t a, int64_t count, int64_t bits) {
    return count < 0 || count >= bits ? 0 : wrap(uint64_t(a) << count);
}
ENPU_PORTABLE int64_t shift_right(int64_t a, int64_t count, int64_t bits) {
    return count < 0 || count >= bits ? (a < 0 ? -1 : 0) : a >> count;
}

// An integer with more than 24 significant bits as a float whose lowest bit tells whether bits were
// lost, so that rounding it once more to bf16 gives the correctly rounded result.
ENPU_PORTABLE float round_to_odd(int64_t value) {
    const uint64_t magnitude = value < 0 ? 0 - uint64_t(value) : uint64_t(value);
    if (magnitude < (1u << 24)) return static_cast<float>(value);
    const int shift = 40 - std::countl_zero(magnitude);
    uint64_t kept = magnitude >> shift;
    kept |= (kept << shift) != magnitude;
    const float result = static_cast<float>(kept) * static_cast<float>(uint64_t(1) << shift);
    return value < 0 ? -result : result;
}

}  // namespace enpu::ops
