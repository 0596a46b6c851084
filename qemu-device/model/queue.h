// SPDX-License-Identifier: MIT
// State of a hardware queue. Under the device's lock; what it says about guest memory is done by
// the engine.
#pragma once

#include <cstdint>

#include "enpu_hw.h"
#include "host.h"
#include "memory.h"

namespace enpu::model {

struct Queue {
    // Registers.
    uint32_t ctrl = 0;
    uint64_t address = 0, head = 0, resume = 0, fence = 0;
    enpu_queue_state state = ENPU_QUEUE_STATE_DISABLED;
    enpu_status error = ENPU_STATUS_OK;

    // Taken from the registers at the start.
    bool is_virtual = false;
    uint32_t ring_log2 = 0, engine = 0, as_id = 0, priority = 0;

    bool pending = false;       // the ring may hold entries that nobody has looked at
    bool fresh = false;         // not looked at since the start
    bool doorbell_off = false;  // no_doorbell in its memory is 1
    uint64_t start_ns = 0;      // of the job at head, when it has begun
    // While WAITING: the job, the word, and when to look at it again.
    enpu_ring_entry entry{};
    uint64_t wait_address = 0, wait_value = 0, wait_tag = 0;
    uint64_t wait_start_ns = 0, wait_deadline_ns = kNever;
    bool recheck = false;

    bool runnable(uint64_t now) const {
        if (state == ENPU_QUEUE_STATE_WAITING) return recheck || now >= wait_deadline_ns;
        return pending && (state == ENPU_QUEUE_STATE_IDLE || state == ENPU_QUEUE_STATE_ACTIVE);
    }
    Space space() const { return {is_virtual, as_id}; }
};

}  // namespace enpu::model
