// SPDX-License-Identifier: MIT
// Graphs on several engines, capture, host functions, and how failures are told.
#define RT_CALL_SITES
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>

#include "test_support.h"

using namespace enpu::rt::test;

namespace {

struct Graph {
    rt_graph graph = nullptr;
    rt_graph_exec exec = nullptr;
    explicit Graph(rt_device device) { MUST(rt_graph_create(device, &graph)); }
    explicit Graph(rt_graph made) : graph(made) {}
    ~Graph() {
        rt_graph_exec_destroy(exec);
        rt_graph_destroy(graph);
    }
    void instantiate(uint32_t flags = 0, uint64_t crossing_ns = 0) {
        rt_graph_options options{};
        options.struct_size = sizeof(options);
        options.flags = flags;
        options.crossing_ns = crossing_ns;
        MUST(rt_graph_instantiate_with(graph, &options, &exec));
    }
    rt_graph_info info() const {
        rt_graph_info result{};
        result.struct_size = sizeof(result);
        MUST(rt_graph_exec_get_info(exec, &result));
        return result;
    }
    rt_node_time time(rt_node node) const {
        rt_node_time result{};
        result.struct_size = sizeof(result);
        MUST(rt_graph_exec_node_time(exec, node, &result));
        return result;
    }
};

// y = gelu(a + b) over `count` floats: long enough to be seen side by side on a busy host.
rt_node add(Fixture& f, rt_graph graph, void* a, void* b, void* y, int64_t count,
            std::vector<rt_node> after) {
    const enpu_op_binary_params params{ENPU_OP_BINARY_ADD, ENPU_OP_UNARY_GELU, 0, 0};
    const rt_operand operands[] = {operand(a, ENPU_OP_F32, {count}),
                                   operand(b, ENPU_OP_F32, {count}),
                                   operand(y, ENPU_OP_F32, {count})};
    rt_node node = 0;
    MUST(rt_graph_add_kernel(graph, f.kernel("binary"), &params, sizeof(params), operands, 3,
                             after.data(), static_cast<uint32_t>(after.size()), &node));
    return node;
}

rt_device_info info_of(rt_device device) {
    rt_device_info info{};
    info.struct_size = sizeof(info);
    MUST(rt_device_get_info(device, &info));
    return info;
}

// A gather with an index out of range: fails on the device.
rt_status launch_bad(Fixture& f, rt_stream stream) {
    void* x = f.upload(std::vector<float>{1, 2, 3, 4});
    void* at = f.upload(std::vector<int32_t>{0, 99});
    void* y = f.allocate(8);
    f.sync();
    const enpu_op_gather_params params{ENPU_OP_GATHER_MODE_TAKE, 0};
    const rt_operand operands[] = {operand(x, ENPU_OP_F32, {4}), operand(at, ENPU_OP_I32, {2}),
                                   operand(y, ENPU_OP_F32, {2})};
    return rt_kernel_launch(stream, f.kernel("gather"), nullptr, &params, sizeof(params), operands,
                            3);
}

void count_call(void* context) {
    ++*static_cast<std::atomic<int>*>(context);
}

}  // namespace

TEST_CASE("exec: the arms of a diamond overlap, by the clock of the device") {
    Fixture f;
    if (info_of(f.device).compute_engines < 2) SKIP("the device has one compute engine");
    constexpr int64_t kCount = 1 << 21;
    void* x = f.upload(std::vector<float>(kCount, 1.0f));
    void *a = f.allocate(kCount * 4), *b = f.allocate(kCount * 4), *c = f.allocate(kCount * 4),
         *d = f.allocate(kCount * 4);
    Graph g(f.device);
    const rt_node first = add(f, g.graph, x, x, a, kCount, {});
    const rt_node left = add(f, g.graph, a, x, b, kCount, {first});
    const rt_node right = add(f, g.graph, a, a, c, kCount, {first});
    const rt_node end = add(f, g.graph, b, c, d, kCount, {left, right});
    for (rt_node node : {first, left, right, end})
        MUST(rt_graph_set_cost(g.graph, node, 10'000'000));
    g.instantiate(RT_GRAPH_TIMING);
    CHECK(g.info().lanes == 2);
    CHECK(g.info().fences == 2);
    std::string times;
    bool overlapped = false;  // the host may be busy with something else: not in every launch
    for (int round = 0; round < 20 && !overlapped; ++round) {
        MUST(rt_graph_launch(g.exec, f.stream));
        f.sync();
        const rt_node_time l = g.time(left), r = g.time(right);
        REQUIRE(l.lane != r.lane);
        REQUIRE(g.time(first).end_ns <= std::min(l.start_ns, r.start_ns));
        REQUIRE(std::max(l.end_ns, r.end_ns) <= g.time(end).start_ns);
        overlapped = std::max(l.start_ns, r.start_ns) < std::min(l.end_ns, r.end_ns);
        times += " " + std::to_string(r.start_ns - l.start_ns) + "/" +
                 std::to_string(l.end_ns - l.start_ns);
    }
    INFO("ns by which the second arm began later / that the first took:" << times);
    CHECK(overlapped);
    const auto seen = f.download<float>(d, kCount);
    rt_graph_options options{};
    options.struct_size = sizeof(options);
    options.flags = RT_GRAPH_SERIAL;
    Graph serial(f.device);
    MUST(rt_graph_instantiate_with(g.graph, &options, &serial.exec));
    MUST(rt_graph_launch(serial.exec, f.stream));
    CHECK(f.download<float>(d, kCount) == seen);
    CHECK(std::abs(seen[0] - 6.8587f) < 1e-3f);
}

TEST_CASE("exec: measured costs are those of the device") {
    Fixture f;
    void *x = f.upload(std::vector<float>(1 << 18, 1.0f)), *y = f.allocate(4 << 18);
    Graph g(f.device);
    const rt_node long_one = add(f, g.graph, x, x, y, 1 << 18, {});
    add(f, g.graph, y, y, x, 16, {long_one});
    MUST(rt_graph_measure(g.graph, f.stream, soon()));
    g.instantiate(RT_GRAPH_TIMING | RT_GRAPH_SERIAL);
    MUST(rt_graph_launch(g.exec, f.stream));
    f.sync();
    const rt_node_time time = g.time(long_one);
    CHECK(time.end_ns > time.start_ns);
    CHECK(g.info().serial_ns > 10'000);
    CHECK(g.info().expected_ns == g.info().serial_ns);
    rt_node_time none{};
    none.struct_size = sizeof(none);
    CHECK(failure(rt_graph_exec_node_time(g.exec, 7, &none)).code == RT_INVALID_ARGUMENT);
}

TEST_CASE("exec: a random graph of 1,000 nodes gives what serial order gives") {
    Fixture f;
    needs_kernels(f.device);
    constexpr int64_t kCount = 64;
    constexpr size_t kBuffers = 24, kNodes = 1000;
    std::mt19937 random(7);
    // Buffers with their last writer and the readers since: the dependencies that memory asks for.
    std::vector<void*> buffers;
    for (size_t i = 0; i < kBuffers; ++i) buffers.push_back(f.allocate(kCount * 4));
    std::vector<int> writer(kBuffers, -1);
    std::vector<std::vector<rt_node>> readers(kBuffers);
    Graph g(f.device);
    for (size_t i = 0; i < kNodes; ++i) {
        const size_t a = random() % kBuffers, b = random() % kBuffers;
        size_t y = random() % kBuffers;
        while (y == a || y == b) y = (y + 1) % kBuffers;
        std::vector<rt_node> after = readers[y];
        for (size_t used : {a, b, y})
            if (writer[used] >= 0) after.push_back(static_cast<rt_node>(writer[used]));
        std::sort(after.begin(), after.end());
        after.erase(std::unique(after.begin(), after.end()), after.end());
        rt_node node = 0;
        if (i % 5 == 4) {
            MUST(rt_graph_add_copy(g.graph, buffers[y], buffers[a], kCount * 4, after.data(),
                                   uint32_t(after.size()), &node));
            readers[a].push_back(node);
        } else {
            const enpu_op_binary_params params{i % 2 ? ENPU_OP_BINARY_ADD : ENPU_OP_BINARY_SUB,
                                               ENPU_OP_UNARY_TANH, 0, 0};
            const rt_operand operands[] = {operand(buffers[a], ENPU_OP_F32, {kCount}),
                                           operand(buffers[b], ENPU_OP_F32, {kCount}),
                                           operand(buffers[y], ENPU_OP_F32, {kCount})};
            MUST(rt_graph_add_kernel(g.graph, f.kernel("binary"), &params, sizeof(params), operands,
                                     3, after.data(), uint32_t(after.size()), &node));
            readers[a].push_back(node);
            readers[b].push_back(node);
        }
        writer[y] = int(node);
        readers[y].clear();
    }
    const auto run = [&](rt_graph_exec exec) {
        for (size_t i = 0; i < kBuffers; ++i)
            MUST(rt_fill(f.stream, buffers[i], 0x3d000000u + (uint32_t(i) << 18), 4, kCount * 4));
        MUST(rt_graph_launch(exec, f.stream));
        std::vector<std::vector<float>> result;
        for (void* buffer : buffers) result.push_back(f.download<float>(buffer, kCount));
        return result;
    };
    Graph serial(f.device);
    rt_graph_options options{};
    options.struct_size = sizeof(options);
    options.flags = RT_GRAPH_SERIAL;
    MUST(rt_graph_instantiate_with(g.graph, &options, &serial.exec));
    g.instantiate(0, 1);
    CHECK(serial.info().lanes == 1);
    const auto info = g.info();
    const auto device = info_of(f.device);
    if (device.compute_engines + device.copy_engines > 1) {
        CHECK(info.lanes > 1);
        CHECK(info.fences < info.crossing_edges);
    }
    const auto expected = run(serial.exec);
    for (int round = 0; round < 3; ++round) REQUIRE(run(g.exec) == expected);
}

TEST_CASE("exec: a cycle is told with the names of its nodes") {
    Fixture f;
    void* x = f.allocate(64);
    Graph g(f.device);
    rt_node before, a, b;
    MUST(rt_graph_add_fill(g.graph, x, 0, 4, 64, nullptr, 0, &before));
    MUST(rt_graph_add_fill(g.graph, x, 0, 4, 64, &before, 1, &a));
    MUST(rt_graph_add_empty(g.graph, &a, 1, &b));
    MUST(rt_graph_set_name(g.graph, a, "clear"));
    MUST(rt_graph_add_dependency(g.graph, a, b));
    const Failure failed = failure(rt_graph_instantiate(g.graph, &g.exec));
    CHECK(failed.code == RT_INVALID_ARGUMENT);
    CHECK(contains(failed.message, "node 1 (fill 'clear') -> node 2 (empty) -> node 1"));
    CHECK_FALSE(contains(failed.message, "node 0"));
    CHECK(failure(rt_graph_add_dependency(g.graph, a, 9)).code == RT_INVALID_ARGUMENT);
}

TEST_CASE("exec: streams are captured with their events and replayed with other inputs") {
    Fixture f;
    needs_kernels(f.device);
    constexpr int64_t kCount = 1000;
    rt_stream side = nullptr;
    rt_event fork = nullptr, join = nullptr;
    MUST(rt_stream_create(f.device, nullptr, &side));
    MUST(rt_event_create(f.device, 0, &fork));
    MUST(rt_event_create(f.device, 0, &join));
    auto* in = static_cast<float*>(f.pinned(kCount * 4));
    void *x = f.allocate(kCount * 4), *y = f.allocate(kCount * 4), *z = f.allocate(kCount * 4);
    rt_kernel binary = f.kernel("binary");
    const auto record = [&](void* out) {
        MUST(rt_stream_begin_capture(f.stream));
        MUST(rt_memcpy_h2d_async(f.stream, x, in, kCount * 4));
        MUST(rt_event_record(fork, f.stream));
        MUST(rt_stream_wait_event(side, fork));
        MUST(launch_double(side, binary, x, y, kCount));
        MUST(rt_event_record(join, side));
        MUST(rt_stream_wait_event(f.stream, join));
        MUST(launch_double(f.stream, binary, y, out, kCount));
        rt_graph graph = nullptr;
        MUST(rt_stream_end_capture(f.stream, &graph));
        return graph;
    };
    const uint64_t launched = f.counters().ops[ENPU_OP_BINARY];
    Graph g(record(z));
    f.sync();
    CHECK(f.counters().ops[ENPU_OP_BINARY] == launched);  // nothing ran
    g.instantiate();
    CHECK(g.info().nodes == 3);
    for (int round = 1; round <= 3; ++round) {
        std::fill(in, in + kCount, float(round));
        MUST(rt_graph_launch(g.exec, f.stream));
        CHECK(f.download<float>(z, kCount) == std::vector<float>(kCount, 4.0f * float(round)));
    }
    // The same code captured once more, with another output.
    void* other = f.allocate(kCount * 4);
    Graph again(record(other));
    MUST(rt_graph_exec_update(g.exec, again.graph, soon()));
    MUST(rt_graph_launch(g.exec, f.stream));
    CHECK(f.download<float>(other, kCount) == std::vector<float>(kCount, 12.0f));
    // What cannot be recorded is refused, and the capture goes on.
    MUST(rt_stream_begin_capture(f.stream));
    CHECK(failure(rt_stream_sync(f.stream, soon())).code == RT_FAILED_PRECONDITION);
    CHECK(failure(rt_free(f.stream, other)).code == RT_FAILED_PRECONDITION);
    MUST(rt_event_record(fork, f.stream));
    MUST(rt_fill(f.stream, x, 0, 4, 64));
    MUST(rt_event_record(fork, f.stream));
    MUST(rt_stream_wait_event(side, fork));
    MUST(rt_fill(side, y, 0, 4, 64));
    rt_graph graph = nullptr;
    const Failure open = failure(rt_stream_end_capture(f.stream, &graph));
    CHECK(open.code == RT_FAILED_PRECONDITION);  // side was not joined
    CHECK(graph == nullptr);
    f.sync();
    MUST(rt_stream_sync(side, soon()));
    CHECK(failure(rt_graph_exec_update(g.exec, nullptr, soon())).code == RT_INVALID_ARGUMENT);
    rt_event_destroy(fork);
    rt_event_destroy(join);
    rt_stream_destroy(side);
    OK(rt_host_free(f.device, in));
}

TEST_CASE("exec: host functions run in stream order, and other streams can wait behind them") {
    Fixture f;
    rt_stream other = nullptr;
    rt_event event = nullptr;
    MUST(rt_stream_create(f.device, nullptr, &other));
    MUST(rt_event_create(f.device, 0, &event));
    auto* word = static_cast<volatile uint32_t*>(f.pinned(64));
    void* device_word = f.allocate(64);
    struct Seen {
        volatile uint32_t* word;
        std::vector<uint32_t> values;
    } seen{word, {}};
    const auto look = [](void* context) {
        auto& s = *static_cast<Seen*>(context);
        const uint32_t now = *s.word;
        s.values.push_back(now);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        *s.word = 100 + now;  // later work sees it
    };
    for (uint32_t i = 1; i <= 5; ++i) {
        MUST(rt_fill(f.stream, const_cast<uint32_t*>(word), i, 4, 4));
        MUST(rt_launch_host_func(f.stream, look, &seen));
        MUST(rt_memcpy_h2d_async(f.stream, device_word, const_cast<uint32_t*>(word), 4));
    }
    MUST(rt_event_record(event, f.stream));
    MUST(rt_stream_wait_event(other, event));
    uint32_t got = 0;
    MUST(rt_memcpy_d2h(other, &got, device_word, 4));
    CHECK(got == 105);
    CHECK(seen.values == std::vector<uint32_t>{1, 2, 3, 4, 5});
    f.sync();
    rt_event_destroy(event);
    rt_stream_destroy(other);
    OK(rt_host_free(f.device, const_cast<uint32_t*>(word)));
}

TEST_CASE("exec: a host function may enqueue, and is told when it would wait for itself") {
    Fixture f;
    struct Context {
        Fixture& f;
        void* block;
        std::atomic<int> calls{0};
        std::string waited, enqueued;
    } context{f, f.allocate(64), 0, {}, {}};
    MUST(rt_launch_host_func(
        f.stream,
        [](void* raw) {
            auto& c = *static_cast<Context*>(raw);
            c.waited = take(rt_stream_sync(c.f.stream, soon()));
            c.enqueued = take(rt_fill(c.f.stream, c.block, 42, 4, 64));
            ++c.calls;
        },
        &context));
    // Its fill comes after what was there at the time it ran.
    for (int i = 0; i < 2000 && context.calls == 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    REQUIRE(context.calls == 1);
    CHECK(contains(context.waited, "called from a host function"));
    CHECK(context.enqueued == "");
    CHECK(f.download<uint32_t>(context.block, 16) == std::vector<uint32_t>(16, 42));
}

TEST_CASE("exec: completion is told by callback, with the failure when there is one") {
    Fixture f;
    needs_kernels(f.device);
    struct Told {
        std::atomic<int> calls{0};
        rt_code code = RT_CODE_OK;
        std::string name;
    } good, bad;
    const auto tell = [](void* raw, rt_status status) {
        auto& told = *static_cast<Told*>(raw);
        told.code = rt_status_code(status);
        told.name = rt_status_operation_name(status);
        ++told.calls;
    };
    void* block = f.allocate(1 << 20);
    MUST(rt_fill(f.stream, block, 1, 1, 1 << 20));
    MUST(rt_stream_on_completion(f.stream, tell, &good));
    f.sync();
    const auto wait = [](Told& told) {
        for (int i = 0; i < 2000 && told.calls == 0; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        REQUIRE(told.calls == 1);
    };
    wait(good);
    CHECK(good.code == RT_CODE_OK);
    std::atomic<int> never{0};
    MUST(launch_bad(f, f.stream));
    MUST(rt_stream_on_completion(f.stream, tell, &bad));
    rt_status_free(rt_launch_host_func(f.stream, count_call, &never));
    wait(bad);
    CHECK(bad.code == RT_WORK_FAILED);
    CHECK(bad.name == "kernel gather");
    OK(rt_stream_reset(f.stream));
    CHECK(never == 0);  // not called after a failure
}

TEST_CASE("exec: a failure names call site, stream, operation and time") {
    Fixture f;
    needs_kernels(f.device);
    rt_stream named = nullptr;
    rt_stream_options options{};
    options.struct_size = sizeof(options);
    options.name = "serving";
    MUST(rt_stream_create(f.device, &options, &named));
    MUST(launch_bad(f, named));
    rt_status status = rt_stream_sync(named, soon());
    CHECK(rt_status_code(status) == RT_WORK_FAILED);
    CHECK(std::string(rt_status_stream(status)) == "serving");
    CHECK(std::string(rt_status_operation_name(status)) == "kernel gather");
    CHECK(contains(rt_status_call_site(status), "exec_test.cpp:"));
    CHECK(contains(rt_status_origin(status), "at exec_test.cpp:"));
    CHECK(rt_status_elapsed_ns(status) > 0);
    rt_status_free(status);
    OK(rt_stream_reset(named));
    MUST(rt_stream_set_timeout(named, 1'000'000));
    OK(rt_stream_sync(named, soon()));
    rt_stream_destroy(named);
}

TEST_CASE("exec: in sync mode the error comes from the call that caused it") {
    Fixture f;
    needs_kernels(f.device);
    MUST(rt_device_set_sync_mode(f.device, 1));
    const Failure failed = failure(launch_bad(f, f.stream));
    CHECK(failed.code == RT_WORK_FAILED);
    CHECK(contains(failed.origin, "found by rt_kernel_launch"));
    OK(rt_stream_reset(f.stream));
    // A graph runs node by node.
    void* x = f.allocate(64);
    Graph g(f.device);
    rt_node node;
    MUST(rt_graph_add_fill(g.graph, x, 5, 4, 64, nullptr, 0, &node));
    MUST(rt_graph_add_fill(g.graph, x, 6, 4, 32, &node, 1, &node));
    g.instantiate();
    MUST(rt_graph_launch(g.exec, f.stream));
    uint32_t done = 0;
    OK(rt_stream_query(f.stream, &done));
    CHECK(done == 1);
    CHECK(f.download<uint32_t>(x, 16)[0] == 6);
    CHECK(f.download<uint32_t>(x, 16)[15] == 5);
}

TEST_CASE("exec: every wait policy sees work end, and an unknown one is refused") {
    Fixture f;
    void* block = f.allocate(1 << 20);
    rt_stream_options options{};
    options.struct_size = sizeof(options);
    for (uint32_t policy : {RT_WAIT_BLOCK, RT_WAIT_SPIN, RT_WAIT_YIELD}) {
        options.wait_policy = policy;
        rt_stream stream = nullptr;
        MUST(rt_stream_create(f.device, &options, &stream));
        MUST(rt_fill(stream, block, policy, 1, 1 << 20));
        OK(rt_stream_sync(stream, soon()));
        rt_stream_destroy(stream);
    }
    options.wait_policy = 9;
    rt_stream stream = nullptr;
    CHECK(failure(rt_stream_create(f.device, &options, &stream)).code == RT_INVALID_ARGUMENT);
}

TEST_CASE("exec: a child of fork is told so, and can leave") {
    Fixture f;
    void* block = f.allocate(64);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        rt_status status = rt_fill(f.stream, block, 0, 4, 64);
        const bool told = rt_status_code(status) == RT_FAILED_PRECONDITION &&
                          contains(rt_status_message(status), "fork");
        rt_stream_destroy(f.stream);
        rt_device_close(f.device);
        _exit(told ? 0 : 1);
    }
    int result = -1;
    REQUIRE(waitpid(child, &result, 0) == child);
    CHECK(result == 0);
    OK(rt_fill(f.stream, block, 0, 4, 64));  // the parent goes on
    f.sync();
}

TEST_CASE("exec: threads launch graphs, host functions and copies at the same time") {
    Fixture f;
    constexpr int kThreads = 4, kEach = 40;
    std::atomic<int> calls{0}, failures{0};
    std::vector<std::thread> threads;
    void* blocks[kThreads];
    // The second half is for the stream that all share: nothing orders it with the others.
    for (void*& block : blocks) block = f.allocate(8192);
    f.sync();
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            rt_stream stream = nullptr;
            rt_graph graph = nullptr;
            rt_graph_exec exec = nullptr;
            failures += rt_stream_create(f.device, nullptr, &stream) != RT_OK;
            failures += rt_graph_create(f.device, &graph) != RT_OK;
            for (uint64_t i = 0; i < 8; ++i)
                failures += rt_graph_add_fill(graph, static_cast<char*>(blocks[t]) + i * 512, i, 4,
                                              512, nullptr, 0, nullptr) != RT_OK;
            failures += rt_graph_instantiate(graph, &exec) != RT_OK;
            for (int i = 0; i < kEach; ++i) {
                failures += rt_graph_launch(exec, stream) != RT_OK;
                failures += rt_launch_host_func(stream, count_call, &calls) != RT_OK;
                failures += (t % 2 ? rt_fill(stream, blocks[t], 1, 4, 4)
                                   : rt_fill(f.stream, static_cast<char*>(blocks[t]) + 4096, 1, 4,
                                             4)) != RT_OK;
            }
            failures += rt_stream_sync(stream, soon()) != RT_OK;
            rt_graph_exec_destroy(exec);
            rt_graph_destroy(graph);
            rt_stream_destroy(stream);
        });
    for (auto& thread : threads) thread.join();
    CHECK(failures == 0);
    CHECK(calls == kThreads * kEach);
    f.sync();
}
