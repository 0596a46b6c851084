// SPDX-License-Identifier: MIT
// A bench for the model: guest RAM with page tables, queue memory and packets, and a driver's way
// of using them. Nothing of the model's inside: it sees the device through its C interface, as QEMU
// does.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "enpu_commands.h"
#include "enpu_hw.h"
#include "enpu_model.h"

namespace enpu::test {

// Guest RAM at a bus address that is not 0; everything else is a hole. Words of 8 bytes are read
// and written as one.
class GuestRam {
  public:
    static constexpr uint64_t kBase = 0x40000000;
    explicit GuestRam(uint64_t bytes);

    // Zeroed pages that follow each other; their bus address.
    uint64_t allocate(uint64_t bytes);
    std::byte* at(uint64_t bus) { return memory_.get() + (bus - kBase); }
    uint64_t word(uint64_t bus);
    void set_word(uint64_t bus, uint64_t value);

    int read(uint64_t bus, void* buffer, uint64_t bytes);
    int write(uint64_t bus, const void* buffer, uint64_t bytes);
    const std::byte* data() const { return memory_.get(); }
    uint64_t bytes() const { return bytes_; }
    // The contents of another one of the same size.
    void restore(const GuestRam& from) {
        std::memcpy(memory_.get(), from.memory_.get(), bytes_);
        used_ = from.used_;
    }

    std::atomic<bool> bus_master{true};
    std::atomic<uint64_t> reads{0};
    std::atomic<uint64_t> writes{0};
    // From now on called before each read, with its address: a guest that writes at the worst
    // moment. Once; the device may be reading meanwhile.
    void watch_reads(std::function<void(uint64_t bus)> watcher);

  private:
    bool holds(uint64_t bus, uint64_t bytes) const;
    struct Free {
        void operator()(std::byte* pointer) const;
    };
    std::function<void(uint64_t bus)> watcher_;
    std::atomic<bool> watched_{false};
    uint64_t bytes_, used_ = 0;
    std::unique_ptr<std::byte, Free> memory_;
};

struct Options {
    uint32_t cores = 1, copy_engines = 1, threads = 1;
    bool sync = false;
    bool faults = true;
    uint64_t local_bytes = 16 << 20;
    uint64_t ram_bytes = 64 << 20;
};

using hw::Commands;

class Rig {
  public:
    static constexpr uint32_t kAs = 1;
    static constexpr int64_t kWaitMs = 20000;

    explicit Rig(const Options& options = {});
    ~Rig();
    Rig(const Rig&) = delete;

    uint32_t read32(uint64_t reg) const {
        return static_cast<uint32_t>(enpu_model_read(model, reg, 4));
    }
    uint64_t read64(uint64_t reg) const { return enpu_model_read(model, reg, 8); }
    void write32(uint64_t reg, uint32_t value) { enpu_model_write(model, reg, value, 4); }
    void write64(uint64_t reg, uint64_t value) { enpu_model_write(model, reg, value, 8); }
    uint64_t counter(uint32_t word, uint32_t as_id = kAs) const {
        return read64(ENPU_REG_COUNTER(as_id, word));
    }

    // The device as a driver sets it up: address spaces, interrupts, engines on.
    void set_up();
    // Maps pages of guest RAM or local memory; bits are ENPU_PTE_*.
    void map(uint64_t va, uint64_t address, uint64_t bytes, uint64_t bits, uint32_t as_id = kAs);
    void set_pte(uint64_t va, unsigned level, uint64_t pte, uint32_t as_id = kAs);
    // New guest memory at a new VA, read and write.
    uint64_t buffer(uint64_t bytes);
    // Local memory at a new VA, in large pages where it fits.
    uint64_t local_buffer(uint64_t bytes);
    std::byte* host(uint64_t va);

    struct Queue {
        uint32_t id, ring_log2;
        uint64_t bus, tail = 0;
    };
    Queue queue(uint32_t id, uint32_t engine, uint32_t priority = 0, uint32_t ring_log2 = 4,
                uint32_t as_id = kAs);
    void enable(const Queue& queue, uint32_t engine, uint32_t priority = 0, uint32_t as_id = kAs);
    // Writes the commands to new memory and the entry into the ring; the fence value. kick: false
    // leaves the doorbell alone.
    uint64_t push(Queue& queue, const Commands& commands, bool kick = true,
                  uint32_t flags = ENPU_RING_FLAG_IRQ);
    void push_entry(Queue& queue, const enpu_ring_entry& entry, bool kick = true);
    uint64_t fence(const Queue& queue);
    enpu_queue_header header(const Queue& queue);
    enpu_completion completion(const Queue& queue, uint64_t index);
    bool wait_fence(const Queue& queue, uint64_t value);
    enpu_queue_state state(uint32_t queue) const;
    enpu_status error(uint32_t queue) const;
    bool wait_state(uint32_t queue, enpu_queue_state state);
    bool wait_reg(uint64_t reg, uint32_t mask, uint32_t value);
    bool wait_for(const std::function<bool()>& condition) const;

    enpu_error_record error_record() const;
    void pop_error() { write32(ENPU_REG_ERR_POP, 1); }
    bool inject(enpu_fault_kind kind, uint32_t target = ~0u, uint32_t after = 0, uint32_t times = 1,
                uint64_t argument = 0);
    bool inject(const enpu_fault& fault);
    bool invalidate_tlb(uint32_t as_id = kAs);
    void reset_device();
    uint32_t copy_engine() const { return options.cores; }

    const Options options;
    GuestRam ram;
    std::unique_ptr<std::byte, void (*)(void*)> local;
    enpu_model* model = nullptr;
    std::array<std::atomic<uint32_t>, ENPU_MAX_VECTORS> irqs{};
    std::function<void(uint32_t vector)> on_irq;  // set before work is pushed
    std::atomic<uint64_t> clock_offset{0};
    std::atomic<bool> removed{false};
    std::atomic<int> threads{0};

    // What a guest keeps, to go on with it in another rig.
    struct Guest {
        std::vector<uint64_t> roots;
        uint64_t next_va, next_local;
    };
    Guest guest() const { return {{roots_.begin(), roots_.end()}, next_va_, next_local_}; }
    void set_guest(const Guest& guest);

  private:
    uint64_t root(uint32_t as_id);
    uint64_t table_slot(uint64_t va, unsigned level, uint32_t as_id);

    std::array<uint64_t, ENPU_MAX_AS> roots_{};
    uint64_t next_va_ = 0x10000000, next_local_ = 0;
};

}  // namespace enpu::test
