// SPDX-License-Identifier: MIT
#include "graph.h"

#include <algorithm>

namespace enpu::lowering {
namespace {

template <class T>
const T* find(const Node& node, const std::string& key) {
    const auto it = node.attributes.find(key);
    if (it == node.attributes.end()) return nullptr;
    const T* value = std::get_if<T>(&it->second);
    if (!value) fail("attribute '" + key + "' has the wrong type");
    return value;
}

}  // namespace

int64_t Node::integer(const std::string& key, int64_t otherwise) const {
    const auto* value = find<int64_t>(*this, key);
    return value ? *value : otherwise;
}

float Node::real(const std::string& key, float otherwise) const {
    const auto* value = find<float>(*this, key);
    return value ? *value : otherwise;
}

std::string Node::text(const std::string& key, const std::string& otherwise) const {
    const auto* value = find<std::string>(*this, key);
    return value ? *value : otherwise;
}

std::vector<int64_t> Node::integers(const std::string& key) const {
    const auto* value = find<std::vector<int64_t>>(*this, key);
    return value ? *value : std::vector<int64_t>{};
}

int Graph::add_value(Value value) {
    values.push_back(std::move(value));
    return static_cast<int>(values.size()) - 1;
}

int Graph::add_constant(const std::string& name, HostTensorPtr tensor) {
    const uint32_t dtype = tensor->dtype;
    const Dims dims = tensor->dims;
    return add_value({name, dtype, dims, std::move(tensor)});
}

const HostTensor* Graph::constant(int value) const {
    return value < 0 ? nullptr : values[static_cast<size_t>(value)].constant.get();
}

std::optional<double> Graph::scalar(int value) const {
    const HostTensor* tensor = constant(value);
    if (!tensor || tensor->size() != 1) return std::nullopt;
    return as_f64(*tensor)[0];
}

Uses::Uses(const Graph& graph)
    : producer(graph.values.size(), -1),
      consumers(graph.values.size()),
      is_output(graph.values.size(), false) {
    for (int n = 0; n < static_cast<int>(graph.nodes.size()); ++n) {
        const Node& node = graph.nodes[static_cast<size_t>(n)];
        for (int v : node.outputs) {
            if (v >= 0) producer[static_cast<size_t>(v)] = n;
        }
        for (int v : node.inputs) {
            if (v >= 0) consumers[static_cast<size_t>(v)].push_back(n);
        }
        if (node.residual >= 0) consumers[static_cast<size_t>(node.residual)].push_back(n);
    }
    for (int v : graph.outputs) is_output[static_cast<size_t>(v)] = true;
}

int Uses::only_consumer(int value) const {
    const auto v = static_cast<size_t>(value);
    return is_output[v] || consumers[v].size() != 1 ? -1 : consumers[v][0];
}

namespace {

// Operands that must be there; one for an operator that is not listed.
size_t operands_needed(const Node& node) {
    static const std::map<std::string, size_t> kTable = {
        {"Add", 2},
        {"And", 2},
        {"Attention", 3},
        {"BatchNormalization", 5},
        {"BitShift", 2},
        {"BitwiseAnd", 2},
        {"BitwiseOr", 2},
        {"BitwiseXor", 2},
        {"CastLike", 2},
        {"Compress", 2},
        {"Conv", 2},
        {"ConvInteger", 2},
        {"ConvTranspose", 2},
        {"CumSum", 2},
        {"DequantizeLinear", 2},
        {"Div", 2},
        {"Equal", 2},
        {"Expand", 2},
        {"Gather", 2},
        {"GRU", 3},
        {"GatherElements", 2},
        {"GatherND", 2},
        {"Gemm", 2},
        {"Greater", 2},
        {"GreaterOrEqual", 2},
        {"GroupNormalization", 3},
        {"InstanceNormalization", 3},
        {"LSTM", 3},
        {"Less", 2},
        {"LessOrEqual", 2},
        {"MatMul", 2},
        {"MatMulInteger", 2},
        {"Mod", 2},
        {"Mul", 2},
        {"NegativeLogLikelihoodLoss", 2},
        {"OneHot", 3},
        {"Or", 2},
        {"PRelu", 2},
        {"Pow", 2},
        {"QLinearConv", 8},
        {"QLinearMatMul", 8},
        {"QuantizeLinear", 2},
        {"RMSNormalization", 2},
        {"RNN", 3},
        {"Range", 3},
        {"ReverseSequence", 2},
        {"RotaryEmbedding", 3},
        {"Scatter", 3},
        {"ScatterElements", 3},
        {"ScatterND", 3},
        {"SoftmaxCrossEntropyLoss", 2},
        {"Sub", 2},
        {"Tile", 2},
        {"Where", 3},
        {"Xor", 2},
    };
    const auto it = kTable.find(node.op);
    return it == kTable.end() ? 1 : it->second;
}

// Every operand counts: none of a list may be left out.
bool takes_list(const std::string& op) {
    return op == "Concat" || op == "Sum" || op == "Min" || op == "Max" || op == "Mean";
}

}  // namespace

std::string missing_part(const Node& node) {
    const size_t needed =
        takes_list(node.op) ? std::max<size_t>(node.inputs.size(), 1) : operands_needed(node);
    for (size_t i = 0; i < needed; ++i)
        if (node.input(i) < 0) return "operand " + std::to_string(i) + " is missing";
    const bool any_output =
        node.op == "LSTM" || node.op == "GRU" || node.op == "RNN" || node.op == "TopK";
    if (node.outputs.empty() || (node.outputs[0] < 0 && !any_output)) {
        return "its first output is left out";
    }
    return {};
}

void check_nodes(const Graph& graph) {
    for (const Node& node : graph.nodes)
        if (const std::string missing = missing_part(node); !missing.empty())
            fail(node.op + " '" + node.name + "': " + missing);
}

void remove_unused(Graph& graph) {
    std::vector<bool> needed(graph.values.size(), false);
    for (int v : graph.outputs) needed[static_cast<size_t>(v)] = true;
    std::vector<Node> kept;
    for (auto it = graph.nodes.rbegin(); it != graph.nodes.rend(); ++it) {
        const bool used = std::any_of(it->outputs.begin(), it->outputs.end(), [&](int v) {
            return v >= 0 && needed[static_cast<size_t>(v)];
        });
        if (!used) continue;
        for (int v : it->inputs) {
            if (v >= 0) needed[static_cast<size_t>(v)] = true;
        }
        if (it->residual >= 0) needed[static_cast<size_t>(it->residual)] = true;
        kept.push_back(std::move(*it));
    }
    std::reverse(kept.begin(), kept.end());
    graph.nodes = std::move(kept);
}

}  // namespace enpu::lowering
