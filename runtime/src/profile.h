// SPDX-License-Identifier: MIT
// A recording of the process: calls by thread, operations by device, memory over time.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "profile_device.h"
#include "profile_hook.h"
#include "profile_kernel.h"

struct rt_device_impl;

namespace enpu::rt::profile {

// Of the runtime, or, with a note, of the HAL.
struct ApiCall {
    const char* name = "";
    uint64_t start_ns = 0, end_ns = 0;
    bool hal = false;
    std::string note;
};

struct ThreadLog {
    int32_t tid = 0;
    std::string name;
    std::mutex mutex;  // of its thread, and of the one that stops the recording
    std::vector<ApiCall> calls;
    uint64_t most = 0;  // calls that it takes
    uint64_t dropped = 0;
};

struct MemorySample {
    const void* device = nullptr;  // its recorder
    uint64_t ns = 0, used = 0, reserved = 0;
};

// Of this recording, made when the device first does something in it; null: none.
std::shared_ptr<DeviceRecorder> recorder_of(rt_device_impl& device);
// The submission of the stream, with times taken.
rt_status submit(rt_stream_impl& stream, const StreamWork& work, enpu_hal_submission& submission,
                 uint64_t limit, enpu_hal_status& status);
void note_memory(rt_device_impl& device);
// The device is about to close: its recorder lets go of it.
void forget(rt_device_impl& device);

// One at a time records; it stays with whoever stopped it.
struct Recording {
    uint32_t flags = 0;
    uint64_t max_events = 0;
    uint64_t start_ns = 0, end_ns = 0;
    std::mutex mutex;  // guards all below
    std::vector<std::shared_ptr<ThreadLog>> threads;
    std::vector<std::shared_ptr<DeviceRecorder>> devices;
    std::vector<MemorySample> memory;
    uint64_t dropped = 0;
    KernelTrace kernel;
};

}  // namespace enpu::rt::profile

struct rt_profile_impl {
    std::shared_ptr<enpu::rt::profile::Recording> recording;
};
