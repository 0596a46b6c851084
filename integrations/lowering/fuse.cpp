// SPDX-License-Identifier: MIT
// Epilogues: what the device applies to a result before it is written.
#include <algorithm>

#include "activation.h"
#include "passes.h"

namespace enpu::lowering {
namespace {

bool takes_residual(const Node& node) {
    return node.op == "Conv" || node.op == "MatMul" || node.op == "Gemm";
}

bool takes_activation(const Node& node) {
    static const char* const kOps[] = {"Conv",
                                       "ConvTranspose",
                                       "MatMul",
                                       "Gemm",
                                       "Add",
                                       "Sub",
                                       "Mul",
                                       "Div",
                                       "BatchNormalization",
                                       "InstanceNormalization",
                                       "LayerNormalization",
                                       "GroupNormalization"};
    return std::any_of(std::begin(kOps), std::end(kOps),
                       [&](const char* op) { return node.op == op; });
}

// One Activation for g(f(x)), where the device has one.
std::optional<Activation> compose(const Activation& f, const Activation& g) {
    if (f.none()) return g;
    if (f.function == ENPU_OP_UNARY_SCALE && g.function == ENPU_OP_UNARY_SCALE) {
        return Activation{ENPU_OP_UNARY_SCALE, f.alpha * g.alpha, f.beta * g.alpha + g.beta};
    }
    if (f.function == ENPU_OP_UNARY_SCALE && g.function == ENPU_OP_UNARY_HARD_SIGMOID) {
        return Activation{ENPU_OP_UNARY_HARD_SIGMOID, f.alpha * g.alpha, f.beta * g.alpha + g.beta};
    }
    return std::nullopt;
}

// Every function becomes the internal node "Unary" with an activation.
void normalise_functions(Graph& graph) {
    for (Node& node : graph.nodes) {
        if (!node.activation.none() || node.residual >= 0 || node.outputs.size() != 1) continue;
        size_t input = 0;
        const auto activation = activation_of(graph, node, &input);
        if (!activation) continue;
        const uint32_t dtype = graph.values[static_cast<size_t>(node.inputs[input])].dtype;
        if (!is_float(dtype)) continue;
        if (activation->function == ENPU_OP_UNARY_ISNAN) continue;
        node.inputs = {node.inputs[input]};
        node.op = "Unary";
        node.activation = *activation;
    }
}

// Moves the fused node to where its last operand is known: the place of the node that it absorbs.
void absorb(Graph& graph, int producer, int absorbed) {
    Node& from = graph.nodes[static_cast<size_t>(producer)];
    Node& to = graph.nodes[static_cast<size_t>(absorbed)];
    from.outputs[0] = to.outputs[0];
    to = std::move(from);
    from.op.clear();
    from.inputs.clear();
    from.outputs.clear();
    from.residual = -1;
}

bool same_dtype(const Graph& graph, int a, int b) {
    return graph.values[static_cast<size_t>(a)].dtype == graph.values[static_cast<size_t>(b)].dtype;
}

bool fuse_activation(Graph& graph, const Uses& uses, int n) {
    Node& node = graph.nodes[static_cast<size_t>(n)];
    if (node.op != "Unary") return false;
    const int x = node.inputs[0];
    const int p = uses.producer[static_cast<size_t>(x)];
    if (p < 0 || uses.only_consumer(x) != n) return false;
    Node& producer = graph.nodes[static_cast<size_t>(p)];
    if (producer.outputs.size() != 1 || producer.outputs[0] != x) return false;
    if (producer.op != "Unary" && !takes_activation(producer)) return false;
    const auto combined = compose(producer.activation, node.activation);
    if (!combined) return false;
    producer.activation = *combined;
    absorb(graph, p, n);
    return true;
}

bool fuse_residual(Graph& graph, const Uses& uses, int n) {
    const Node& node = graph.nodes[static_cast<size_t>(n)];
    if (node.op != "Add" || node.inputs.size() != 2 || node.inputs[0] == node.inputs[1]) {
        return false;
    }
    // The operand computed last is the better one: less of the graph must be done before.
    std::vector<size_t> sides = {0, 1};
    auto place = [&](size_t side) { return uses.producer[static_cast<size_t>(node.inputs[side])]; };
    if (place(1) > place(0)) std::swap(sides[0], sides[1]);
    for (size_t side : sides) {
        const int x = node.inputs[side], other = node.inputs[1 - side];
        const int p = uses.producer[static_cast<size_t>(x)];
        if (p < 0 || uses.only_consumer(x) != n || !same_dtype(graph, x, other)) continue;
        Node& producer = graph.nodes[static_cast<size_t>(p)];
        if (!takes_residual(producer) || producer.residual >= 0 || !producer.activation.none()) {
            continue;
        }
        if (graph.constant(other)) continue;
        producer.residual = other;
        producer.activation = node.activation;
        absorb(graph, p, n);
        return true;
    }
    return false;
}

}  // namespace

size_t fuse_epilogues(Graph& graph) {
    normalise_functions(graph);
    size_t count = 0;
    for (bool changed = true; changed;) {
        changed = false;
        const auto nodes = static_cast<int>(graph.nodes.size());
        std::optional<Uses> uses;
        for (int n = 0; n < nodes; ++n) {
            if (!uses) uses.emplace(graph);
            if (fuse_activation(graph, *uses, n) || fuse_residual(graph, *uses, n)) {
                changed = true;
                ++count;
                uses.reset();
            }
        }
        std::erase_if(graph.nodes, [](const Node& node) { return node.op.empty(); });
    }
    return count;
}

OptimiseReport optimise(Graph& graph) {
    OptimiseReport report;
    check_nodes(graph);
    remove_unused(graph);
    report.folded_constants = fold_constants(graph);
    report.quantised = fold_quantised(graph);
    report.folded_into_weights = fold_into_weights(graph);
    report.patterns = match_patterns(graph);
    report.fused = fuse_epilogues(graph);
    remove_unused(graph);
    return report;
}

}  // namespace enpu::lowering
