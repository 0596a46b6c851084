// SPDX-License-Identifier: MIT
#include "claim.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include <catch2/catch_test_macros.hpp>

#include "test_graph.h"

using namespace enpu::lowering;
using namespace enpu::lowering::test;

TEST_CASE("a path out of a subgraph does not come back into it") {
    Builder b;
    const int x = b.input({4});
    const int a = b.add("Relu", {x});
    const int foreign = b.add("FancyOp", {a});
    const Graph g = b.finish({b.add("Add", {a, foreign})});
    const Claim c = claim(g, nullptr);
    CHECK(c.reasons[1].find("no such operator") != std::string::npos);
    CHECK(c.groups[0] >= 0);
    CHECK(c.groups[1] == -1);
    CHECK(c.groups[2] >= 0);
    CHECK(c.groups[0] != c.groups[2]);
}

TEST_CASE("nodes beside a foreign one stay in one subgraph") {
    Builder b;
    const int x = b.input({4}), y = b.input({4});
    const int foreign = b.add("FancyOp", {x});
    const int one = b.add("Relu", {y}), two = b.add("Exp", {one});
    const Claim c = claim(b.finish({foreign, two}), nullptr);
    CHECK(c.group_count == 1);
    CHECK(c.groups[1] == c.groups[2]);
}

TEST_CASE("a shape that the device computes is refused, one from Shape is not") {
    Builder b;
    const int x = b.input({-1, 4});
    const int shape = b.add("Shape", {x}, {}, ENPU_OP_I64);
    const int good = b.add("Reshape", {x, shape});
    const int computed =
        b.add("Cast", {b.add("Relu", {x})}, {{"dtype", int64_t{ENPU_OP_I64}}}, ENPU_OP_I64);
    const int bad = b.add("Reshape", {x, computed});
    const Claim c = claim(b.finish({good, bad}), nullptr);
    CHECK(c.reasons[1].empty());
    CHECK(c.reasons[4].find("must be known while compiling") != std::string::npos);
}

TEST_CASE("types, ranks and the device's own word") {
    Builder b;
    const int doubles = b.graph.add_value({"d", ENPU_OP_NONE, Dims{2}, nullptr});
    b.graph.inputs.push_back(doubles);
    const int r = b.add("Relu", {doubles}, {}, ENPU_OP_NONE);
    const int image = b.input({1, 2, 3, 4, 5});
    const int conv = b.add("Conv", {image, b.constant({1, 2, 1, 1, 1}, {1, 2})});
    const int x = b.input({2, 2});
    const int s = b.add("Softmax", {x}, {{"axis", int64_t{-1}}});
    const Claim c = claim(b.finish({r, conv, s}), [](const Kernel& kernel) {
        return kernel.op == ENPU_OP_SOFTMAX_FWD ? std::string("not today") : std::string();
    });
    CHECK(c.reasons[0].find("element type") != std::string::npos);
    CHECK(c.reasons[1].find("spatial dims") != std::string::npos);
    CHECK(c.reasons[2] == "not today");
    CHECK(c.group_count == 0);
}

// What a model file says is not arithmetic yet: sanitizers see what overflows on the way to a reason.
TEST_CASE("numbers at the ends of 64 bits are refused") {
    constexpr int64_t kMost = INT64_MAX, kLeast = INT64_MIN;
    using Numbers = std::vector<int64_t>;
    for (const int64_t n : {kMost, kMost / 2, kMost / 4 + 1, kLeast, kLeast + 1, kLeast / 2}) {
        CAPTURE(n);
        Builder b;
        const int image = b.input({1, 4, 5, 6});
        const int weights = b.constant({4, 4, 3, 3}, noise(144, 1));
        std::vector<int> outputs;
        const auto attribute = [&](const char* op, const char* name, const Attribute& value) {
            std::vector<int> inputs{image};
            if (std::string_view(op).substr(0, 4) == "Conv") inputs.push_back(weights);
            std::map<std::string, Attribute> all{{name, value}};
            if (std::string_view(op).substr(0, 3) == "Max")
                all.emplace("kernel_shape", Numbers{2, 2});
            outputs.push_back(b.add(op, inputs, all));
        };
        for (const char* op : {"Conv", "ConvTranspose", "MaxPool"}) {
            attribute(op, "strides", Numbers{n, 1});
            attribute(op, "dilations", Numbers{n, n});
            attribute(op, "pads", Numbers{n, 1, n, 1});
        }
        attribute("Conv", "group", n);
        attribute("ConvTranspose", "group", n);
        attribute("ConvTranspose", "output_padding", Numbers{n, n});
        attribute("ConvTranspose", "output_shape", Numbers{n, n});
        attribute("DepthToSpace", "blocksize", n);
        attribute("SpaceToDepth", "blocksize", n);
        attribute("Softmax", "axis", n);
        attribute("Transpose", "perm", Numbers{0, 1, n, 2});
        const auto operand = [&](const char* op, const Numbers& numbers) {
            outputs.push_back(b.add(op, {image, b.integers(numbers)}));
        };
        operand("Tile", {n, 1, 1, 1});
        operand("Tile", {1, 1, n, n});
        operand("Expand", {1, n, 1, 1});
        operand("Expand", {n, n, 4, 5, 6});
        operand("Reshape", {n, n, -1});
        operand("Reshape", {n, 0, 0, 0});
        operand("Pad", {n, 0, 0, 0, n, 0, 0, 0});
        operand("Unsqueeze", {n});
        operand("Squeeze", {n});
        const Claim c = claim(b.finish(outputs), nullptr);
        for (size_t i = 0; i < c.reasons.size(); ++i) {
            INFO(b.graph.nodes[i].op << ", node " << i);
            CHECK_FALSE(c.reasons[i].empty());
        }
    }
}

TEST_CASE("scales and sizes of a resize that are no sizes are refused") {
    const auto refused = [](const std::vector<float>& scales, const std::vector<int64_t>& sizes,
                            int64_t antialias) {
        Builder b;
        const int x = b.input({1, 2, 5, 6});
        const int by = scales.empty() ? -1 : b.constant({4}, scales);
        const int to = sizes.empty() ? -1 : b.integers(sizes);
        const Claim c =
            claim(b.finish({b.add("Resize", {x, -1, by, to},
                                  {{"mode", std::string("linear")}, {"antialias", antialias}})}),
                  nullptr);
        return !c.reasons[0].empty();
    };
    constexpr float kInf = std::numeric_limits<float>::infinity();
    for (const int64_t antialias : {0, 1}) {
        CHECK_FALSE(refused({1, 1, 2, 0.5f}, {}, antialias));
        for (const float s : {0.0f, -1.0f, kInf, -kInf, std::nanf(""), 1e30f, 1e-30f})
            CHECK(refused({1, 1, s, 1}, {}, antialias));
        for (const int64_t n : {int64_t{0}, int64_t{-1}, INT64_MAX, INT64_MIN})
            CHECK(refused({}, {1, 2, n, 6}, antialias));
    }
}

TEST_CASE("a slice may begin and end at the ends of 64 bits") {
    for (const int64_t n : {INT64_MAX, INT64_MIN})
        for (const int64_t step : {int64_t{1}, int64_t{-1}, n}) {
            Builder b;
            const int x = b.input({4, 5});
            const Claim c =
                claim(b.finish({b.add("Slice", {x, b.integers({n}), b.integers({-n - 1}),
                                                b.integers({1}), b.integers({step})})}),
                      nullptr);
            CHECK(c.reasons.size() == 1);
        }
}

TEST_CASE("inputs that shapes depend on are known by value") {
    Builder b;
    const int x = b.input({6}), extent = b.input({1}, ENPU_OP_I64);
    const int wanted =
        b.add("Concat", {b.integers({2}), extent}, {{"axis", int64_t{0}}}, ENPU_OP_I64);
    const Graph g = b.finish({b.add("Reshape", {x, wanted})});
    CHECK(host_inputs(g) == std::vector<bool>{false, true});
}
