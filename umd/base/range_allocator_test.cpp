// SPDX-License-Identifier: MIT
#include "base/range_allocator.h"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

using enpu::RangeAllocator;

TEST_CASE("range allocator aligns, takes the smallest hole and merges what is given back") {
    RangeAllocator ranges(0x1000, 0x100000);
    const auto a = ranges.allocate(0x1000, 0x1000);
    const auto b = ranges.allocate(0x3000, 0x4000);
    REQUIRE(a == 0x1000);
    REQUIRE(b == 0x4000);
    // The hole [0x2000, 0x4000) is the smallest that holds two pages.
    REQUIRE(ranges.allocate(0x2000, 0x1000) == 0x2000);
    ranges.release(*a, 0x1000);
    ranges.release(0x2000, 0x2000);
    ranges.release(*b, 0x3000);
    REQUIRE(ranges.free_bytes() == 0xff000);
    REQUIRE(ranges.largest() == 0xff000);
}

TEST_CASE("range allocator refuses what cannot fit") {
    RangeAllocator ranges(0x1000, 0x5000);
    REQUIRE_FALSE(ranges.allocate(0, 0x1000));
    REQUIRE_FALSE(ranges.allocate(0x5000, 0x1000));
    REQUIRE_FALSE(ranges.allocate(UINT64_MAX, 0x1000));
    REQUIRE_FALSE(ranges.allocate(0x1000, uint64_t{1} << 63));
    REQUIRE(ranges.allocate(0x4000, 0x1000));
    REQUIRE_FALSE(ranges.allocate(1, 1));
    REQUIRE(ranges.largest() == 0);
}

TEST_CASE("range allocator never hands out a byte twice") {
    constexpr uint64_t kPages = 4096;
    RangeAllocator ranges(0, kPages);
    std::vector<bool> used(kPages);
    std::vector<std::pair<uint64_t, uint64_t>> live;
    std::mt19937 random(7);
    for (int i = 0; i < 20000; ++i) {
        if (live.empty() || random() % 3 != 0) {
            const uint64_t bytes = 1 + random() % 64;
            const uint64_t alignment = uint64_t{1} << (random() % 6);
            const auto begin = ranges.allocate(bytes, alignment);
            if (!begin) continue;
            REQUIRE(*begin % alignment == 0);
            REQUIRE(*begin + bytes <= kPages);
            for (uint64_t page = *begin; page < *begin + bytes; ++page) {
                REQUIRE_FALSE(used[page]);
                used[page] = true;
            }
            live.emplace_back(*begin, bytes);
        } else {
            const size_t index = random() % live.size();
            const auto [begin, bytes] = live[index];
            live[index] = live.back();
            live.pop_back();
            for (uint64_t page = begin; page < begin + bytes; ++page) used[page] = false;
            ranges.release(begin, bytes);
        }
    }
    for (const auto& [begin, bytes] : live) ranges.release(begin, bytes);
    REQUIRE(ranges.largest() == kPages);
}
