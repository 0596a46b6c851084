// SPDX-License-Identifier: MIT
// Command streams in words: for dumps, traces and replay. The bytes are not trusted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "enpu_hw.h"

namespace enpu::tools {

// Offsets of the packets, from the start of `bytes`; stops in front of one that cannot be.
std::vector<uint32_t> packet_offsets(std::string_view bytes);
enpu_packet packet_header(std::string_view bytes, uint32_t offset);
// "conv2d x=f32[1,8,8,3]@0x10000 … y=…", "copy 4096 B 0x… -> 0x…". `bytes` may be cut off.
std::string packet_text(std::string_view bytes);
// Memory that a packet reads or writes: (VA, bytes, is written). Operands by their dense span.
struct Access {
    uint64_t va = 0, bytes = 0;
    bool written = false;
    uint32_t operand = 0;
};
std::vector<Access> packet_accesses(std::string_view bytes);
std::string opcode_text(uint32_t opcode);  // "conv2d", "opcode 99"

}  // namespace enpu::tools
