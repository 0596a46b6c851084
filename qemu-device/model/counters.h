// SPDX-License-Identifier: MIT
// Performance counters of each address space.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "enpu_hw.h"

namespace enpu::model {

// Added to by every engine without a lock; each word is right by itself.
class Counters {
  public:
    static constexpr uint32_t kWords = ENPU_COUNTER_COPY_BYTES + 1;

    void add(uint32_t as_id, uint32_t word, uint64_t value) {
        if (value != 0) words_[as_id][word].fetch_add(value, std::memory_order_relaxed);
    }
    // Words that do not exist are 0.
    uint64_t get(uint32_t as_id, uint32_t word) const {
        return word < kWords ? words_[as_id][word].load(std::memory_order_relaxed) : 0;
    }
    void set(uint32_t as_id, uint32_t word, uint64_t value) {
        words_[as_id][word].store(value, std::memory_order_relaxed);
    }
    void clear(uint32_t as_id) {
        for (auto& word : words_[as_id]) word.store(0, std::memory_order_relaxed);
    }

  private:
    std::array<std::array<std::atomic<uint64_t>, kWords>, ENPU_MAX_AS> words_{};
};

}  // namespace enpu::model
