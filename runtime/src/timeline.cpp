// SPDX-License-Identifier: MIT
#include "timeline.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "common/status.h"

namespace enpu::rt {

Timeline::~Timeline() {
    hal_.fence->destroy(fence_.load());
    for (enpu_hal_fence* fence : replaced_) hal_.fence->destroy(fence);
}

void Timeline::note_reached(uint64_t value) {
    uint64_t known = known_.load(std::memory_order_relaxed);
    while (known < value && !known_.compare_exchange_weak(known, value)) {
    }
}

bool Timeline::reached(uint64_t value) {
    if (known_.load(std::memory_order_acquire) >= value) return true;
    uint64_t now = 0;
    hal_.fence->query(fence(), &now, nullptr);
    note_reached(now);
    return now >= value;
}

bool Timeline::settled(uint64_t value) {
    if (known_.load(std::memory_order_acquire) >= value) return true;
    uint64_t now = 0;
    const uint32_t code = hal_.fence->query(fence(), &now, nullptr);
    note_reached(now);
    return code != ENPU_HAL_OK || now >= value || (given_up_.load() && submitted_.load() < value);
}

void Timeline::note_submitted(uint64_t value) {
    submitted_.store(value, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
    { std::lock_guard lock(mutex_); }
    changed_.notify_all();
}

void Timeline::give_up(const enpu_hal_status& why) {
    {
        std::lock_guard lock(mutex_);
        if (!given_up_.load()) why_ = why;
        given_up_.store(true);
    }
    changed_.notify_all();
}

uint32_t Timeline::wait_submitted(uint64_t value, uint64_t deadline_ns, enpu_hal_status* status) {
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1);
    const std::chrono::steady_clock::time_point deadline{
        std::chrono::nanoseconds(static_cast<int64_t>(std::min<uint64_t>(deadline_ns, INT64_MAX)))};
    const bool woken =
        changed_.wait_until(lock, deadline, [&] { return submitted(value) || given_up_.load(); });
    sleepers_.fetch_sub(1);
    if (submitted(value)) return ENPU_HAL_OK;
    if (woken) return hal::fail_as(status, why_);
    return hal::fail(status, ENPU_HAL_DEADLINE_EXCEEDED,
                     "the work is held back behind a host call that has not returned");
}

uint32_t Timeline::poll(uint64_t value, uint64_t deadline_ns, bool yield, enpu_hal_status* status) {
    for (;;) {
        uint64_t now = 0;
        const uint32_t code = hal_.fence->query(fence(), &now, status);
        note_reached(now);
        if (now >= value) return ENPU_HAL_OK;
        if (code != ENPU_HAL_OK) return code;
        if (hal::now_ns() >= deadline_ns)
            return hal::fail(status, ENPU_HAL_DEADLINE_EXCEEDED, "not reached before the deadline");
        if (yield) sched_yield();
    }
}

uint32_t Timeline::wait(uint64_t value, uint64_t deadline_ns, uint32_t wait_policy,
                        enpu_hal_status* status) {
    if (known_.load(std::memory_order_acquire) >= value) return ENPU_HAL_OK;
    if (!submitted(value))
        if (uint32_t code = wait_submitted(value, deadline_ns, status)) return code;
    if (wait_policy != RT_WAIT_BLOCK)
        return poll(value, deadline_ns, wait_policy == RT_WAIT_YIELD, status);
    const enpu_hal_point point{fence(), value};
    const uint32_t code = hal_.fence->wait(device_, &point, 1, 0, deadline_ns, status);
    if (code == ENPU_HAL_OK) note_reached(value);
    return code;
}

void Timeline::replace(enpu_hal_fence* fence, uint64_t reached) {
    std::lock_guard lock(mutex_);
    replaced_.push_back(fence_.load());
    fence_.store(fence, std::memory_order_release);
    note_reached(reached);
}

}  // namespace enpu::rt
