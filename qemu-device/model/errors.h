// SPDX-License-Identifier: MIT
// The FIFO of error records.
#pragma once

#include <array>
#include <cstdint>

#include "enpu_hw.h"

namespace enpu::model {

// Under the device's lock.
class Errors {
  public:
    void push(const enpu_error_record& record) {
        if (count_ == ENPU_ERROR_FIFO_DEPTH) {
            ++lost_;
            return;
        }
        records_[(first_ + count_++) % ENPU_ERROR_FIFO_DEPTH] = record;
    }
    void pop() {
        if (count_ == 0) return;
        first_ = (first_ + 1) % ENPU_ERROR_FIFO_DEPTH;
        --count_;
    }
    // All zero when there is none.
    enpu_error_record front() const { return at(0); }
    enpu_error_record at(uint32_t i) const {
        return i < count_ ? records_[(first_ + i) % ENPU_ERROR_FIFO_DEPTH] : enpu_error_record{};
    }
    uint32_t count() const { return count_; }
    uint32_t lost() const { return lost_; }
    void set_lost(uint32_t lost) { lost_ = lost; }
    void reset() { *this = {}; }

  private:
    std::array<enpu_error_record, ENPU_ERROR_FIFO_DEPTH> records_{};
    uint32_t first_ = 0, count_ = 0, lost_ = 0;
};

}  // namespace enpu::model
