// SPDX-License-Identifier: MIT
#include "command_list.h"

#include "structure.h"

namespace enpu::hal {

CommandList::Owned CommandList::own(const enpu_hal_command& command) {
    Owned owned;
    owned.command = command;
    if (command.kind != ENPU_HAL_COMMAND_DISPATCH || !command.u.dispatch) return owned;
    const enpu_hal_dispatch& from = *command.u.dispatch;
    owned.dispatch = std::make_unique<Dispatch>();
    Dispatch& to = *owned.dispatch;
    if (from.params) {
        const auto* bytes = static_cast<const unsigned char*>(from.params);
        to.params.assign(bytes, bytes + from.params_bytes);
    }
    if (from.operands) to.operands.assign(from.operands, from.operands + from.operand_count);
    to.dispatch = {table_header(sizeof(to.dispatch), ENPU_HAL_TYPE_DISPATCH),
                   from.op,
                   from.operand_count,
                   from.params ? to.params.data() : nullptr,
                   from.params_bytes,
                   from.operands ? to.operands.data() : nullptr};
    owned.command.u.dispatch = &to.dispatch;
    return owned;
}

}  // namespace enpu::hal
