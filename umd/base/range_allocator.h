// SPDX-License-Identifier: MIT
// Best-fit allocator of address ranges: device VAs here, local memory and bus addresses in the
// simulator.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace enpu {

class RangeAllocator {
  public:
    RangeAllocator(uint64_t begin, uint64_t end);

    // Start of a free range of `bytes` at a multiple of `alignment` (a power of two), in the
    // smallest hole that fits, the lowest of equal ones. Nothing when there is none.
    std::optional<uint64_t> allocate(uint64_t bytes, uint64_t alignment);
    // Gives back exactly what allocate() returned.
    void release(uint64_t begin, uint64_t bytes);

    uint64_t free_bytes() const { return free_bytes_; }
    uint64_t largest() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

  private:
    void insert(uint64_t begin, uint64_t end);
    void erase(std::map<uint64_t, uint64_t>::iterator hole);

    std::map<uint64_t, uint64_t> holes_;               // begin -> end
    std::set<std::pair<uint64_t, uint64_t>> by_size_;  // {bytes, begin}
    uint64_t free_bytes_ = 0;
};

}  // namespace enpu
