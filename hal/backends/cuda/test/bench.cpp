// SPDX-License-Identifier: MIT
// What the cuda backend costs and reaches on a GPU, through the tables of the HAL. Prints a table
// and, when ENPU_BENCH_OUT names a file, writes the same as JSON.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "../../../cts/fixture.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;

namespace {

struct Row {
    std::string name;
    double value;
    const char* unit;
};

double seconds_of(const std::function<void()>& work) {
    double best = 1e9;
    for (int round = 0; round < 3; ++round) {
        const uint64_t start = now_ns();
        work();
        best = std::min(best, double(now_ns() - start) * 1e-9);
    }
    return best;
}

// `count` submissions of the same commands, and the wait for the last.
void many(Fixture& f, const std::vector<enpu_hal_command>& commands, int count) {
    auto& status = f.status;
    for (int i = 0; i < count; ++i) HAL_SUPPORTED(f.submit(commands));
    HAL_OK(f.wait(f.fence, f.value));
}

void copies(Fixture& f, std::vector<Row>& rows) {
    constexpr uint64_t kBytes = 256u << 20;
    auto* host = f.make_buffer(kBytes);
    auto* a = f.make_buffer(kBytes, ENPU_HAL_MEMORY_LOCAL);
    auto* b = f.make_buffer(kBytes, ENPU_HAL_MEMORY_LOCAL);
    const auto rate = [&](const char* name, enpu_hal_buffer* dst, enpu_hal_buffer* src) {
        const double s = seconds_of([&] { many(f, {f.copy(dst, 0, src, 0, kBytes)}, 4); });
        rows.push_back({name, 4.0 * kBytes / s * 1e-9, "GB/s"});
    };
    rate("copy host to device", a, host);
    rate("copy device to host", host, a);
    rate("copy device to device", b, a);
    const double s = seconds_of([&] { many(f, {f.fill(a, 0, 8, 1, 8)}, 1000); });
    rows.push_back({"submit and run a small fill", s * 1e6 / 1000, "us"});
}

void products(Fixture& f, std::vector<Row>& rows) {
    constexpr int64_t kN = 2048;
    auto* a = f.make_buffer(kN * kN * 4, ENPU_HAL_MEMORY_LOCAL);
    auto* y = f.make_buffer(kN * kN * 4, ENPU_HAL_MEMORY_LOCAL);
    f.run({f.fill(a, 0, kN * kN * 4, 0, 4)});
    for (uint32_t dtype : {ENPU_OP_F32, ENPU_OP_F16}) {
        const auto ta = tensor(a, dtype, {kN, kN}), ty = tensor(y, dtype, {kN, kN});
        const Kernel matmul(ENPU_OP_MATMUL_FWD, enpu_op_matmul_params{}, {ta, ta, {}, {}, {}, ty});
        many(f, {matmul.command()}, 1);
        const double s = seconds_of([&] { many(f, {matmul.command()}, 10); });
        rows.push_back({dtype == ENPU_OP_F32 ? "matmul f32 2048" : "matmul f16 2048",
                        10 * 2.0 * kN * kN * kN / s * 1e-12, "TFLOP/s"});
    }
    const auto ta = tensor(a, ENPU_OP_F32, {kN, kN}), ty = tensor(y, ENPU_OP_F32, {kN, kN});
    const Kernel relu(ENPU_OP_UNARY, enpu_op_unary_params{ENPU_OP_UNARY_RELU, 0, 0}, {ta, ty});
    const double s = seconds_of([&] { many(f, {relu.command()}, 50); });
    rows.push_back({"relu f32", 50 * 2.0 * kN * kN * 4 / s * 1e-9, "GB/s"});
}

void graphs(Fixture& f, std::vector<Row>& rows) {
    constexpr int kNodes = 1000;
    auto& status = f.status;
    auto* a = f.make_buffer(4096, ENPU_HAL_MEMORY_LOCAL);
    const auto ta = tensor(a, ENPU_OP_F32, {1024});
    const Kernel relu(ENPU_OP_UNARY, enpu_op_unary_params{ENPU_OP_UNARY_RELU, 0, 0}, {ta, ta});
    const std::vector<enpu_hal_command> commands(kNodes, relu.command());
    enpu_hal_graph* graph = nullptr;
    HAL_SUPPORTED(f.hal->graph->create(f.device, commands.data(), kNodes, &graph, &status));
    const double replay = seconds_of([&] {
        auto submission = with_header<enpu_hal_submission>(ENPU_HAL_TYPE_SUBMISSION);
        const enpu_hal_point signal{f.fence, ++f.value};
        submission.signals = &signal;
        submission.signal_count = 1;
        HAL_OK(f.hal->graph->launch(f.queue, graph, &submission, soon(), &status));
        HAL_OK(f.wait(f.fence, f.value));
    });
    const double eager = seconds_of([&] { many(f, {relu.command()}, kNodes); });
    f.hal->graph->destroy(graph);
    rows.push_back({"graph replay, a node", replay * 1e6 / kNodes, "us"});
    rows.push_back({"one submission a node", eager * 1e6 / kNodes, "us"});
}

void write_json(const Fixture& f, const std::vector<Row>& rows, const char* path) {
    std::FILE* file = std::fopen(path, "w");
    REQUIRE(file);
    std::fprintf(file, "{\"device\": \"%s\", \"driver\": \"%s\", \"rows\": [", f.info.name,
                 f.info.driver);
    for (size_t i = 0; i < rows.size(); ++i)
        std::fprintf(file, "%s\n {\"name\": \"%s\", \"value\": %.4g, \"unit\": \"%s\"}",
                     i ? "," : "", rows[i].name.c_str(), rows[i].value, rows[i].unit);
    std::fprintf(file, "]}\n");
    std::fclose(file);
}

}  // namespace

TEST_CASE("benchmark of the cuda backend") {
    Fixture f;
    std::vector<Row> rows;
    copies(f, rows);
    if (f.info.caps & ENPU_HAL_CAP_TIMESTAMP) {  // and so kernels
        products(f, rows);
        graphs(f, rows);
    }
    std::printf("%s, %s\n", f.info.name, f.info.driver);
    for (const Row& row : rows)
        std::printf("  %-32s %10.2f %s\n", row.name.c_str(), row.value, row.unit);
    if (const char* path = std::getenv("ENPU_BENCH_OUT")) write_json(f, rows, path);
}
