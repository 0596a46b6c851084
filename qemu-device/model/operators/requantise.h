// SPDX-License-Identifier: MIT
// The end of an integer product: bias, scale, activation, rounding, zero point.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "families.h"
#include "functions.h"
#include "requantise_row.h"
#include "strided.h"

namespace enpu::ops {

// Largest |value - zero point| of an I8 or U8 operand.
int64_t largest_magnitude(const enpu_tensor& tensor);
// Products that can be summed in f32 without rounding: every partial sum stays below 2^24.
int64_t exact_terms(const enpu_tensor& a, const enpu_tensor& b);

class Requantiser {
  public:
    static constexpr unsigned kNone = ~0u;

    // Operands by number; kNone for a bias that the caller adds. `channels` is the size of the last
    // axis of the sums.
    Requantiser(const Call& call, unsigned a, unsigned b, unsigned bias, unsigned scale, unsigned y,
                int64_t channels, const Activation& act);

    // sums [pixels, count], for the channels from `channel`: final values in place. In an arena.
    void finish(int32_t* sums, int64_t pixels, int64_t channel, int64_t count) const;
    // The same, each sum first plus the addend of its channel (a correction, of `count` numbers), into `to`:
    // 8-bit integers, as dense as the sums. Not for an I32 output.
    void finish_bytes(const int32_t* sums, const int32_t* addends, int64_t pixels, int64_t channel,
                      int64_t count, std::byte* to) const;
    bool makes_bytes() const { return !scale_.empty(); }
    // What requantise_row() has to know besides rows: low, high, zero point, activation, quick.
    RequantiseRow rule() const;
    uint32_t activation() const { return act_.function; }
    // Of each channel; null for an I32 output.
    const float* scales() const { return scale_.empty() ? nullptr : scale_.data(); }
    // addends[i] += the bias of channel + i, if there is one.
    void add_bias(int64_t channel, std::span<int32_t> addends) const;

  private:
    void finish_pixel(int32_t* sums, int64_t channel, int64_t count) const;

    std::vector<int32_t> bias_;  // empty, or one a channel
    std::vector<float> scale_;   // empty for an I32 output
    Activation act_;
    int32_t zero_point_;
    int32_t low_, high_;
};

// sums [pixels, count]: each plus the addend of its channel. In an arena.
void add_to_channels(int32_t* sums, const int32_t* addends, int64_t pixels, int64_t count);
// sums[i] (+)= from[i], which are integers. In an arena.
void add_exact(const float* from, int32_t* sums, int64_t count, bool first);
// to[i] += from[i], both I32. In an arena.
void add_integers(const View& from, const View& to);
// Stores final values with the dtype and strides of `to`. In an arena.
void store_integers(const View& from, const View& to);
// I32 in row-major order, or channels last.
View integer_view(View floats, int32_t* data);

}  // namespace enpu::ops
