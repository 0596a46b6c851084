// SPDX-License-Identifier: MIT
// Passes that compute on constants.
#include <algorithm>
#include <cmath>

#include "host_eval.h"
#include "passes.h"

namespace enpu::lowering {
namespace {

bool try_fold(Graph& graph, const Node& node) {
    if (!host_evaluable(node.op)) return false;
    std::vector<HostTensorPtr> inputs;
    for (int v : node.inputs) {
        if (v >= 0 && !graph.constant(v)) return false;
        inputs.push_back(v < 0 ? nullptr : graph.values[static_cast<size_t>(v)].constant);
    }
    const auto results = host_evaluate(node, inputs);
    if (results.size() < node.outputs.size()) return false;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] < 0) continue;
        Value& value = graph.values[static_cast<size_t>(node.outputs[i])];
        value.dims = results[i]->dims;
        value.constant = results[i];
    }
    return true;
}

bool is_conv(const Node& node) {
    return node.op == "Conv" || node.op == "ConvTranspose";
}

size_t channels_of(const Graph& graph, const Node& conv) {
    const HostTensor& w = *graph.constant(conv.inputs[1]);
    const auto groups = static_cast<size_t>(conv.integer("group", 1));
    return conv.op == "Conv" ? static_cast<size_t>(w.dims[0])
                             : static_cast<size_t>(w.dims[1]) * groups;
}

// A constant of one value a channel, [C,1,1], [1,C,1,1] or one element, as a vector of C.
std::vector<double> per_channel(const Graph& graph, int value, size_t channels, size_t rank) {
    const HostTensor* t = graph.constant(value);
    if (!t || !is_float(t->dtype) || t->dims.size() > rank) return {};
    const auto values = as_f64(*t);
    if (values.size() == 1) return std::vector<double>(channels, values[0]);
    if (values.size() != channels || t->dims.size() < rank - 1) return {};
    const size_t axis = t->dims.size() - (rank - 1);
    return static_cast<size_t>(t->dims[axis]) == channels ? values : std::vector<double>{};
}

// Weights with each output channel multiplied by its scale.
HostTensorPtr scaled_weights(const HostTensor& w, const Node& conv,
                             const std::vector<double>& scale) {
    HostTensor result = make_host_tensor(w.dtype, w.dims);
    const auto outer = static_cast<size_t>(w.dims[0]), width = static_cast<size_t>(w.dims[1]);
    const size_t window = static_cast<size_t>(w.size()) / (outer * width);
    const auto groups = static_cast<size_t>(conv.integer("group", 1));
    const std::vector<double> values = w.dtype == ENPU_OP_F32 ? std::vector<double>{} : as_f64(w);
    for (size_t o = 0; o < outer; ++o) {
        for (size_t i = 0; i < width; ++i) {
            // ConvTranspose has its weights as [C, O/groups, ...].
            const size_t channel = conv.op == "Conv" ? o : o / (outer / groups) * width + i;
            const size_t begin = (o * width + i) * window;
            if (w.dtype == ENPU_OP_F32) {  // nearly always; conversions would take most of the time
                const auto factor = static_cast<float>(scale[channel]);
                for (size_t k = begin; k < begin + window; ++k) {
                    result.data<float>()[k] = w.data<float>()[k] * factor;
                }
                continue;
            }
            for (size_t k = begin; k < begin + window; ++k) {
                store(result, static_cast<int64_t>(k), values[k] * scale[channel]);
            }
        }
    }
    return std::make_shared<const HostTensor>(std::move(result));
}

// y = conv(x) * scale + shift, per output channel.
void scale_conv(Graph& graph, Node& conv, const std::vector<double>& scale,
                const std::vector<double>& shift) {
    const size_t channels = scale.size();
    const HostTensorPtr w = graph.values[static_cast<size_t>(conv.inputs[1])].constant;
    const bool scaled = std::any_of(scale.begin(), scale.end(), [](double s) { return s != 1; });
    if (scaled) {
        conv.inputs[1] =
            graph.add_constant(conv.name + ".weights", scaled_weights(*w, conv, scale));
    }
    std::vector<double> bias(channels, 0.0);
    if (conv.input(2) >= 0) bias = as_f64(*graph.constant(conv.inputs[2]));
    auto new_bias = make_host_tensor(w->dtype, {static_cast<int64_t>(channels)});
    for (size_t i = 0; i < channels; ++i) {
        store(new_bias, static_cast<int64_t>(i), bias[i] * scale[i] + shift[i]);
    }
    conv.inputs.resize(3, -1);
    conv.inputs[2] =
        graph.add_constant(conv.name + ".bias", std::make_shared<HostTensor>(std::move(new_bias)));
}

// Factors that `node` applies to the result of `conv`; false when it does something else.
bool factors(const Graph& graph, const Node& node, const Node& conv, std::vector<double>& scale,
             std::vector<double>& shift) {
    const size_t channels = channels_of(graph, conv);
    const size_t rank = graph.constant(conv.inputs[1])->dims.size();
    if (node.op == "BatchNormalization") {
        std::vector<double> p[4];
        for (size_t i = 0; i < 4; ++i) {
            const HostTensor* t = graph.constant(node.input(i + 1));
            if (!t || static_cast<size_t>(t->size()) != channels) return false;
            p[i] = as_f64(*t);
        }
        const double epsilon = node.real("epsilon", 1e-5f);
        for (size_t i = 0; i < channels; ++i) {
            scale.push_back(p[0][i] / std::sqrt(p[3][i] + epsilon));
            shift.push_back(p[1][i] - p[2][i] * scale[i]);
        }
        return true;
    }
    if (node.op != "Mul" && node.op != "Add") return false;
    const int other = node.inputs[0] == conv.outputs[0] ? node.inputs[1] : node.inputs[0];
    const auto values = per_channel(graph, other, channels, rank);
    if (values.empty()) return false;
    scale = node.op == "Mul" ? values : std::vector<double>(channels, 1.0);
    shift = node.op == "Add" ? values : std::vector<double>(channels, 0.0);
    return true;
}

// Follows the chain of nodes behind a convolution as far as it folds; the number of nodes that
// went.
size_t fold_conv(Graph& graph, const Uses& uses, Node& conv) {
    if (!conv.activation.none() || conv.residual >= 0 || conv.outputs.size() != 1) return 0;
    const HostTensor* w = graph.constant(conv.input(1));
    if (!w || w->dims.size() < 3 || !is_float(w->dtype)) return 0;
    const int64_t groups = conv.integer("group", 1);
    if (w->size() == 0 || groups < 1 || groups > w->dims[0] || w->dims[0] % groups != 0) return 0;
    const size_t channels = channels_of(graph, conv);
    if (conv.input(2) >= 0) {
        const HostTensor* bias = graph.constant(conv.inputs[2]);
        if (!bias || static_cast<size_t>(bias->size()) != channels) return 0;
    }
    std::vector<double> scale(channels, 1.0), shift(channels, 0.0);
    size_t count = 0;
    for (int next = uses.only_consumer(conv.outputs[0]); next >= 0;
         next = uses.only_consumer(conv.outputs[0])) {
        Node& node = graph.nodes[static_cast<size_t>(next)];
        std::vector<double> by, plus;
        if (node.outputs.empty() || !factors(graph, node, conv, by, plus)) break;
        for (size_t c = 0; c < channels; ++c) {
            scale[c] *= by[c];
            shift[c] = shift[c] * by[c] + plus[c];
        }
        conv.outputs[0] = node.outputs[0];
        node.op.clear();
        ++count;
    }
    if (count) scale_conv(graph, conv, scale, shift);
    return count;
}

bool fold_matmul_bias(Graph& graph, const Uses& uses, Node& matmul) {
    if (matmul.inputs.size() != 2 || !matmul.activation.none()) return false;
    const HostTensor* w = graph.constant(matmul.inputs[1]);
    if (!w || w->dims.size() != 2) return false;
    const int next = uses.only_consumer(matmul.outputs[0]);
    if (next < 0) return false;
    Node& node = graph.nodes[static_cast<size_t>(next)];
    if (node.op != "Add") return false;
    const int other = node.inputs[0] == matmul.outputs[0] ? node.inputs[1] : node.inputs[0];
    const HostTensor* bias = graph.constant(other);
    if (!bias || bias->dims.size() != 1 || bias->dims[0] != w->dims[1]) return false;
    matmul.inputs.push_back(other);
    matmul.outputs[0] = node.outputs[0];
    node.op.clear();
    return true;
}

void drop_cleared(Graph& graph) {
    std::erase_if(graph.nodes, [](const Node& node) { return node.op.empty(); });
}

}  // namespace

size_t fold_constants(Graph& graph) {
    size_t count = 0;
    for (Node& node : graph.nodes) {
        if (try_fold(graph, node)) {
            node.op.clear();
            ++count;
        }
    }
    drop_cleared(graph);
    return count;
}

size_t fold_into_weights(Graph& graph) {
    size_t count = 0;
    const Uses uses(graph);
    for (Node& node : graph.nodes) {
        if (is_conv(node)) count += fold_conv(graph, uses, node);
        if (node.op == "MatMul" && fold_matmul_bias(graph, uses, node)) ++count;
    }
    drop_cleared(graph);
    return count;
}

}  // namespace enpu::lowering
