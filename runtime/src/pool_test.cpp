// SPDX-License-Identifier: MIT
#include "pool.h"

#include <cstring>
#include <set>
#include <thread>

#include "address_map.h"
#include "test_support.h"

using namespace enpu::rt;
using namespace enpu::rt::test;

TEST_CASE("size classes hold what they are chosen for and grow by half at most") {
    uint64_t before = 0;
    for (uint32_t i = 0; i < kLargeClass; ++i) {
        INFO("class " << i);
        CHECK(class_bytes(i) > before);
        CHECK(class_bytes(i) % 256 == 0);
        CHECK(size_class_of(class_bytes(i)) == i);
        CHECK(size_class_of(before + 1) == i);
        before = class_bytes(i);
    }
    CHECK(before == kLargestClassBytes);
    CHECK(size_class_of(kLargestClassBytes + 1) == kLargeClass);
}

TEST_CASE("what a thread remembers of an address map ends with a change of it") {
    const auto buffer = [](uintptr_t number) { return reinterpret_cast<enpu_hal_buffer*>(number); };
    AddressMap map, other;
    REQUIRE(map.insert({0x200000, 0x1000, buffer(1)}));
    REQUIRE(other.insert({0x200000, 0x1000, buffer(2)}));
    for (int i = 0; i < 3; ++i) {  // one address in two maps, in turn
        CHECK(map.find(0x200800).buffer == buffer(1));
        CHECK(other.find(0x200800).buffer == buffer(2));
    }
    map.remove(0x200000);
    CHECK(map.find(0x200800).bytes == 0);
    CHECK(other.find(0x200800).buffer == buffer(2));
    REQUIRE(map.insert({0x200000, 0x1000, buffer(3)}));
    CHECK(map.find(0x200800).buffer == buffer(3));
    std::thread([&] { map.remove(0x200000); }).join();
    CHECK(map.find(0x200800).bytes == 0);
    {
        AddressMap again;  // in the place of one that is gone
        CHECK(again.find(0x200800).bytes == 0);
    }
}

TEST_CASE("the address map finds the range that holds an address and refuses overlaps") {
    AddressMap map;
    Range a{0x1000, 0x100}, b{0x1100, 0x10}, c{0x2000, 0x1000};
    CHECK(map.insert(c));
    CHECK(map.insert(a));
    CHECK(map.insert(b));
    CHECK(map.find(0x10ff).begin == 0x1000);
    CHECK(map.find(0x1100).begin == 0x1100);
    CHECK(map.find(0x1110).bytes == 0);
    CHECK(map.find(0x0fff).bytes == 0);
    CHECK(map.find(0x2fff).begin == 0x2000);
    CHECK_FALSE(map.insert({0x10ff, 1}));
    CHECK_FALSE(map.insert({0x0f00, 0x101}));
    CHECK_FALSE(map.insert({0x1fff, 0x2000}));
    CHECK(map.remove(0x1000).bytes == 0x100);
    CHECK(map.remove(0x1000).bytes == 0);
    CHECK(map.find(0x1000).bytes == 0);
}

TEST_CASE("allocations are aligned, apart from each other and hold their contents") {
    Fixture f;
    const size_t sizes[] = {1, 255, 256, 257, 5000, 70'000, 1'048'577, 3'000'000};
    std::vector<std::pair<void*, size_t>> blocks;
    for (size_t bytes : sizes) {
        void* block = f.allocate(bytes);
        CHECK(reinterpret_cast<uintptr_t>(block) % 256 == 0);
        blocks.emplace_back(block, bytes);
        OK(rt_fill(f.stream, block, blocks.size(), 1, bytes));
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
        const auto bytes = f.download<unsigned char>(blocks[i].first, blocks[i].second);
        CHECK(std::set<unsigned char>(bytes.begin(), bytes.end()) ==
              std::set<unsigned char>{static_cast<unsigned char>(i + 1)});
        OK(rt_free(f.stream, blocks[i].first));
    }
    CHECK(f.pool().live == 0);
    CHECK(f.pool().used_bytes == 0);
}

TEST_CASE("a block freed on a stream is reused there without the driver") {
    Fixture f;
    void* first = f.allocate(4096);
    OK(rt_free(f.stream, first));
    const uint64_t asked = f.counters().backend_allocations;
    for (int i = 0; i < 100; ++i) {
        void* again = f.allocate(4096);
        CHECK(again == first);
        OK(rt_free(f.stream, again));
    }
    CHECK(f.counters().backend_allocations == asked);
    CHECK(f.pool().reuses >= 100);
}

TEST_CASE("a block freed on a busy stream is not given to another one") {
    Fixture f;
    rt_stream other = nullptr;
    MUST(rt_stream_create(f.device, nullptr, &other));
    const size_t bytes = 1u << 20;
    void* block = f.allocate(bytes);
    // Long enough to be in flight when the other stream asks.
    for (int i = 0; i < 200; ++i) OK(rt_fill(f.stream, block, 0x55, 1, bytes));
    OK(rt_free(f.stream, block));
    uint32_t done = 1;
    void* theirs = nullptr;
    MUST(rt_malloc(other, bytes, &theirs));
    OK(rt_stream_query(f.stream, &done));
    if (!done) CHECK(theirs != block);
    OK(rt_fill(other, theirs, 0xaa, 1, bytes));
    OK(rt_stream_sync(other, soon()));
    f.sync();
    std::vector<unsigned char> seen(bytes);
    OK(rt_memcpy_d2h(other, seen.data(), theirs, bytes));
    CHECK(std::set<unsigned char>(seen.begin(), seen.end()) == std::set<unsigned char>{0xaa});
    OK(rt_free(other, theirs));
    rt_stream_destroy(other);
}

TEST_CASE("wrong frees are refused with a reason") {
    Fixture f;
    void* block = f.allocate(1000);
    CHECK(failure(rt_free(f.stream, static_cast<char*>(block) + 8)).code == RT_INVALID_ARGUMENT);
    OK(rt_free(f.stream, block));
    CHECK(contains(failure(rt_free(f.stream, block)).message, "twice"));
    int here = 0;
    CHECK(contains(failure(rt_free(f.stream, &here)).message, "not memory"));
    CHECK(take(rt_free(f.stream, nullptr)) == "");
    void* none = nullptr;
    CHECK(failure(rt_malloc(f.stream, 0, &none)).code == RT_INVALID_ARGUMENT);
    CHECK(none == nullptr);
}

TEST_CASE("more than the device has is refused, and the pool works on") {
    Fixture f;
    void* huge = nullptr;
    const Failure refused = failure(rt_malloc(f.stream, size_t{1} << 45, &huge));
    CHECK(refused.code == RT_RESOURCE_EXHAUSTED);
    CHECK(huge == nullptr);
    void* small = f.allocate(100);
    OK(rt_free(f.stream, small));
}

TEST_CASE("trim gives unused memory back to the driver") {
    Fixture f;
    void* a = f.allocate(8u << 20);
    void* b = f.allocate(100);
    CHECK(f.pool().reserved_bytes >= (8u << 20));
    OK(rt_free(f.stream, a));
    f.sync();
    OK(rt_pool_trim(f.device, 0));
    CHECK(f.pool().reserved_bytes == kSlabBytes);  // that of b
    OK(rt_free(f.stream, b));
}

TEST_CASE("threads allocate and free side by side") {
    Fixture f;
    std::vector<std::thread> threads;
    std::atomic<int> failures{0};
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            rt_stream stream = nullptr;
            if (rt_stream_create(f.device, nullptr, &stream)) ++failures;
            for (int i = 0; i < 500; ++i) {
                void* block = nullptr;
                const size_t bytes = 64u + static_cast<size_t>(i * 37 % 9000);
                if (rt_malloc(stream, bytes, &block)) ++failures;
                if (rt_fill(stream, block, static_cast<uint64_t>(t), 1, bytes)) ++failures;
                if (rt_free(stream, block)) ++failures;
            }
            rt_stream_destroy(stream);
        });
    for (auto& thread : threads) thread.join();
    CHECK(failures == 0);
    CHECK(f.pool().live == 0);
}
