// SPDX-License-Identifier: MIT
#include "staging.h"

namespace enpu::rt {

// Regions do not wrap and begin at multiples of 64.
uint64_t Staging::start_for(uint64_t bytes) const {
    const uint64_t start = (head_ + 63) & ~uint64_t{63};
    return start % kBytes + bytes <= kBytes ? start : (start / kBytes + 1) * kBytes;
}

bool Staging::has_room(uint64_t bytes, uint64_t reached) {
    while (first_ != last_ && regions_[first_ % kRegions].value <= reached)
        tail_ = regions_[first_++ % kRegions].end;
    if (first_ == last_) tail_ = head_;
    return last_ - first_ < kRegions && start_for(bytes) + bytes - tail_ <= kBytes;
}

Staging::Region Staging::take(uint64_t bytes) {
    const uint64_t start = start_for(bytes);
    head_ = start + bytes;
    regions_[last_++ % kRegions] = {head_, 0};
    const uint64_t offset = start % kBytes;
    return {{buffer_, offset}, host_ + offset};
}

}  // namespace enpu::rt
