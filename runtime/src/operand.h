// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "enpu_hal_ops.h"

namespace enpu::rt {

// Bytes a tensor touches before and from its element 0; false when that overflows or a value makes
// no sense.
bool tensor_extent(const enpu_op_tensor& tensor, uint64_t& before, uint64_t& from);

}  // namespace enpu::rt
