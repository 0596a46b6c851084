// SPDX-License-Identifier: MIT
// Small copies of a stream that wait to be submitted together. Order is kept: what is added later
// runs later, and a copy that continues the one before in both memories becomes part of it.
#pragma once

#include <array>
#include <cstdint>

#include "enpu_hal.h"

namespace enpu::rt {

class CopyList {
  public:
    static constexpr uint32_t kMost = 64;
    static constexpr uint64_t kSmall = 64u << 10;  // larger ones gain nothing

    // False when it is full.
    bool add(const enpu_hal_place& dst, const enpu_hal_place& src, uint64_t bytes);

    const enpu_hal_command* commands() const { return commands_.data(); }
    uint32_t count() const { return count_; }
    uint32_t copies() const { return copies_; }  // before they were joined
    bool empty() const { return count_ == 0; }
    void clear() { count_ = copies_ = 0; }

  private:
    std::array<enpu_hal_command, kMost> commands_;
    uint32_t count_ = 0;
    uint32_t copies_ = 0;
};

}  // namespace enpu::rt
