// SPDX-License-Identifier: MIT
// The simulated device as a driver sees it: registers, doorbells, queue memory, resets. Every wait
// in here has a deadline.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "enpu_hw.h"
#include "enpu_model.h"
#include "os/sim/host_memory.h"
#include "os/sim/options.h"

namespace enpu::sim {

struct UserQueue;

// Ring, header and completion records of one hardware queue, shared with the device.
class QueueMemory {
  public:
    explicit QueueMemory(HostMemory* memory);  // throws std::bad_alloc
    ~QueueMemory();
    QueueMemory(const QueueMemory&) = delete;
    QueueMemory& operator=(const QueueMemory&) = delete;

    static constexpr uint32_t kLog2 = 8;
    static constexpr uint32_t kEntries = 1u << kLog2;

    uint64_t bus() const { return bus_; }
    uint64_t fence() const { return __atomic_load_n(&header()->fence, __ATOMIC_ACQUIRE); }
    uint32_t status() const { return __atomic_load_n(&header()->status, __ATOMIC_ACQUIRE); }
    enpu_completion completion(uint64_t index) const;
    // Writes entry `index` and moves the tail behind it. True when the device wants a doorbell.
    bool push(uint64_t index, const enpu_ring_entry& entry);

  private:
    enpu_queue_header* header() const { return static_cast<enpu_queue_header*>(memory_); }
    std::byte* ring() const { return static_cast<std::byte*>(memory_) + ENPU_QUEUE_RING_OFFSET; }

    HostMemory* host_;
    void* memory_;
    uint64_t bus_ = 0;
};

class Hardware {
  public:
    static constexpr uint32_t kAs = 1;

    // `interrupt` is called from the device's threads and must not block.
    static std::unique_ptr<Hardware> create(const Options& options, HostMemory* memory,
                                            std::function<void(uint32_t)> interrupt,
                                            std::string* why);
    ~Hardware();
    // Ends the device: afterwards no thread of it touches memory. Local memory stays until the
    // destructor.
    void shut_down();

    uint32_t read32(uint64_t offset) const;
    uint64_t read64(uint64_t offset) const;
    void write32(uint64_t offset, uint32_t value);
    void write64(uint64_t offset, uint64_t value);
    std::byte* local() const { return static_cast<std::byte*>(local_); }

    // Sets the address space's tables, enables interrupts and engines: after power-on and after
    // each reset.
    void start(uint64_t root_bus);
    // Drops every cached translation. 0, or -EIO when the device does not answer.
    int flush_tlb();
    void enable_queue(uint32_t queue, const QueueMemory& memory, uint32_t engine, uint32_t priority,
                      uint64_t head);
    void enable_user_queue(const UserQueue& queue, uint32_t priority, uint64_t head);
    void disable_queue(uint32_t queue);
    uint32_t queue_state(uint32_t queue) const;
    void doorbell(uint32_t queue);
    void acknowledge(uint32_t vectors);
    bool pop_error(enpu_error_record* record);
    // Nobody answers: the device was pulled out.
    bool gone() const;
    // 0, or -EIO when the device did not come back.
    int reset_engine(uint32_t engine);
    int reset_device();
    // All or none of them. -EOPNOTSUPP without fault injection, -ENOSPC when that is too many.
    int inject(const std::vector<enpu_fault>& faults, enpu_error* error);
    int faults_fired(uint32_t kind, uint32_t* fired, uint64_t* last_ns, enpu_error* error);

  private:
    void enable(uint32_t queue, uint64_t address, uint64_t head, uint32_t ctrl);
    Hardware(HostMemory* memory, std::function<void(uint32_t)> interrupt);
    enpu_model_host host();

    HostMemory* memory_;
    std::function<void(uint32_t)> interrupt_;
    uint64_t local_bytes_ = 0;
    void* local_ = nullptr;
    bool fault_injection_ = false;
    enpu_model* model_ = nullptr;
};

}  // namespace enpu::sim
