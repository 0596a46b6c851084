// SPDX-License-Identifier: MIT
// The objects of the npu backend: thin owners of libenpu's, and the channel that turns its status
// records into failures of fences.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "channel.h"
#include "enpu/enpu.h"
#include "enpu_hal.h"
#include "packet.h"
#include "structure.h"

struct enpu_hal_device {
    enpu_device* handle = nullptr;
    std::string spec;
    std::atomic<uint32_t> next_compute{0};
    std::atomic<uint32_t> next_copy{0};
    uint32_t caps = 0;
    struct Live {
        std::atomic<uint64_t> buffers{0}, queues{0}, fences{0}, graphs{0};
    } live;
};

struct enpu_hal_buffer {
    enpu_hal_device* device = nullptr;
    enpu_buffer* handle = nullptr;
    uint64_t bytes = 0;
    uint32_t memory = ENPU_HAL_MEMORY_LOCAL;
    void* host = nullptr;
};

struct enpu_hal_fence {
    enpu_hal_device* device = nullptr;
    enpu_timeline* handle = nullptr;
    std::mutex mutex;
    std::shared_ptr<enpu::hal::npu::Channel> channel;  // that signals it
    uint64_t failed_from = UINT64_MAX;                 // points from here on have failed
    enpu_hal_status failure{};

    void fail(uint64_t from, const enpu_hal_status& why);
    // Looks at the channel's status; true and *status filled when the point has failed.
    bool failed(uint64_t point, enpu_hal_status* status);
};

struct enpu_hal_queue {
    enpu_hal_device* device = nullptr;
    std::shared_ptr<enpu::hal::npu::Channel> channel;
};

struct enpu_hal_graph {
    // A command of libenpu holds a bounded number of bytes, so a long graph has several.
    struct Chunk {
        enpu_command* command = nullptr;
        uint32_t first = 0;  // index of its first packet in the graph
    };
    // What must stay the same in an update: the packet with addresses 0.
    struct Shape {
        uint32_t kind = 0;
        enpu::hal::PacketStorage dispatch{};
        enpu_hal_command command{};
    };
    enpu_hal_device* const device;
    std::vector<Chunk> chunks;
    std::vector<Shape> shapes;

    explicit enpu_hal_graph(enpu_hal_device* owner) : device(owner) { ++device->live.graphs; }
    ~enpu_hal_graph() {
        for (const Chunk& chunk : chunks) enpu_command_release(chunk.command);
        --device->live.graphs;
    }
};

namespace enpu::hal::npu {

// Deadlines of libenpu are signed.
inline int64_t to_deadline(uint64_t deadline_ns) {
    return static_cast<int64_t>(std::min<uint64_t>(deadline_ns, INT64_MAX));
}

// Code of the HAL for what libenpu returned.
uint32_t code_of(int error);
uint32_t fail_with(enpu_hal_status* status, const enpu_error& error);

// Appends a command to the builder.
uint32_t append(enpu_builder* builder, const enpu_hal_command& command, enpu_hal_status* status);

// From now on a failure of the queue fails the fences that the submission signals. Before the
// channel's lock is taken.
void bind_signals(enpu_hal_queue& queue, const enpu_hal_submission& submission);

extern const enpu_hal_driver_table kDriver;
extern const enpu_hal_device_table kDevice;
extern const enpu_hal_memory_table kMemory;
extern const enpu_hal_queue_table kQueue;
extern const enpu_hal_fence_table kFence;
extern const enpu_hal_kernel_table kKernel;
extern const enpu_hal_graph_table kGraph;
extern const enpu_hal_profile_table kProfile;

// The simulator shares nothing: there is no kernel between two of its processes.
constexpr uint32_t kSimCaps = ENPU_HAL_CAP_GRAPH | ENPU_HAL_CAP_PROFILE | ENPU_HAL_CAP_COPY_2D |
                              ENPU_HAL_CAP_TIMESTAMP | ENPU_HAL_CAP_USERPTR | ENPU_HAL_CAP_FILL |
                              ENPU_HAL_CAP_PRIORITY;
constexpr uint32_t kCaps = kSimCaps | ENPU_HAL_CAP_SHARE | ENPU_HAL_CAP_FENCE_SHARE;
constexpr uint32_t kMaxCommands = 256;
constexpr uint64_t kMaxAlignment = 4096;

}  // namespace enpu::hal::npu
