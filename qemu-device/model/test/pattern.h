// SPDX-License-Identifier: MIT
// Bytes that differ from place to place, and the options the tests use most.
#pragma once

#include "rig.h"

namespace enpu::test {

inline Options mode(bool sync) {
    Options options;
    options.sync = sync;
    return options;
}

inline std::byte pattern_at(uint64_t i) {
    return std::byte(i * 7 + (i >> 9));
}

inline void put_pattern(Rig& rig, uint64_t va, uint64_t bytes, uint64_t from = 0) {
    for (uint64_t done = 0; done < bytes;) {
        std::byte* page = rig.host(va + done);
        const uint64_t left = ENPU_PAGE_SIZE - (va + done) % ENPU_PAGE_SIZE;
        const uint64_t length = left < bytes - done ? left : bytes - done;
        for (uint64_t i = 0; i < length; ++i) page[i] = pattern_at(from + done + i);
        done += length;
    }
}

// Index of the first byte that is not the pattern, or `bytes`.
inline uint64_t pattern_length(Rig& rig, uint64_t va, uint64_t bytes, uint64_t from = 0) {
    for (uint64_t done = 0; done < bytes;) {
        const std::byte* page = rig.host(va + done);
        const uint64_t left = ENPU_PAGE_SIZE - (va + done) % ENPU_PAGE_SIZE;
        const uint64_t length = left < bytes - done ? left : bytes - done;
        for (uint64_t i = 0; i < length; ++i)
            if (page[i] != pattern_at(from + done + i)) return done + i;
        done += length;
    }
    return bytes;
}

inline bool has_pattern(Rig& rig, uint64_t va, uint64_t bytes, uint64_t from = 0) {
    return pattern_length(rig, va, bytes, from) == bytes;
}

// Each tile of the engine takes that long from now on.
inline void slow(Rig& rig, uint32_t engine, uint64_t ns) {
    rig.inject(ENPU_FAULT_KIND_ENGINE_SLOW, engine, 0, ~0u, ns);
}

}  // namespace enpu::test
