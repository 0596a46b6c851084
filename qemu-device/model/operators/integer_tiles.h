// SPDX-License-Identifier: MIT
// Products of u8 by s8 on processors with tiles of 8-bit integers (AMX). Exact: sums are 32 bits wide and wrap. A block
// of sums becomes bytes while it lies in the first cache, which a library that hands out sums cannot do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "operator.h"
#include "requantise_row.h"

namespace enpu::ops {

// A block of sums, and the terms of one step. There are no fewer outputs than a block has.
constexpr int64_t kTilePixels = 32, kTileOutputs = 64, kTileTerms = 64;

// y[pixel, o] = sum over runs of `terms` bytes of x, one for each of `lines`: that of pixel p begins at
// p * pixel_step + line. A product of matrices has one line, a convolution one for each element of its window.
struct TileProduct {
    int64_t pixels, outputs, terms;
    int64_t pixel_step;              // bytes
    std::span<const int64_t> lines;  // bytes

    // Bytes that may be read from the start of x.
    int64_t input_bytes() const;
};

// What becomes of the sums of a pixel.
struct TileOutput {
    const float* scale;      // of every output; null: 32-bit sums are the result
    const int32_t* addends;  // of every output
    RequantiseRow rule;      // without what differs from row to row
    uint32_t act;
    std::byte* y;
    const int64_t* places;  // of each pixel, in bytes from y; negative: nowhere
    // Where 32-bit sums are the result and nothing is added: bytes from a pixel to the next, all of which have
    // places. 0 otherwise.
    int64_t plain_step = 0;
};

// May this process use the tiles of this processor?
bool has_integer_tiles();

// The order of weights that run_tiles() reads, a number for the header of packed ones.
constexpr uint32_t kTileLayout = 0x454c4954;
size_t tile_weights_bytes(int64_t outputs, int64_t lines, int64_t terms);
// The weight of output o for term t of line n lies at from[o * o_step + n * line_step + t * term_step].
struct PlainWeights {
    const int8_t* from;
    int64_t o_step, line_step, term_step;
};
Outcome tile_weights(Progress& progress, int64_t outputs, int64_t lines, int64_t terms,
                     const PlainWeights& plain, std::byte* to);

// In an arena of so many threads.
void run_tiles(const TileProduct& product, unsigned threads, const uint8_t* x,
               const std::byte* weights, const TileOutput& out);

}  // namespace enpu::ops
