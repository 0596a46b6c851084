// SPDX-License-Identifier: MIT
#include "graph_file.h"

#include <catch2/catch_test_macros.hpp>

#include "test_graph.h"

using namespace enpu::lowering;
using test::Builder;

namespace {

Graph sample() {
    Builder b;
    const int x = b.input({2, 3});
    const int y = b.add("Gemm", {x, b.constant({3, 4}, test::noise(12, 1))},
                        {{"alpha", 0.5f},
                         {"transA", int64_t{0}},
                         {"mode", std::string("linear")},
                         {"axes", std::vector<int64_t>{1, -2}},
                         {"scales", std::vector<float>{1, 2}},
                         {"names", std::vector<std::string>{"Tanh", ""}},
                         {"value", host_i64({2}, {7, 8})}});
    Graph graph = b.finish({y});
    graph.nodes[0].activation = {ENPU_OP_UNARY_CLIP, -1, 1};
    graph.values[static_cast<size_t>(y)].dims = Dims{2, -1};
    return graph;
}

}  // namespace

TEST_CASE("a graph comes back from its bytes as it was") {
    const Graph graph = sample(), back = load_graph(save_graph(graph));
    REQUIRE(back.values.size() == graph.values.size());
    REQUIRE(back.nodes.size() == 1);
    CHECK(back.inputs == graph.inputs);
    CHECK(back.outputs == graph.outputs);
    for (size_t i = 0; i < graph.values.size(); ++i) {
        CHECK(back.values[i].name == graph.values[i].name);
        CHECK(back.values[i].dtype == graph.values[i].dtype);
        CHECK(back.values[i].dims == graph.values[i].dims);
        REQUIRE((back.values[i].constant == nullptr) == (graph.values[i].constant == nullptr));
        if (graph.values[i].constant)
            CHECK(back.values[i].constant->bytes == graph.values[i].constant->bytes);
    }
    const Node &a = graph.nodes[0], &b = back.nodes[0];
    CHECK(b.op == a.op);
    CHECK(b.inputs == a.inputs);
    CHECK(b.real("alpha", 0) == 0.5f);
    CHECK(b.text("mode", "") == "linear");
    CHECK(b.integers("axes") == a.integers("axes"));
    CHECK(std::get<std::vector<std::string>>(b.attributes.at("names"))[0] == "Tanh");
    CHECK(as_i64(*std::get<HostTensorPtr>(b.attributes.at("value"))) == std::vector<int64_t>{7, 8});
    CHECK(b.activation.function == ENPU_OP_UNARY_CLIP);
    CHECK(save_graph(back) == save_graph(graph));
}

TEST_CASE("bytes that are cut off or changed are refused") {
    const std::string good = save_graph(sample());
    for (size_t size = 0; size < good.size(); size += 7) {
        CHECK_THROWS_AS(load_graph(good.substr(0, size)), Error);
    }
    for (size_t at = 0; at < good.size(); at += 5) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 0x41);
        CHECK_THROWS_AS(load_graph(bad), Error);
    }
}

TEST_CASE("a graph that names values it does not have is refused") {
    Graph graph = sample();
    graph.nodes[0].inputs[0] = 99;
    CHECK_THROWS_AS(load_graph(save_graph(graph)), Error);
    graph = sample();
    graph.outputs[0] = -1;
    CHECK_THROWS_AS(load_graph(save_graph(graph)), Error);
}

TEST_CASE("a name with a NUL, which would cut messages short, is refused") {
    Graph graph = sample();
    graph.nodes[0].op = std::string("\0Gemm", 5);
    CHECK_THROWS_AS(load_graph(save_graph(graph)), Error);
    graph = sample();
    graph.values[0].name = std::string("x\0", 2);
    CHECK_THROWS_AS(load_graph(save_graph(graph)), Error);
}

TEST_CASE("a graph whose values come in no order is refused") {
    Graph graph = sample();
    std::swap(graph.nodes[0].inputs[0], graph.nodes[0].outputs[0]);  // reads its own result
    CHECK_THROWS_AS(load_graph(save_graph(graph)), Error);
    graph = sample();
    graph.nodes.push_back(graph.nodes[0]);  // makes it twice
    CHECK_THROWS_AS(load_graph(save_graph(graph)), Error);
    graph = sample();
    graph.nodes[0].residual = graph.nodes[0].outputs[0];
    CHECK_THROWS_AS(load_graph(save_graph(graph)), Error);
    graph = sample();
    graph.inputs.clear();  // an operand that nobody makes
    CHECK_THROWS_AS(load_graph(save_graph(graph)), Error);
}
