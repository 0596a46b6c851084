// SPDX-License-Identifier: MIT
// Roundings to i8 and u8: QUANTIZE, and the end of an integer product.
#pragma once

#include <cmath>
#include <cstdint>

#include "enpu_hw.h"
#include "portable.h"

namespace enpu::ops {

struct QuantRange {
    float low;
    float high;
};
ENPU_PORTABLE QuantRange quant_range(bool is_signed) {
    return is_signed ? QuantRange{-128.0f, 127.0f} : QuantRange{0.0f, 255.0f};
}

// A value that is not a number becomes the zero point.
ENPU_PORTABLE float quantise_one(float x, float scale, float zero, QuantRange range) {
    const float quotient = x / scale;
    // Bounded before the sum, so that the sum is exact.
    float value = quotient > 1024.0f ? 1024.0f : quotient;
    value = value < -1024.0f ? -1024.0f : value;
    value = value == value ? value : 0.0f;
    value = ::rintf(value) + zero;
    value = value > range.high ? range.high : value;
    return value < range.low ? range.low : value;
}

// act(sum * scale), rounded half to even, plus the zero point, within [low, high].
ENPU_PORTABLE int32_t requantise_one(int32_t sum, float scale, uint32_t act, double alpha,
                                     double beta, int32_t zero_point, double low, double high) {
    double value = static_cast<double>(sum) * static_cast<double>(scale);
    switch (act) {
        case ENPU_UNARY_RELU:
            value = value > 0 ? value : 0;
            break;
        case ENPU_UNARY_LEAKY_RELU:
            value = value < 0 ? value * alpha : value;
            break;
        case ENPU_UNARY_CLIP:
            value = value < alpha ? alpha : value;
            value = beta < value ? beta : value;
            break;
        default:
            break;
    }
    value = ::nearbyint(value) + zero_point;
    return static_cast<int32_t>(value > low ? (high < value ? high : value) : low);
}

}  // namespace enpu::ops
