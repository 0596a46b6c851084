// SPDX-License-Identifier: MIT
// What a window of POOL covers along one axis, and how its elements are combined.
#pragma once

#include <cmath>
#include <cstdint>

#include "portable.h"

namespace enpu::ops {

struct PoolAxis {
    int64_t size;  // of the input
    int64_t kernel, stride, dilation;
    int64_t pad_before, pad_after;
};

// Kernel indices [begin, end) are inside the input, `padded` of them inside the padded input.
struct Reach {
    int64_t first;  // input index of kernel index 0
    int64_t begin, end;
    int64_t padded;
};

// Kernel indices whose input index, first + i * dilation, is below the limit.
ENPU_PORTABLE int64_t taps_below(const PoolAxis& axis, int64_t first, int64_t limit) {
    if (limit <= first) return 0;
    const int64_t taps = (limit - first + axis.dilation - 1) / axis.dilation;
    return taps < axis.kernel ? taps : axis.kernel;
}

ENPU_PORTABLE Reach pool_reach(const PoolAxis& axis, int64_t output) {
    const int64_t first = output * axis.stride - axis.pad_before;
    return {first, taps_below(axis, first, 0), taps_below(axis, first, axis.size),
            taps_below(axis, first, axis.size + axis.pad_after)};
}

// max that keeps NaN, as the elementwise operators do.
template <class C>
ENPU_PORTABLE C larger(C a, C b) {
    return b > a || b != b ? b : a;
}

ENPU_PORTABLE int64_t divide_round_even(int64_t sum, int64_t count) {
    return static_cast<int64_t>(::nearbyint(static_cast<double>(sum) / static_cast<double>(count)));
}

}  // namespace enpu::ops
