// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>

#include "device.h"

struct enpu_timeline final : enpu::Object {
    enpu_timeline(enpu_device* device_in, uint32_t handle_in, uint64_t initial)
        : device(device_in), handle(handle_in), last(initial) {}

    const enpu::Ref<enpu_device> device;
    const uint32_t handle;
    // Largest point that was signalled or submitted through this object. Points go up only; the
    // kernel would merely log it otherwise.
    std::atomic<uint64_t> last;

    void raise_last(uint64_t value) {
        uint64_t seen = last.load(std::memory_order_relaxed);
        while (seen < value &&
               !last.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
        }
    }

  private:
    ~enpu_timeline() override { device->os->sync_destroy(handle); }
};
