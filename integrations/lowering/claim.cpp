// SPDX-License-Identifier: MIT
#include "claim.h"

#include <algorithm>
#include <set>

#include "activation.h"
#include "host_eval.h"

namespace enpu::lowering {
namespace {

// Operands that must be known while compiling.
std::vector<size_t> host_operands(const std::string& op) {
    static const std::map<std::string, std::vector<size_t>> kTable = {
        {"Reshape", {1}},
        {"Slice", {1, 2, 3, 4}},
        {"Expand", {1}},
        {"Tile", {1}},
        {"Pad", {1, 2, 3}},
        {"Resize", {1, 2, 3}},
        {"Upsample", {1}},
        {"Squeeze", {1}},
        {"Unsqueeze", {1}},
        {"Split", {1}},
        {"Clip", {1, 2}},
        {"Range", {0, 1, 2}},
        {"ConstantOfShape", {0}},
        {"ConvInteger", {2, 3}},
        {"MatMulInteger", {2, 3}},
        {"QLinearConv", {1, 2, 4, 5, 6, 7}},
        {"QLinearMatMul", {1, 2, 4, 5, 6, 7}},
        {"Trilu", {1}},
        {"OneHot", {1}},
        {"TopK", {1}},
        {"CumSum", {1}},
        {"Compress", {1}},
        {"ReverseSequence", {1}},
        {"LSTM", {4}},
        {"GRU", {4}},
        {"RNN", {4}}};
    if (op.starts_with("Reduce")) return {1};
    const auto it = kTable.find(op);
    return it == kTable.end() ? std::vector<size_t>{} : it->second;
}

bool host_only(const std::string& op) {
    return op == "Shape" || op == "Size" || op == "Range" || op == "ConstantOfShape";
}

bool is_in(const std::string& op, const std::set<std::string>& names) {
    return names.count(op) != 0;
}

uint32_t dtype_of(const Graph& graph, int value) {
    return value < 0 ? uint32_t{ENPU_OP_NONE} : graph.values[static_cast<size_t>(value)].dtype;
}

// Types that the kernel behind an operator takes for its first operand.
bool takes_dtype(const std::string& op, uint32_t dtype) {
    static const std::set<std::string> kFloatOnly = {"Conv",
                                                     "ConvTranspose",
                                                     "MatMul",
                                                     "Gemm",
                                                     "Softmax",
                                                     "LogSoftmax",
                                                     "LayerNormalization",
                                                     "RMSNormalization",
                                                     "BatchNormalization",
                                                     "InstanceNormalization",
                                                     "GroupNormalization",
                                                     "GlobalAveragePool",
                                                     "GlobalMaxPool",
                                                     "QuantizeLinear",
                                                     "Mean",
                                                     "NegativeLogLikelihoodLoss",
                                                     "SoftmaxCrossEntropyLoss",
                                                     "Attention",
                                                     "RotaryEmbedding",
                                                     "LSTM",
                                                     "GRU",
                                                     "RNN",
                                                     "Hardmax",
                                                     "LpPool",
                                                     "LRN",
                                                     "MeanVarianceNormalization",
                                                     "DynamicQuantizeLinear"};
    static const std::set<std::string> kBool = {"And", "Or", "Xor", "Not", "Where"};
    static const std::set<std::string> kBits = {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift",
                                                "BitwiseNot"};
    static const std::set<std::string> kAnyNumber = {"Clip", "Relu", "Abs", "Neg", "Sign"};
    static const std::set<std::string> kImages = {"MaxPool", "AveragePool", "Resize", "Upsample"};
    static const std::set<std::string> kNumbers = {"Add",    "Sub",    "Mul",   "Div",
                                                   "Mod",    "Pow",    "PRelu", "Sum",
                                                   "ArgMax", "ArgMin", "TopK",  "CumSum"};
    const bool byte = dtype == ENPU_OP_I8 || dtype == ENPU_OP_U8;
    if (is_in(op, kFloatOnly)) return is_float(dtype);
    if (is_in(op, kBool)) return dtype == ENPU_OP_BOOL;
    if (is_in(op, kBits)) return !is_float(dtype) && dtype != ENPU_OP_BOOL;
    if (is_in(op, kImages)) return is_float(dtype) || byte;
    if (is_in(op, kNumbers) || is_in(op, kAnyNumber)) return dtype != ENPU_OP_BOOL;
    if (op == "ConvInteger" || op == "MatMulInteger" || op.starts_with("QLinear")) return byte;
    if (op == "DequantizeLinear") return byte || dtype == ENPU_OP_I32;
    if (op.starts_with("Reduce")) {
        return dtype != ENPU_OP_BOOL || op == "ReduceMax" || op == "ReduceMin";
    }
    if (is_unary_op(op) || op == "IsInf") return is_float(dtype);
    return true;
}

std::string check_types(const Graph& graph, const Node& node) {
    for (const auto* list : {&node.inputs, &node.outputs}) {
        for (int v : *list) {
            if (v >= 0 && dtype_of(graph, v) == ENPU_OP_NONE) {
                return "'" + graph.values[static_cast<size_t>(v)].name +
                       "' has an element type that the device does not have";
            }
        }
    }
    if (host_only(node.op) || node.inputs.empty()) return {};
    const uint32_t dtype = dtype_of(graph, node.inputs[0]);
    if (!takes_dtype(node.op, dtype)) return std::string("not for ") + dtype_name(dtype);
    return {};
}

std::string check_features(const Graph& graph, const Node& node) {
    const size_t outputs = node.outputs.size();
    const bool second = outputs > 1 && node.outputs[1] >= 0;
    static const std::set<std::string> kMore = {"Split",
                                                "LayerNormalization",
                                                "LSTM",
                                                "GRU",
                                                "RNN",
                                                "TopK",
                                                "Attention",
                                                "SoftmaxCrossEntropyLoss",
                                                "DynamicQuantizeLinear"};
    if (second && !is_in(node.op, kMore)) return "only the first output is supported";
    if (node.op == "Dropout" && node.input(2) >= 0) return "training is unsupported";
    if (node.op == "BatchNormalization" && node.integer("training_mode", 0)) {
        return "training is unsupported";
    }
    if (node.op == "GroupNormalization" && node.opset > 0 && node.opset < 21) {
        return "scale of a group instead of a channel is unsupported";
    }
    if (node.op == "BatchNormalization" && !node.integer("spatial", 1))
        return "spatial=0 is unsupported";
    if (node.op == "MaxPool" && node.integer("storage_order", 0))
        return "storage_order is unsupported";
    if (node.op == "Resize") {
        if (node.text("keep_aspect_ratio_policy", "stretch") != "stretch") {
            return "keep_aspect_ratio_policy other than stretch is unsupported";
        }
        if (node.text("coordinate_transformation_mode", "") == "tf_crop_and_resize") {
            return "tf_crop_and_resize is unsupported";
        }
    }
    const auto& dims = graph.values[static_cast<size_t>(node.inputs[0])].dims;
    static const std::set<std::string> kImages = {"Conv", "ConvTranspose", "MaxPool",
                                                  "AveragePool"};
    if (is_in(node.op, kImages) && dims && dims->size() != 4 && dims->size() != 3) {
        return "one or two spatial dims are supported";
    }
    if (dims && dims->size() > ENPU_OP_MAX_RANK) return "rank over 8";
    if (dims && std::count(dims->begin(), dims->end(), 0)) return "its operand has no elements";
    return {};
}

// Lowers the node alone, when everything about its operands is known.
std::string try_node(const Graph& graph, const Node& node, const KernelCheck& check) {
    Graph alone;
    Node copy = node;
    std::map<int, int> map;
    std::vector<Dims> dims;
    for (int& v : copy.inputs) {
        if (v < 0) continue;
        const Value& value = graph.values[static_cast<size_t>(v)];
        if (!value.dims || std::count(value.dims->begin(), value.dims->end(), -1)) return {};
        const auto known = map.find(v);
        const int old = v;
        if (known != map.end()) {
            v = known->second;
            continue;
        }
        v = alone.add_value(value);
        map[old] = v;
        if (value.constant && !value.constant->bytes.empty()) continue;
        alone.values.back().constant = nullptr;
        alone.inputs.push_back(v);
        dims.push_back(*value.dims);
    }
    for (size_t i : host_operands(node.op)) {
        if (copy.input(i) >= 0 && !alone.constant(copy.input(i))) return {};
    }
    for (int& v : copy.outputs) {
        if (v >= 0) v = alone.add_value(graph.values[static_cast<size_t>(v)]);
        if (v >= 0) alone.outputs.push_back(v);
    }
    alone.nodes.push_back(copy);
    try {
        const Plan plan = lower(alone, dims, std::vector<HostTensorPtr>(dims.size()));
        for (const Kernel& kernel : plan.kernels) {
            if (check) {
                if (std::string reason = check(kernel); !reason.empty()) return reason;
            }
        }
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

std::string check_host_operands(const Graph& graph, const Node& node,
                                const std::vector<bool>& on_device) {
    for (size_t i : host_operands(node.op)) {
        const int v = node.input(i);
        if (v >= 0 && on_device[static_cast<size_t>(v)]) {
            return "'" + graph.values[static_cast<size_t>(v)].name +
                   "' is computed on the device, but must be known while compiling";
        }
    }
    return {};
}

std::string reason_against(const Graph& graph, const Node& node, const KernelCheck& check,
                           const std::vector<bool>& on_device) {
    if (!find_emitter(node.op) && !host_only(node.op)) return "the device has no such operator";
    if (std::string reason = missing_part(node); !reason.empty()) return reason;
    if (std::string reason = check_types(graph, node); !reason.empty()) return reason;
    if (std::string reason = check_features(graph, node); !reason.empty()) return reason;
    if (std::string reason = check_host_operands(graph, node, on_device); !reason.empty())
        return reason;
    return try_node(graph, node, check);
}

// Level = how many times the longest path to the node has left claimed nodes; equal levels of
// claimed nodes cannot have a way out and back between them.
void group(const Graph& graph, Claim& result) {
    const Uses uses(graph);
    std::vector<int> level(graph.nodes.size(), 0);
    std::map<int, int> numbers;
    result.groups.assign(graph.nodes.size(), -1);
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
        const bool claimed = result.reasons[n].empty();
        for (int v : graph.nodes[n].inputs) {
            const int p = v < 0 ? -1 : uses.producer[static_cast<size_t>(v)];
            if (p < 0) continue;
            const bool leaves = !claimed && result.reasons[static_cast<size_t>(p)].empty();
            level[n] = std::max(level[n], level[static_cast<size_t>(p)] + (leaves ? 1 : 0));
        }
        if (claimed)
            result.groups[n] =
                numbers.emplace(level[n], static_cast<int>(numbers.size())).first->second;
    }
    result.group_count = static_cast<int>(numbers.size());
}

}  // namespace

Claim claim(const Graph& graph, const KernelCheck& check) {
    Claim result;
    std::vector<bool> on_device(graph.values.size(), false);
    for (const Node& node : graph.nodes) {
        std::string reason;
        try {
            reason = reason_against(graph, node, check, on_device);
        } catch (const Error& error) {
            reason = error.what();
        }
        const bool host =
            host_only(node.op) || (host_evaluable(node.op) &&
                                   std::none_of(node.inputs.begin(), node.inputs.end(), [&](int v) {
                                       return v >= 0 && on_device[static_cast<size_t>(v)];
                                   }));
        for (int v : node.outputs) {
            if (v >= 0) on_device[static_cast<size_t>(v)] = reason.empty() && !host;
        }
        result.reasons.push_back(std::move(reason));
    }
    group(graph, result);
    return result;
}

std::vector<bool> host_inputs(const Graph& graph) {
    std::vector<bool> needed(graph.values.size(), false);
    for (auto it = graph.nodes.rbegin(); it != graph.nodes.rend(); ++it) {
        for (size_t i : host_operands(it->op)) {
            if (it->input(i) >= 0) needed[static_cast<size_t>(it->input(i))] = true;
        }
        const bool wanted = std::any_of(it->outputs.begin(), it->outputs.end(), [&](int v) {
            return v >= 0 && needed[static_cast<size_t>(v)];
        });
        if (!wanted || !host_evaluable(it->op)) continue;
        for (int v : it->inputs) {
            if (v >= 0) needed[static_cast<size_t>(v)] = true;
        }
    }
    std::vector<bool> result;
    for (int v : graph.inputs) result.push_back(needed[static_cast<size_t>(v)]);
    return result;
}

}  // namespace enpu::lowering
