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
