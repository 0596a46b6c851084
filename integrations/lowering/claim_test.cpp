// SPDX-License-Identifier: MIT
#include "claim.h"

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

TEST_CASE("inputs that shapes depend on are known by value") {
    Builder b;
    const int x = b.input({6}), extent = b.input({1}, ENPU_OP_I64);
    const int wanted =
        b.add("Concat", {b.integers({2}), extent}, {{"axis", int64_t{0}}}, ENPU_OP_I64);
    const Graph g = b.finish({b.add("Reshape", {x, wanted})});
    CHECK(host_inputs(g) == std::vector<bool>{false, true});
}
