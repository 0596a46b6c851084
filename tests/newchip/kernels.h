// SPDX-License-Identifier: MIT
// The chip's kernels: move, and some functions of unary and binary, of f32 and i32.
#pragma once

#include <enpu/enpu_hal.h>

namespace chip {

// Fills *status, which may be NULL, and gives the code back.
uint32_t refuse(enpu_hal_status* status, uint32_t code, const char* sentence);

// Bytes that a checked tensor touches around its element 0: [-before, after).
bool reach(const enpu_op_tensor& tensor, uint64_t& before, uint64_t& after);

// Whether the chip takes the dispatch, wherever its operands lie.
uint32_t check(const enpu_hal_dispatch* dispatch, enpu_hal_status* status);

// Runs a checked dispatch; addresses are those of the elements 0.
void run(const enpu_hal_dispatch& dispatch, char* const* addresses);

}  // namespace chip
