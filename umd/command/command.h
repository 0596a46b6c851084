// SPDX-License-Identifier: MIT
// A finished command buffer: packets in a BO of their own, the buffers they name, and the jobs that
// run it.
#pragma once

#include <atomic>
#include <mutex>

#include "command/builder.h"
#include "timeline.h"

struct enpu_command final : enpu::Object {
    enpu_command(enpu_device* device_in, uint32_t kind_in) : device(device_in), kind(kind_in) {}

    const enpu::Ref<enpu_device> device;
    const uint32_t kind;
    enpu::Ref<enpu_buffer> storage;
    std::byte* cpu = nullptr;  // of storage
    uint32_t bytes = 0;
    std::vector<uint32_t> packets;  // byte offsets

    // Guards what follows: patching and the record of jobs.
    std::mutex mutex;
    std::vector<enpu::Reference> references;
    std::vector<drm_enpu_submit_bo> shared;  // BOs that jobs must name

    // Jobs are known by the last point they signal; a job that signals none gets one of `own`.
    struct Flight {
        enpu::Ref<enpu_timeline> timeline;
        uint64_t value;
    };
    std::vector<Flight> flights;
    enpu::Ref<enpu_timeline> own;
    // Entries of user-mode queues that run it; each holds a reference.
    std::atomic<uint32_t> queued{0};

    // All with `mutex` held.
    int list_shared(enpu_error* error);
    int in_flight(bool* result, enpu_error* error);
    int make_room(enpu_error* error);  // for one flight more
    void fly(enpu_timeline* timeline, uint64_t value);
};
