// SPDX-License-Identifier: MIT
// Quantised products: what is folded, and that a folded one is exact.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <cstdlib>

#include "session.h"
#include "test_graph.h"

using namespace enpu::lowering;
using namespace enpu::lowering::test;
using Names = std::vector<std::string>;

namespace {

constexpr int kChannels = 5, kOutputs = 7, kSize = 9;
constexpr float kScaleX = 0.031f, kScaleY = 0.27f;
constexpr int kZeroX = 117;

HostTensorPtr bytes(uint32_t dtype, const Dims& dims, uint32_t seed, int low, int high) {
    HostTensor tensor = make_host_tensor(dtype, dims);
    const auto values = noise(static_cast<size_t>(tensor.size()), seed);
    for (int64_t i = 0; i < tensor.size(); ++i) {
        const double v = values[static_cast<size_t>(i)] * 0.5 + 0.5;
        store(tensor, i, std::floor(low + v * (high - low + 0.999)));
    }
    return std::make_shared<const HostTensor>(std::move(tensor));
}

struct Options {
    bool relu = false;
    int zero_y = 0;
    float bias_scale = 1;  // 1: that of the operands
};

struct Sample {
    Builder b;
    HostTensorPtr weights = bytes(ENPU_OP_I8, {kOutputs, kChannels, 3, 3}, 2, -128, 127);
    std::vector<float> scales;
    std::vector<int64_t> bias;
    Graph graph;

    explicit Sample(const Options& options) {
        std::vector<float> bias_scales;
        for (int o = 0; o < kOutputs; ++o) {
            scales.push_back(0.002f + 0.001f * static_cast<float>(o));
            bias_scales.push_back(options.bias_scale * kScaleX * scales.back());
            bias.push_back(500 * o - 900);
        }
        HostTensor integers = make_host_tensor(ENPU_OP_I32, {kOutputs});
        for (int64_t o = 0; o < kOutputs; ++o) store(integers, o, bias[static_cast<size_t>(o)]);
        const int x = b.input({1, kChannels, kSize, kSize}, ENPU_OP_U8);
        const int dx = b.add("DequantizeLinear", {x, b.scalar(kScaleX), byte(kZeroX)});
        const int dw = b.add("DequantizeLinear",
                             {b.graph.add_constant("w", weights), b.constant({kOutputs}, scales)},
                             {{"axis", int64_t{0}}});
        const int db = b.add(
            "DequantizeLinear",
            {b.graph.add_constant("b", std::make_shared<const HostTensor>(std::move(integers))),
             b.constant({kOutputs}, bias_scales)},
            {{"axis", int64_t{0}}});
        int y = b.add("Conv", {dx, dw, db}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
        if (options.relu) y = b.add("Relu", {y});
        y = b.add("QuantizeLinear", {y, b.scalar(kScaleY), byte(options.zero_y)}, {}, ENPU_OP_U8);
        graph = b.finish({y});
    }

    int byte(int value) {
        HostTensor tensor = make_host_tensor(ENPU_OP_U8, {});
        store(tensor, 0, int64_t{value});
        return b.graph.add_constant("z", std::make_shared<const HostTensor>(std::move(tensor)));
    }

    // Exact sums of integers, and one rounding.
    double exact(const HostTensor& x, int o, int row, int col) const {
        int64_t sum = bias[static_cast<size_t>(o)];
        for (int c = 0; c < kChannels; ++c)
            for (int u = 0; u < 3; ++u)
                for (int v = 0; v < 3; ++v) {
                    const int r = row + u - 1, k = col + v - 1;
                    if (r < 0 || k < 0 || r >= kSize || k >= kSize) continue;
                    const auto at = static_cast<size_t>((c * kSize + r) * kSize + k);
                    const auto w = static_cast<size_t>(((o * kChannels + c) * 3 + u) * 3 + v);
                    sum += (x.data<uint8_t>()[at] - kZeroX) * weights->data<int8_t>()[w];
                }
        return static_cast<double>(sum) * double{kScaleX} * double{scales[static_cast<size_t>(o)]} /
               double{kScaleY};
    }
};

}  // namespace

TEST_CASE("a product between dequantise and quantise becomes one of integers") {
    Graph graph = Sample({}).graph;
    CHECK(optimise(graph).quantised == 1);
    CHECK(ops(graph) == Names{"QLinearConv"});
}

TEST_CASE("a function that the lower bound of the result implies goes too, another stays") {
    Graph implied = Sample({true, 0, 1}).graph;
    CHECK(optimise(implied).quantised == 1);
    CHECK(ops(implied) == Names{"QLinearConv"});
    Graph needed = Sample({true, 10, 1}).graph;
    CHECK(optimise(needed).quantised == 0);
}

TEST_CASE("a bias of another scale is left as it is") {
    Graph graph = Sample({false, 0, 2}).graph;
    CHECK(optimise(graph).quantised == 0);
}

TEST_CASE("a quantised convolution on the device is exact") {
    const char* spec = std::getenv("ENPU_DEVICE");
    auto session = std::make_shared<DeviceSession>(spec ? spec : "sim");
    const int zero_y = GENERATE(0, 128);
    const Sample sample({false, zero_y, 1});
    Executable executable(session, sample.graph, 2);
    REQUIRE(executable.optimised().quantised == 1);
    const auto x = bytes(ENPU_OP_U8, {1, kChannels, kSize, kSize}, 5, 0, 255);
    std::vector<uint8_t> y(size_t{kOutputs} * kSize * kSize);
    executable.run({{x->bytes.data(), x->dims}}, [&](size_t, const Dims& dims) -> void* {
        REQUIRE(dims == Dims{1, kOutputs, kSize, kSize});
        return y.data();
    });
    size_t inside = 0;
    for (int o = 0; o < kOutputs; ++o)
        for (int r = 0; r < kSize; ++r)
            for (int c = 0; c < kSize; ++c) {
                const double real = sample.exact(*x, o, r, c) + zero_y;
                const auto got =
                    static_cast<double>(y[static_cast<size_t>((o * kSize + r) * kSize + c)]);
                // The factor is rounded to f32: next to a half the step may be the other one.
                const double bound = 0.5 + 1e-4;
                const double want = std::fmin(std::fmax(real, 0), 255);
                if (!(std::fabs(got - want) <= bound)) FAIL(got << " for " << real);
                inside += got > 0 && got < 255;
            }
    CHECK(inside > y.size() / 4);
}
