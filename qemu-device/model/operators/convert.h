// SPDX-License-Identifier: MIT
// Between tensors as they lie in memory and the dense f32 ones that the dense operators compute on.
#pragma once

#include <cstdint>
#include <span>

#include "functions.h"
#include "strided.h"
#include "tiles.h"

namespace enpu::ops {

// f32 data in row-major order of `dims`, or [N,C,H,W] with the channels last.
View dense_view(float* data, std::span<const int64_t> dims);
View channels_last_view(float* data, int64_t n, int64_t c, int64_t h, int64_t w);
// True for f32 [N,C,H,W] whose elements lie exactly as those of channels_last_view, image by image
// (the stride of N is free).
bool is_channels_last(const View& view);

// A part of a view: `count` indices of an axis from `begin`.
View slice(View view, unsigned axis, int64_t begin, int64_t count);

// to[i] = from[i] - zero_point in f32, rounded once to the dtype of `to`; same dims. Call in an
// arena: uses its threads.
void convert(const View& from, const View& to, int32_t zero_point = 0);
// The same in tiles, from outside an arena.
Outcome convert_tiled(Progress& progress, const View& from, const View& to, int32_t zero_point = 0);
// to[i] = from[i] ^ flip for elements of one byte: 0x80 turns i8 into u8 and back, 128 higher or lower. In an
// arena; or in tiles, from outside one.
void copy_bytes(const View& from, const View& to, uint8_t flip);
Outcome copy_bytes_tiled(Progress& progress, const View& from, const View& to, uint8_t flip);
// to[i] += from[i], `to` f32. In an arena.
void accumulate(const View& from, const View& to);
// In an arena: x[i] = act(x[i]) for contiguous f32.
void activate(const Activation& act, float* x, int64_t count);

}  // namespace enpu::ops
