// SPDX-License-Identifier: MIT
// Names of the data sheet, as messages use them.
#pragma once

#include <cstdint>
#include <string>

namespace enpu {

// "conv2d", or "opcode 99" for one that does not exist.
std::string opcode_name(uint32_t opcode);
// "weights", or "2" for one that the opcode does not have.
std::string operand_name(uint32_t opcode, uint32_t operand);

}  // namespace enpu
