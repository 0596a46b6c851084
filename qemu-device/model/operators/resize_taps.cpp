// SPDX-License-Identifier: MIT
#include "resize_taps.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "resize_rule.h"
#include "tiles.h"

namespace enpu::ops {
Outcome make_taps(Progress& progress, const enpu_resize_params& params, unsigned axis,
                  unsigned rank, int64_t input, int64_t output, AxisTaps& out) {
    const AxisRule rule = resize_rule(params, axis, rank, input, output);
    const bool crops = rule.crops();
    if (rule.copies()) return Outcome::kDone;
    if (output > kMaxResizedAxis || input > kMaxResizedAxis) return Outcome::kOutOfMemory;
    out.per_output = taps_of_mode(params.mode);
    out.taps.reset(new (std::nothrow) Tap[static_cast<size_t>(output) * out.per_output]);
    if (!out.taps) return Outcome::kOutOfMemory;
    if (crops) {
        out.outside.reset(new (std::nothrow) bool[static_cast<size_t>(output)]);
        if (!out.outside) return Outcome::kOutOfMemory;
    }
    return for_tiles(progress, output, int64_t{1} << 16, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const double position = original(rule, i);
            fill_taps(params, position, input, out.per_output, out.taps.get() + i * out.per_output);
            if (crops) out.outside[i] = rule.is_outside(position);
        }
    });
}

}  // namespace enpu::ops
