// SPDX-License-Identifier: MIT
// Graphs on a device, against values computed here in double precision.
#include "session.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdlib>

#include "test_graph.h"

using namespace enpu::lowering;
using namespace enpu::lowering::test;

namespace {

std::shared_ptr<DeviceSession> open_session() {
    const char* spec = std::getenv("ENPU_DEVICE");
    return std::make_shared<DeviceSession>(spec ? spec : "sim");
}

struct Result {
    Dims dims;
    std::vector<float> data;
};

Result run_one(Executable& executable, const std::vector<RunInput>& inputs) {
    Result result;
    executable.run(inputs, [&](size_t, const Dims& dims) -> void* {
        result.dims = dims;
        result.data.resize(static_cast<size_t>(element_count(dims)));
        return result.data.data();
    });
    return result;
}

void check_close(const std::vector<float>& got, const std::vector<double>& want) {
    REQUIRE(got.size() == want.size());
    for (size_t i = 0; i < got.size(); ++i) {
        if (!(std::fabs(got[i] - want[i]) <= 1e-5 + 1e-4 * std::fabs(want[i]))) {
            FAIL("element " << i << " is " << got[i] << ", must be " << want[i]);
        }
    }
}

double hard_swish(double v) {
    return v * std::fmin(std::fmax(v + 3, 0), 6) / 6;
}

// 3x3, padding 1, stride 1, NCHW.
std::vector<double> conv3x3(const std::vector<float>& x, const std::vector<float>& w, int channels,
                            int outputs, int height, int width) {
    std::vector<double> y(static_cast<size_t>(outputs * height * width));
    for (int o = 0; o < outputs; ++o)
        for (int r = 0; r < height; ++r)
            for (int c = 0; c < width; ++c) {
                double sum = 0;
                for (int i = 0; i < channels; ++i)
                    for (int u = -1; u <= 1; ++u)
                        for (int v = -1; v <= 1; ++v) {
                            if (r + u < 0 || r + u >= height || c + v < 0 || c + v >= width)
                                continue;
                            sum +=
                                double{
                                    x[static_cast<size_t>((i * height + r + u) * width + c + v)]} *
                                w[static_cast<size_t>(((o * channels + i) * 3 + u + 1) * 3 + v +
                                                      1)];
                        }
                y[static_cast<size_t>((o * height + r) * width + c)] = sum;
            }
    return y;
}

struct Block {  // conv, batch norm, hard swish, and the input added before the activation
    std::vector<float> w = noise(4 * 4 * 9, 3), scale = noise(4, 4), shift = noise(4, 5);
    Graph graph() const {
        Builder b;
        const int x = b.input({1, 4, -1, -1});
        int v = b.add("Conv", {x, b.constant({4, 4, 3, 3}, w)},
                      {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
        v = b.add("Mul", {v, b.constant({1, 4, 1, 1}, scale)});
        v = b.add("Add", {v, b.constant({1, 4, 1, 1}, shift)});
        v = b.add("Add", {v, x});
        const int clip = b.add("Clip", {b.add("Add", {v, b.scalar(3)}), b.scalar(0), b.scalar(6)});
        return b.finish({b.add("Div", {b.add("Mul", {v, clip}), b.scalar(6)})});
    }
    std::vector<double> expected(const std::vector<float>& x, int height, int width) const {
        auto y = conv3x3(x, w, 4, 4, height, width);
        const auto plane = static_cast<size_t>(height * width);
        for (size_t i = 0; i < y.size(); ++i) {
            y[i] = hard_swish(y[i] * scale[i / plane] + shift[i / plane] + x[i]);
        }
        return y;
    }
};

}  // namespace

TEST_CASE("a fused block is one kernel and right for every size") {
    const Block block;
    Executable executable(open_session(), block.graph(), 2);
    for (const auto& [height, width] :
         std::vector<std::pair<int, int>>{{5, 7}, {8, 8}, {5, 7}, {1, 9}, {5, 7}}) {
        const auto x = noise(static_cast<size_t>(4 * height * width), 11);
        const Result y = run_one(executable, {{x.data(), {1, 4, height, width}}});
        CHECK(y.dims == Dims{1, 4, height, width});
        check_close(y.data, block.expected(x, height, width));
    }
    const ExecutableStats stats = executable.stats();
    CHECK(stats.misses == 3);
    CHECK(stats.hits == 2);
    CHECK(stats.evictions == 1);
    CHECK(stats.kernels <= 3);  // layout in, convolution, layout out
}

TEST_CASE("matrix product with bias and function over a batch") {
    Builder b;
    const int x = b.input({2, 3, 5});
    const auto w = noise(5 * 4, 1), bias = noise(4, 2), in = noise(30, 3);
    const int product = b.add("MatMul", {x, b.constant({5, 4}, w)});
    Executable executable(
        open_session(), b.finish({b.add("Tanh", {b.add("Add", {product, b.constant({4}, bias)})})}),
        4);
    std::vector<double> want;
    for (size_t m = 0; m < 6; ++m)
        for (size_t n = 0; n < 4; ++n) {
            double sum = bias[n];
            for (size_t k = 0; k < 5; ++k) sum += double{in[m * 5 + k]} * w[k * 4 + n];
            want.push_back(std::tanh(sum));
        }
    const Result y = run_one(executable, {{in.data(), {2, 3, 5}}});
    CHECK(y.dims == Dims{2, 3, 4});
    check_close(y.data, want);
    CHECK(executable.stats().kernels == 1);
}

TEST_CASE("a shape that comes as an input is part of what is compiled") {
    Builder b;
    const int x = b.input({6}), shape = b.input({2}, ENPU_OP_I64);
    Executable executable(open_session(), b.finish({b.add("Exp", {b.add("Reshape", {x, shape})})}),
                          4);
    const std::vector<float> in = {0, 1, 2, 3, 4, 5};
    const std::vector<int64_t> wide = {2, 3}, tall = {3, 2};
    CHECK(run_one(executable, {{in.data(), {6}}, {wide.data(), {2}}}).dims == Dims{2, 3});
    CHECK(run_one(executable, {{in.data(), {6}}, {tall.data(), {2}}}).dims == Dims{3, 2});
    CHECK(run_one(executable, {{in.data(), {6}}, {wide.data(), {2}}}).dims == Dims{2, 3});
    CHECK(executable.stats().misses == 2);
}

TEST_CASE("a run that cannot be compiled fails with its reason, the next one works") {
    const Block block;
    Executable executable(open_session(), block.graph(), 2);
    const auto x = noise(4 * 9, 1);
    try {
        run_one(executable, {{x.data(), {1, 3, 3, 4}}});
        FAIL("three channels were taken for four");
    } catch (const Error& error) {
        CHECK(std::string(error.what()).find("3 channels") != std::string::npos);
    }
    check_close(run_one(executable, {{x.data(), {1, 4, 3, 3}}}).data, block.expected(x, 3, 3));
}

TEST_CASE("an unknown device is an error that names it") {
    try {
        DeviceSession session("toaster");
        FAIL("a device that does not exist was opened");
    } catch (const Error& error) {
        CHECK(std::string(error.what()).find("toaster") != std::string::npos);
    }
}
