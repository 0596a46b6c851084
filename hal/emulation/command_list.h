// SPDX-License-Identifier: MIT
// Commands that own what they point to, so that they outlive the call that gave them.
#pragma once

#include <memory>
#include <vector>

#include "enpu_hal.h"

namespace enpu::hal {

class CommandList {
  public:
    void append(const enpu_hal_command& command) { commands_.push_back(own(command)); }
    void replace(size_t index, const enpu_hal_command& command) { commands_[index] = own(command); }
    size_t size() const { return commands_.size(); }
    const enpu_hal_command& operator[](size_t index) const { return commands_[index].command; }

  private:
    struct Dispatch {
        enpu_hal_dispatch dispatch{};
        std::vector<unsigned char> params;
        std::vector<enpu_hal_operand> operands;
    };
    struct Owned {
        enpu_hal_command command{};
        std::unique_ptr<Dispatch> dispatch;
    };
    static Owned own(const enpu_hal_command& command);
    std::vector<Owned> commands_;
};

}  // namespace enpu::hal
