// SPDX-License-Identifier: MIT
// A HAL fence that streams, events and tensors share. Work that signals it may be held back for a
// while (behind a host call), so a timeline also knows how far it has been submitted.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "enpu_hal.h"
#include "rt.h"

namespace enpu::rt {

class Timeline {
  public:
    Timeline(const enpu_hal_plugin& hal, enpu_hal_device* device, enpu_hal_fence* fence)
        : hal_(hal), device_(device), fence_(fence) {}
    ~Timeline();
    Timeline(const Timeline&) = delete;
    Timeline& operator=(const Timeline&) = delete;

    enpu_hal_fence* fence() const { return fence_.load(std::memory_order_acquire); }

    // Reached, as far as is known without asking; then with a question to the backend. A failed
    // timeline never reaches more.
    bool reached(uint64_t value);
    // Reached, or failed: nothing that was enqueued up to the value still runs.
    bool settled(uint64_t value);
    // After a wait that succeeded.
    void note_reached(uint64_t value);

    // The backend has the work up to this value: others may wait for it.
    bool submitted(uint64_t value) const {
        return submitted_.load(std::memory_order_acquire) >= value;
    }
    void note_submitted(uint64_t value);
    // What has not been submitted never will be.
    void give_up(const enpu_hal_status& why);

    // Blocks until the value is reached, the timeline failed or the deadline passed.
    uint32_t wait(uint64_t value, uint64_t deadline_ns, uint32_t wait_policy,
                  enpu_hal_status* status);

    // After a failure was repaired: goes on from `reached` with another fence.
    void replace(enpu_hal_fence* fence, uint64_t reached);

  private:
    uint32_t wait_submitted(uint64_t value, uint64_t deadline_ns, enpu_hal_status* status);
    uint32_t poll(uint64_t value, uint64_t deadline_ns, bool yield, enpu_hal_status* status);

    const enpu_hal_plugin& hal_;
    enpu_hal_device* const device_;
    std::atomic<enpu_hal_fence*> fence_;
    std::atomic<uint64_t> known_{0};
    std::atomic<uint64_t> submitted_{0};
    std::atomic<bool> given_up_{false};
    std::atomic<uint32_t> sleepers_{0};  // in wait_submitted
    std::mutex mutex_;                   // guards what follows
    std::condition_variable changed_;
    enpu_hal_status why_{};
    std::vector<enpu_hal_fence*> replaced_;  // somebody may still be waiting for them
};

struct Point {
    std::shared_ptr<Timeline> timeline;
    uint64_t value = 0;

    bool settled() const { return !timeline || timeline->settled(value); }
    bool reached() const { return !timeline || timeline->reached(value); }
    uint32_t wait(uint64_t deadline_ns, enpu_hal_status* status) const {
        return timeline ? timeline->wait(value, deadline_ns, RT_WAIT_BLOCK, status)
                        : uint32_t(ENPU_HAL_OK);
    }
};

}  // namespace enpu::rt
