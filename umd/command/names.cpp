// SPDX-License-Identifier: MIT
#include "command/names.h"

#include <algorithm>
#include <cctype>

#include "enpu_hw_tables.h"

namespace enpu {

std::string opcode_name(uint32_t opcode) {
    if (opcode >= ENPU_MAX_OPCODES || !enpu_opcodes[opcode].exists) {
        return "opcode " + std::to_string(opcode);
    }
    std::string name = enpu_opcodes[opcode].name;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    return name;
}

std::string operand_name(uint32_t opcode, uint32_t operand) {
    if (opcode < ENPU_MAX_OPCODES && enpu_opcodes[opcode].is_operator) {
        const auto& info = enpu_opcodes[opcode];
        return operand < info.num_operands ? info.operands[operand].name : std::to_string(operand);
    }
    if (opcode == ENPU_OPCODE_COPY && operand == 1) return "src";
    return opcode == ENPU_OPCODE_COPY || opcode == ENPU_OPCODE_FILL ? "dst" : "addr";
}

}  // namespace enpu
