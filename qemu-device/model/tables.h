// SPDX-License-Identifier: MIT
// Questions to the generated tables of the hardware description.
#pragma once

#include <cstdint>

#include "enpu_hw.h"
#include "enpu_hw_tables.h"

namespace enpu::model {

// An opcode that check_packet has let through, or any other number.
inline const enpu_opcode_info& opcode_info(uint16_t opcode) {
    static constexpr enpu_opcode_info kNoOpcode{};
    return opcode < ENPU_MAX_OPCODES ? enpu_opcodes[opcode] : kNoOpcode;
}

inline bool is_operator(uint16_t opcode) {
    return opcode_info(opcode).is_operator;
}

}  // namespace enpu::model
