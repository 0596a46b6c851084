// SPDX-License-Identifier: MIT
// Nothing is allocated per operation once a stream is warm: malloc of the program counts.
#include <cstdlib>

#include "test_support.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)

namespace {
thread_local bool counting = false;
thread_local uint64_t counted = 0;
}  // namespace

extern "C" void* __libc_malloc(size_t bytes) noexcept;
extern "C" void* malloc(size_t bytes) noexcept {
    if (counting) ++counted;
    return __libc_malloc(bytes);
}

using namespace enpu::rt::test;

TEST_CASE("alloc: operations of a warm stream allocate nothing") {
    Fixture f;
    needs_kernels(f.device);
    rt_stream other = nullptr;
    rt_event event = nullptr;
    rt_graph graph = nullptr;
    rt_graph_exec exec = nullptr;
    MUST(rt_stream_create(f.device, nullptr, &other));
    MUST(rt_event_create(f.device, 0, &event));
    void *x = f.allocate(4096), *y = f.allocate(4096);
    MUST(rt_graph_create(f.device, &graph));
    rt_node node;
    MUST(rt_graph_add_fill(graph, x, 1, 4, 4096, nullptr, 0, &node));
    MUST(rt_graph_add_copy(graph, y, x, 4096, &node, 1, &node));
    MUST(rt_graph_instantiate(graph, &exec));
    const enpu_op_binary_params params{ENPU_OP_BINARY_ADD, ENPU_OP_UNARY_IDENTITY, 0, 0};
    const rt_operand operands[] = {operand(x, ENPU_OP_F32, {16}), operand(x, ENPU_OP_F32, {16}),
                                   operand(y, ENPU_OP_F32, {16})};
    rt_kernel binary = f.kernel("binary");
    int calls = 0;
    int failed = 0;
    const auto step = [&] {
        void* block = nullptr;
        failed += rt_kernel_launch(f.stream, binary, nullptr, &params, sizeof(params), operands,
                                   3) != RT_OK;
        failed += rt_fill(f.stream, x, 0, 4, 4096) != RT_OK;
        failed += rt_memcpy_d2d(f.stream, y, x, 4096) != RT_OK;
        failed += rt_event_record(event, f.stream) != RT_OK;
        failed += rt_stream_wait_event(other, event) != RT_OK;
        failed += rt_fill(other, y, 0, 4, 64) != RT_OK;
        failed += rt_graph_launch(exec, f.stream) != RT_OK;
        failed += rt_malloc(f.stream, 1000, &block) != RT_OK;
        failed += rt_free(f.stream, block) != RT_OK;
        failed += rt_stream_sync(other, soon()) != RT_OK;
        failed += rt_stream_sync(f.stream, soon()) != RT_OK;
    };
    const auto host_step = [&] {
        failed += rt_launch_host_func(
                      f.stream, [](void* count) { ++*static_cast<int*>(count); }, &calls) != RT_OK;
        failed += rt_fill(f.stream, x, 0, 4, 4096) != RT_OK;
        failed += rt_stream_sync(f.stream, soon()) != RT_OK;
    };
    for (int i = 0; i < 200; ++i) step();
    for (int i = 0; i < 50; ++i) host_step();
    const bool in_process = std::string(device_spec()).starts_with("sim");
    counted = 0;
    counting = true;
    for (int i = 0; i < 100; ++i) step();
    for (int i = 0; i < 20; ++i) host_step();
    counting = false;
    CHECK(failed == 0);
    CHECK(calls == 70);
    // The simulator's hardware is part of this process, and allocates.
    if (!in_process) CHECK(counted == 0);
    rt_graph_exec_destroy(exec);
    rt_graph_destroy(graph);
    rt_event_destroy(event);
    rt_stream_destroy(other);
}

#endif
