// SPDX-License-Identifier: MIT
// What the simulator's scheduler keeps of contexts, queues and jobs. All of it is guarded by the
// scheduler's mutex.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "drm/enpu_accel.h"
#include "os/sim/hardware.h"
#include "os/sim/timeline.h"

namespace enpu::sim {

struct Context;

struct Point {
    Ref<Timeline> timeline;
    uint64_t value;
};

struct Job {
    Context* context = nullptr;
    uint64_t seqno = 0;
    uint64_t fence = 0;
    uint64_t cmd_va = 0;
    uint32_t cmd_bytes = 0;
    uint64_t job_id = 0;
    bool ended = false;
    std::vector<Point> waits;
    std::vector<Point> signals;
};

// One hardware queue: the jobs of one (context, engine), in order.
struct Queue {
    Queue(uint32_t id_in, uint32_t engine_in, Context* context_in, HostMemory* memory_in)
        : id(id_in), engine(engine_in), context(context_in), memory(memory_in) {}

    const uint32_t id;
    const uint32_t engine;
    Context* const context;
    QueueMemory memory;
    std::deque<Job*> pending;  // wait for their points or for room in the ring
    std::deque<Job*> flying;   // in the ring
    uint64_t pushed = 0;       // ring entries written; also the fence value of the last
    bool faulted = false;
    bool hung = false;  // being reset because it hung
    bool stopping = false;
    int64_t stop_since_ns = 0;
};

struct Context {
    uint32_t id = 0;
    uint32_t priority = 0;
    uint32_t timeout_ms = 0;
    uint32_t max_jobs = 0;
    bool dying = false;
    drm_enpu_ctx_status status{};
    std::deque<Job*> unfinished;  // by sequence number
    std::array<std::unique_ptr<Queue>, ENPU_MAX_ENGINES> queues;
};

}  // namespace enpu::sim
