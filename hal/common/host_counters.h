// SPDX-License-Identifier: MIT
// What a backend that runs its work in this process counts.
#pragma once

#include <atomic>

#include "enpu_hal.h"

namespace enpu::hal {

struct Counters {
    std::atomic<uint64_t> ops[ENPU_OPS]{};
    std::atomic<uint64_t> library_ops[ENPU_OPS]{}, library_refusals{0};
    std::atomic<uint64_t> jobs{0}, jobs_failed{0}, copies{0}, copy_bytes{0};
    std::atomic<uint64_t> busy_compute_ns{0}, busy_copy_ns{0}, work{0}, faults{0};
    std::atomic<uint64_t> buffers{0}, queues{0}, fences{0}, graphs{0};  // that exist now

    enpu_hal_counters look() const {
        enpu_hal_counters now{};
        for (uint32_t op = 0; op < ENPU_OPS; ++op) {
            now.ops[op] = ops[op].load();
            now.library_ops[op] = library_ops[op].load();
        }
        now.library_refusals = library_refusals.load();
        now.jobs = jobs.load();
        now.jobs_failed = jobs_failed.load();
        now.copies = copies.load();
        now.copy_bytes = copy_bytes.load();
        now.busy_compute_ns = busy_compute_ns.load();
        now.busy_copy_ns = busy_copy_ns.load();
        now.work = work.load();
        now.faults = faults.load();
        now.live_buffers = buffers.load();
        now.live_queues = queues.load();
        now.live_fences = fences.load();
        now.live_graphs = graphs.load();
        return now;
    }
};

}  // namespace enpu::hal
