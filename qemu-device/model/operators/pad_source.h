// SPDX-License-Identifier: MIT
// Where PAD takes an element from, along one axis.
#pragma once

#include <cstdint>

#include "enpu_hw.h"
#include "portable.h"

namespace enpu::ops {

struct PadAxis {
    int64_t before;
    int64_t size;  // of x
};

// Where position `at` of y lies in x, -1 for the constant. Modes that repeat do so as often as it
// takes.
ENPU_PORTABLE int64_t pad_source(int64_t at, const PadAxis& axis, uint32_t mode) {
    const int64_t position = at - axis.before;
    if (position >= 0 && position < axis.size) return position;
    if (mode == ENPU_PAD_MODE_CONSTANT) return -1;
    if (mode == ENPU_PAD_MODE_EDGE) return position < 0 ? 0 : axis.size - 1;
    if (axis.size == 1) return 0;
    const int64_t period = mode == ENPU_PAD_MODE_WRAP ? axis.size : 2 * (axis.size - 1);
    const int64_t rest = position % period;
    const int64_t in_period = rest < 0 ? rest + period : rest;
    return in_period < axis.size ? in_period : period - in_period;
}

}  // namespace enpu::ops
