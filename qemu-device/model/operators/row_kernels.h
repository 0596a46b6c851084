// SPDX-License-Identifier: MIT
// One row of SOFTMAX and NORM, for each kind of vectors: the same operations in the same order, so the same numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rows.h"

namespace enpu::ops {

constexpr int kRowLanes = 32;  // sums side by side; lane j takes the elements j, j + kRowLanes, …

// Halves onto each other, as vectors add up.
inline double sum_of_lanes(double (&lanes)[kRowLanes]) {
    for (int width = kRowLanes / 2; width > 0; width /= 2)
        for (int j = 0; j < width; ++j) lanes[j] += lanes[j + width];
    return lanes[0];
}

// What is subtracted from the elements of a row whose largest is `max`, or that holds what is no number.
inline float softmax_origin(float max) {
    return std::isfinite(max) ? max : 0.0f;
}

struct RowMoments {
    float mean,
        mean_low;  // in two floats: with one, its rounding would show in y as |mean| / deviation ulps
    float factor;  // 1 / deviation
};
inline RowMoments row_moments(const NormRow& row, double sum, double squares, double count) {
    const double middle = row.centred ? sum / count : 0.0;
    const double variance = squares / count - middle * middle;
    const double exact = 1.0 / std::sqrt(std::max(variance, 0.0) + double(row.epsilon));
    const auto mean = static_cast<float>(middle);
    return {mean, static_cast<float>(middle - mean),
            static_cast<float>(variance == variance ? exact : variance)};
}

void softmax_row_narrow(const float* x, float* y, int64_t count);
void norm_row_narrow(const float* x, float* y, int64_t count, const NormRow& row);
// On processors with AVX-512.
void softmax_row_wide(const float* x, float* y, int64_t count);
void norm_row_wide(const float* x, float* y, int64_t count, const NormRow& row);

}  // namespace enpu::ops
