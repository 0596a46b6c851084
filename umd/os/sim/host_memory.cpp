// SPDX-License-Identifier: MIT
#include "os/sim/host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "enpu_hw.h"

namespace enpu::sim {
namespace {

constexpr uint64_t kPage = ENPU_PAGE_SIZE;
constexpr uint64_t kLarge = ENPU_LARGE_PAGE_SIZE;
// Bus addresses start high: a small number that a fault puts where an address belongs hits nothing.
constexpr uint64_t kBusBegin = uint64_t{1} << 40;
constexpr uint64_t kBusEnd = uint64_t{1} << 48;

// Fences, tails and flags are shared with threads that access them as atomic words: short aligned
// copies are made of such words.
constexpr uint64_t kMostWordBytes = 64;

template <typename Word>
bool is_words(uint64_t bus, const void* buffer, uint64_t bytes) {
    return bytes <= kMostWordBytes &&
           ((bus | bytes | reinterpret_cast<uint64_t>(buffer)) & (sizeof(Word) - 1)) == 0;
}

template <typename Word>
void load_words(std::byte* out, const std::byte* memory, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; i += sizeof(Word)) {
        const Word word =
            __atomic_load_n(reinterpret_cast<const Word*>(memory + i), __ATOMIC_ACQUIRE);
        std::memcpy(out + i, &word, sizeof(word));
    }
}

template <typename Word>
void store_words(std::byte* memory, const std::byte* in, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; i += sizeof(Word)) {
        Word word;
        std::memcpy(&word, in + i, sizeof(word));
        __atomic_store_n(reinterpret_cast<Word*>(memory + i), word, __ATOMIC_RELEASE);
    }
}

}  // namespace

HostMemory::HostMemory() : bus_(kBusBegin, kBusEnd) {}

void* HostMemory::allocate(uint64_t bytes) {
    const uint64_t slack = bytes >= kLarge ? kLarge - kPage : 0;
    void* mapped = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    if (slack == 0) return mapped;
    const auto begin = reinterpret_cast<uint64_t>(mapped);
    const uint64_t aligned = (begin + kLarge - 1) & ~(kLarge - 1);
    if (aligned != begin) munmap(mapped, aligned - begin);
    if (aligned - begin != slack)
        munmap(reinterpret_cast<void*>(aligned + bytes), slack - (aligned - begin));
    auto* memory = reinterpret_cast<void*>(aligned);
    madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

void HostMemory::release(void* memory, uint64_t bytes) {
    munmap(memory, bytes);
}

uint64_t HostMemory::expose(void* memory, uint64_t bytes) {
    const auto skew = reinterpret_cast<uint64_t>(memory) & (kLarge - 1);
    std::unique_lock lock(mutex_);
    const auto begin = bus_.allocate(bytes + skew, bytes >= kLarge ? kLarge : kPage);
    if (!begin) return 0;
    const uint64_t bus = *begin + (bytes >= kLarge ? skew : 0);
    // Give back what the alignment did not need.
    if (bus != *begin) bus_.release(*begin, bus - *begin);
    const uint64_t rest = *begin + bytes + skew - (bus + bytes);
    if (rest != 0) bus_.release(bus + bytes, rest);
    pieces_.emplace(bus, Piece{bus + bytes, static_cast<std::byte*>(memory)});
    return bus;
}

void HostMemory::hide(uint64_t bus, uint64_t bytes) {
    std::unique_lock lock(mutex_);
    pieces_.erase(bus);
    bus_.release(bus, bytes);
}

std::byte* HostMemory::find(uint64_t bus, uint64_t* bytes) const {
    std::shared_lock lock(mutex_);
    auto it = pieces_.upper_bound(bus);
    if (it == pieces_.begin()) return nullptr;
    --it;
    if (bus >= it->second.end) return nullptr;
    *bytes = std::min(*bytes, it->second.end - bus);
    return it->second.memory + (bus - it->first);
}

int HostMemory::read(uint64_t bus, void* buffer, uint64_t bytes) const {
    auto* out = static_cast<std::byte*>(buffer);
    while (bytes != 0) {
        uint64_t part = bytes;
        std::byte* memory = find(bus, &part);
        if (memory == nullptr) return -1;
        if (is_words<uint64_t>(bus, out, part)) {
            load_words<uint64_t>(out, memory, part);
        } else if (is_words<uint32_t>(bus, out, part)) {
            load_words<uint32_t>(out, memory, part);
        } else {
            std::memcpy(out, memory, part);
        }
        bus += part;
        out += part;
        bytes -= part;
    }
    return 0;
}

int HostMemory::write(uint64_t bus, const void* buffer, uint64_t bytes) const {
    const auto* in = static_cast<const std::byte*>(buffer);
    while (bytes != 0) {
        uint64_t part = bytes;
        std::byte* memory = find(bus, &part);
        if (memory == nullptr) return -1;
        if (is_words<uint64_t>(bus, in, part)) {
            store_words<uint64_t>(memory, in, part);
        } else if (is_words<uint32_t>(bus, in, part)) {
            store_words<uint32_t>(memory, in, part);
        } else {
            std::memcpy(memory, in, part);
        }
        bus += part;
        in += part;
        bytes -= part;
    }
    return 0;
}

}  // namespace enpu::sim
