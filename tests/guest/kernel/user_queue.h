// SPDX-License-Identifier: MIT
// A user-mode queue as a program without a library would drive it.
#pragma once

#include <sys/types.h>

#include "kernel_device.h"

namespace enpu::test {

class UserQueue {
  public:
    static constexpr uint32_t kLog2 = 6;
    // Ring memory at `va`, and the queue. `ret` gets what QUEUE_CREATE returns; NULL requires 0.
    UserQueue(const Device& device, uint32_t ctx, uint32_t engine, uint64_t va, int* ret = nullptr,
              uint32_t log2 = kLog2);
    ~UserQueue();
    UserQueue(const UserQueue&) = delete;
    UserQueue& operator=(const UserQueue&) = delete;

    uint32_t id() const { return args_.queue_id; }
    off_t doorbell_offset() const { return static_cast<off_t>(args_.doorbell_offset); }
    enpu_queue_header* header() const;
    enpu_ring_entry* entry(uint64_t index) const;
    uint64_t tail() const { return tail_; }
    // Writes the next entry, whose fence is its count from 1. A device that polls sees it with the
    // tail and not before, so what is to be wrong with it is made wrong until then.
    enpu_ring_entry* write(uint64_t cmd_va, uint32_t cmd_bytes);
    // The same, and moves the tail; the fence.
    uint64_t push(uint64_t cmd_va, uint32_t cmd_bytes);
    void set_tail(uint64_t tail);
    // Rings unless the device is polling.
    void ring();
    void store_doorbell() { *door_ = 1; }
    uint64_t fence() const;
    // QUEUE_WAIT, 0 or -errno.
    int wait(uint64_t fence, int64_t timeout_ns = soon()) const;
    // Waits until somebody sleeps in QUEUE_WAIT for this value and no smaller one; false after a
    // deadline. However long a thread takes to get there, what is done next meets a sleeper.
    bool sleeps_for(uint64_t fence) const;
    int destroy();
    void unmap_doorbell();
    int map_doorbell(volatile uint32_t** address, int flags) const;

  private:
    const Device& device_;
    Buffer memory_;
    drm_enpu_queue_create args_{};
    uint64_t tail_ = 0;
    volatile uint32_t* door_ = nullptr;
};

constexpr uint64_t kRingVa = 0x3'0000'0000;

// A context with a queue on an engine, and a page of commands for each of the last 16 entries.
struct QueueRig : Fixture {
    UserQueue queue;

    explicit QueueRig(uint32_t engine = 0, uint32_t timeout_ms = 0)
        : Fixture(timeout_ms), queue(device, ctx, engine, kRingVa) {}

    // Writes packets and their entry; its fence.
    uint64_t push(const Commands& packets) {
        const uint64_t at = queue.tail() % 16 * kPage;
        return queue.push(kCmdVa + at, packets.write_to(commands.data() + at));
    }
    uint64_t kick(const Commands& packets) {
        const uint64_t fence = push(packets);
        queue.ring();
        return fence;
    }
};

}  // namespace enpu::test
