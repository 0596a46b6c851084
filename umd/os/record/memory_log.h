// SPDX-License-Identifier: MIT
// What a process has mapped for the device: its bytes now, and as they were when last looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

namespace enpu::record {

class MemoryLog {
  public:
    struct Mapping {
        uint64_t va = 0;
        std::span<const std::byte> bytes;
        std::vector<std::byte> seen;
        uint32_t handle = 0;
    };
    using Changed = std::function<void(uint64_t va, std::span<const std::byte> bytes)>;

    // `bytes` stay valid until remove(); they count as zero so far.
    void add(uint64_t va, std::span<const std::byte> bytes, uint32_t handle);
    void remove(uint64_t va, uint64_t size);
    // The bytes of a range inside one mapping; empty when it is in none.
    std::span<const std::byte> at(uint64_t va, uint64_t size) const;
    // Calls for each run of pages that is not as it was seen last, and takes it as seen.
    void changes(const Changed& changed);
    // Takes a range as seen.
    void see(uint64_t va, uint64_t size);

  private:
    Mapping* find(uint64_t va, uint64_t size);
    std::map<uint64_t, Mapping> mappings_;
};

// What a checked packet writes, in the order of the packet's operands; at most one range today.
struct Range {
    uint64_t va = 0, size = 0;
};
std::vector<Range> written_by(std::span<const std::byte> packet);

}  // namespace enpu::record
