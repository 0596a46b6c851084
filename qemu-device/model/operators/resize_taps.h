// SPDX-License-Identifier: MIT
// Where an output position of RESIZE samples its axis, and with which weights.
#pragma once

#include <cstdint>
#include <memory>

#include "enpu_hw.h"
#include "operator.h"
#include "resize_rule.h"

namespace enpu::ops {

// The taps of every output position of one axis, `per_output` each. An axis that is only copied has
// none.
struct AxisTaps {
    unsigned per_output = 0;
    std::unique_ptr<Tap[]> taps;
    std::unique_ptr<bool[]> outside;  // TF_CROP_AND_RESIZE only: the extrapolation value is taken

    bool copies() const { return per_output == 0; }
    const Tap* at(int64_t output) const { return taps.get() + output * per_output; }
};

// Longest axis that can be resized (one that keeps its size and is not scaled can be longer).
constexpr int64_t kMaxResizedAxis = 1 << 24;

// Fills the table for axis `axis` of `rank`, in tiles. kOutOfMemory when it cannot be had or the
// axis is too long.
Outcome make_taps(Progress& progress, const enpu_resize_params& params, unsigned axis,
                  unsigned rank, int64_t input, int64_t output, AxisTaps& out);

}  // namespace enpu::ops
