// SPDX-License-Identifier: MIT
#include "timeline.h"

namespace enpu::rt {

void Timeline::note_reached(uint64_t value) {
    uint64_t known = known_.load(std::memory_order_relaxed);
    while (known < value && !known_.compare_exchange_weak(known, value)) {
    }
}

bool Timeline::reached(uint64_t value) {
    if (known_.load(std::memory_order_acquire) >= value) return true;
    uint64_t now = 0;
    hal_.fence->query(fence_, &now, nullptr);
    note_reached(now);
    return now >= value;
}

bool Timeline::settled(uint64_t value) {
    if (known_.load(std::memory_order_acquire) >= value) return true;
    uint64_t now = 0;
    const uint32_t code = hal_.fence->query(fence_, &now, nullptr);
    note_reached(now);
    return code != ENPU_HAL_OK || now >= value;
}

}  // namespace enpu::rt
