// SPDX-License-Identifier: MIT
#include "activation.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace enpu::lowering {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

const std::map<std::string, uint32_t>& plain_functions() {
    static const std::map<std::string, uint32_t> kTable = {
        {"Relu", ENPU_OP_UNARY_RELU},
        {"Sigmoid", ENPU_OP_UNARY_SIGMOID},
        {"Tanh", ENPU_OP_UNARY_TANH},
        {"Silu", ENPU_OP_UNARY_SILU},
        {"HardSwish", ENPU_OP_UNARY_HARD_SWISH},
        {"Softplus", ENPU_OP_UNARY_SOFTPLUS},
        {"Softsign", ENPU_OP_UNARY_SOFTSIGN},
        {"Mish", ENPU_OP_UNARY_MISH},
        {"Exp", ENPU_OP_UNARY_EXP},
        {"Log", ENPU_OP_UNARY_LOG},
        {"Sqrt", ENPU_OP_UNARY_SQRT},
        {"Reciprocal", ENPU_OP_UNARY_RECIPROCAL},
        {"Abs", ENPU_OP_UNARY_ABS},
        {"Neg", ENPU_OP_UNARY_NEG},
        {"Sign", ENPU_OP_UNARY_SIGN},
        {"Floor", ENPU_OP_UNARY_FLOOR},
        {"Ceil", ENPU_OP_UNARY_CEIL},
        {"Round", ENPU_OP_UNARY_ROUND},
        {"Erf", ENPU_OP_UNARY_ERF},
        {"Sin", ENPU_OP_UNARY_SIN},
        {"Cos", ENPU_OP_UNARY_COS},
        {"Tan", ENPU_OP_UNARY_TAN},
        {"Asin", ENPU_OP_UNARY_ASIN},
        {"Acos", ENPU_OP_UNARY_ACOS},
        {"Atan", ENPU_OP_UNARY_ATAN},
        {"Sinh", ENPU_OP_UNARY_SINH},
        {"Cosh", ENPU_OP_UNARY_COSH},
        {"Asinh", ENPU_OP_UNARY_ASINH},
        {"Acosh", ENPU_OP_UNARY_ACOSH},
        {"Atanh", ENPU_OP_UNARY_ATANH},
        {"Not", ENPU_OP_UNARY_NOT},
        {"BitwiseNot", ENPU_OP_UNARY_BIT_NOT},
        {"IsNaN", ENPU_OP_UNARY_ISNAN},
        {"Square", ENPU_OP_UNARY_SQUARE},
    };
    return kTable;
}

// That with_attributes knows.
constexpr const char* kWithAttributes[] = {"LeakyRelu", "HardSigmoid",    "Elu",  "Celu",
                                           "Selu",      "Gelu",           "Clip", "Shrink",
                                           "Swish",     "ThresholdedRelu"};

std::optional<Activation> with_attributes(const Graph& graph, const Node& node) {
    const std::string& op = node.op;
    if (op == "LeakyRelu")
        return Activation{ENPU_OP_UNARY_LEAKY_RELU, node.real("alpha", 0.01f), 0};
    if (op == "HardSigmoid") {
        return Activation{ENPU_OP_UNARY_HARD_SIGMOID, node.real("alpha", 0.2f),
                          node.real("beta", 0.5f)};
    }
    if (op == "Elu") return Activation{ENPU_OP_UNARY_ELU, node.real("alpha", 1), 0};
    if (op == "Celu") return Activation{ENPU_OP_UNARY_CELU, node.real("alpha", 1), 0};
    if (op == "Selu") {
        return Activation{ENPU_OP_UNARY_SELU, node.real("alpha", 1.67326319217681884765625f),
                          node.real("gamma", 1.05070102214813232421875f)};
    }
    if (op == "ThresholdedRelu") {
        return Activation{ENPU_OP_UNARY_THRESHOLDED_RELU, node.real("alpha", 1), 0};
    }
    if (op == "Shrink") {
        return Activation{ENPU_OP_UNARY_SHRINK, node.real("lambd", 0.5f), node.real("bias", 0)};
    }
    if (op == "Swish") {
        return Activation{ENPU_OP_UNARY_QUICK_GELU, node.real("alpha", 1), 0};
    }
    if (op == "Gelu") {
        const bool tanh = node.text("approximate", "none") == "tanh";
        return Activation{tanh ? ENPU_OP_UNARY_GELU_TANH : ENPU_OP_UNARY_GELU, 0, 0};
    }
    if (op == "Clip") {
        float low = node.real("min", -kInfinity), high = node.real("max", kInfinity);
        if (node.input(1) >= 0) {
            const auto value = graph.scalar(node.input(1));
            if (!value) return std::nullopt;
            low = static_cast<float>(*value);
        }
        if (node.input(2) >= 0) {
            const auto value = graph.scalar(node.input(2));
            if (!value) return std::nullopt;
            high = static_cast<float>(*value);
        }
        if (low > high) return std::nullopt;  // ONNX: all elements become max
        return Activation{ENPU_OP_UNARY_CLIP, low, high};
    }
    return std::nullopt;
}

// x op c, with c a constant of one element that does not widen the result.
std::optional<Activation> with_scalar(const Graph& graph, const Node& node, size_t* input) {
    if (node.inputs.size() != 2) return std::nullopt;
    for (size_t side : {size_t{0}, size_t{1}}) {
        const int x = node.inputs[side], c = node.inputs[1 - side];
        if (x < 0 || c < 0) continue;
        const auto constant = graph.scalar(c);
        const Value& value = graph.values[static_cast<size_t>(x)];
        if (!constant || !is_float(value.dtype) || value.constant) continue;
        const size_t constant_rank = graph.constant(c)->dims.size();
        if (constant_rank > 0 && (!value.dims || value.dims->size() < constant_rank)) continue;
        *input = side;
        const auto v = static_cast<float>(*constant);
        if (std::isnan(v)) continue;
        if (node.op == "Add") return Activation{ENPU_OP_UNARY_SCALE, 1, v};
        if (node.op == "Mul") return Activation{ENPU_OP_UNARY_SCALE, v, 0};
        if (node.op == "Sub" && side == 0) return Activation{ENPU_OP_UNARY_SCALE, 1, -v};
        if (node.op == "Sub") return Activation{ENPU_OP_UNARY_SCALE, -1, v};
        if (side != 0) continue;
        if (node.op == "Div" && v != 0) return Activation{ENPU_OP_UNARY_SCALE, 1 / v, 0};
        if (node.op == "Pow" && v == 2) return Activation{ENPU_OP_UNARY_SQUARE, 0, 0};
        if (node.op == "Pow" && v == 0.5f) return Activation{ENPU_OP_UNARY_SQRT, 0, 0};
    }
    return std::nullopt;
}

}  // namespace

bool is_unary_op(const std::string& op) {
    return plain_functions().count(op) != 0 ||
           std::find(std::begin(kWithAttributes), std::end(kWithAttributes), op) !=
               std::end(kWithAttributes);
}

std::vector<std::string> unary_ops() {
    std::vector<std::string> names(std::begin(kWithAttributes), std::end(kWithAttributes));
    for (const auto& [name, function] : plain_functions()) names.push_back(name);
    return names;
}

std::optional<Activation> activation_of(const Graph& graph, const Node& node, size_t* input) {
    *input = 0;
    const auto it = plain_functions().find(node.op);
    if (it != plain_functions().end()) return Activation{it->second, 0, 0};
    if (auto found = with_attributes(graph, node)) return found;
    return with_scalar(graph, node, input);
}

}  // namespace enpu::lowering
