// SPDX-License-Identifier: MIT
#pragma once

#include <mutex>

#include "device.h"

struct enpu_buffer final : enpu::Object {
    enpu_buffer(enpu_device* device_in, uint64_t bytes_in, uint32_t flags_in)
        : device(device_in), bytes(bytes_in), flags(flags_in) {}

    const enpu::Ref<enpu_device> device;
    const uint64_t bytes;  // as the caller asked for
    const uint32_t flags;  // ENPU_BUFFER_*
    uint64_t va = 0;       // of byte 0, which for wrapped memory may lie inside a page
    enpu::Remains remains;
    void* user_memory = nullptr;  // wrapped memory
    bool imported = false;

    // Takes part in implicit synchronisation: jobs name it.
    bool shared() const { return imported || (flags & ENPU_BUFFER_SHARED) != 0; }

    std::mutex cpu_mutex;  // guards remains.cpu

  private:
    ~enpu_buffer() override { device->bury(remains); }
};
