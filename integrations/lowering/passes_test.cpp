// SPDX-License-Identifier: MIT
#include "passes.h"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "test_graph.h"

using namespace enpu::lowering;
using namespace enpu::lowering::test;
using Catch::Approx;
using Names = std::vector<std::string>;

TEST_CASE("hard swish in each spelling becomes one function") {
    Builder b;
    const int x = b.input({1, 4, 4, 4});
    const int clip = b.add("Clip", {b.add("Add", {x, b.scalar(3)}), b.scalar(0), b.scalar(6)});
    int y = -1;
    SECTION("x * clip / 6") {
        y = b.add("Div", {b.add("Mul", {x, clip}), b.scalar(6)});
    }
    SECTION("x * clip * 1/6") {
        y = b.add("Mul", {b.scalar(1.0f / 6), b.add("Mul", {clip, x})});
    }
    SECTION("x * (clip / 6)") {
        y = b.add("Mul", {x, b.add("Div", {clip, b.scalar(6)})});
    }
    Graph g = b.finish({y});
    optimise(g);
    REQUIRE(ops(g) == Names{"Unary"});
    CHECK(g.nodes[0].activation.function == ENPU_OP_UNARY_HARD_SWISH);
    CHECK(g.nodes[0].inputs == std::vector<int>{x});
}

TEST_CASE("what only looks like hard swish stays") {
    Builder b;
    const int x = b.input({4}), other = b.input({4});
    const int clip = b.add("Clip", {b.add("Add", {x, b.scalar(3)}), b.scalar(0), b.scalar(6)});
    Graph g = b.finish({b.add("Div", {b.add("Mul", {other, clip}), b.scalar(6)})});
    optimise(g);
    for (const Node& node : g.nodes) CHECK(node.activation.function != ENPU_OP_UNARY_HARD_SWISH);
}

TEST_CASE("batch norm, scale and shift go into the weights of a convolution") {
    Builder b;
    const int x = b.input({1, 1, 2, 2});
    const int w = b.constant({2, 1, 1, 1}, {2, 3});
    const int conv = b.add("Conv", {x, w});
    const int bn = b.add("BatchNormalization",
                         {conv, b.constant({2}, {1, 2}), b.constant({2}, {0.5f, -1}),
                          b.constant({2}, {1, 2}), b.constant({2}, {4, 9})},
                         {{"epsilon", 0.0f}});
    const int scaled = b.add("Mul", {bn, b.constant({1, 2, 1, 1}, {10, 100})});
    Graph g = b.finish({b.add("Add", {scaled, b.constant({2, 1, 1}, {7, 8})})});
    const OptimiseReport report = optimise(g);
    CHECK(report.folded_into_weights == 3);
    REQUIRE(ops(g) == Names{"Conv"});
    const auto weights = as_f64(*g.constant(g.nodes[0].inputs[1]));
    const auto bias = as_f64(*g.constant(g.nodes[0].inputs[2]));
    // (w x - mean) * scale / sqrt(variance) + shift, times 10 or 100, plus 7 or 8
    CHECK(weights[0] == Approx(2 * 0.5 * 10));
    CHECK(weights[1] == Approx(3 * (2.0 / 3) * 100));
    CHECK(bias[0] == Approx((-1 * 0.5 + 0.5) * 10 + 7));
    CHECK(bias[1] == Approx((-2 * (2.0 / 3) - 1) * 100 + 8));
}

TEST_CASE("scales of a grouped transposed convolution go to the right channels") {
    Builder b;
    const int x = b.input({1, 2, 1, 1});
    const int w =
        b.constant({2, 2, 1, 1}, {1, 2, 3, 4});  // two groups of one input and two outputs
    const int y = b.add("ConvTranspose", {x, w}, {{"group", int64_t{2}}});
    Graph g = b.finish({b.add("Mul", {y, b.constant({1, 4, 1, 1}, {10, 20, 30, 40})})});
    optimise(g);
    REQUIRE(ops(g) == Names{"ConvTranspose"});
    CHECK(as_f64(*g.constant(g.nodes[0].inputs[1])) == std::vector<double>{10, 40, 90, 160});
}

TEST_CASE("a convolution with a second reader keeps its own result") {
    Builder b;
    const int x = b.input({1, 1, 2, 2});
    const int conv = b.add("Conv", {x, b.constant({1, 1, 1, 1}, {2})});
    const int relu = b.add("Relu", {conv});
    Graph g = b.finish({relu, conv});
    optimise(g);
    CHECK(ops(g) == Names{"Conv", "Unary"});
}

TEST_CASE("residual and activation go into the convolution, placed after the residual's producer") {
    Builder b;
    const int x = b.input({1, 1, 2, 2});
    const int main = b.add("Conv", {x, b.constant({1, 1, 1, 1}, {2})});
    const int side = b.add("MaxPool", {x}, {{"kernel_shape", std::vector<int64_t>{1, 1}}});
    Graph g = b.finish({b.add("Relu", {b.add("Add", {main, side})})});
    optimise(g);
    REQUIRE(ops(g) == Names{"MaxPool", "Conv"});
    CHECK(g.nodes[1].residual == side);
    CHECK(g.nodes[1].activation.function == ENPU_OP_UNARY_RELU);
}

TEST_CASE("an activation before the addition forbids the residual") {
    Builder b;
    const int x = b.input({1, 1, 2, 2});
    const int conv = b.add("Relu", {b.add("Conv", {x, b.constant({1, 1, 1, 1}, {2})})});
    Graph g = b.finish({b.add("Add", {conv, x})});
    optimise(g);
    CHECK(ops(g) == Names{"Conv", "Add"});
    CHECK(g.nodes[0].residual == -1);
}

TEST_CASE("chains of scalar arithmetic are one function") {
    Builder b;
    const int x = b.input({3});
    Graph g = b.finish(
        {b.add("Sub", {b.scalar(1), b.add("Mul", {b.add("Add", {x, b.scalar(2)}), b.scalar(4)})})});
    optimise(g);
    REQUIRE(ops(g) == Names{"Unary"});
    const Activation& a = g.nodes[0].activation;
    CHECK(a.function == ENPU_OP_UNARY_SCALE);
    CHECK(a.alpha == -4.0f);  // 1 - (x + 2) * 4
    CHECK(a.beta == -7.0f);
}

TEST_CASE("a scalar constant of higher rank widens the result and is no function") {
    Builder b;
    const int x = b.input({3});
    Graph g = b.finish({b.add("Mul", {x, b.constant({1, 1, 1}, {2})})});
    optimise(g);
    CHECK(ops(g) == Names{"Mul"});
}

TEST_CASE("layer norm with scale and bias") {
    Builder b;
    const int x = b.input({2, 5, 8});
    const std::map<std::string, Attribute> last = {{"axes", std::vector<int64_t>{-1}}};
    const int centred = b.add("Sub", {x, b.add("ReduceMean", {x}, last)});
    const int variance = b.add("ReduceMean", {b.add("Pow", {centred, b.scalar(2)})}, last);
    const int normal =
        b.add("Div", {centred, b.add("Sqrt", {b.add("Add", {variance, b.scalar(1e-6f)})})});
    const int scale = b.constant({8}, noise(8, 1)), bias = b.constant({8}, noise(8, 2));
    Graph g = b.finish({b.add("Add", {b.add("Mul", {normal, scale}), bias})});
    optimise(g);
    REQUIRE(ops(g) == Names{"LayerNormalization"});
    CHECK(g.nodes[0].inputs == std::vector<int>{x, scale, bias});
    CHECK(g.nodes[0].real("epsilon", 0) == 1e-6f);
}

TEST_CASE("a mean over another axis is no layer norm") {
    Builder b;
    const int x = b.input({2, 5, 8});
    const std::map<std::string, Attribute> middle = {{"axes", std::vector<int64_t>{1}}};
    const int centred = b.add("Sub", {x, b.add("ReduceMean", {x}, middle)});
    const int variance = b.add("ReduceMean", {b.add("Pow", {centred, b.scalar(2)})}, middle);
    Graph g = b.finish(
        {b.add("Div", {centred, b.add("Sqrt", {b.add("Add", {variance, b.scalar(1e-6f)})})})});
    optimise(g);
    for (const Node& node : g.nodes) CHECK(node.op != "LayerNormalization");
}

TEST_CASE("GELU by erf") {
    Builder b;
    const int x = b.input({4});
    const int gate =
        b.add("Add", {b.add("Erf", {b.add("Div", {x, b.scalar(std::sqrt(2.0f))})}), b.scalar(1)});
    int y = -1;
    SECTION("(x * gate) / 2") {
        y = b.add("Mul", {b.add("Mul", {x, gate}), b.scalar(0.5f)});
    }
    SECTION("(x / 2) * gate") {
        y = b.add("Mul", {b.add("Mul", {x, b.scalar(0.5f)}), gate});
    }
    SECTION("x * (gate / 2)") {
        y = b.add("Mul", {x, b.add("Mul", {gate, b.scalar(0.5f)})});
    }
    Graph g = b.finish({y});
    optimise(g);
    REQUIRE(ops(g) == Names{"Unary"});
    CHECK(g.nodes[0].activation.function == ENPU_OP_UNARY_GELU);
}

TEST_CASE("constants are computed, shape arithmetic of inputs is not touched") {
    Builder b;
    const int x = b.input({-1, 4});
    const int shape = b.add("Shape", {x}, {}, ENPU_OP_I64);
    const int wanted =
        b.add("Concat", {b.add("Mul", {b.integers({2}), b.integers({1})}, {}, ENPU_OP_I64), shape},
              {{"axis", int64_t{0}}}, ENPU_OP_I64);
    Graph g = b.finish({b.add("Expand", {x, wanted})});
    const OptimiseReport report = optimise(g);
    CHECK(report.folded_constants == 1);
    CHECK(ops(g) == Names{"Shape", "Concat", "Expand"});
}
