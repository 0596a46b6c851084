// SPDX-License-Identifier: MIT
// From the chip-independent operator contract to packets of the enpu hardware: used by the npu
// backend and by the cpu backend, which runs the same operators on host memory.
#pragma once

#include <cstdint>

#include "enpu_hal.h"
#include "enpu_hw.h"

namespace enpu::hal {

// Opcode of a kernel; 0 (NOP) for an unknown one.
uint16_t opcode_of(uint32_t op);
// Kernel of an opcode; ENPU_OPS when it is none.
uint32_t op_of(uint16_t opcode);

// Translates shape and layout; the address is left 0. INVALID_ARGUMENT when a value does not fit
// the hardware's fields.
uint32_t translate(const enpu_op_tensor& tensor, enpu_tensor& out, enpu_hal_status* status);

constexpr uint32_t kMaxPacketBytes = ENPU_OPERATOR_PACKET_BYTES(ENPU_OP_MAX_OPERANDS);

// Room for any operator packet.
struct alignas(16) PacketStorage {
    unsigned char bytes[kMaxPacketBytes];
    enpu_operator_packet& packet() { return *reinterpret_cast<enpu_operator_packet*>(bytes); }
    const enpu_operator_packet& packet() const {
        return *reinterpret_cast<const enpu_operator_packet*>(bytes);
    }
};

// Header, parameters and descriptors of a dispatch; addresses are left 0. Checks the structure of
// the dispatch (operation, parameter size, number of operands, left-out ones), not the rules of the
// operator.
uint32_t translate(const enpu_hal_dispatch& dispatch, PacketStorage& out, enpu_hal_status* status);

}  // namespace enpu::hal
