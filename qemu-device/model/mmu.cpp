// SPDX-License-Identifier: MIT
#include "mmu.h"

#include <utility>

namespace enpu::model {
namespace {

constexpr uint64_t kVaEnd = 1ull << ENPU_VA_BITS;
constexpr unsigned kLevels = 4;

uint64_t page_bytes(uint64_t pte) {
    return pte & ENPU_PTE_LARGE ? ENPU_LARGE_PAGE_SIZE : ENPU_PAGE_SIZE;
}

}  // namespace

Mmu::Mmu(const Host& host, const AddressSpaces& spaces, Faults& faults, uint32_t engine,
         uint64_t local_bytes)
    : host_(host),
      spaces_(spaces),
      faults_(faults),
      engine_(engine),
      local_bytes_(local_bytes),
      small_(std::make_unique<Entry[]>(kSmallEntries)),
      large_(std::make_unique<Entry[]>(kLargeEntries)) {}

// Buffers begin at round addresses: the high bits have to spread them.
Mmu::Entry& Mmu::slot(uint32_t as_id, uint64_t va, bool large) {
    uint64_t number = (va / (large ? ENPU_LARGE_PAGE_SIZE : ENPU_PAGE_SIZE)) + as_id * 37;
    number += number >> 8;
    number += number >> 16;
    return large ? large_[number % kLargeEntries] : small_[number % kSmallEntries];
}

bool Mmu::lookup(uint32_t as_id, uint64_t va, uint32_t epoch, uint64_t& pte) {
    for (bool large : {true, false}) {
        const uint64_t page = va & ~uint64_t{(large ? ENPU_LARGE_PAGE_SIZE : ENPU_PAGE_SIZE) - 1};
        const Entry& entry = slot(as_id, va, large);
        if (entry.page == page && entry.as_id == as_id && entry.epoch == epoch) {
            pte = entry.pte;
            ++hits_;
            return true;
        }
    }
    ++misses_;
    return false;
}

enpu_mmu_cause Mmu::check_leaf(uint64_t pte) const {
    const uint64_t bytes = page_bytes(pte);
    const uint64_t address = pte & ENPU_PTE_ADDR;
    if (address % bytes != 0) return ENPU_MMU_CAUSE_TABLE;
    if ((pte & ENPU_PTE_LOCAL) && (bytes > local_bytes_ || address > local_bytes_ - bytes))
        return ENPU_MMU_CAUSE_TABLE;
    return ENPU_MMU_CAUSE_NONE;
}

// Each table entry is read once.
enpu_mmu_cause Mmu::walk(uint64_t root, uint64_t va, uint64_t& pte) const {
    uint64_t table = root & ENPU_AS_ROOT_ADDR;
    for (unsigned level = kLevels - 1;; --level) {
        const uint64_t index = (va >> (12 + 9 * level)) & 511;
        if (!host_.read(table + index * sizeof(pte), &pte, sizeof(pte)))
            return ENPU_MMU_CAUSE_TABLE;
        if (!(pte & ENPU_PTE_VALID)) return ENPU_MMU_CAUSE_NOT_MAPPED;
        const bool large = pte & ENPU_PTE_LARGE;
        if (large && level != 1) return ENPU_MMU_CAUSE_TABLE;
        if (level == 0 || large) return check_leaf(pte);
        // Tables lie in guest memory only.
        if (pte & ENPU_PTE_LOCAL) return ENPU_MMU_CAUSE_TABLE;
        table = pte & ENPU_PTE_ADDR;
    }
}

bool Mmu::translate(uint32_t as_id, uint64_t va, enpu_access access, Translation& out,
                    Fault& fault) {
    const auto refuse = [&](enpu_mmu_cause cause) {
        fault = {ENPU_STATUS_MMU_FAULT, access, cause, va};
        return false;
    };
    if (faults_.armed() && faults_.fire(ENPU_FAULT_KIND_MMU_FAULT, engine_))
        return refuse(ENPU_MMU_CAUSE_NOT_MAPPED);
    if (va >= kVaEnd) return refuse(ENPU_MMU_CAUSE_RANGE);

    // The epoch first: a translation made across an invalidation counts as old.
    const uint32_t epoch = this->epoch(as_id);
    uint64_t pte = 0;
    if (!lookup(as_id, va, epoch, pte)) {
        const uint64_t root = spaces_[as_id].root.load(std::memory_order_acquire);
        if (!(root & ENPU_AS_ROOT_VALID)) return refuse(ENPU_MMU_CAUSE_NO_ROOT);
        const enpu_mmu_cause cause = walk(root, va, pte);
        if (cause != ENPU_MMU_CAUSE_NONE) return refuse(cause);
        slot(as_id, va, pte & ENPU_PTE_LARGE) = {va & ~(page_bytes(pte) - 1), pte, as_id, epoch};
    }
    const uint64_t need = access == ENPU_ACCESS_WRITE ? ENPU_PTE_WRITE : ENPU_PTE_READ;
    if (!(pte & need)) return refuse(ENPU_MMU_CAUSE_PERMISSION);
    const uint64_t offset = va & (page_bytes(pte) - 1);
    out = {(pte & ENPU_PTE_ADDR) + offset, page_bytes(pte) - offset, (pte & ENPU_PTE_LOCAL) != 0};
    return true;
}

}  // namespace enpu::model
