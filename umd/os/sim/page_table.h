// SPDX-License-Identifier: MIT
// Page tables of the simulator's address space, as the device walks them (docs/hardware.md).
#pragma once

#include <cstdint>
#include <vector>

#include "os/sim/host_memory.h"

namespace enpu::sim {

class PageTable {
  public:
    explicit PageTable(HostMemory* memory);  // throws std::bad_alloc
    ~PageTable();
    PageTable(const PageTable&) = delete;
    PageTable& operator=(const PageTable&) = delete;

    uint64_t root_bus() const;

    // Writes the entries of [va, va + bytes) for memory at `address` with `bits` (READ, WRITE,
    // LOCAL); 2 MiB leaves where both are aligned. The range holds no entry. Throws std::bad_alloc
    // with nothing mapped.
    void map(uint64_t va, uint64_t address, uint64_t bytes, uint64_t bits);
    // Clears them. Tables that become empty are kept until the TLB of the device has been
    // invalidated: call retire() then.
    void unmap(uint64_t va, uint64_t bytes);
    void retire();

  private:
    struct Table {
        uint64_t* entries = nullptr;
        uint64_t bus = 0;
        uint32_t used = 0;
        Table** children = nullptr;
    };

    Table* make(bool with_children);
    void destroy(Table* table);
    // The table of `level` for a VA, made if asked for.
    Table* walk(uint64_t va, int level, bool create);
    static void store(Table* table, uint64_t index, uint64_t entry);

    HostMemory* memory_;
    Table* root_;
    std::vector<Table*> retired_;
};

}  // namespace enpu::sim
