// SPDX-License-Identifier: MIT
#include <algorithm>

#include "test_support.h"

using namespace enpu::rt::test;

namespace {

constexpr int64_t kCount = 1000;
constexpr size_t kBytes = kCount * sizeof(float);

// y = 2 * x by "binary".
rt_status add_double(rt_graph graph, rt_kernel binary, void* x, void* y,
                     std::vector<rt_node> dependencies, rt_node* node) {
    const enpu_op_binary_params params{ENPU_OP_BINARY_ADD, ENPU_OP_UNARY_IDENTITY, 0, 0};
    const rt_operand operands[] = {operand(x, ENPU_OP_F32, {kCount}),
                                   operand(x, ENPU_OP_F32, {kCount}),
                                   operand(y, ENPU_OP_F32, {kCount})};
    return rt_graph_add_kernel(graph, binary, &params, sizeof(params), operands, 3,
                               dependencies.data(), static_cast<uint32_t>(dependencies.size()),
                               node);
}

}  // namespace

TEST_CASE("a graph is recorded once and replayed with the inputs of the moment") {
    Fixture f;
    needs_kernels(f.device);
    auto* in = static_cast<float*>(f.pinned(2 * kBytes));
    float* out = in + kCount;
    void* x = f.allocate(kBytes);
    void* y = f.allocate(kBytes);
    rt_graph graph = nullptr;
    MUST(rt_graph_create(f.device, &graph));
    rt_node load, first, second, store;
    MUST(rt_graph_add_copy(graph, x, in, kBytes, nullptr, 0, &load));
    MUST(add_double(graph, f.kernel("binary"), x, y, {load}, &first));
    MUST(add_double(graph, f.kernel("binary"), y, x, {first}, &second));
    MUST(rt_graph_add_copy(graph, out, x, kBytes, &second, 1, &store));
    CHECK(store == 3);
    rt_graph_exec exec = nullptr;
    MUST(rt_graph_instantiate(graph, &exec));
    rt_graph_destroy(graph);
    const uint64_t ran = f.counters().ops[ENPU_OP_BINARY];
    for (int round = 1; round <= 5; ++round) {
        std::fill(in, in + kCount, float(round));
        MUST(rt_graph_launch(exec, f.stream));
        f.sync();
        REQUIRE(std::count(out, out + kCount, float(4 * round)) == kCount);
    }
    CHECK(f.counters().ops[ENPU_OP_BINARY] == ran + 10);
    rt_graph_exec_destroy(exec);
    OK(rt_host_free(f.device, in));
}

TEST_CASE("an update gives a node other memory") {
    Fixture f;
    needs_kernels(f.device);
    void* a = f.upload(std::vector<float>(kCount, 1.0f));
    void* b = f.upload(std::vector<float>(kCount, 10.0f));
    void* y = f.allocate(kBytes);
    void* z = f.allocate(kBytes);
    rt_graph graph = nullptr;
    MUST(rt_graph_create(f.device, &graph));
    rt_node kernel, copy;
    MUST(add_double(graph, f.kernel("binary"), a, y, {}, &kernel));
    MUST(rt_graph_add_copy(graph, z, y, kBytes, &kernel, 1, &copy));
    rt_graph_exec exec = nullptr;
    MUST(rt_graph_instantiate(graph, &exec));
    MUST(rt_graph_launch(exec, f.stream));
    MUST(rt_graph_update_kernel(exec, kernel, 1, b, soon()));
    MUST(rt_graph_launch(exec, f.stream));
    CHECK(f.download<float>(z, kCount) == std::vector<float>(kCount, 11.0f));
    void* elsewhere = f.allocate(kBytes);
    MUST(rt_graph_update_copy(exec, copy, elsewhere, nullptr, soon()));
    MUST(rt_graph_update_kernel(exec, kernel, 0, b, soon()));
    MUST(rt_graph_launch(exec, f.stream));
    CHECK(f.download<float>(elsewhere, kCount) == std::vector<float>(kCount, 20.0f));
    CHECK(f.download<float>(z, kCount) == std::vector<float>(kCount, 11.0f));

    CHECK(failure(rt_graph_update_kernel(exec, copy, 0, b, soon())).code == RT_INVALID_ARGUMENT);
    CHECK(failure(rt_graph_update_kernel(exec, 9, 0, b, soon())).code == RT_INVALID_ARGUMENT);
    CHECK(failure(rt_graph_update_kernel(exec, kernel, 3, b, soon())).code == RT_INVALID_ARGUMENT);
    char here;
    CHECK(failure(rt_graph_update_kernel(exec, kernel, 0, &here, soon())).code ==
          RT_INVALID_ARGUMENT);
    rt_graph_exec_destroy(exec);
    rt_graph_destroy(graph);
}

TEST_CASE("launches of one graph on two streams do not overlap") {
    Fixture f;
    needs_kernels(f.device);
    rt_stream other = nullptr;
    MUST(rt_stream_create(f.device, nullptr, &other));
    void* x = f.upload(std::vector<float>(kCount, 1.0f));
    void* y = f.allocate(kBytes);
    f.sync();
    rt_graph graph = nullptr;
    MUST(rt_graph_create(f.device, &graph));
    rt_node first, second;
    MUST(add_double(graph, f.kernel("binary"), x, y, {}, &first));
    MUST(rt_graph_add_copy(graph, x, y, kBytes, &first, 1, &second));
    rt_graph_exec exec = nullptr;
    MUST(rt_graph_instantiate(graph, &exec));
    for (int i = 0; i < 10; ++i) MUST(rt_graph_launch(exec, i % 2 ? other : f.stream));
    OK(rt_stream_sync(other, soon()));
    CHECK(f.download<float>(x, kCount) == std::vector<float>(kCount, 1024.0f));
    rt_graph_exec_destroy(exec);
    rt_graph_destroy(graph);
    rt_stream_destroy(other);
}

TEST_CASE("a graph of a thousand nodes replays as one operation") {
    Fixture f;
    needs_kernels(f.device);
    void* x = f.upload(std::vector<float>(kCount, 0.0f));
    void* ones = f.upload(std::vector<float>(kCount, 1.0f));
    rt_graph graph = nullptr;
    MUST(rt_graph_create(f.device, &graph));
    const enpu_op_binary_params params{ENPU_OP_BINARY_ADD, ENPU_OP_UNARY_IDENTITY, 0, 0};
    const rt_operand operands[] = {operand(x, ENPU_OP_F32, {kCount}),
                                   operand(ones, ENPU_OP_F32, {kCount}),
                                   operand(x, ENPU_OP_F32, {kCount})};
    rt_node node = 0;
    for (int i = 0; i < 1000; ++i)
        MUST(rt_graph_add_kernel(graph, f.kernel("binary"), &params, sizeof(params), operands, 3,
                                 &node, i == 0 ? 0 : 1, &node));
    rt_graph_exec exec = nullptr;
    MUST(rt_graph_instantiate(graph, &exec));
    const uint64_t before = f.counters().launches;
    MUST(rt_graph_launch(exec, f.stream));
    MUST(rt_graph_launch(exec, f.stream));
    CHECK(f.download<float>(x, kCount) == std::vector<float>(kCount, 2000.0f));
    CHECK(f.counters().launches == before + 2);
    rt_graph_exec_destroy(exec);
    rt_graph_destroy(graph);
}

TEST_CASE("what is wrong with a graph is told with the node") {
    Fixture f;
    void* x = f.allocate(kBytes);
    rt_graph graph = nullptr;
    MUST(rt_graph_create(f.device, &graph));
    rt_graph_exec exec = nullptr;
    CHECK(contains(failure(rt_graph_instantiate(graph, &exec)).message, "empty"));
    const rt_node missing = 4;
    CHECK(contains(failure(rt_graph_add_fill(graph, x, 0, 1, 8, &missing, 1, nullptr)).message,
                   "names node 4"));
    MUST(rt_graph_add_fill(graph, x, 0, 1, 8, nullptr, 0, nullptr));
    MUST(rt_graph_add_fill(graph, x, 0, 4, 6, nullptr, 0, nullptr));  // not a multiple
    const Failure wrong = failure(rt_graph_instantiate(graph, &exec));
    CHECK(wrong.code == RT_INVALID_ARGUMENT);
    CHECK(contains(wrong.message, "node 1 (fill)"));
    CHECK(exec == nullptr);
    rt_graph_destroy(graph);
}
