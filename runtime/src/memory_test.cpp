// SPDX-License-Identifier: MIT
// Merged copies, zero copy, copies between devices and poison mode.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "copy_merge.h"
#include "test_support.h"

using namespace enpu::rt;
using namespace enpu::rt::test;

namespace {

rt_stream make_stream(rt_device device, uint32_t flags) {
    rt_stream_options options{};
    options.struct_size = sizeof(options);
    options.flags = flags;
    rt_stream stream = nullptr;
    MUST(rt_stream_create(device, &options, &stream));
    return stream;
}

// Pages of the test that a device has pinned.
struct Registered {
    static constexpr size_t kBytes = 64 << 10;
    explicit Registered(rt_device owner) : device(owner) {
        memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        rt_status status = rt_host_register(device, memory, kBytes);
        const bool none = rt_status_code(status) == RT_UNSUPPORTED;
        const std::string why = take(status);
        if (none) munmap(memory, kBytes);
        if (none) SKIP(why);
        REQUIRE(why == "");
    }
    ~Registered() {
        OK(rt_host_unregister(device, memory));
        munmap(memory, kBytes);
    }
    Registered(const Registered&) = delete;
    rt_device device;
    void* memory = nullptr;
};

}  // namespace

// ------------------------------------------------------------------------------ merged copies

TEST_CASE(
    "a list of copies joins what continues in both memories and keeps the order of the rest") {
    CopyList list;
    auto* a = reinterpret_cast<enpu_hal_buffer*>(0x10);
    auto* b = reinterpret_cast<enpu_hal_buffer*>(0x20);
    CHECK(list.add({a, 0}, {b, 100}, 50));
    CHECK(list.add({a, 50}, {b, 150}, 10));
    CHECK(list.count() == 1);
    CHECK(list.commands()[0].u.copy.width == 60);
    CHECK(list.add({a, 61}, {b, 160}, 10));  // a hole in the destination
    CHECK(list.add({a, 71}, {b, 171}, 10));  // a hole in the source
    CHECK(list.add({b, 81}, {b, 181}, 10));  // inside one buffer
    CHECK(list.add({b, 91}, {b, 191}, 10));
    CHECK(list.count() == 5);
    CHECK(list.copies() == 6);
    list.clear();
    for (uint32_t i = 0; i < CopyList::kMost; ++i) CHECK(list.add({a, 100 * i}, {b, 0}, 1));
    CHECK_FALSE(list.add({a, 7}, {b, 0}, 1));
}

TEST_CASE("a batch of small copies is one submission and arrives in order") {
    Fixture f;
    constexpr uint32_t kCount = 40;
    auto* in = static_cast<uint32_t*>(f.pinned(kCount * 64));
    auto* block = static_cast<char*>(f.allocate(kCount * 64));
    std::vector<rt_copy> copies;
    for (uint32_t i = 0; i < kCount; ++i) {
        in[i * 16] = 1000 + i;
        // All to one place but for the last: the order shows.
        copies.push_back({block + (i + 1 == kCount ? 64 : 0), in + i * 16, 64});
    }
    f.sync();
    const rt_counters before = f.counters();
    MUST(rt_memcpy_batch(f.stream, copies.data(), kCount));
    f.sync();
    const rt_counters after = f.counters();
    CHECK(after.submissions == before.submissions + 1);
    CHECK(after.copies_enqueued == before.copies_enqueued + kCount);
    CHECK(after.copies_merged == before.copies_merged + kCount - 1);
    const auto seen = f.download<uint32_t>(block, 32);
    CHECK(seen[0] == 1000 + kCount - 2);
    CHECK(seen[16] == 1000 + kCount - 1);
    OK(rt_host_free(f.device, in));
}

TEST_CASE("a batch with neighbours becomes one copy, and a wrong one enqueues nothing") {
    Fixture f;
    constexpr uint32_t kCount = 16;
    auto* in = static_cast<unsigned char*>(f.pinned(kCount * 100));
    for (uint32_t i = 0; i < kCount * 100; ++i) in[i] = static_cast<unsigned char>(i * 7);
    auto* block = static_cast<char*>(f.allocate(kCount * 100));
    std::vector<rt_copy> copies;
    for (uint32_t i = 0; i < kCount; ++i) copies.push_back({block + i * 100, in + i * 100, 100});
    const rt_counters before = f.counters();
    MUST(rt_memcpy_batch(f.stream, copies.data(), kCount));
    f.sync();
    if (f.counters().from_device) CHECK(f.counters().copies == before.copies + 1);
    const auto seen = f.download<unsigned char>(block, kCount * 100);
    CHECK(std::equal(seen.begin(), seen.end(), in));

    const uint64_t submissions = f.counters().submissions;
    char here = 0;
    copies[7].src = &here;
    const Failure wrong = failure(rt_memcpy_batch(f.stream, copies.data(), kCount));
    CHECK(wrong.code == RT_INVALID_ARGUMENT);
    CHECK(contains(wrong.message, "copy 7: source"));
    copies[7].src = nullptr;
    CHECK(contains(failure(rt_memcpy_batch(f.stream, copies.data(), kCount)).message,
                   "copy 7: source is null"));
    CHECK(f.counters().submissions == submissions);
    CHECK(take(rt_memcpy_batch(f.stream, nullptr, 0)) == "");
    OK(rt_host_free(f.device, in));
}

TEST_CASE("a stream that merges copies submits few times and keeps the order with other work") {
    Fixture f;
    rt_stream stream = make_stream(f.device, RT_STREAM_MERGE_COPIES);
    constexpr int kCount = 200;
    auto* block = static_cast<int*>(f.allocate(2 * kCount * sizeof(int)));
    f.sync();
    const rt_counters before = f.counters();
    for (int i = 0; i < kCount; ++i) MUST(rt_memcpy_h2d(stream, block + i, &i, sizeof(i)));
    // A fill in the middle of the copies wins over those before it and loses to those after it.
    MUST(rt_fill(stream, block + 10, 77, 4, 20 * sizeof(int)));
    const int late = 4711;
    MUST(rt_memcpy_h2d(stream, block + 12, &late, sizeof(late)));
    MUST(rt_memcpy_d2d(stream, block + kCount, block, kCount * sizeof(int)));
    std::vector<int> seen(kCount);
    MUST(rt_memcpy_d2h(stream, seen.data(), block + kCount, kCount * sizeof(int)));
    for (int i = 0; i < kCount; ++i) {
        INFO("element " << i);
        REQUIRE(seen[static_cast<size_t>(i)] == (i == 12 ? late : i >= 10 && i < 30 ? 77 : i));
    }
    const rt_counters after = f.counters();
    CHECK(after.submissions - before.submissions <= 7);
    CHECK(after.copies_merged - before.copies_merged >= 190);
    rt_stream_destroy(stream);
}

TEST_CASE("copies held back are seen by events, queries, frees and other streams") {
    Fixture f;
    rt_stream stream = make_stream(f.device, RT_STREAM_MERGE_COPIES);
    auto* pinned = static_cast<uint32_t*>(f.pinned(4096));
    auto* block = static_cast<uint32_t*>(f.allocate(4096));
    f.sync();
    rt_event event = nullptr;
    MUST(rt_event_create(f.device, 0, &event));
    pinned[0] = 1;
    MUST(rt_memcpy_h2d_async(stream, block, pinned, 4));
    MUST(rt_event_record(event, stream));
    MUST(rt_stream_wait_event(f.stream, event));
    CHECK(f.download<uint32_t>(block, 1)[0] == 1);

    pinned[1] = 2;
    MUST(rt_memcpy_h2d_async(stream, block, pinned + 1, 4));
    uint32_t done = 0;
    for (const uint64_t until = soon(); !done && rt_now_ns() < until;)
        MUST(rt_stream_query(stream, &done));
    CHECK(done == 1);
    CHECK(f.download<uint32_t>(block, 1)[0] == 2);

    pinned[2] = 3;
    MUST(rt_memcpy_h2d_async(stream, block, pinned + 2, 4));
    MUST(rt_stream_flush(stream));
    void* scratch = nullptr;
    MUST(rt_malloc(stream, 4096, &scratch));
    MUST(rt_memcpy_d2d(stream, scratch, block, 4));
    MUST(rt_free(stream, scratch));  // still the destination of what is held back
    void* other = f.allocate(4096);
    CHECK(other != scratch);
    OK(rt_stream_sync(stream, soon()));
    CHECK(f.download<uint32_t>(block, 1)[0] == 3);
    rt_event_destroy(event);
    rt_stream_destroy(stream);
    OK(rt_host_free(f.device, pinned));
}

TEST_CASE("prefetch loads beside the work and orders both sides by events") {
    Fixture f;
    needs_kernels(f.device);
    rt_stream loader = make_stream(f.device, RT_STREAM_COPY_ENGINE | RT_STREAM_MERGE_COPIES);
    constexpr int64_t kCount = 4096;
    constexpr size_t kBytes = kCount * sizeof(float);
    auto* weights = static_cast<float*>(f.pinned(kBytes));
    void* x = f.allocate(kBytes);
    void* y = f.allocate(kBytes);
    f.sync();
    rt_event loaded = nullptr, used = nullptr;
    MUST(rt_event_create(f.device, 0, &loaded));
    MUST(rt_event_create(f.device, 0, &used));
    for (int layer = 1; layer <= 5; ++layer) {
        MUST(rt_event_wait(loaded, soon()));  // the host may write the pinned memory again
        std::fill(weights, weights + kCount, float(layer));
        const rt_copy halves[] = {
            {x, weights, kBytes / 2},
            {static_cast<char*>(x) + kBytes / 2, weights + kCount / 2, kBytes / 2}};
        MUST(rt_prefetch(loader, halves, 2, used, loaded));
        MUST(rt_stream_wait_event(f.stream, loaded));
        MUST(launch_double(f.stream, f.kernel("binary"), x, y, kCount));
        MUST(rt_event_record(used, f.stream));
        const auto seen = f.download<float>(y, kCount);
        REQUIRE(std::count(seen.begin(), seen.end(), float(2 * layer)) == kCount);
    }
    rt_event_destroy(loaded);
    rt_event_destroy(used);
    rt_stream_destroy(loader);
    OK(rt_host_free(f.device, weights));
}

TEST_CASE("a stream on a copy engine runs copies and refuses kernels") {
    Fixture f;
    rt_stream stream = make_stream(f.device, RT_STREAM_COPY_ENGINE);
    void* block = f.allocate(4096);
    f.sync();
    MUST(rt_fill(stream, block, 0x5a, 1, 4096));
    OK(rt_stream_sync(stream, soon()));
    CHECK(f.download<unsigned char>(block, 4096) == std::vector<unsigned char>(4096, 0x5a));
    if (f.device_info().copy_engines > 0)
        CHECK(failure(launch_double(stream, f.lookup("binary"), block, block, 16)).code ==
              RT_INVALID_ARGUMENT);
    rt_stream_destroy(stream);
    rt_stream_options options{};
    options.struct_size = sizeof(options);
    options.flags = 0x80;
    CHECK(contains(failure(rt_stream_create(f.device, &options, &stream)).message, "0x80"));
}

// ---------------------------------------------------------------------------------- zero copy

TEST_CASE("kernels take pinned and registered memory in place: the copy counter stands still") {
    Fixture f;
    needs_kernels(f.device);
    constexpr int64_t kCount = 1000;
    Registered mine(f.device);
    auto* x = static_cast<float*>(mine.memory);
    auto* y = static_cast<float*>(f.pinned(kCount * sizeof(float)));
    for (int64_t i = 0; i < kCount; ++i) x[i] = float(i);
    enpu_op_tensor desc;
    MUST(rt_tensor_desc_init(&desc, ENPU_OP_F32, 1, &kCount));
    rt_tensor tx = nullptr, ty = nullptr;
    MUST(rt_tensor_wrap(f.stream, &desc, x, &tx));
    MUST(rt_tensor_wrap(f.stream, &desc, y, &ty));
    CHECK(rt_tensor_data(tx) == x);
    const enpu_op_binary_params params{ENPU_OP_BINARY_ADD, ENPU_OP_UNARY_IDENTITY, 0, 0};
    const rt_operand operands[] = {{nullptr, tx, desc}, {nullptr, tx, desc}, {nullptr, ty, desc}};
    f.sync();
    const rt_counters before = f.counters();
    MUST(rt_kernel_launch(f.stream, f.kernel("binary"), nullptr, &params, sizeof(params), operands,
                          3));
    f.sync();
    const rt_counters after = f.counters();
    for (int64_t i = 0; i < kCount; ++i) REQUIRE(y[i] == float(2 * i));
    CHECK(after.ops[ENPU_OP_BINARY] == before.ops[ENPU_OP_BINARY] + 1);
    CHECK(after.copy_bytes == before.copy_bytes);
    CHECK(after.copies == before.copies);
    rt_tensor_release(tx);
    rt_tensor_release(ty);
    char here = 0;
    CHECK(failure(rt_tensor_wrap(f.stream, &desc, &here, &tx)).code == RT_INVALID_ARGUMENT);
    OK(rt_host_free(f.device, y));
}

// ----------------------------------------------------------------------------- between devices

namespace {

// The second device: ENPU_DEVICE2, else another opening of the first.
const char* second_spec() {
    const char* spec = std::getenv("ENPU_DEVICE2");
    return spec ? spec : device_spec();
}

// Shared where memory of the process is pinned in place; CUDA's contexts do not share what another
// has pinned.
rt_peer_path expected_path(Fixture& f) {
    if (std::string(f.device_info().backend) == "cuda") return RT_PEER_STAGED;
    alignas(4096) static unsigned char page[4096];
    if (rt_status status = rt_host_register(f.device, page, sizeof(page))) {
        CHECK(failure(status).code == RT_UNSUPPORTED);
        return RT_PEER_STAGED;
    }
    MUST(rt_host_unregister(f.device, page));
    return RT_PEER_SHARED;
}

}  // namespace

TEST_CASE("a copy between two devices arrives and says which way it went", "[peer]") {
    Fixture f;
    rt_device device = nullptr;
    rt_stream stream = nullptr;
    MUST(rt_device_open(second_spec(), &device));
    MUST(rt_stream_create(device, nullptr, &stream));
    const rt_peer_path expected = expected_path(f);
    for (size_t bytes : {size_t{1}, size_t{4097}, size_t{1} << 20, size_t{5'000'001}}) {
        std::vector<unsigned char> sent(bytes), seen(bytes);
        for (size_t i = 0; i < bytes; ++i) sent[i] = static_cast<unsigned char>(i * 31 + i / 255);
        void* here = f.upload(sent);  // on the first device, still in flight
        void* there = nullptr;
        MUST(rt_malloc(stream, bytes, &there));
        rt_peer_path path = RT_PEER_NONE;
        MUST(rt_memcpy_peer(stream, there, f.stream, here, bytes, &path));
        INFO("way: " << rt_peer_path_name(path));
        CHECK(path == expected);
        MUST(rt_memcpy_d2h(stream, seen.data(), there, bytes));
        CHECK((seen == sent));
        // And back, over what was there.
        MUST(rt_fill(stream, there, 0, 1, 1));
        sent[0] = 0;
        MUST(rt_memcpy_peer(f.stream, here, stream, there, bytes, &path));
        CHECK((f.download<unsigned char>(here, bytes) == sent));
        OK(rt_free(f.stream, here));
        OK(rt_free(stream, there));
    }
    rt_stream_destroy(stream);
    rt_device_close(device);
}

TEST_CASE("a copy to the same device, of nothing and of foreign memory", "[peer]") {
    Fixture f;
    rt_stream other = make_stream(f.device, 0);
    void* a = f.upload(std::vector<int>(100, 5));
    void* b = f.allocate(400);
    rt_peer_path path = RT_PEER_NONE;
    MUST(rt_memcpy_peer(other, b, f.stream, a, 400, &path));
    CHECK(path == RT_PEER_SAME);
    CHECK(f.download<int>(b, 100) == std::vector<int>(100, 5));
    MUST(rt_memcpy_peer(other, b, f.stream, a, 0, &path));
    CHECK(path == RT_PEER_NONE);
    rt_device device = nullptr;
    rt_stream stream = nullptr;
    MUST(rt_device_open(second_spec(), &device));
    MUST(rt_stream_create(device, nullptr, &stream));
    const Failure wrong = failure(rt_memcpy_peer(stream, a, f.stream, a, 400, &path));
    CHECK(wrong.code == RT_INVALID_ARGUMENT);
    CHECK(contains(wrong.message, "destination"));
    rt_stream_destroy(stream);
    rt_device_close(device);
    rt_stream_destroy(other);
}

// ------------------------------------------------------------------------------------- poison

TEST_CASE("memory that was freed cannot be used") {
    Fixture f;
    void* block = f.allocate(4096);
    void* kept = f.allocate(4096);
    OK(rt_free(f.stream, block));
    CHECK(contains(failure(rt_fill(f.stream, block, 0, 1, 10)).message, "was freed"));
    CHECK(contains(failure(rt_memcpy_d2d(f.stream, kept, block, 10)).message, "source"));
    CHECK(contains(failure(launch_double(f.stream, f.lookup("binary"), block, kept, 10)).message,
                   "was freed"));
    OK(rt_free(f.stream, kept));
}

TEST_CASE("poison mode shows what is read before it is written and finds writes after the free") {
    Fixture f;
    OK(rt_pool_set_poison(f.device, 1));
    void* block = f.allocate(3000);
    for (uint64_t word : f.download<uint64_t>(block, 3000 / 8)) REQUIRE(word == 0xfff0fff0fff0fff0);
    // A stray write: another operation that holds the address still runs after the free.
    void* neighbour = f.allocate(3000);
    rt_graph graph = nullptr;
    rt_graph_exec late = nullptr;
    MUST(rt_graph_create(f.device, &graph));
    MUST(
        rt_graph_add_fill(graph, static_cast<char*>(block) + 128, 0x42, 1, 8, nullptr, 0, nullptr));
    MUST(rt_graph_instantiate(graph, &late));
    OK(rt_free(f.stream, neighbour));
    OK(rt_free(f.stream, block));
    MUST(rt_graph_launch(late, f.stream));
    void* again = nullptr;
    const Failure found = failure(rt_malloc(f.stream, 3000, &again));
    CHECK(found.code == RT_FAILED_PRECONDITION);
    CHECK(contains(found.message, "use after free"));
    CHECK(contains(found.message, "freed by rt_free"));
    CHECK(contains(found.message, "offset 128"));
    CHECK(contains(found.message, "0x4242424242424242"));
    CHECK(again == nullptr);
    // Told once; the pool goes on.
    MUST(rt_malloc(f.stream, 3000, &again));
    OK(rt_free(f.stream, again));
    OK(rt_pool_set_poison(f.device, 0));
    rt_graph_exec_destroy(late);
    rt_graph_destroy(graph);
    CHECK(f.pool().live == 0);
}

TEST_CASE("tensors are freed after the last of many streams has used them") {
    Fixture f;
    needs_kernels(f.device);
    OK(rt_pool_set_poison(f.device, 1));  // a block reused too early fails its check
    constexpr int64_t kCount = 2000;
    enpu_op_tensor desc;
    MUST(rt_tensor_desc_init(&desc, ENPU_OP_F32, 1, &kCount));
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
            rt_stream home = nullptr, away = nullptr;
            if (rt_stream_create(f.device, nullptr, &home)) ++wrong;
            if (rt_stream_create(f.device, nullptr, &away)) ++wrong;
            rt_event ready = nullptr;
            if (rt_event_create(f.device, 0, &ready)) ++wrong;
            rt_kernel binary = nullptr;
            if (rt_kernel_lookup(f.device, "binary", &binary)) ++wrong;
            const enpu_op_binary_params params{ENPU_OP_BINARY_ADD, ENPU_OP_UNARY_IDENTITY, 0, 0};
            std::vector<float> seen(kCount);
            for (int i = 0; i < 15; ++i) {
                rt_tensor x = nullptr, y = nullptr;
                if (rt_tensor_alloc(home, &desc, &x) || rt_tensor_alloc(away, &desc, &y)) ++wrong;
                const float value = float(100 * t + i);
                uint32_t bits;
                std::memcpy(&bits, &value, 4);
                if (rt_fill(home, rt_tensor_data(x), bits, 4, kCount * 4)) ++wrong;
                if (rt_event_record(ready, home) || rt_stream_wait_event(away, ready)) ++wrong;
                const rt_operand operands[] = {
                    {nullptr, x, desc}, {nullptr, x, desc}, {nullptr, y, desc}};
                if (rt_kernel_launch(away, binary, nullptr, &params, sizeof(params), operands, 3))
                    ++wrong;
                rt_tensor_release(x);  // while `away` may still read it
                if (rt_memcpy_d2h(away, seen.data(), rt_tensor_data(y), kCount * 4)) ++wrong;
                if (std::count(seen.begin(), seen.end(), 2 * value) != kCount) ++wrong;
                rt_tensor_release(y);
            }
            rt_event_destroy(ready);
            rt_stream_destroy(home);
            rt_stream_destroy(away);
        });
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(f.pool().live == 0);
}
