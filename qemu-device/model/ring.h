// SPDX-License-Identifier: MIT
// Queue memory: what the device reads and writes there, and in which order.
#pragma once

#include <cstdint>

#include "enpu_hw.h"
#include "memory.h"

namespace enpu::model {

// A short-lived view of the memory of one queue by the engine that serves it. Calls return false
// with the reason in fault().
class Ring {
  public:
    Ring(Memory& memory, Space space, uint64_t address, uint32_t ring_log2)
        : memory_(memory), space_(space), address_(address), ring_log2_(ring_log2) {}

    bool read_tail(uint64_t& tail);
    bool read_fence(uint64_t& fence);
    bool read_entry(uint64_t index, enpu_ring_entry& entry);

    // Tells the producer whether its kick can be left out. Ends with a full barrier, so that a tail
    // read afterwards is not an older one.
    bool write_no_doorbell(bool value);

    // The record of entry `index`, then the header with its fence last. A job that failed does not
    // advance head and fence. `fence` is the header's; the record says the same unless a fault
    // corrupts it.
    bool write_completion(uint64_t index, const enpu_completion& completion, uint64_t fence);

    // The value whose completion the driver waits for. Begins with a full barrier, so that it is not
    // older than a fence written before.
    bool read_irq_fence(uint64_t& fence);

    // For a queue that failed without a job.
    bool write_status(enpu_status status);

    uint64_t entries() const { return uint64_t{1} << ring_log2_; }
    const Fault& fault() const { return fault_; }

  private:
    bool write_at(uint64_t offset, const void* from, uint64_t bytes) {
        return memory_.write(space_, address_ + offset, from, bytes, fault_);
    }

    Memory& memory_;
    Space space_;
    uint64_t address_;
    uint32_t ring_log2_;
    Fault fault_;
};

}  // namespace enpu::model
