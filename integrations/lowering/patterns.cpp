// SPDX-License-Identifier: MIT
// Groups of nodes that frameworks write for one function. The last node of a group becomes that
// function; the others go when nobody else reads them.
#include <cmath>

#include "passes.h"

namespace enpu::lowering {
namespace {

bool near(double a, double b) {
    return std::fabs(a - b) <= 1e-4 * std::fabs(b) + 1e-7;
}

class Matcher {
  public:
    explicit Matcher(Graph& graph) : graph_(graph), uses_(graph) {}

    // The node that makes `value`, when it is `op`.
    const Node* maker(int value, const char* op) const {
        if (value < 0) return nullptr;
        const int n = uses_.producer[static_cast<size_t>(value)];
        if (n < 0) return nullptr;
        const Node& node = graph_.nodes[static_cast<size_t>(n)];
        return node.op == op && node.activation.none() && node.residual < 0 ? &node : nullptr;
    }
    bool is_scalar(int value, double wanted) const {
        const auto constant = graph_.scalar(value);
        return constant && near(*constant, wanted);
    }
    // x where `value` is x op c, c a constant near `wanted` (either side where op commutes); or -1.
    int with_constant(int value, const char* op, double wanted) const {
        const Node* node = maker(value, op);
        if (!node || node->inputs.size() != 2) return -1;
        if (is_scalar(node->inputs[1], wanted)) return node->inputs[0];
        const bool commutes = node->op == "Add" || node->op == "Mul";
        return commutes && is_scalar(node->inputs[0], wanted) ? node->inputs[1] : -1;
    }
    // x where `value` is x / c in either spelling.
    int divided(int value, double by) const {
        const int x = with_constant(value, "Div", by);
        return x >= 0 ? x : with_constant(value, "Mul", 1 / by);
    }
    // x where `value` is clip(x + 3, 0, 6).
    int clipped6(int value) const {
        const Node* clip = maker(value, "Clip");
        if (!clip) return -1;
        const bool inputs = is_scalar(clip->input(1), 0) && is_scalar(clip->input(2), 6);
        const bool attributes =
            clip->inputs.size() == 1 && clip->real("min", -1) == 0 && clip->real("max", -1) == 6;
        return inputs || attributes ? with_constant(clip->inputs[0], "Add", 3) : -1;
    }
    Graph& graph() { return graph_; }

  private:
    Graph& graph_;
    Uses uses_;
};

void become(Node& node, const char* op, std::vector<int> inputs) {
    node.op = op;
    node.inputs = std::move(inputs);
    node.attributes.clear();
}

// The operand of a product that is not `value`, or -1.
int other_factor(const Node& mul, int value) {
    if (mul.inputs[0] == value) return mul.inputs[1];
    return mul.inputs[1] == value ? mul.inputs[0] : -1;
}

bool match_hard_sigmoid(Matcher& m, Node& node) {
    if (node.op != "Div" && node.op != "Mul") return false;
    const int clip = m.divided(node.outputs[0], 6);
    const int x = clip < 0 ? -1 : m.clipped6(clip);
    if (x < 0) return false;
    become(node, "HardSigmoid", {x});
    node.attributes["alpha"] = 1.0f / 6;
    node.attributes["beta"] = 0.5f;
    return true;
}

// x * clip(x + 3, 0, 6) / 6
bool match_hard_swish(Matcher& m, Node& node) {
    if (node.op != "Div" && node.op != "Mul") return false;
    const Node* product = m.maker(m.divided(node.outputs[0], 6), "Mul");
    if (!product) return false;
    for (int side : product->inputs) {
        const int x = m.clipped6(side);
        if (x >= 0 && x == other_factor(*product, side)) {
            become(node, "HardSwish", {x});
            return true;
        }
    }
    return false;
}

// x * gate(x)
bool match_gated(Matcher& m, Node& node) {
    if (node.op != "Mul" || node.inputs.size() != 2) return false;
    for (int side : node.inputs) {
        const int x = other_factor(node, side);
        const Node* gate = m.maker(side, "Sigmoid");
        if (gate && gate->inputs[0] == x) {
            become(node, "Silu", {x});
            return true;
        }
        gate = m.maker(side, "HardSigmoid");
        if (gate && gate->inputs[0] == x && near(gate->real("alpha", 0.2f), 1.0 / 6) &&
            near(gate->real("beta", 0.5f), 0.5)) {
            become(node, "HardSwish", {x});
            return true;
        }
    }
    return false;
}

// 1 + erf(x / sqrt 2)
int erf_gate(const Matcher& m, int value) {
    const Node* erf = m.maker(m.with_constant(value, "Add", 1), "Erf");
    return erf ? m.divided(erf->inputs[0], std::sqrt(2.0)) : -1;
}

// x * (1 + erf(x / sqrt 2)) * 0.5, with the half in one of three places
bool match_gelu(Matcher& m, Node& node) {
    if (node.op != "Mul" || node.inputs.size() != 2) return false;
    const int whole = m.with_constant(node.outputs[0], "Mul", 0.5);
    const Node* product = whole >= 0 ? m.maker(whole, "Mul") : &node;
    if (!product) return false;
    for (int side : product->inputs) {
        int gate = side, rest = other_factor(*product, side);
        if (whole < 0) {
            const int halved = m.with_constant(rest, "Mul", 0.5);
            const int halved_gate = m.with_constant(gate, "Mul", 0.5);
            if (halved >= 0) {
                rest = halved;
            } else if (halved_gate >= 0) {
                gate = halved_gate;
            } else {
                continue;
            }
        }
        const int x = erf_gate(m, gate);
        if (x >= 0 && x == rest) {
            become(node, "Gelu", {x});
            return true;
        }
    }
    return false;
}

bool is_mean_of_last_axis(const Node& mean, const Graph& graph) {
    std::vector<int64_t> axes = mean.integers("axes");
    if (axes.empty() && graph.constant(mean.input(1)))
        axes = as_i64(*graph.constant(mean.inputs[1]));
    if (axes.size() != 1 || mean.integer("keepdims", 1) != 1) return false;
    const auto& dims = graph.values[static_cast<size_t>(mean.inputs[0])].dims;
    return axes[0] == -1 || (dims && axes[0] == static_cast<int64_t>(dims->size()) - 1);
}

// (x - mean) / sqrt(mean((x - mean)^2) + epsilon)
bool match_normalise(Matcher& m, Node& node) {
    if (node.op != "Div" || node.inputs.size() != 2) return false;
    const Node* centred = m.maker(node.inputs[0], "Sub");
    const Node* root = m.maker(node.inputs[1], "Sqrt");
    const Node* sum = root ? m.maker(root->inputs[0], "Add") : nullptr;
    if (!centred || !sum) return false;
    const size_t constant = m.graph().scalar(sum->inputs[1]) ? 1 : 0;
    const auto epsilon = m.graph().scalar(sum->inputs[constant]);
    const Node* variance = m.maker(sum->inputs[1 - constant], "ReduceMean");
    const Node* mean = m.maker(centred->inputs[1], "ReduceMean");
    if (!epsilon || !variance || !mean || mean->inputs[0] != centred->inputs[0]) return false;
    if (!is_mean_of_last_axis(*mean, m.graph()) || !is_mean_of_last_axis(*variance, m.graph())) {
        return false;
    }
    int squared = m.with_constant(variance->inputs[0], "Pow", 2);
    if (const Node* mul = m.maker(variance->inputs[0], "Mul")) {
        if (mul->inputs[0] == mul->inputs[1]) squared = mul->inputs[0];
    }
    if (squared < 0) return false;
    const Node* again = m.maker(squared, "Sub");  // some exporters compute it twice
    if (!again || again->inputs != centred->inputs) return false;
    become(node, "LayerNormalization", {centred->inputs[0], -1, -1});
    node.attributes["axis"] = int64_t{-1};
    node.attributes["epsilon"] = static_cast<float>(*epsilon);
    return true;
}

// norm(x) * scale + bias: constants as long as the last axis.
bool match_norm_affine(Matcher& m, Node& node) {
    const bool adds = node.op == "Add";
    if ((!adds && node.op != "Mul") || node.inputs.size() != 2) return false;
    for (int side : node.inputs) {
        const Node* norm = m.maker(side, "LayerNormalization");
        const int other = other_factor(node, side);
        const HostTensor* constant = m.graph().constant(other);
        if (!norm || !constant || constant->dims.size() != 1) continue;
        if (norm->input(2) >= 0 || (!adds && norm->input(1) >= 0)) continue;
        const std::vector<int> inputs = {norm->inputs[0], adds ? norm->inputs[1] : other,
                                         adds ? other : -1};
        const auto attributes = norm->attributes;
        become(node, "LayerNormalization", inputs);
        node.attributes = attributes;
        return true;
    }
    return false;
}

using Pattern = bool (*)(Matcher&, Node&);

size_t apply(Graph& graph, std::initializer_list<Pattern> patterns) {
    size_t count = 0;
    for (bool changed = true; changed;) {
        changed = false;
        Matcher matcher(graph);
        for (Node& node : graph.nodes) {
            if (node.outputs.empty() || !node.activation.none() || node.residual >= 0) continue;
            for (Pattern pattern : patterns) {
                if (pattern(matcher, node)) {
                    changed = true;
                    ++count;
                    break;
                }
            }
        }
        remove_unused(graph);
    }
    return count;
}

}  // namespace

size_t match_patterns(Graph& graph) {
    return apply(graph,
                 {match_hard_swish, match_hard_sigmoid, match_gated, match_gelu, match_normalise}) +
           apply(graph, {match_norm_affine});
}

}  // namespace enpu::lowering
