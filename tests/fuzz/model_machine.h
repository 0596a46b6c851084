// SPDX-License-Identifier: MIT
// A machine with a device in sync mode, for fuzzing: everything that a guest can do is a step, and
// what a step may cost is bounded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "bytes.h"
#include "enpu_model.h"

namespace enpu::fuzz {

// The kinds of steps, the first byte of each.
enum Step : uint8_t {
    kWrite32,  // register (u16 of the sheet's list, u16 instance), value
    kWrite64,
    kRead,      // offset u32, bytes 4 or 8
    kDoorbell,  // queue u8
    kMemory,    // offset u32 in guest memory, length u8, bytes
    kJob,       // queue u8, length u16, command bytes: written, entered into the ring, doorbell
    kTable,     // slot u16 of the page tables, entry u64
    kReset,     // function-level
    kMove,      // saved, damaged (count u8, then offset u32 and byte each), loaded
    kFault,     // struct enpu_fault
    kClock,     // ns u32
    kPackets,   // queue u8, count u8, recipes (recipe.h): a job of changed sound packets
    kEntry,     // queue u8, place u8, VA u16, bytes u32, flags u8, fence u8: any ring entry
    kSteps
};

class Machine {
  public:
    Machine();
    ~Machine();
    Machine(const Machine&) = delete;

    // A new machine: queues 0 (compute engine) and 1 (copy engine) of address space 1 are on.
    void start();
    void step(Bytes& bytes);

    // Where sound packets of rules::test have their operands: even ones in local memory, odd ones in
    // guest memory.
    static constexpr uint64_t kOperandVa = 0x100000000, kOperandStride = 0x1000000;
    // Local memory over and over: room for what reaches over several tiles.
    static constexpr uint64_t kWideVa = 0x800000000, kWideBytes = 16 << 20;
    static constexpr uint64_t kBase = 0x10000;      // of guest memory
    static constexpr uint64_t kRamBytes = 1 << 20;  // the first half is also mapped at its address
    static constexpr uint32_t kAs = 1, kQueues = 2;

  private:
    struct Queue {
        uint64_t bus = 0, tail = 0, fence = 0;
    };
    static constexpr uint64_t kLocalBytes = 4 << 20;
    static constexpr uint64_t kDmaBudget = 512 << 10;  // bytes a run may read and write
    static constexpr uint32_t kRingLog2 = 2;

    uint64_t allocate(uint64_t bytes);
    void map(uint64_t va, uint64_t pte, unsigned leaf);
    void map_operands();
    void enable(uint32_t queue, uint32_t engine);
    void write_register(Bytes& bytes, uint32_t width);
    void push(Bytes& bytes);
    void push_packets(Bytes& bytes);
    void push_entry(Bytes& bytes);
    void submit(uint32_t id, const enpu_ring_entry& entry);
    void move(Bytes& bytes);
    bool spend(uint64_t address, uint64_t bytes);
    void write32(uint64_t reg, uint32_t value) { enpu_model_write(model_, reg, value, 4); }
    void write64(uint64_t reg, uint64_t value) { enpu_model_write(model_, reg, value, 8); }
    std::byte* at(uint64_t bus) { return ram_.get() + (bus - kBase); }

    std::unique_ptr<std::byte[]> ram_;
    std::byte* local_ = nullptr;
    enpu_model* model_ = nullptr;
    std::array<Queue, kQueues> queues_;
    uint64_t used_ = 0, root_ = 0, commands_ = 0;
    uint64_t now_ = 1, spent_ = 0;
};

}  // namespace enpu::fuzz
