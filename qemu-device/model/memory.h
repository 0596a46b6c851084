// SPDX-License-Identifier: MIT
// Memory as one engine sees it: VAs through its MMU, bus addresses for privileged structures, local
// memory behind a pointer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mmu.h"

namespace enpu::model {

// What an address means: a VA of an address space, or a bus address.
struct Space {
    bool is_virtual = false;
    uint32_t as_id = 0;
};

class Memory {
  public:
    Memory(const Host& host, Mmu& mmu, Faults& faults, uint32_t engine, std::byte* local);

    // Copies between memory and a private buffer. False with the reason in fault; a part may have
    // been done. Eight aligned bytes are read and written as one.
    bool read(Space space, uint64_t address, void* buffer, uint64_t bytes, enpu_access access,
              Fault& fault);
    bool write(Space space, uint64_t address, const void* buffer, uint64_t bytes, Fault& fault);

    // Between two VAs of one address space.
    bool copy(uint32_t as_id, uint64_t to, uint64_t from, uint64_t bytes, Fault& fault);
    // `to` is aligned to the pattern, bytes a multiple of it.
    bool fill(uint32_t as_id, uint64_t to, uint64_t bytes, uint64_t pattern, uint32_t pattern_bytes,
              Fault& fault);

    // Checks every page of a range. A pointer to its first byte when all of it is contiguous local
    // memory, null when it is not; false when a page may not be accessed.
    bool resolve(uint32_t as_id, uint64_t va, uint64_t bytes, enpu_access access,
                 std::byte*& pointer, Fault& fault);

    // Payload bytes since they were last asked for.
    uint64_t read_bytes() const { return read_bytes_; }
    uint64_t written_bytes() const { return written_bytes_; }
    uint64_t take_read() { return std::exchange(read_bytes_, 0); }
    uint64_t take_written() { return std::exchange(written_bytes_, 0); }
    void count(uint64_t read, uint64_t written) {
        read_bytes_ += read;
        written_bytes_ += written;
    }

  private:
    // A run of several pages: found again without a look at each of them, as a TLB of ranges would, while the epoch
    // lasts in which it was found.
    struct Range {
        uint64_t va = ~0ull, wanted = 0, pages = 0;
        uint32_t as_id = 0, epoch = 0;
        enpu_access access = ENPU_ACCESS_NONE;
        Translation run;
    };
    static constexpr unsigned kRanges = 256;
    Range& range_slot(uint32_t as_id, uint64_t va, uint64_t wanted, enpu_access access);

    // The longest run from a VA on that is contiguous where it lies, at most `wanted` bytes.
    bool run_at(Space space, uint64_t address, uint64_t wanted, enpu_access access,
                Translation& run, Fault& fault);
    bool pages_at(uint32_t as_id, uint64_t va, uint64_t wanted, enpu_access access, Range& range,
                  Fault& fault);
    bool read_run(const Translation& run, void* buffer, uint64_t bytes, enpu_access access,
                  Fault& fault);
    bool write_run(const Translation& run, const void* buffer, uint64_t bytes, Fault& fault);
    bool copy_run(const Translation& to, const Translation& from, uint64_t bytes, Fault& fault);

    const Host& host_;
    Mmu& mmu_;
    Faults& faults_;
    uint32_t engine_;
    std::byte* local_;
    std::unique_ptr<std::byte[]> bounce_;
    std::unique_ptr<Range[]> ranges_;
    uint64_t read_bytes_ = 0, written_bytes_ = 0;
};

}  // namespace enpu::model
