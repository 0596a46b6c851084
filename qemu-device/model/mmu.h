// SPDX-License-Identifier: MIT
// The device MMU: a walker over page tables in guest memory and the TLB of one engine.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "enpu_hw.h"
#include "faults.h"
#include "host.h"

namespace enpu::model {

// Why an access was refused.
struct Fault {
    enpu_status status = ENPU_STATUS_OK;
    enpu_access access = ENPU_ACCESS_NONE;
    enpu_mmu_cause cause = ENPU_MMU_CAUSE_NONE;
    uint64_t va = 0;
};

// Root and age of an address space. A translation is used only while the epoch it was made in
// lasts.
struct AddressSpace {
    std::atomic<uint64_t> root{0};
    std::atomic<uint32_t> epoch{1};
};
using AddressSpaces = std::array<AddressSpace, ENPU_MAX_AS>;

// Where the byte at a VA lies: in local memory or on the bus, with what is left of its page.
struct Translation {
    uint64_t address = 0;
    uint64_t bytes = 0;
    bool local = false;
};

// Used by the thread of one engine only.
class Mmu {
  public:
    Mmu(const Host& host, const AddressSpaces& spaces, Faults& faults, uint32_t engine,
        uint64_t local_bytes);

    // False with the reason in fault.
    bool translate(uint32_t as_id, uint64_t va, enpu_access access, Translation& out, Fault& fault);

    // The age of what translate() gives now. Asked for before: what is made across an invalidation counts as old.
    uint32_t epoch(uint32_t as_id) const {
        return spaces_[as_id].epoch.load(std::memory_order_acquire);
    }
    // Pages whose translations somebody has kept.
    void count_hits(uint64_t pages) { hits_ += pages; }

    // Since they were last asked for.
    uint64_t take_hits() { return std::exchange(hits_, 0); }
    uint64_t take_misses() { return std::exchange(misses_, 0); }

  private:
    struct Entry {
        uint64_t page = ~0ull;  // VA without its offset
        uint64_t pte = 0;
        uint32_t as_id = 0;
        uint32_t epoch = 0;
    };
    static constexpr unsigned kSmallEntries = 1024;
    static constexpr unsigned kLargeEntries = 256;

    Entry& slot(uint32_t as_id, uint64_t va, bool large);
    bool lookup(uint32_t as_id, uint64_t va, uint32_t epoch, uint64_t& pte);
    enpu_mmu_cause walk(uint64_t root, uint64_t va, uint64_t& pte) const;
    enpu_mmu_cause check_leaf(uint64_t pte) const;

    const Host& host_;
    const AddressSpaces& spaces_;
    Faults& faults_;
    uint32_t engine_;
    uint64_t local_bytes_;
    std::unique_ptr<Entry[]> small_, large_;
    uint64_t hits_ = 0, misses_ = 0;
};

}  // namespace enpu::model
