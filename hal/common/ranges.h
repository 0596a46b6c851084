// SPDX-License-Identifier: MIT
// The checks of commands that hold for every chip: what they touch lies in its buffers. For what
// stands above the tables and sees buffers through memory.info alone.
#pragma once

#include <cstdint>

#include "enpu_hal.h"

namespace enpu::hal {

// Bytes from the first to the last one of a 2D region; false when that overflows.
bool region_bytes(uint64_t width, uint64_t height, uint64_t pitch, uint64_t& bytes);

// Bytes that a tensor touches around its element 0: [-before, after). False when it is illegal or
// overflows.
bool tensor_reach(const enpu_op_tensor& tensor, uint64_t& before, uint64_t& after);

// A place and the bytes [offset, offset + bytes) that a command touches there.
struct Access {
    enpu_hal_place place;
    uint64_t bytes;
    bool writes;
    const char* what;  // "copy: source", the name of an operand
};
constexpr uint32_t kMostAccesses = 6;

// What a command touches; how many go to `out`. An illegal one fills *status and gives its code.
// HOST_CALL touches nothing.
uint32_t accesses_of(const enpu_hal_command& command, Access (&out)[kMostAccesses], uint32_t& count,
                     enpu_hal_status* status);

// All of that, and that it lies inside the buffers, that copies do not overlap, and that the device
// supports the kernel.
uint32_t check_command(const enpu_hal_plugin& hal, enpu_hal_device* device,
                       const enpu_hal_command& command, enpu_hal_status* status);

}  // namespace enpu::hal
