// SPDX-License-Identifier: MIT
// The graph that is lowered. Operators have the names, operands and attributes of ONNX (the common
// language of the frameworks); a few internal ones and fused extras are added by the passes.
#ifndef ENPU_LOWERING_GRAPH_H
#define ENPU_LOWERING_GRAPH_H

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "host_tensor.h"

namespace enpu::lowering {

using Attribute = std::variant<int64_t, float, std::string, std::vector<int64_t>,
                               std::vector<float>, std::vector<std::string>, HostTensorPtr>;

// A function applied to the result of another operator.
struct Activation {
    uint32_t function = ENPU_OP_UNARY_IDENTITY;
    float alpha = 0;
    float beta = 0;
    bool none() const { return function == ENPU_OP_UNARY_IDENTITY; }
};

struct Node {
    std::string op;            // "Conv"
    std::string name;          // for messages
    int64_t opset = 0;         // version of the operator set that defined it; 0 is the newest
    std::vector<int> inputs;   // values, -1 for one left out
    std::vector<int> outputs;  // values, -1 for one that nobody asked for
    std::map<std::string, Attribute> attributes;
    // Added by fusion: y = activation(op(inputs) + residual).
    int residual = -1;
    Activation activation;

    int input(size_t i) const { return i < inputs.size() ? inputs[i] : -1; }
    int64_t integer(const std::string& key, int64_t otherwise) const;
    float real(const std::string& key, float otherwise) const;
    std::string text(const std::string& key, const std::string& otherwise) const;
    std::vector<int64_t> integers(const std::string& key) const;  // empty when absent
    bool has(const std::string& key) const { return attributes.count(key) != 0; }
};

struct Value {
    std::string name;
    uint32_t dtype = ENPU_OP_NONE;
    std::optional<Dims> dims;  // as far as known before a run; -1 for an unknown one
    HostTensorPtr constant;
};

// Nodes are in an order in which producers come first.
struct Graph {
    std::vector<Value> values;
    std::vector<Node> nodes;
    std::vector<int> inputs;  // without constants
    std::vector<int> outputs;

    int add_value(Value value);
    int add_constant(const std::string& name, HostTensorPtr tensor);
    const HostTensor* constant(int value) const;  // NULL when it is none
    // The only element of a constant of one element.
    std::optional<double> scalar(int value) const;
};

// Who makes and who reads each value; outputs of the graph count as one reader more.
struct Uses {
    explicit Uses(const Graph& graph);
    std::vector<int> producer;                // node, -1 for inputs and constants
    std::vector<std::vector<int>> consumers;  // nodes, once a use
    std::vector<bool> is_output;
    // The node that is the only reader of `value`, else -1.
    int only_consumer(int value) const;
};

// What a node lacks that its operator cannot do without, in one sentence; empty when nothing is
// missing. Everything behind it relies on those operands and on a first result.
std::string missing_part(const Node& node);
// Fails when a node has a missing part.
void check_nodes(const Graph& graph);

// Drops nodes whose results nobody reads.
void remove_unused(Graph& graph);

}  // namespace enpu::lowering
#endif
