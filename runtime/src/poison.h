// SPDX-License-Identifier: MIT
// Poison mode: freed and new blocks of the pool are filled, and a freed one is looked at before it
// is handed out again.
#pragma once

#include "stream.h"

namespace enpu::rt {

// NaN as f32, f16 and bf16, so that a result computed from them shows it.
constexpr uint64_t kFreedPattern = 0xffdfffdfffdfffdf;
constexpr uint64_t kFreshPattern = 0xfff0fff0fff0fff0;

// Memory of the pool for the stream, poison mode or not.
rt_status allocate_block(rt_stream_impl& stream, uint64_t bytes, const char* origin,
                         void** pointer);
// In poison mode, before the block goes back to the pool.
void poison_freed(rt_stream_impl& stream, void* pointer, const char* origin);

}  // namespace enpu::rt
