// SPDX-License-Identifier: MIT
// The objects of the cpu backend. It runs the operators of the functional model on host memory:
// same numerics, no rings, no MMU.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "enpu_hal.h"
#include "enpu_hw.h"
#include "host_counters.h"
#include "sleepers.h"
#include "structure.h"

struct enpu_hal_device {
    std::string spec;
    uint32_t threads = 1;

    enpu::hal::Sleepers sleepers;
    enpu::hal::Counters counters;
};

struct enpu_hal_buffer {
    enpu_hal_device* device = nullptr;
    std::byte* host = nullptr;
    uint64_t bytes = 0;
    uint32_t memory = ENPU_HAL_MEMORY_LOCAL;
    bool owned = true;
    int shared = -1;  // the memfd of SHARED memory
    bool imported = false;

    explicit enpu_hal_buffer(enpu_hal_device* owner);
    ~enpu_hal_buffer();
    enpu_hal_buffer(const enpu_hal_buffer&) = delete;
};

struct enpu_hal_fence {
    explicit enpu_hal_fence(enpu_hal_device* owner, uint64_t initial)
        : device(owner), value(initial) {
        ++device->counters.fences;
    }
    ~enpu_hal_fence() {
        std::lock_guard last(failure_mutex);  // whoever fails it may still be on the way out
        --device->counters.fences;
    }

    enpu_hal_device* device;
    std::atomic<uint64_t> value;
    std::atomic<bool> failed{false};
    std::mutex failure_mutex;   // one failure is written
    enpu_hal_status failure{};  // once, before failed

    // Reached, or will never be.
    bool settled(uint64_t point) const { return value.load() >= point || failed.load(); }
    // Raises the value and wakes; a smaller value changes nothing.
    void signal(uint64_t point);
    void fail(const enpu_hal_status& why);
};

namespace enpu::hal::cpu {

uint32_t fence_wait(enpu_hal_device* device, const enpu_hal_point* points, uint32_t count,
                    uint32_t any, uint64_t deadline_ns, enpu_hal_status* status);

extern const enpu_hal_driver_table kDriver;
extern const enpu_hal_device_table kDevice;
extern const enpu_hal_memory_table kMemory;
extern const enpu_hal_queue_table kQueue;
extern const enpu_hal_fence_table kFence;
extern const enpu_hal_kernel_table kKernel;
extern const enpu_hal_graph_table kGraph;
extern const enpu_hal_profile_table kProfile;

constexpr uint32_t kCaps = ENPU_HAL_CAP_GRAPH | ENPU_HAL_CAP_PROFILE | ENPU_HAL_CAP_COPY_2D |
                           ENPU_HAL_CAP_HOST_CALL | ENPU_HAL_CAP_TIMESTAMP |
                           ENPU_HAL_CAP_MAP_LOCAL | ENPU_HAL_CAP_USERPTR | ENPU_HAL_CAP_SHARE |
                           ENPU_HAL_CAP_WAIT_EARLY | ENPU_HAL_CAP_FILL;
constexpr uint32_t kMaxCommands = 256;
constexpr uint32_t kMaxPoints = 64;
constexpr uint64_t kMaxAlignment = 1u << 30;

}  // namespace enpu::hal::cpu
