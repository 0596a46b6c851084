// SPDX-License-Identifier: MIT
// The "guest RAM" of the simulator: pieces of this process that the device may reach, by bus
// address. What is not listed here is no RAM.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <shared_mutex>

#include "base/range_allocator.h"

namespace enpu::sim {

class HostMemory {
  public:
    HostMemory();

    // Zeroed pages, 2 MiB aligned when that large. Null when the system has none. release() with
    // the same size.
    static void* allocate(uint64_t bytes);
    static void release(void* memory, uint64_t bytes);

    // Makes memory reachable and returns its bus address, 0 when there is none left. The bus
    // address has the memory's alignment to 2 MiB.
    uint64_t expose(void* memory, uint64_t bytes);
    void hide(uint64_t bus, uint64_t bytes);

    // Pointer to a bus address; *bytes is cut to what is contiguous there. Null when it is not RAM.
    std::byte* find(uint64_t bus, uint64_t* bytes) const;
    // 0, or -1 when a byte is not RAM. Aligned words are copied whole, so that the CPU and the
    // device can share them.
    int read(uint64_t bus, void* buffer, uint64_t bytes) const;
    int write(uint64_t bus, const void* buffer, uint64_t bytes) const;

  private:
    struct Piece {
        uint64_t end;
        std::byte* memory;
    };
    mutable std::shared_mutex mutex_;
    std::map<uint64_t, Piece> pieces_;
    RangeAllocator bus_;
};

}  // namespace enpu::sim
