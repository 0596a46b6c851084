// SPDX-License-Identifier: MIT
// What every side has to know of each kernel of enpu_hal_ops.h, whatever the chip.
#pragma once

#include <cstdint>
#include <string_view>

#include "enpu_hal_ops.h"

namespace enpu::hal {

struct OpInfo {
    enpu_op op;
    const char* name;
    uint32_t params_bytes;  // 0: no parameters
    uint32_t operands;
    uint32_t optional;  // bit n: operand n may be left out
    const char* operand_names[ENPU_OP_MAX_OPERANDS];
};

// nullptr for a number or name that does not exist. The last operand of each kernel is its output.
const OpInfo* find_op(uint32_t op);
const OpInfo* find_op(std::string_view name);

// Bytes of an element; 0 for NONE and unknown types.
uint32_t dtype_bytes(uint32_t dtype);

}  // namespace enpu::hal
