// SPDX-License-Identifier: MIT
#include "base/range_allocator.h"

#include <cassert>

namespace enpu {

RangeAllocator::RangeAllocator(uint64_t begin, uint64_t end) {
    if (begin < end) insert(begin, end);
}

void RangeAllocator::insert(uint64_t begin, uint64_t end) {
    holes_.emplace(begin, end);
    by_size_.emplace(end - begin, begin);
    free_bytes_ += end - begin;
}

void RangeAllocator::erase(std::map<uint64_t, uint64_t>::iterator hole) {
    by_size_.erase({hole->second - hole->first, hole->first});
    free_bytes_ -= hole->second - hole->first;
    holes_.erase(hole);
}

std::optional<uint64_t> RangeAllocator::allocate(uint64_t bytes, uint64_t alignment) {
    if (bytes == 0) return std::nullopt;
    for (auto it = by_size_.lower_bound({bytes, 0}); it != by_size_.end(); ++it) {
        const uint64_t begin = it->second;
        const uint64_t end = begin + it->first;
        uint64_t start;
        if (__builtin_add_overflow(begin, alignment - 1, &start)) continue;
        start &= ~(alignment - 1);
        if (start > end || end - start < bytes) continue;
        erase(holes_.find(begin));
        if (begin < start) insert(begin, start);
        if (start + bytes < end) insert(start + bytes, end);
        return start;
    }
    return std::nullopt;
}

void RangeAllocator::release(uint64_t begin, uint64_t bytes) {
    uint64_t end = begin + bytes;
    auto next = holes_.lower_bound(begin);
    assert(next == holes_.end() || next->first >= end);
    if (next != holes_.end() && next->first == end) {
        end = next->second;
        auto gone = next++;
        erase(gone);
    }
    if (next != holes_.begin()) {
        auto previous = std::prev(next);
        assert(previous->second <= begin);
        if (previous->second == begin) {
            begin = previous->first;
            erase(previous);
        }
    }
    insert(begin, end);
}

}  // namespace enpu
