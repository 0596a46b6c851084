// SPDX-License-Identifier: MIT
// From pointers that users hold to buffers of the HAL.
#pragma once

#include <atomic>
#include <cstdint>
#include <shared_mutex>
#include <vector>

#include "enpu_hal.h"

namespace enpu::rt {

struct Slab;

struct Range {
    uint64_t begin = 0;
    uint64_t bytes = 0;
    enpu_hal_buffer* buffer = nullptr;
    Slab* slab = nullptr;  // of the pool, for device memory that rt_malloc hands out
    bool pinned = false;   // host memory
    bool wrapped = false;  // the caller's own memory
};

// Ranges do not overlap. Looked up on every launch and changed rarely: each thread remembers what it
// found, until a map changes.
class AddressMap {
  public:
    // False when the range overlaps one that is there.
    bool insert(const Range& range);
    // Removes the range that begins there and gives it back; bytes 0 when there is none.
    Range remove(uint64_t begin);
    // The range that holds the address; bytes 0 when there is none.
    Range find(uint64_t address) const;

  private:
    const Range* search(uint64_t address) const;
    Range find_in_map(uint64_t address) const;
    static uint64_t next_version();

    mutable std::shared_mutex mutex_;
    std::vector<Range> ranges_;  // sorted by begin
    // Of the ranges; no two states of any maps have the same.
    std::atomic<uint64_t> version_{next_version()};
};

}  // namespace enpu::rt
