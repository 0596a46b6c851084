// SPDX-License-Identifier: MIT
#include "fences.h"

#include <algorithm>

#include "status.h"

namespace enpu::hal {

void Fences::submitted(const enpu_hal_point* points, uint32_t count) {
    if (count == 0) return;
    std::lock_guard lock(mutex_);
    for (uint32_t i = 0; i < count; ++i) {
        State& state = states_[points[i].fence];
        state.submitted = std::max(state.submitted, points[i].value);
    }
}

bool Fences::known(const enpu_hal_point& point) {
    {
        std::lock_guard lock(mutex_);
        const auto found = states_.find(point.fence);
        if (found != states_.end() &&
            (found->second.submitted >= point.value || found->second.failed_from <= point.value))
            return true;
    }
    uint64_t value = 0;
    // A failed fence is known: the device refuses or drops what waits for it.
    return next_.fence->query(point.fence, &value, nullptr) != ENPU_HAL_OK || value >= point.value;
}

void Fences::fail(const enpu_hal_point& point, const enpu_hal_status& why) {
    {
        std::lock_guard lock(mutex_);
        State& state = states_[point.fence];
        if (state.failed_from == UINT64_MAX) {
            state.failure = why;
            failures_.fetch_add(1, std::memory_order_release);
        }
        state.failed_from = std::min(state.failed_from, point.value);
    }
    next_.fence->signal(point.fence, point.value, nullptr);
}

uint64_t Fences::failed_from(enpu_hal_fence* fence, enpu_hal_status* status) {
    std::lock_guard lock(mutex_);
    const auto found = states_.find(fence);
    if (found == states_.end() || found->second.failed_from == UINT64_MAX) return UINT64_MAX;
    fail_as(status, found->second.failure);
    return found->second.failed_from;
}

bool Fences::failed(const enpu_hal_point& point, enpu_hal_status* status) {
    if (!any_failed()) return false;
    enpu_hal_status why{};
    if (failed_from(point.fence, &why) > point.value) return false;
    fail_as(status, why);
    return true;
}

void Fences::forget(enpu_hal_fence* fence) {
    std::lock_guard lock(mutex_);
    const auto found = states_.find(fence);
    if (found == states_.end()) return;
    if (found->second.failed_from != UINT64_MAX) failures_.fetch_sub(1);
    states_.erase(found);
}

}  // namespace enpu::hal
