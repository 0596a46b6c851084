// SPDX-License-Identifier: MIT
// What the runtime itself costs on the cpu backend, each beside the same work on PoCL. A case NAME
// has the benchmarks NAME/ours and NAME/pocl; scripts/bench pairs them.
//
// Times are those of the calling thread inside the calls, per operation: a batch is enqueued with
// the clock running, and drained with the clock stopped.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "dag.h"
#include "opencl_peer.h"
#include "rt.hpp"

namespace {

using namespace enpu;

constexpr int kBatch = 100;
constexpr int kRounds = 100;
constexpr int kNodes = 100;

// The cpu backend with what the cases use: y = a + b over one float.
class Ours {
  public:
    static Ours& get() {
        static Ours one;
        return one;
    }

    void launch(const rt::Stream& stream) const {
        rt::check(
            rt_kernel_launch(stream.get(), binary, nullptr, &params, sizeof(params), operands, 3));
    }
    void finish() const {
        first.sync(rt_deadline_ms(20'000));
        second.sync(rt_deadline_ms(20'000));
    }

    rt::Device device{"cpu:threads=1"};
    rt::Stream first{device}, second{device};
    rt::Tensor a = first.tensor(rt::dense(ENPU_OP_F32, {1}));
    rt::Tensor b = first.tensor(rt::dense(ENPU_OP_F32, {1}));
    rt::Tensor y = first.tensor(rt::dense(ENPU_OP_F32, {1}));
    rt_kernel binary = device.kernel("binary");
    enpu_op_binary_params params{ENPU_OP_BINARY_ADD, ENPU_OP_UNARY_IDENTITY, 0, 0};
    // Pointers, as the peer's buffers: the second stream would note each use of a tensor.
    rt_operand operands[3] = {{a.data(), nullptr, a.desc()},
                              {b.data(), nullptr, b.desc()},
                              {y.data(), nullptr, y.desc()}};
};

bench::OpenCl& peer() {
    static bench::OpenCl one;
    return one;
}

// Seconds per call of `work` over one batch; `drain` is outside.
template <typename Work, typename Drain>
void run(benchmark::State& state, int batch, Work work, Drain drain, int per_call = 1) {
    for (int i = 0; i < 3; ++i) {  // warm
        for (int j = 0; j < batch; ++j) work();
        drain();
    }
    std::vector<double> samples;
    for (auto _ : state) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < batch; ++i) work();
        const auto end = std::chrono::steady_clock::now();
        drain();
        samples.push_back(std::chrono::duration<double>(end - start).count() /
                          (double(batch) * per_call));
        state.SetIterationTime(samples.back());
    }
    // Of the batches: one that lost the CPU to another process says nothing.
    std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
    state.counters["median_ns"] = samples[samples.size() / 2] * 1e9;
}

// ---- enqueue

void enqueue_ours(benchmark::State& state) {
    Ours& o = Ours::get();
    run(
        state, kBatch, [&] { o.launch(o.first); }, [&] { o.finish(); });
}
void enqueue_pocl(benchmark::State& state) {
    auto& p = peer();
    run(
        state, kBatch, [&] { p.launch(p.first); }, [&] { p.finish(); });
}

// Enqueue and run: the whole way of an operation that computes next to nothing.
template <typename Work, typename Finish>
void run_through(benchmark::State& state, Work work, Finish finish) {
    const auto all = [&] {
        for (int i = 0; i < kBatch; ++i) work();
        finish();
    };
    run(
        state, 1, all, [] {}, kBatch);
}
void run_small_kernel_ours(benchmark::State& state) {
    Ours& o = Ours::get();
    run_through(
        state, [&] { o.launch(o.first); }, [&] { o.finish(); });
}
void run_small_kernel_pocl(benchmark::State& state) {
    auto& p = peer();
    run_through(
        state, [&] { p.launch(p.first); }, [&] { p.finish(); });
}

// ---- events

void event_record_ours(benchmark::State& state) {
    Ours& o = Ours::get();
    const rt::Event event(o.device);
    run(
        state, kBatch, [&] { rt::check(rt_event_record(event.get(), o.first.get())); },
        [&] { o.finish(); });
}
void event_record_pocl(benchmark::State& state) {
    auto& p = peer();
    run(
        state, kBatch,
        [&] {
            cl_event event = nullptr;
            bench::check_cl(clEnqueueMarkerWithWaitList(p.first, 0, nullptr, &event), "marker");
            clReleaseEvent(event);
        },
        [&] { p.finish(); });
}

// The second queue waits for a kernel of the first and runs one of its own: the cost of the wait and
// of what has to be enqueued with it.
void stream_wait_ours(benchmark::State& state) {
    Ours& o = Ours::get();
    const rt::Event event(o.device);
    run(
        state, kBatch,
        [&] {
            o.launch(o.first);
            rt::check(rt_event_record(event.get(), o.first.get()));
            rt::check(rt_stream_wait_event(o.second.get(), event.get()));
            o.launch(o.second);
        },
        [&] { o.finish(); });
}
void stream_wait_pocl(benchmark::State& state) {
    auto& p = peer();
    const size_t one = 1;
    run(
        state, kBatch,
        [&] {
            cl_event event = nullptr;
            bench::check_cl(
                clEnqueueNDRangeKernel(p.first, p.add, 1, nullptr, &one, &one, 0, nullptr, &event),
                "kernel");
            p.launch(p.second, 1, &event);
            clReleaseEvent(event);
        },
        [&] { p.finish(); });
}

// ---- memory

void pool_alloc_free_ours(benchmark::State& state) {
    Ours& o = Ours::get();
    run(
        state, kBatch,
        [&] {
            void* block = nullptr;
            rt::check(rt_malloc(o.first.get(), 4096, &block));
            rt::check(rt_free(o.first.get(), block));
        },
        [] {});
}
void pool_alloc_free_pocl(benchmark::State& state) {
    auto& p = peer();
    run(
        state, kBatch,
        [&] {
            cl_int code = 0;
            cl_mem memory = clCreateBuffer(p.context, CL_MEM_READ_WRITE, 4096, nullptr, &code);
            bench::check_cl(code, "clCreateBuffer");
            clReleaseMemObject(memory);
        },
        [] {});
}

// Sixteen blocks of different sizes alive at once.
void pool_mixed_ours(benchmark::State& state) {
    Ours& o = Ours::get();
    run(
        state, kBatch / 10,
        [&] {
            void* blocks[16];
            for (size_t i = 0; i < 16; ++i)
                rt::check(rt_malloc(o.first.get(), 300 + 1700 * i, &blocks[i]));
            for (void* block : blocks) rt::check(rt_free(o.first.get(), block));
        },
        [] {}, 16);
}
void pool_mixed_pocl(benchmark::State& state) {
    auto& p = peer();
    run(
        state, kBatch / 10,
        [&] {
            cl_mem blocks[16];
            for (size_t i = 0; i < 16; ++i)
                blocks[i] =
                    clCreateBuffer(p.context, CL_MEM_READ_WRITE, 300 + 1700 * i, nullptr, nullptr);
            for (cl_mem block : blocks) clReleaseMemObject(block);
        },
        [] {}, 16);
}

// ---- graphs, per node. The peer has no graphs here, so it enqueues the nodes.

rt_graph_exec make_graph(const Ours& o) {
    rt_graph graph = nullptr;
    rt::check(rt_graph_create(o.device.get(), &graph));
    rt_node node = 0;
    for (int i = 0; i < kNodes; ++i)
        rt::check(rt_graph_add_kernel(graph, o.binary, &o.params, sizeof(o.params), o.operands, 3,
                                      &node, i == 0 ? 0 : 1, &node));
    rt_graph_exec exec = nullptr;
    rt::check(rt_graph_instantiate(graph, &exec));
    rt_graph_destroy(graph);
    return exec;
}
void graph_replay_ours(benchmark::State& state) {
    Ours& o = Ours::get();
    rt_graph_exec exec = make_graph(o);
    run(
        state, 10, [&] { rt::check(rt_graph_launch(exec, o.first.get())); }, [&] { o.finish(); },
        kNodes);
    rt_graph_exec_destroy(exec);
}
void graph_replay_pocl(benchmark::State& state) {
    auto& p = peer();
    run(
        state, kNodes, [&] { p.launch(p.first); }, [&] { p.finish(); });
}

// ---- scheduling a random graph of a thousand nodes, per node. The peer's scheduler is its
// out-of-order queue with wait lists: what is timed is handing the graph over.

struct RandomDag {
    static constexpr uint32_t kCount = 1000;
    std::vector<uint64_t> cost = std::vector<uint64_t>(kCount);
    std::vector<uint8_t> place = std::vector<uint8_t>(kCount, rt::kDagCompute);
    std::vector<uint32_t> begin{0}, dependency;

    RandomDag() {
        uint32_t state = 1;
        const auto below = [&](uint32_t limit) {
            state = state * 1664525 + 1013904223;
            return (state >> 8) % limit;
        };
        for (uint32_t i = 0; i < kCount; ++i) {
            cost[i] = 1000 + below(100'000);
            for (uint32_t d = i ? below(4) : 0; d > 0; --d)
                dependency.push_back(i - 1 - below(std::min(i, 50u)));
            begin.push_back(static_cast<uint32_t>(dependency.size()));
        }
    }
};

void dag_schedule_ours(benchmark::State& state) {
    const RandomDag dag;
    rt::DagInput input;
    input.nodes = RandomDag::kCount;
    input.cost_ns = dag.cost.data();
    input.place = dag.place.data();
    input.begin = dag.begin.data();
    input.dependency = dag.dependency.data();
    input.compute_lanes = 2;
    rt::DagScheduler scheduler;
    run(
        state, 1, [&] { benchmark::DoNotOptimize(scheduler.run(input)); }, [] {},
        RandomDag::kCount);
}
void dag_schedule_pocl(benchmark::State& state) {
    auto& p = peer();
    const RandomDag dag;
    cl_int code = 0;
    cl_command_queue queue =
        clCreateCommandQueue(p.context, p.device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
    bench::check_cl(code, "out-of-order queue");
    std::vector<cl_event> events(RandomDag::kCount);
    const size_t one = 1;
    run(
        state, 1,
        [&] {
            for (uint32_t i = 0; i < RandomDag::kCount; ++i) {
                cl_event waits[4];
                const uint32_t count = dag.begin[i + 1] - dag.begin[i];
                for (uint32_t d = 0; d < count; ++d)
                    waits[d] = events[dag.dependency[dag.begin[i] + d]];
                bench::check_cl(clEnqueueNDRangeKernel(queue, p.add, 1, nullptr, &one, &one, count,
                                                       count ? waits : nullptr, &events[i]),
                                "kernel");
            }
        },
        [&] {
            clFinish(queue);
            for (cl_event event : events) clReleaseEvent(event);
        },
        RandomDag::kCount);
    clReleaseCommandQueue(queue);
}

#define PAIR(name)                                                                     \
    BENCHMARK(name##_ours)->Name(#name "/ours")->UseManualTime()->Iterations(kRounds); \
    BENCHMARK(name##_pocl)->Name(#name "/pocl")->UseManualTime()->Iterations(kRounds)

PAIR(enqueue);
PAIR(run_small_kernel);
PAIR(event_record);
PAIR(stream_wait);
PAIR(pool_alloc_free);
PAIR(pool_mixed);
PAIR(graph_replay);
PAIR(dag_schedule);

}  // namespace

int main(int argc, char** argv) {
    try {
        benchmark::AddCustomContext("peer", peer().version);
        benchmark::Initialize(&argc, argv);
        if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
        benchmark::RunSpecifiedBenchmarks();
        benchmark::Shutdown();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "rt-bench: %s\n", error.what());
        return 1;
    }
    return 0;
}
