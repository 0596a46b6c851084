// SPDX-License-Identifier: MIT
// requantise_one for rows of sums: what the end of an integer product spends its time with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace enpu::ops {

// A row of sums and what becomes of it.
struct RequantiseRow {
    const int32_t* sums;
    const int32_t* addends;  // one for each sum, added to it first; wraps
    const float* scale;      // one for each sum
    std::byte* to;           // `count` bytes, i8 or u8
    int64_t count;
    float alpha, beta;  // of the activation
    int32_t low, high;  // of the output: -128 and 127, or 0 and 255
    int32_t zero_point;
    bool quick;  // f32_may_round()
};

// May f32 be tried before f64? Not with factors that take a product out of its range. `alpha` is the activation's.
bool f32_may_round(const float* scale, int64_t count, float alpha);

// `act` is an enpu_unary_op that may end an integer product; any other is taken for IDENTITY.
void requantise_row(const RequantiseRow& row, uint32_t act);
// Rows of the same addends and scales, one behind the other in `sums`: row i goes to row.to + places[i], and nowhere if
// that is negative.
void requantise_rows(const RequantiseRow& row, uint32_t act, std::span<const int64_t> places);

}  // namespace enpu::ops
