// SPDX-License-Identifier: MIT
// What the simulator's scheduler keeps of a queue that libenpu fills itself. Guarded by the
// scheduler's mutex.
#pragma once

#include <cstdint>
#include <memory>
#include <set>

#include "os/sim/job.h"

namespace enpu::sim {

struct UserQueue {
    uint32_t id = 0;  // in hardware
    uint32_t engine = 0;
    Context* context = nullptr;  // NULL once it was destroyed
    uint64_t va = 0;
    uint32_t log2 = 0;
    std::shared_ptr<void> memory;  // keeps what the device reads
    enpu_queue_header* header = nullptr;
    const enpu_ring_entry* ring = nullptr;
    bool hung = false;   // being reset because it hung
    int error = 0;       // of whoever waits; not 0: takes no more work
    uint64_t torn = 0;   // fence of the last entry that a reset tore
    uint64_t fence = 0;  // by the device's register, when the word in memory was wrong
    std::multiset<uint64_t> wanted;

    // 1: still to come; else what a wait returns.
    int result(uint64_t wanted_fence) const;
    // Asks for an interrupt at the next fence that somebody waits for.
    void arm();
    bool has_work() const;
};

// A piece of memory at a VA, all in one mapping.
struct QueuePlace {
    std::shared_ptr<void> owner;
    void* memory = nullptr;
};

}  // namespace enpu::sim
