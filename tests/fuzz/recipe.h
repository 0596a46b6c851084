// SPDX-License-Identifier: MIT
// Packets from few bytes: a sound one of any opcode, changed in a few places. So a fuzzer gets past
// the checks of the header and into each rule and each operator.
#pragma once

#include <initializer_list>

#include "bytes.h"
#include "sample_packets.h"

namespace enpu::fuzz {

// How a packet is changed, the first byte of a change modulo kChanges.
enum Change : uint8_t {
    kByte,       // offset u16, value u8
    kWord,       // offset u16, value u32
    kExtreme,    // offset u16, index u8 into numbers that like to overflow
    kLarger,     // offset u16, i8 that is added to the word
    kLeftOut,    // operand u8: not there
    kBroadcast,  // operand u8, axis u8: stride 0
    kReverse,    // operand u8, axis u8: from the other end
    kTyped,      // operand u8, dtype u8
    kSized,      // axis u8, size u8: in each operand, row-major
    kChanges
};

// Opcodes there are, in the order of the data sheet.
uint32_t opcode_count();
uint16_t opcode_at(uint32_t index);

// index u8 of the opcode, dtype u8 of the float operands (0: as they are), count u8 of changes, the
// changes. Control packets work on the operands of `va`.
rules::test::Packet packet_from(Bytes& bytes, uint64_t va, uint64_t stride);

}  // namespace enpu::fuzz
