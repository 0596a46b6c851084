// SPDX-License-Identifier: MIT
#include "memory.h"

#include <algorithm>
#include <cstring>

namespace enpu::model {
namespace {

constexpr uint64_t kBounceBytes = 256 << 10;

bool is_word(const void* pointer, uint64_t bytes) {
    return bytes == 8 && reinterpret_cast<uintptr_t>(pointer) % 8 == 0;
}

// Words are semaphores and fences: other threads look at them meanwhile.
void load_local(void* to, const std::byte* from, uint64_t bytes) {
    if (is_word(from, bytes)) {
        const uint64_t word =
            __atomic_load_n(reinterpret_cast<const uint64_t*>(from), __ATOMIC_ACQUIRE);
        std::memcpy(to, &word, sizeof(word));
    } else {
        std::memcpy(to, from, bytes);
    }
}

void store_local(std::byte* to, const void* from, uint64_t bytes) {
    if (is_word(to, bytes)) {
        uint64_t word;
        std::memcpy(&word, from, sizeof(word));
        __atomic_store_n(reinterpret_cast<uint64_t*>(to), word, __ATOMIC_RELEASE);
    } else {
        std::memcpy(to, from, bytes);
    }
}

}  // namespace

Memory::Memory(const Host& host, Mmu& mmu, Faults& faults, uint32_t engine, std::byte* local)
    : host_(host),
      mmu_(mmu),
      faults_(faults),
      engine_(engine),
      local_(local),
      bounce_(std::make_unique<std::byte[]>(kBounceBytes)),
      ranges_(std::make_unique<Range[]>(kRanges)) {}

bool Memory::run_at(Space space, uint64_t address, uint64_t wanted, enpu_access access,
                    Translation& run, Fault& fault) {
    if (!space.is_virtual) {
        if (wanted > UINT64_MAX - address) {
            fault = {ENPU_STATUS_DMA_ERROR, access, ENPU_MMU_CAUSE_NONE, address};
            return false;
        }
        run = {address, wanted, false};
        return true;
    }
    // What lies in one page is in the TLB. Armed faults see each page.
    const bool one_page = address % ENPU_PAGE_SIZE + wanted <= ENPU_PAGE_SIZE;
    if (one_page || faults_.armed()) {
        if (!mmu_.translate(space.as_id, address, access, run, fault)) return false;
        run.bytes = std::min(run.bytes, wanted);
        return true;
    }
    Range& known = range_slot(space.as_id, address, wanted, access);
    const uint32_t epoch = mmu_.epoch(space.as_id);
    if (known.va == address && known.wanted == wanted && known.as_id == space.as_id &&
        known.epoch == epoch && known.access == access) {
        mmu_.count_hits(known.pages);
        run = known.run;
        return true;
    }
    Range found{address, wanted, 0, space.as_id, epoch, access, {}};
    if (!pages_at(space.as_id, address, wanted, access, found, fault)) return false;
    // One page alone would only take the place of a range.
    if (found.pages > 1) known = found;
    run = found.run;
    return true;
}

bool Memory::pages_at(uint32_t as_id, uint64_t va, uint64_t wanted, enpu_access access,
                      Range& range, Fault& fault) {
    Translation& run = range.run;
    if (!mmu_.translate(as_id, va, access, run, fault)) return false;
    range.pages = 1;
    for (; run.bytes < wanted; ++range.pages) {
        Translation next;
        Fault later;  // found again by who gets there
        if (!mmu_.translate(as_id, va + run.bytes, access, next, later)) break;
        if (next.local != run.local || next.address != run.address + run.bytes) break;
        run.bytes += next.bytes;
    }
    run.bytes = std::min(run.bytes, wanted);
    return true;
}

bool Memory::read_run(const Translation& run, void* buffer, uint64_t bytes, enpu_access access,
                      Fault& fault) {
    if (run.local) {
        load_local(buffer, local_ + run.address, bytes);
        return true;
    }
    const bool injected = faults_.armed() && faults_.fire(ENPU_FAULT_KIND_DMA_READ, engine_);
    if (!injected && host_.read(run.address, buffer, bytes)) return true;
    fault = {ENPU_STATUS_DMA_ERROR, access, ENPU_MMU_CAUSE_NONE, run.address};
    return false;
}

bool Memory::write_run(const Translation& run, const void* buffer, uint64_t bytes, Fault& fault) {
    if (run.local) {
        store_local(local_ + run.address, buffer, bytes);
        return true;
    }
    const bool injected = faults_.armed() && faults_.fire(ENPU_FAULT_KIND_DMA_WRITE, engine_);
    if (!injected && host_.write(run.address, buffer, bytes)) return true;
    fault = {ENPU_STATUS_DMA_ERROR, ENPU_ACCESS_WRITE, ENPU_MMU_CAUSE_NONE, run.address};
    return false;
}

bool Memory::read(Space space, uint64_t address, void* buffer, uint64_t bytes, enpu_access access,
                  Fault& fault) {
    auto* to = static_cast<std::byte*>(buffer);
    while (bytes > 0) {
        Translation run;
        if (!run_at(space, address, bytes, access, run, fault)) return false;
        if (!read_run(run, to, run.bytes, access, fault)) return false;
        address += run.bytes;
        to += run.bytes;
        bytes -= run.bytes;
    }
    return true;
}

bool Memory::write(Space space, uint64_t address, const void* buffer, uint64_t bytes,
                   Fault& fault) {
    const auto* from = static_cast<const std::byte*>(buffer);
    while (bytes > 0) {
        Translation run;
        if (!run_at(space, address, bytes, ENPU_ACCESS_WRITE, run, fault)) return false;
        if (!write_run(run, from, run.bytes, fault)) return false;
        address += run.bytes;
        from += run.bytes;
        bytes -= run.bytes;
    }
    return true;
}

bool Memory::copy_run(const Translation& to, const Translation& from, uint64_t bytes,
                      Fault& fault) {
    if (to.local && from.local) {
        // Two VAs may lead to the same bytes.
        std::memmove(local_ + to.address, local_ + from.address, bytes);
        return true;
    }
    if (to.local) return read_run(from, local_ + to.address, bytes, ENPU_ACCESS_READ, fault);
    if (from.local) return write_run(to, local_ + from.address, bytes, fault);
    return read_run(from, bounce_.get(), bytes, ENPU_ACCESS_READ, fault) &&
           write_run(to, bounce_.get(), bytes, fault);
}

bool Memory::copy(uint32_t as_id, uint64_t to, uint64_t from, uint64_t bytes, Fault& fault) {
    const Space space{true, as_id};
    count(bytes, bytes);
    // What is left of each run: beside a memory of many short runs the other is not looked up once for each of them.
    Translation source, target;
    for (uint64_t length; bytes > 0; bytes -= length) {
        if (source.bytes == 0 && !run_at(space, from, bytes, ENPU_ACCESS_READ, source, fault))
            return false;
        if (target.bytes == 0 && !run_at(space, to, bytes, ENPU_ACCESS_WRITE, target, fault))
            return false;
        length = std::min(source.bytes, target.bytes);
        if (!source.local && !target.local) length = std::min(length, kBounceBytes);
        if (!copy_run(target, source, length, fault)) return false;
        to += length;
        from += length;
        for (Translation* run : {&source, &target}) {
            run->address += length;
            run->bytes -= length;
        }
    }
    return true;
}

bool Memory::fill(uint32_t as_id, uint64_t to, uint64_t bytes, uint64_t pattern,
                  uint32_t pattern_bytes, Fault& fault) {
    count(0, bytes);
    const uint64_t prepared = std::min(bytes, kBounceBytes);
    for (uint64_t i = 0; i < prepared; i += pattern_bytes)
        std::memcpy(bounce_.get() + i, &pattern, pattern_bytes);
    while (bytes > 0) {
        const uint64_t length = std::min(bytes, kBounceBytes);
        if (!write({true, as_id}, to, bounce_.get(), length, fault)) return false;
        to += length;
        bytes -= length;
    }
    return true;
}

Memory::Range& Memory::range_slot(uint32_t as_id, uint64_t va, uint64_t wanted,
                                  enpu_access access) {
    uint64_t number = (va / ENPU_PACKET_ALIGN + wanted) * 4 + access + as_id * 37;
    number += number >> 8;
    number += number >> 16;
    return ranges_[number % kRanges];
}

bool Memory::resolve(uint32_t as_id, uint64_t va, uint64_t bytes, enpu_access access,
                     std::byte*& pointer, Fault& fault) {
    pointer = nullptr;
    Translation run;
    for (uint64_t done = 0; done < bytes; done += run.bytes) {
        if (!run_at({true, as_id}, va + done, bytes - done, access, run, fault)) return false;
        if (run.local && run.bytes == bytes) pointer = local_ + run.address;
    }
    return true;
}

}  // namespace enpu::model
