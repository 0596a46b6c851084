// SPDX-License-Identifier: MIT
// Graphs: encoded once, launched many times.
#include <algorithm>

#include "fixture.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;

namespace {

// Launches on the fixture's queue and waits.
void launch(Fixture& f, enpu_hal_graph* graph) {
    auto& status = f.status;
    auto submission = with_header<enpu_hal_submission>(ENPU_HAL_TYPE_SUBMISSION);
    const enpu_hal_point signal{f.fence, ++f.value};
    submission.op_id = f.value;
    submission.signals = &signal;
    submission.signal_count = 1;
    HAL_OK(f.hal->graph->launch(f.queue, graph, &submission, soon(), &status));
    HAL_OK(f.wait(f.fence, f.value));
}

}  // namespace

TEST_CASE("graph: replays all kinds of commands in order", "[graph]") {
    Fixture f;
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
    enpu_hal_graph* graph = nullptr;
    HAL_SUPPORTED(f.hal->graph->create(f.device, commands, 5, &graph, &status));
    for (int32_t round = 1; round <= 3; ++round) {
        std::fill_n(f.host<int32_t>(in), 16, round);
        launch(f, graph);
        const int32_t* seen = f.host<int32_t>(out);
        CHECK(std::count(seen, seen + 8, 0) == 8);
        CHECK(std::count(seen + 8, seen + 24, 4 * round) == 16);
    }
    f.hal->graph->destroy(graph);
}

TEST_CASE("graph: an update changes addresses, and only what is allowed", "[graph]") {
    Fixture f;
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
    const enpu_hal_command commands[] = {first->command()};
    enpu_hal_graph* graph = nullptr;
    HAL_SUPPORTED(f.hal->graph->create(f.device, commands, 1, &graph, &status));
    launch(f, graph);
    CHECK(f.host<int32_t>(out)[15] == -5);
    const enpu_hal_command changed = second->command();
    HAL_OK(f.hal->graph->update(graph, 0, &changed, &status));
    launch(f, graph);
    CHECK(f.host<int32_t>(out)[15] == -6);
    const enpu_hal_command other = f.fill(out, 0, 64, 0, 1);
    CHECK(f.hal->graph->update(graph, 0, &other, &status) != ENPU_HAL_OK);
    HAL_FAILS(f.hal->graph->update(graph, 7, &changed, &status), ENPU_HAL_INVALID_ARGUMENT);
    launch(f, graph);  // as before
    CHECK(f.host<int32_t>(out)[15] == -6);
    f.hal->graph->destroy(graph);
}

TEST_CASE("graph: what is wrong is told with the command's place", "[graph][errors]") {
    Fixture f;
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
    const std::vector<enpu_hal_command> commands(5000, add.command());
    enpu_hal_graph* graph = nullptr;
    HAL_SUPPORTED(f.hal->graph->create(f.device, commands.data(), 5000, &graph, &status));
    launch(f, graph);
    CHECK(f.download<int32_t>(x, 16) == std::vector<int32_t>(16, 5000));
    f.hal->graph->destroy(graph);
}
