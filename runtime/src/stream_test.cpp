// SPDX-License-Identifier: MIT
// Streams, events and copies.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <numeric>
#include <thread>

#include "test_support.h"

using namespace enpu::rt::test;

namespace {

std::vector<unsigned char> ramp(size_t count) {
    std::vector<unsigned char> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<unsigned char>(i * 131 + i / 251);
    return values;
}

}  // namespace

TEST_CASE("devices are listed and can be opened by their spec") {
    uint32_t count = 0;
    for (;; ++count) {
        rt_device_info info{};
        info.struct_size = sizeof(info);
        rt_status status = rt_device_enumerate(count, &info);
        if (status) {
            CHECK(failure(status).code == RT_NOT_FOUND);
            break;
        }
        CHECK(info.spec[0] != 0);
        CHECK(info.backend[0] != 0);
    }
    CHECK(count >= 1);
    rt_device device = nullptr;
    const Failure unknown = failure(rt_device_open("nonsense", &device));
    CHECK(unknown.code == RT_NOT_FOUND);
    CHECK(contains(unknown.message, "loaded: "));
    CHECK(failure(rt_device_open("cpu:threads=0", &device)).code == RT_INVALID_ARGUMENT);
    CHECK(device == nullptr);
}

TEST_CASE("a structure of the wrong size is refused") {
    Fixture f;
    rt_device_info info{};
    info.struct_size = 8;
    CHECK(contains(failure(rt_device_get_info(f.device, &info)).message, "struct_size"));
}

TEST_CASE("pageable copies of odd sizes arrive whole and are done with the host on return") {
    Fixture f;
    for (size_t bytes : {1, 63, 4097, 1'048'576, 1'048'577, 9'000'001}) {
        auto sent = ramp(bytes);
        const auto kept = sent;
        void* block = f.allocate(bytes);
        MUST(rt_memcpy_h2d(f.stream, block, sent.data(), bytes));
        std::fill(sent.begin(), sent.end(), 0);  // may not matter any more
        CHECK(f.download<unsigned char>(block, bytes) == kept);
        OK(rt_free(f.stream, block));
    }
}

TEST_CASE("many small pageable copies go through the ring in order") {
    Fixture f;
    constexpr int kCount = 1500;
    void* block = f.allocate(kCount * sizeof(int));
    for (int i = 0; i < kCount; ++i)
        MUST(rt_memcpy_h2d(f.stream, static_cast<int*>(block) + i, &i, sizeof(i)));
    const auto seen = f.download<int>(block, kCount);
    for (int i = 0; i < kCount; ++i) REQUIRE(seen[static_cast<size_t>(i)] == i);
}

TEST_CASE("pinned copies are asynchronous and the async calls refuse pageable memory") {
    Fixture f;
    constexpr size_t kBytes = 100'000;
    auto* pinned = static_cast<unsigned char*>(f.pinned(2 * kBytes));
    const auto sent = ramp(kBytes);
    std::copy(sent.begin(), sent.end(), pinned);
    void* block = f.allocate(kBytes);
    OK(rt_memcpy_h2d_async(f.stream, block, pinned, kBytes));
    OK(rt_memcpy_d2h_async(f.stream, pinned + kBytes, block, kBytes));
    f.sync();
    CHECK(std::equal(sent.begin(), sent.end(), pinned + kBytes));
    CHECK(contains(failure(rt_memcpy_h2d_async(f.stream, block, sent.data(), kBytes)).message,
                   "not pinned"));
    CHECK(contains(failure(rt_memcpy_h2d_async(f.stream, block, pinned, kBytes * 4)).message,
                   "allocation"));
    OK(rt_host_free(f.device, pinned));
    CHECK(failure(rt_host_free(f.device, pinned)).code == RT_INVALID_ARGUMENT);
}

TEST_CASE("a copy past the end of an allocation is refused, though the slab goes on") {
    Fixture f;
    void* a = f.allocate(256);
    void* b = f.allocate(256);
    const auto bytes = ramp(1000);
    CHECK(contains(failure(rt_memcpy_h2d(f.stream, a, bytes.data(), 257)).message,
                   "pass the end of the allocation"));
    CHECK(contains(failure(rt_memcpy_d2d(f.stream, b, static_cast<char*>(a) + 200, 100)).message,
                   "source"));
    CHECK(failure(rt_fill(f.stream, a, 0, 3, 9)).code == RT_INVALID_ARGUMENT);
    CHECK(failure(rt_fill(f.stream, a, 0, 4, 6)).code == RT_INVALID_ARGUMENT);
}

TEST_CASE("2D copies move rows and nothing between them") {
    Fixture f;
    const auto sent = ramp(20 * 32);
    void* src = f.upload(sent);
    void* dst = f.allocate(20 * 48);
    OK(rt_fill(f.stream, dst, 0xee, 1, 20 * 48));
    OK(rt_memcpy_2d(f.stream, static_cast<char*>(dst) + 5, 48, static_cast<char*>(src) + 3, 32, 17,
                    20));
    const auto seen = f.download<unsigned char>(dst, 20 * 48);
    for (size_t row = 0; row < 20; ++row)
        for (size_t at = 0; at < 48; ++at) {
            const bool inside = at >= 5 && at < 22;
            const unsigned char expected = inside ? sent[row * 32 + 3 + at - 5] : 0xee;
            REQUIRE(seen[row * 48 + at] == expected);
        }
    CHECK(failure(rt_memcpy_2d(f.stream, dst, 16, src, 32, 17, 2)).code == RT_INVALID_ARGUMENT);
    CHECK(failure(rt_memcpy_2d(f.stream, dst, SIZE_MAX / 2, src, 32, 17, 5)).code ==
          RT_INVALID_ARGUMENT);
}

TEST_CASE("fill repeats patterns of each size") {
    Fixture f;
    void* block = f.allocate(64);
    OK(rt_fill(f.stream, block, 0x1122334455667788, 8, 64));
    CHECK(f.download<uint64_t>(block, 8) == std::vector<uint64_t>(8, 0x1122334455667788));
    OK(rt_fill(f.stream, block, 0x1122334455667788, 2, 64));
    CHECK(f.download<uint16_t>(block, 32) == std::vector<uint16_t>(32, 0x7788));
    OK(rt_fill(f.stream, block, 0x1122334455667788, 4, 64));
    CHECK(f.download<uint32_t>(block, 16) == std::vector<uint32_t>(16, 0x55667788));
}

TEST_CASE("an event orders work of two streams") {
    Fixture f;
    rt_stream other = nullptr;
    rt_event event = nullptr;
    MUST(rt_stream_create(f.device, nullptr, &other));
    MUST(rt_event_create(f.device, 0, &event));
    const size_t bytes = 1u << 20;
    void* block = f.allocate(bytes);
    void* copy = f.allocate(bytes);
    f.sync();
    OK(rt_stream_wait_event(other, event));  // never recorded: no wait
    for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 5; ++i) OK(rt_fill(f.stream, block, 0, 1, bytes));
        OK(rt_fill(f.stream, block, static_cast<uint64_t>(round + 1), 1, bytes));
        OK(rt_event_record(event, f.stream));
        OK(rt_stream_wait_event(other, event));
        OK(rt_memcpy_d2d(other, copy, block, bytes));
        OK(rt_stream_sync(other, soon()));
        const auto seen = f.download<unsigned char>(copy, bytes);
        REQUIRE(std::count(seen.begin(), seen.end(), round + 1) == ptrdiff_t(bytes));
    }
    rt_event_destroy(event);
    rt_stream_destroy(other);
}

TEST_CASE("a stream with nothing but a wait is done when the event is") {
    Fixture f;
    rt_stream other = nullptr;
    rt_event event = nullptr;
    MUST(rt_stream_create(f.device, nullptr, &other));
    MUST(rt_event_create(f.device, 0, &event));
    void* block = f.allocate(1u << 20);
    for (int i = 0; i < 50; ++i) OK(rt_fill(f.stream, block, 1, 1, 1u << 20));
    OK(rt_event_record(event, f.stream));
    OK(rt_stream_wait_event(other, event));
    OK(rt_stream_sync(other, soon()));
    uint32_t done = 0;
    OK(rt_event_query(event, &done));
    CHECK(done == 1);
    rt_event_destroy(event);
    rt_stream_destroy(other);
}

TEST_CASE("timing events measure the work between them") {
    Fixture f;
    rt_event start = nullptr, end = nullptr, plain = nullptr;
    const std::string why = take(rt_event_create(f.device, RT_EVENT_TIMING, &start));
    if (why.starts_with("unsupported")) SKIP(why);
    REQUIRE(why == "");
    MUST(rt_event_create(f.device, RT_EVENT_TIMING, &end));
    MUST(rt_event_create(f.device, 0, &plain));
    int64_t ns = -1;
    CHECK(failure(rt_event_elapsed_ns(start, end, &ns)).code == RT_FAILED_PRECONDITION);
    void* block = f.allocate(1u << 20);
    const uint64_t before = rt_now_ns();
    OK(rt_event_record(start, f.stream));
    for (int i = 0; i < 20; ++i) OK(rt_fill(f.stream, block, 1, 1, 1u << 20));
    OK(rt_event_record(end, f.stream));
    OK(rt_event_wait(end, soon()));
    const uint64_t wall = rt_now_ns() - before;
    OK(rt_event_elapsed_ns(start, end, &ns));
    CHECK(ns > 0);
    CHECK(uint64_t(ns) <= wall);
    CHECK(failure(rt_event_elapsed_ns(start, plain, &ns)).code == RT_FAILED_PRECONDITION);
    rt_event none = nullptr;
    CHECK(failure(rt_event_create(f.device, 0x80, &none)).code == RT_INVALID_ARGUMENT);
    CHECK(none == nullptr);
    rt_event_destroy(start);
    rt_event_destroy(end);
    rt_event_destroy(plain);
}

TEST_CASE("a deadline that passes names the operation and leaves it running") {
    Fixture f;
    void* block = f.allocate(4096);
    f.sync();
    // The fill waits for another stream, whose host function waits for this thread.
    std::promise<void> gate;
    std::future<void> opened = gate.get_future();
    rt_stream other = nullptr;
    rt_event event = nullptr;
    MUST(rt_stream_create(f.device, nullptr, &other));
    MUST(rt_event_create(f.device, 0, &event));
    const auto wait = [](void* context) {
        static_cast<std::future<void>*>(context)->wait_for(std::chrono::seconds(20));
    };
    OK(rt_launch_host_func(other, wait, &opened));
    OK(rt_event_record(event, other));
    OK(rt_stream_wait_event(f.stream, event));
    OK(rt_fill(f.stream, block, 1, 2, 4096));
    const Failure late = failure(rt_stream_sync(f.stream, 0));
    CHECK(late.code == RT_DEADLINE_EXCEEDED);
    CHECK(contains(late.message, "fill"));
    uint32_t done = 1;
    OK(rt_stream_query(f.stream, &done));
    CHECK(done == 0);
    gate.set_value();
    f.sync();
    OK(rt_stream_query(f.stream, &done));
    CHECK(done == 1);
    CHECK(f.download<uint16_t>(block, 4) == std::vector<uint16_t>(4, 1));
    rt_event_destroy(event);
    rt_stream_destroy(other);
}

TEST_CASE("a stream may be the last that holds its device, with a host function still to run") {
    rt_device device = nullptr;
    rt_stream stream = nullptr;
    MUST(rt_device_open(device_spec(), &device));
    MUST(rt_stream_create(device, nullptr, &stream));
    std::promise<void> ran;
    std::future<void> seen = ran.get_future();
    const auto tell = [](void* context) { static_cast<std::promise<void>*>(context)->set_value(); };
    OK(rt_launch_host_func(stream, tell, &ran));
    rt_device_close(device);
    CHECK(seen.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
    rt_stream_destroy(stream);
}

TEST_CASE("threads share one stream") {
    Fixture f;
    constexpr int kThreads = 4, kEach = 300;
    void* block = f.allocate(kThreads * kEach * sizeof(uint32_t));
    std::vector<std::thread> threads;
    std::atomic<int> failures{0};
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < kEach; ++i) {
                const uint32_t value = static_cast<uint32_t>(t * kEach + i);
                if (rt_fill(f.stream, static_cast<uint32_t*>(block) + value, value, 4, 4))
                    ++failures;
            }
            if (rt_stream_sync(f.stream, soon())) ++failures;
        });
    for (auto& thread : threads) thread.join();
    CHECK(failures == 0);
    std::vector<uint32_t> expected(kThreads * kEach);
    std::iota(expected.begin(), expected.end(), 0u);
    CHECK(f.download<uint32_t>(block, expected.size()) == expected);
    CHECK(take(rt_device_sync(f.device, soon())) == "");
}
