// SPDX-License-Identifier: MIT
// What a backend's fences cannot know of work that was held back above it: which points have been
// promised, and which have failed there.
#pragma once

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "enpu_hal.h"

namespace enpu::hal {

class Fences {
  public:
    explicit Fences(const enpu_hal_plugin& below) : next_(below) {}

    // The point was handed to the device.
    void submitted(const enpu_hal_point* points, uint32_t count);
    // Whether the device was told of the point, or it is reached: only then may it wait for it.
    bool known(const enpu_hal_point& point);

    // The point and those after it fail. Whoever waits for it in the backend is woken by a signal,
    // and finds the failure here.
    void fail(const enpu_hal_point& point, const enpu_hal_status& why);
    // True and *status filled when the point has failed here.
    bool failed(const enpu_hal_point& point, enpu_hal_status* status);
    bool any_failed() const { return failures_.load(std::memory_order_acquire) != 0; }
    // Smallest failed point; UINT64_MAX when there is none.
    uint64_t failed_from(enpu_hal_fence* fence, enpu_hal_status* status);

    void forget(enpu_hal_fence* fence);

  private:
    struct State {
        uint64_t submitted = 0;
        uint64_t failed_from = UINT64_MAX;
        enpu_hal_status failure{};
    };
    const enpu_hal_plugin& next_;
    std::mutex mutex_;
    std::unordered_map<enpu_hal_fence*, State> states_;
    std::atomic<uint32_t> failures_{0};
};

}  // namespace enpu::hal
