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
    if (!mmu_.translate(space.as_id, address, access, run, fault)) return false;
    while (run.bytes < wanted) {
        Translation next;
        Fault later;  // found again when the copy gets there
        if (!mmu_.translate(space.as_id, address + run.bytes, access, next, later)) break;
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

bool Memory::copy(uint32_t as_id, uint64_t to, uint64_t from, uint64_t bytes, Fault& fault) {
    const Space space{true, as_id};
    count(bytes, bytes);
    while (bytes > 0) {
        Translation source, target;
        if (!run_at(space, from, bytes, ENPU_ACCESS_READ, source, fault)) return false;
        if (!run_at(space, to, source.bytes, ENPU_ACCESS_WRITE, target, fault)) return false;
        uint64_t length = target.bytes;
        if (target.local && source.local) {
            // Two VAs may lead to the same bytes.
            std::memmove(local_ + target.address, local_ + source.address, length);
        } else if (target.local) {
            if (!read_run(source, local_ + target.address, length, ENPU_ACCESS_READ, fault))
                return false;
        } else if (source.local) {
            if (!write_run(target, local_ + source.address, length, fault)) return false;
        } else {
            length = std::min(length, kBounceBytes);
            if (!read_run(source, bounce_.get(), length, ENPU_ACCESS_READ, fault) ||
                !write_run(target, bounce_.get(), length, fault))
                return false;
        }
        to += length;
        from += length;
        bytes -= length;
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

Memory::Range& Memory::range_slot(uint32_t as_id, uint64_t va, uint64_t bytes, enpu_access access) {
    uint64_t number = (va / ENPU_PACKET_ALIGN + bytes) * 4 + access + as_id * 37;
    number += number >> 8;
    number += number >> 16;
    return ranges_[number % kRanges];
}

bool Memory::resolve(uint32_t as_id, uint64_t va, uint64_t bytes, enpu_access access,
                     std::byte*& pointer, Fault& fault) {
    Range& known = range_slot(as_id, va, bytes, access);
    const uint32_t epoch = mmu_.epoch(as_id);
    if (known.va == va && known.bytes == bytes && known.as_id == as_id && known.epoch == epoch &&
        known.access == access && !faults_.armed()) {
        mmu_.count_hits(known.pages);
        pointer = known.pointer;
        return true;
    }
    pointer = nullptr;
    bool contiguous = true;
    uint64_t pages = 0;
    for (uint64_t done = 0; done < bytes; ++pages) {
        Translation page;
        if (!mmu_.translate(as_id, va + done, access, page, fault)) return false;
        if (done == 0 && page.local) pointer = local_ + page.address;
        contiguous = contiguous && page.local && pointer + done == local_ + page.address;
        done += page.bytes;
    }
    if (!contiguous) pointer = nullptr;
    if (pointer != nullptr) known = {va, bytes, pages, as_id, epoch, access, pointer};
    return true;
}

}  // namespace enpu::model
