// SPDX-License-Identifier: MIT
// The objects of the cuda backend that all its files know.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "command.h"
#include "enpu_hal.h"
#include "gpu.h"
#include "host_counters.h"
#include "sleepers.h"
#include "structure.h"

// An opening of a GPU: its queues, their one thread, and its counters.
struct enpu_hal_device {
    enpu_hal_device(enpu::hal::cuda::Gpu& gpu, std::string spec);
    ~enpu_hal_device();

    enpu::hal::cuda::Gpu& gpu;
    const std::string spec;
    uint32_t caps() const;
    // The GPU's clock, and the host's halfway through asking for it.
    uint32_t clock(uint64_t* ticks, uint64_t* host_ns, enpu_hal_status* status);

    enpu::hal::Sleepers sleepers;
    enpu::hal::Counters counters;

    // Queues that the thread looks after.
    void add(enpu_hal_queue* queue);
    void remove(enpu_hal_queue* queue);

    // Wakes the thread: there is something for it to look at.
    void kick();

  private:
    void loop();
    bool pump_all();
    uint32_t read_clock(uint64_t* ticks, uint64_t* before, uint64_t* after,
                        enpu_hal_status* status);

    std::mutex clock_mutex_;
    std::atomic<uint64_t>* clock_word_ = nullptr;  // pinned
    uint64_t clock_address_ = 0;

    std::mutex queues_mutex_;
    std::vector<enpu_hal_queue*> queues_;

    std::mutex kick_mutex_;
    std::condition_variable kicked_;
    std::atomic<uint64_t> kicks_{0};
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

struct enpu_hal_buffer {
    explicit enpu_hal_buffer(enpu_hal_device* owner) : device(owner) { ++device->counters.buffers; }
    ~enpu_hal_buffer() { --device->counters.buffers; }
    enpu_hal_buffer(const enpu_hal_buffer&) = delete;

    enpu_hal_device* const device;
    uint64_t address = 0;    // of the first byte, on the GPU
    uint64_t allocated = 0;  // what the driver gave, before alignment
    void* host = nullptr;
    uint64_t bytes = 0;
    uint32_t memory = ENPU_HAL_MEMORY_LOCAL;
    bool wrapped = false;

    enpu::hal::Extent extent() const { return {address, bytes}; }
};

// A timeline on the host. Points that work already given to the GPU will reach are known with their
// event, so that other streams of the GPU can wait for them there.
struct enpu_hal_fence {
    enpu_hal_fence(enpu_hal_device* owner, uint64_t initial) : device(owner), value(initial) {
        ++device->counters.fences;
    }
    ~enpu_hal_fence() {
        std::lock_guard last(mutex_);  // whoever signals it may still be on the way out
        --device->counters.fences;
    }
    enpu_hal_fence(const enpu_hal_fence&) = delete;

    enpu_hal_device* const device;
    std::atomic<uint64_t> value;
    std::atomic<bool> failed{false};

    enum class Look { kReached, kFailed, kOnGpu, kUnknown };
    Look look(uint64_t point);
    // The same, and makes the stream wait on the GPU when it is kOnGpu; *error is the driver's.
    Look chain(uint64_t point, const enpu::hal::cuda::Driver& api, enpu::hal::cuda::Stream stream,
               enpu::hal::cuda::Result* error);
    // Work on the GPU reaches the point when the event has; until signal() or fail().
    void announce(uint64_t point, enpu::hal::cuda::Event event);
    // Raises the value and wakes; a smaller value changes nothing.
    void signal(uint64_t point);
    void fail(const enpu_hal_status& why);
    enpu_hal_status failure();

  private:
    struct Announced {
        uint64_t point;
        enpu::hal::cuda::Event event;
    };
    Look look_locked(uint64_t point, enpu::hal::cuda::Event* event);
    void forget_until(uint64_t point);

    std::mutex mutex_;
    std::vector<Announced> announced_;
    enpu_hal_status failure_{};  // written once, before failed
};

namespace enpu::hal::cuda {

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

// Of the plug-in. A device without kernels (a driver that cannot load them) has no timestamps, and
// one that cannot register host memory no USERPTR.
constexpr uint32_t kCaps = ENPU_HAL_CAP_GRAPH | ENPU_HAL_CAP_PROFILE | ENPU_HAL_CAP_COPY_2D |
                           ENPU_HAL_CAP_HOST_CALL | ENPU_HAL_CAP_TIMESTAMP | ENPU_HAL_CAP_USERPTR |
                           ENPU_HAL_CAP_WAIT_EARLY | ENPU_HAL_CAP_FILL | ENPU_HAL_CAP_PRIORITY;
constexpr uint32_t kMaxCommands = 256;
constexpr uint32_t kMaxPoints = 64;
constexpr uint64_t kMaxAlignment = 1u << 30;

}  // namespace enpu::hal::cuda
