// SPDX-License-Identifier: MIT
// A command of the HAL with everything it points to: what graphs, captures and held-back work keep.
#pragma once

#include <cstring>

#include "enpu_hal.h"

namespace enpu::rt {

struct OpRecord {
    enpu_hal_command command{};
    enpu_hal_dispatch dispatch{};
    enpu_hal_operand operands[ENPU_OP_MAX_OPERANDS]{};
    alignas(8) unsigned char params[ENPU_OP_MAX_PARAM_BYTES]{};

    OpRecord() = default;
    explicit OpRecord(const enpu_hal_command& from) { assign(from); }
    OpRecord(const OpRecord& other) { assign(other.command); }
    OpRecord& operator=(const OpRecord& other) {
        if (this != &other) assign(other.command);
        return *this;
    }

    // Copies what the command points to, so that it may go. Sizes were checked when it was bound.
    void assign(const enpu_hal_command& from) {
        command = from;
        if (from.kind != ENPU_HAL_COMMAND_DISPATCH) return;
        dispatch = *from.u.dispatch;
        if (dispatch.operand_count)
            std::memcpy(operands, dispatch.operands, dispatch.operand_count * sizeof(operands[0]));
        if (dispatch.params_bytes) std::memcpy(params, dispatch.params, dispatch.params_bytes);
        dispatch.operands = operands;
        dispatch.params = dispatch.params_bytes ? params : nullptr;
        command.u.dispatch = &dispatch;
    }
    bool is_kernel() const { return command.kind == ENPU_HAL_COMMAND_DISPATCH; }
};

}  // namespace enpu::rt
