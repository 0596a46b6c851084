// SPDX-License-Identifier: MIT
// Graphs: encoded once, launched many times.
#include <algorithm>

#include "fixture.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;

TEST_CASE("graph: replays all kinds of commands in order", "[graph]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    NEEDS(f, ENPU_HAL_CAP_GRAPH);
    auto& status = f.status;
    auto* in = f.make_buffer(64);
    auto* work = f.make_buffer(64, ENPU_HAL_MEMORY_LOCAL);
    auto* out = f.make_buffer(128);
    const auto tw = tensor(work, ENPU_OP_I32, {16});
    const Kernel twice(ENPU_OP_BINARY,
                       enpu_op_binary_params{ENPU_OP_BINARY_ADD, ENPU_OP_UNARY_IDENTITY, 0, 0},
                       {tw, tw, tw});
    const enpu_hal_command commands[] = {f.fill(out, 0, 128, 0, 1), f.copy(work, 0, in, 0, 64),
                                         twice.command(), twice.command(),
                                         f.copy(out, 32, work, 0, 64)};
    NEEDS_KERNEL(f, twice);
    enpu_hal_graph* graph = nullptr;
    HAL_SUPPORTED(f.hal->graph->create(f.device, commands, 5, &graph, &status));
    for (int32_t round = 1; round <= 3; ++round) {
        std::fill_n(f.host<int32_t>(in), 16, round);
        f.launch(graph);
        const int32_t* seen = f.host<int32_t>(out);
        CHECK(std::count(seen, seen + 8, 0) == 8);
        CHECK(std::count(seen + 8, seen + 24, 4 * round) == 16);
    }
    f.hal->graph->destroy(graph);
}

TEST_CASE("graph: an update changes addresses, and only what is allowed", "[graph]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    NEEDS(f, ENPU_HAL_CAP_GRAPH);
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    auto* b = f.make_buffer(64);
    auto* out = f.make_buffer(64);
    std::fill_n(f.host<int32_t>(a), 16, 5);
    std::fill_n(f.host<int32_t>(b), 16, 6);
    const auto negate = [&](enpu_hal_buffer* from, int64_t count) {
        return std::make_unique<Kernel>(
            ENPU_OP_UNARY, enpu_op_unary_params{ENPU_OP_UNARY_NEG, 0, 0},
            std::vector<enpu_hal_operand>{tensor(from, ENPU_OP_I32, {count}),
                                          tensor(out, ENPU_OP_I32, {count})});
    };
    const auto first = negate(a, 16), second = negate(b, 16), shorter = negate(b, 8);
    NEEDS_KERNEL(f, *first);
    const enpu_hal_command commands[] = {first->command()};
    enpu_hal_graph* graph = nullptr;
    HAL_SUPPORTED(f.hal->graph->create(f.device, commands, 1, &graph, &status));
    f.launch(graph);
    CHECK(f.host<int32_t>(out)[15] == -5);
    const enpu_hal_command changed = second->command();
    HAL_OK(f.hal->graph->update(graph, 0, &changed, &status));
    f.launch(graph);
    CHECK(f.host<int32_t>(out)[15] == -6);
    const enpu_hal_command other = f.fill(out, 0, 64, 0, 1);
    CHECK(f.hal->graph->update(graph, 0, &other, &status) != ENPU_HAL_OK);
    HAL_FAILS(f.hal->graph->update(graph, 7, &changed, &status), ENPU_HAL_INVALID_ARGUMENT);
    f.launch(graph);  // as before
    CHECK(f.host<int32_t>(out)[15] == -6);
    f.hal->graph->destroy(graph);
}

TEST_CASE("graph: what is wrong is told with the command's place", "[graph][errors]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    NEEDS(f, ENPU_HAL_CAP_GRAPH);
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    enpu_hal_graph* graph = nullptr;
    const enpu_hal_command commands[] = {f.fill(a, 0, 64, 0, 1), f.fill(a, 0, 64, 0, 3)};
    HAL_FAILS(f.hal->graph->create(f.device, commands, 2, &graph, &status),
              ENPU_HAL_INVALID_ARGUMENT);
    CHECK(status.op_id == 2);
    HAL_FAILS(f.hal->graph->create(f.device, commands, 0, &graph, &status),
              ENPU_HAL_INVALID_ARGUMENT);
    CHECK(graph == nullptr);
}

TEST_CASE("graph: one larger than a submission may be", "[graph]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_GRAPH);
    auto& status = f.status;
    auto* x = f.upload(std::vector<int32_t>(16, 0));
    auto* one = f.upload(std::vector<int32_t>(16, 1));
    const auto tx = tensor(x, ENPU_OP_I32, {16});
    const Kernel add(ENPU_OP_BINARY,
                     enpu_op_binary_params{ENPU_OP_BINARY_ADD, ENPU_OP_UNARY_IDENTITY, 0, 0},
                     {tx, tensor(one, ENPU_OP_I32, {16}), tx});
    NEEDS_KERNEL(f, add);
    const std::vector<enpu_hal_command> commands(5000, add.command());
    enpu_hal_graph* graph = nullptr;
    HAL_SUPPORTED(f.hal->graph->create(f.device, commands.data(), 5000, &graph, &status));
    f.launch(graph);
    CHECK(f.download<int32_t>(x, 16) == std::vector<int32_t>(16, 5000));
    f.hal->graph->destroy(graph);
}

TEST_CASE("graph: copies and fills alone", "[graph]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_GRAPH);
    NEEDS(f, ENPU_HAL_CAP_FILL);
    auto* a = f.make_buffer(256);
    auto* b = f.make_buffer(256);
    auto* graph = f.make_graph({f.fill(a, 0, 256, 7, 1), f.copy(b, 64, a, 0, 128)});
    for (int i = 0; i < 3; ++i) {
        std::memset(f.host<char>(b), 0, 256);
        f.launch(graph);
        CHECK(std::count(f.host<char>(b), f.host<char>(b) + 256, 7) == 128);
    }
}

TEST_CASE("graph: waits before and signals after, like a submission", "[graph][fence]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_GRAPH);
    auto& status = f.status;
    auto* a = f.make_buffer(1u << 20);
    auto* b = f.make_buffer(1u << 20);
    auto* graph = f.make_graph({f.copy(b, 0, a, 0, 1u << 20)});
    enpu_hal_queue* other = f.make_queue();
    enpu_hal_fence* done = f.make_fence(0);
    std::memset(f.host<char>(a), 3, 1u << 20);
    std::memset(f.host<char>(b), 0, 1u << 20);
    HAL_OK(f.submit({f.copy(a, 0, b, 0, 1u << 19)}));
    HAL_OK(f.launch_to(other, graph, {{done, 4}}, {{f.fence, f.value}}));
    HAL_OK(f.wait(done, 4));
    const char* bytes = f.host<char>(b);
    CHECK(bytes[0] == 0);
    CHECK(bytes[(1u << 20) - 1] == 3);
}

TEST_CASE("graph: launches and submissions of one queue keep their order", "[graph][queue]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_GRAPH);
    NEEDS(f, ENPU_HAL_CAP_FILL);
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    auto* log = f.make_buffer(64 * 20);
    auto* graph = f.make_graph({f.fill(a, 0, 64, 0xaa, 1)});
    for (uint64_t i = 0; i < 20; i += 2) {
        HAL_OK(f.submit({f.fill(a, 0, 64, i, 1), f.copy(log, 64 * i, a, 0, 64)}));
        ++f.value;
        HAL_OK(f.launch_to(f.queue, graph, {{f.fence, f.value}}));
        HAL_OK(f.submit({f.copy(log, 64 * (i + 1), a, 0, 64)}));
    }
    HAL_OK(f.wait(f.fence, f.value));
    const auto* bytes = f.host<uint8_t>(log);
    for (uint64_t i = 0; i < 20; ++i) REQUIRE(bytes[64 * i + 63] == (i % 2 ? 0xaa : i));
}

TEST_CASE("graph: one graph launched many times in a row", "[graph]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_GRAPH);
    NEEDS(f, ENPU_HAL_CAP_FILL);
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    auto* graph = f.make_graph({f.fill(a, 0, 64, 1, 4)});
    for (int i = 0; i < 200; ++i) {
        ++f.value;
        HAL_OK(f.launch_to(f.queue, graph, {{f.fence, f.value}}));
    }
    HAL_OK(f.wait(f.fence, f.value));
    CHECK(f.host<uint32_t>(a)[15] == 1);
}

TEST_CASE("graph: two graphs on two queues do not disturb each other", "[graph][threads]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_GRAPH);
    NEEDS(f, ENPU_HAL_CAP_FILL);
    auto& status = f.status;
    enpu_hal_queue* queues[] = {f.make_queue(), f.make_queue()};
    enpu_hal_fence* fences[] = {f.make_fence(0), f.make_fence(0)};
    enpu_hal_buffer* out[] = {f.make_buffer(4096), f.make_buffer(4096)};
    for (uint64_t i = 0; i < 2; ++i) {
        auto* graph = f.make_graph({f.fill(out[i], 0, 4096, i + 1, 1)});
        for (uint64_t k = 1; k <= 30; ++k) HAL_OK(f.launch_to(queues[i], graph, {{fences[i], k}}));
    }
    for (uint64_t i = 0; i < 2; ++i) {
        HAL_OK(f.wait(fences[i], 30));
        CHECK(f.host<uint8_t>(out[i])[4095] == i + 1);
    }
}

TEST_CASE("graph: a launch with commands of its own is refused", "[graph][errors]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_GRAPH);
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    auto* b = f.make_buffer(64);
    auto* graph = f.make_graph({f.copy(a, 0, b, 0, 64)});
    const enpu_hal_command extra = f.copy(b, 0, a, 0, 64);
    auto submission = with_header<enpu_hal_submission>(ENPU_HAL_TYPE_SUBMISSION);
    submission.commands = &extra;
    submission.command_count = 1;
    HAL_FAILS(f.hal->graph->launch(f.queue, graph, &submission, soon(), &status),
              ENPU_HAL_INVALID_ARGUMENT);
    submission.command_count = 0;
    submission.header.size = 4;
    HAL_FAILS(f.hal->graph->launch(f.queue, graph, &submission, soon(), &status),
              ENPU_HAL_INVALID_ARGUMENT);
    HAL_FAILS(f.hal->graph->launch(f.queue, graph, nullptr, soon(), &status),
              ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("graph: host calls are refused with their place", "[graph][errors]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_GRAPH);
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    auto* b = f.make_buffer(64);
    enpu_hal_command call{};
    call.kind = ENPU_HAL_COMMAND_HOST_CALL;
    call.u.host_call = {[](void*) {}, nullptr};
    const enpu_hal_command commands[] = {f.copy(a, 0, b, 0, 64), call};
    enpu_hal_graph* graph = nullptr;
    HAL_FAILS(f.hal->graph->create(f.device, commands, 2, &graph, &status),
              ENPU_HAL_INVALID_ARGUMENT);
    CHECK(status.op_id == 2);
}

TEST_CASE("graph: an update to a copy elsewhere", "[graph]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_GRAPH);
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    auto* b = f.make_buffer(64);
    auto* c = f.make_buffer(64);
    std::memset(f.host<char>(a), 1, 64);
    std::memset(f.host<char>(b), 2, 64);
    auto* graph = f.make_graph({f.copy(c, 0, a, 0, 64)});
    f.launch(graph);
    CHECK(f.host<char>(c)[63] == 1);
    const enpu_hal_command from_b = f.copy(c, 0, b, 0, 64);
    HAL_OK(f.hal->graph->update(graph, 0, &from_b, &status));
    f.launch(graph);
    CHECK(f.host<char>(c)[63] == 2);
    const enpu_hal_command past = f.copy(c, 64, b, 0, 64);
    CHECK(f.hal->graph->update(graph, 0, &past, &status) != ENPU_HAL_OK);
    std::memset(f.host<char>(c), 0, 64);
    f.launch(graph);
    CHECK(f.host<char>(c)[63] == 2);
}

TEST_CASE("graph: two-dimensional copies in a graph", "[graph][copy]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_GRAPH);
    NEEDS(f, ENPU_HAL_CAP_COPY_2D);
    auto* a = f.make_buffer(1024);
    auto* b = f.make_buffer(1024);
    for (int i = 0; i < 1024; ++i) f.host<uint8_t>(a)[i] = uint8_t(i);
    enpu_hal_command rows{};
    rows.kind = ENPU_HAL_COMMAND_COPY;
    rows.u.copy = {{b, 0}, {a, 0}, 64, 4, 64, 256};
    auto* graph = f.make_graph({rows});
    f.launch(graph);
    for (size_t i = 0; i < 4; ++i) CHECK(f.host<uint8_t>(b)[i * 64 + 5] == 5);
}
