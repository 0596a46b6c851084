// SPDX-License-Identifier: MIT
// Where an output position of RESIZE samples its axis, and with which weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "enpu_hw.h"
#include "portable.h"

namespace enpu::ops {

struct Tap {
    int32_t index;  // position in x
    float weight;
};

struct AxisRule {
    uint32_t coord;
    double scale;  // output / input
    int64_t input;
    int64_t output;
    double roi_start;
    double roi_end;

    ENPU_PORTABLE_MEMBER bool crops() const {
        return coord == ENPU_RESIZE_COORD_TF_CROP_AND_RESIZE;
    }
    // Nothing is done along this axis.
    ENPU_PORTABLE_MEMBER bool copies() const {
        return input == output && scale == 1 && (!crops() || (roi_start == 0 && roi_end == 1));
    }
    // The extrapolation value is taken.
    ENPU_PORTABLE_MEMBER bool is_outside(double position) const {
        return crops() && !(position >= 0 && position <= double(input - 1));
    }
};

// Position in x of the output position `at`.
ENPU_PORTABLE double original(const AxisRule& axis, int64_t at) {
    const double position = static_cast<double>(at);
    const double last_input = static_cast<double>(axis.input - 1);
    const double last_output = static_cast<double>(axis.output - 1);
    switch (axis.coord) {
        case ENPU_RESIZE_COORD_PYTORCH_HALF_PIXEL:
            return axis.output > 1 ? (position + 0.5) / axis.scale - 0.5 : 0.0;
        case ENPU_RESIZE_COORD_ALIGN_CORNERS:
            return axis.output > 1 ? position * last_input / last_output : 0.0;
        case ENPU_RESIZE_COORD_ASYMMETRIC:
            return position / axis.scale;
        case ENPU_RESIZE_COORD_HALF_PIXEL_SYMMETRIC: {
            const double wanted = axis.scale * static_cast<double>(axis.input);
            const double adjustment = static_cast<double>(axis.output) / wanted;
            const double offset = static_cast<double>(axis.input) / 2 * (1 - adjustment);
            return offset + (position + 0.5) / axis.scale - 0.5;
        }
        case ENPU_RESIZE_COORD_TF_CROP_AND_RESIZE: {
            const double extent = axis.roi_end - axis.roi_start;
            if (axis.output == 1) return 0.5 * (axis.roi_start + axis.roi_end) * last_input;
            return axis.roi_start * last_input + position * extent * last_input / last_output;
        }
        default:
            return (position + 0.5) / axis.scale - 0.5;
    }
}

ENPU_PORTABLE double round_by(uint32_t round, double position) {
    switch (round) {
        case ENPU_RESIZE_ROUND_FLOOR:
            return std::floor(position);
        case ENPU_RESIZE_ROUND_CEIL:
            return std::ceil(position);
        case ENPU_RESIZE_ROUND_ROUND_PREFER_CEIL:
            return std::floor(position + 0.5);
        default:
            return std::ceil(position - 0.5);
    }
}

// Keys' cubic convolution: weights of the samples at -1, 0, 1 and 2 for a position `ratio` past
// sample 0.
ENPU_PORTABLE void cubic_weights(double a, double ratio, double* weights) {
    const auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    const auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    weights[0] = far(1 + ratio);
    weights[1] = near(ratio);
    weights[2] = near(1 - ratio);
    weights[3] = far(2 - ratio);
}

ENPU_PORTABLE void fill_taps(const enpu_resize_params& params, double position, int64_t input,
                             unsigned count, Tap* taps) {
    // Clamped before it becomes an integer: a scale near 0 or a wild region may put it anywhere,
    // NaN included.
    const double limit = static_cast<double>(input) + 4;
    const double bounded = position > -limit ? std::min(position, limit) : -limit;
    double weights[4] = {1, 0, 0, 0};
    double first = 0;
    if (count == 1) {
        first = round_by(params.round, bounded);
    } else {
        const double base = std::floor(bounded);
        const double ratio = bounded - base;
        first = count == 2 ? base : base - 1;
        if (count == 2) {
            weights[0] = 1 - ratio;
            weights[1] = ratio;
        } else {
            cubic_weights(params.cubic_a, ratio, weights);
        }
    }
    const int64_t start = static_cast<int64_t>(first);
    double sum = 0;
    for (unsigned i = 0; i < count; ++i) {
        const int64_t index = start + i;
        const bool inside = index >= 0 && index < input;
        if (params.exclude_outside && !inside && count > 1) weights[i] = 0;
        sum += weights[i];
        taps[i].index = static_cast<int32_t>(std::clamp<int64_t>(index, 0, input - 1));
    }
    const bool divide = params.exclude_outside && count > 1 && sum != 0;
    for (unsigned i = 0; i < count; ++i) {
        taps[i].weight = static_cast<float>(divide ? weights[i] / sum : weights[i]);
    }
}

ENPU_PORTABLE unsigned taps_of_mode(uint32_t mode) {
    if (mode == ENPU_RESIZE_MODE_NEAREST) return 1;
    return mode == ENPU_RESIZE_MODE_LINEAR ? 2 : 4;
}

inline AxisRule resize_rule(const enpu_resize_params& params, unsigned axis, unsigned rank,
                            int64_t input, int64_t output) {
    AxisRule rule{params.coord, params.scale[axis], input, output, 0, 1};
    if (rule.scale == 0) rule.scale = static_cast<double>(output) / static_cast<double>(input);
    if (axis + 4 >= rank) {
        rule.roi_start = params.roi_start[axis + 4 - rank];
        rule.roi_end = params.roi_end[axis + 4 - rank];
    }
    return rule;
}

}  // namespace enpu::ops
