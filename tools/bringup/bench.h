// SPDX-License-Identifier: MIT
// A driver of the harness's own, on a bare device: page tables, queue memory, doorbells. Small on
// purpose, and free to do what a driver must not.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/bare_device.h"
#include "machine.h"
#include "stage.h"

namespace enpu::bringup {

class Bench {
  public:
    static constexpr uint32_t kAs = 1;

    // `wait_ms` bounds each wait for the device.
    Bench(tools::BareDevice& device, unsigned wait_ms) : device_(device), wait_ms_(wait_ms) {}

    tools::BareDevice& device() { return device_; }
    uint32_t read32(uint32_t reg) { return static_cast<uint32_t>(device_.read(reg, 4)); }
    uint64_t read64(uint32_t reg) { return device_.read(reg, 8); }
    void write32(uint32_t reg, uint32_t value) { device_.write(reg, value, 4); }
    void write64(uint32_t reg, uint64_t value) { device_.write(reg, value, 8); }

    uint32_t compute_engines();
    uint32_t engines();
    uint32_t vectors();

    // Device reset, then all memory of the bench is free again and nothing is enabled.
    void start_over();
    // An address space with tables, interrupts and engines on: what most stages begin with.
    void set_up();
    // CTRL.RESET; waits for READY.
    void reset_device();

    // Bounded wait for a condition; a StageFailure "WHAT did not happen within …" at its end.
    void await(const std::string& what, const std::function<bool()>& condition);
    bool soon(const std::function<bool()>& condition, unsigned milliseconds);
    bool soon(const std::function<bool()>& condition) { return soon(condition, wait_ms_); }

    // ---- memory
    uint64_t pages(uint64_t bytes);  // bus address of zeroed pages that follow each other
    std::byte* at(uint64_t bus);
    uint64_t word(uint64_t bus);
    void set_word(uint64_t bus, uint64_t value);
    // Maps at a VA; bits are ENPU_PTE_*. Large leaves where alignment and size allow.
    void map(uint64_t va, uint64_t address, uint64_t bytes, uint64_t bits, uint32_t as_id = kAs);
    void set_entry(uint64_t va, unsigned level, uint64_t entry, uint32_t as_id = kAs);
    uint64_t root(uint32_t as_id);
    void invalidate(uint32_t as_id = kAs);
    Memory buffer(uint64_t bytes, bool local = false, uint32_t as_id = kAs);
    // An address range that nothing uses.
    uint64_t free_va(uint64_t bytes);

    // ---- queues
    struct Queue {
        uint32_t id = 0, engine = 0, ring_log2 = 4, as_id = kAs;
        uint64_t bus = 0, tail = 0, fence = 0;
        uint32_t entries() const { return 1u << ring_log2; }
    };
    Queue queue(uint32_t id, uint32_t engine, uint32_t ring_log2 = 4, uint32_t as_id = kAs,
                uint32_t priority = 0);
    // Writes the entry, the tail and, with `kick`, the doorbell; the fence value.
    uint64_t push(Queue& queue, const Stream& stream, bool kick = true,
                  uint32_t flags = ENPU_RING_FLAG_IRQ);
    void push_entry(Queue& queue, const enpu_ring_entry& entry, bool kick);
    void kick(const Queue& queue) { device_.doorbell(queue.id); }
    enpu_queue_header header(const Queue& queue);
    enpu_completion completion(const Queue& queue, uint64_t index);
    uint64_t fence(const Queue& queue);
    uint32_t state(const Queue& queue);
    uint32_t status(const Queue& queue);
    void await_fence(const Queue& queue, uint64_t value, const std::string& step);
    void await_faulted(const Queue& queue, const std::string& step);
    void disable(const Queue& queue);
    // Takes the oldest error record; false when there is none.
    bool pop_error(enpu_error_record* record);

  private:
    uint64_t slot(uint64_t va, unsigned level, uint32_t as_id);

    tools::BareDevice& device_;
    unsigned wait_ms_;
    uint64_t used_ = 0, local_used_ = 0, next_va_ = 0x10'0000;
    uint64_t roots_[ENPU_MAX_AS] = {};
};

}  // namespace enpu::bringup
