// SPDX-License-Identifier: MIT
// A HAL fence that streams, events and tensors share.
#pragma once

#include <atomic>
#include <memory>

#include "enpu_hal.h"

namespace enpu::rt {

class Timeline {
  public:
    Timeline(const enpu_hal_plugin& hal, enpu_hal_fence* fence) : hal_(hal), fence_(fence) {}
    ~Timeline() { hal_.fence->destroy(fence_); }
    Timeline(const Timeline&) = delete;
    Timeline& operator=(const Timeline&) = delete;

    enpu_hal_fence* fence() const { return fence_; }

    // Reached, as far as is known without asking; then with a question to the backend. A failed
    // timeline never reaches more.
    bool reached(uint64_t value);
    // Reached, or failed: nothing that was enqueued up to the value still runs.
    bool settled(uint64_t value);
    // After a wait that succeeded.
    void note_reached(uint64_t value);

  private:
    const enpu_hal_plugin& hal_;
    enpu_hal_fence* const fence_;
    std::atomic<uint64_t> known_{0};
};

struct Point {
    std::shared_ptr<Timeline> timeline;
    uint64_t value = 0;

    bool settled() const { return !timeline || timeline->settled(value); }
};

}  // namespace enpu::rt
