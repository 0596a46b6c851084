// SPDX-License-Identifier: MIT
// The functions of UNARY and BINARY on contiguous elements in the type they are computed in: float
// for f32/f16/bf16, int64_t for integers and BOOL (whose store wraps to the width of the dtype).
// Other operators fuse activations with apply_unary.
#pragma once

#include <cstdint>

#include "enpu_hw.h"

namespace enpu::ops {

struct Activation {
    uint32_t function = ENPU_UNARY_IDENTITY;  // enum enpu_unary
    float alpha = 0;
    float beta = 0;
};

// y[i] = function(x[i]); x and y are equal or do not overlap.
void apply_unary(const Activation& activation, const float* x, float* y, int64_t count);
void apply_unary(const Activation& activation, const int64_t* x, int64_t* y, int64_t count);

// y[i] = function(a[i], b[i]), function of enum enpu_binary; y may be a or b. Comparisons and logic
// give 0 or 1.
void apply_binary(uint32_t function, const float* a, const float* b, float* y, int64_t count);
void apply_binary(uint32_t function, uint32_t dtype, const int64_t* a, const int64_t* b, int64_t* y,
                  int64_t count);

inline bool is_comparison(uint32_t function) {
    return function >= ENPU_BINARY_EQ && function <= ENPU_BINARY_GE;
}

}  // namespace enpu::ops
