// SPDX-License-Identifier: MIT
// Small graphs for tests.
#ifndef ENPU_LOWERING_TEST_GRAPH_H
#define ENPU_LOWERING_TEST_GRAPH_H

#include "graph.h"

namespace enpu::lowering::test {

class Builder {
  public:
    Graph graph;

    int input(const Dims& dims, uint32_t dtype = ENPU_OP_F32) {
        const int v =
            graph.add_value({"in" + std::to_string(graph.inputs.size()), dtype, dims, nullptr});
        graph.inputs.push_back(v);
        return v;
    }
    int constant(const Dims& dims, const std::vector<float>& values) {
        return graph.add_constant("c", host_f32(dims, values));
    }
    int scalar(float value) { return constant({}, {value}); }
    int integers(const std::vector<int64_t>& values) {
        return graph.add_constant("i", host_i64({static_cast<int64_t>(values.size())}, values));
    }
    // The node's only output.
    int add(const std::string& op, std::vector<int> inputs,
            std::map<std::string, Attribute> attributes = {}, uint32_t dtype = ENPU_OP_F32) {
        Node node;
        node.op = op;
        node.name = op + std::to_string(graph.nodes.size());
        node.inputs = std::move(inputs);
        node.attributes = std::move(attributes);
        node.outputs = {graph.add_value({node.name + ".y", dtype, std::nullopt, nullptr})};
        graph.nodes.push_back(node);
        return node.outputs[0];
    }
    Graph finish(std::vector<int> outputs) {
        graph.outputs = std::move(outputs);
        return graph;
    }
};

inline std::vector<std::string> ops(const Graph& graph) {
    std::vector<std::string> names;
    for (const Node& node : graph.nodes) names.push_back(node.op);
    return names;
}

// Reproducible values in -1 … 1.
inline std::vector<float> noise(size_t count, uint32_t seed) {
    std::vector<float> values(count);
    for (float& v : values) {
        seed = seed * 1664525u + 1013904223u;
        v = static_cast<float>(seed >> 8) / 8388608.0f - 1.0f;
    }
    return values;
}

}  // namespace enpu::lowering::test
#endif
