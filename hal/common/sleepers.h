// SPDX-License-Identifier: MIT
// Where the waiters of a backend with host-side timelines sleep. A change takes the lock only when
// somebody sleeps.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "enpu_hal.h"

namespace enpu::hal {

class Sleepers {
  public:
    // After something they look at has changed.
    void notify() {
        if (count_.load() == 0) return;
        // Taken so that a waiter is either before its look at the change, or asleep.
        { std::lock_guard lock(mutex_); }
        changed_.notify_all();
    }

    // Blocks until ready() or the deadline; the last value of ready().
    template <typename Ready>
    bool wait_until(uint64_t deadline_ns, Ready ready) {
        if (ready()) return true;
        std::unique_lock lock(mutex_);
        // Seen by whoever changes something after our look at ready() below.
        count_.fetch_add(1);
        const std::chrono::steady_clock::time_point deadline{std::chrono::nanoseconds(
            deadline_ns > uint64_t(INT64_MAX) ? INT64_MAX : int64_t(deadline_ns))};
        const bool result = changed_.wait_until(lock, deadline, ready);
        count_.fetch_sub(1);
        return result;
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<uint32_t> count_{0};
};

// Whether a wait for all of the points, or for any of them, is over; *broken: the point whose fence
// failed before it was reached. Fence: the backend's, with atomic members value and failed.
template <typename Fence = enpu_hal_fence>
bool points_settled(const enpu_hal_point* points, uint32_t count, bool any,
                    const enpu_hal_point** broken) {
    uint32_t reached = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const Fence& fence = *points[i].fence;
        // The failure first: a point that was reached before stays reached.
        const bool failed = fence.failed.load();
        if (fence.value.load() >= points[i].value) {
            if (any) return true;
            ++reached;
        } else if (failed) {
            *broken = &points[i];
            return true;
        }
    }
    return reached == count;
}

}  // namespace enpu::hal
