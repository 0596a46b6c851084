// SPDX-License-Identifier: MIT
// Quantised products: DequantizeLinear on both operands and QuantizeLinear on the result become one product of
// integers, whose sums are exact.
#include <algorithm>
#include <cmath>

#include "passes.h"

namespace enpu::lowering {
namespace {

class QuantisedFolder {
  public:
    explicit QuantisedFolder(Graph& graph) : graph_(graph), uses_(graph) {}

    bool fold(Node& quantise) {
        if (quantise.op != "QuantizeLinear" || !byte_result(quantise)) return false;
        Node* product = only_maker(quantise.inputs[0]);
        const Node* relu = product && product->op == "Relu" ? product : nullptr;
        if (relu) {
            if (!zero_is_lowest(quantise)) return false;  // else the function changes the result
            product = only_maker(relu->inputs[0]);
        }
        if (!product || product->inputs.size() < 2) return false;
        if (product->op == "Conv") return become_product(quantise, *product, 0, "QLinearConv");
        if (product->op == "MatMul") return become_product(quantise, *product, -1, "QLinearMatMul");
        if (product->op != "Gemm" || !plain_gemm(*product)) return false;
        const bool transposed = product->integer("transB", 0) != 0;
        return become_product(quantise, *product, transposed ? 0 : -1, "QLinearMatMul");
    }

  private:
    uint32_t dtype(int value) const {
        return value < 0 ? uint32_t{ENPU_OP_NONE} : graph_.values[static_cast<size_t>(value)].dtype;
    }
    static bool is_byte(uint32_t dtype) { return dtype == ENPU_OP_I8 || dtype == ENPU_OP_U8; }

    // The plain node that makes `value`, when nobody else reads it.
    Node* only_maker(int value) const {
        if (value < 0 || uses_.is_output[static_cast<size_t>(value)]) return nullptr;
        const int n = uses_.producer[static_cast<size_t>(value)];
        if (n < 0 || uses_.only_consumer(value) < 0) return nullptr;
        Node& node = graph_.nodes[static_cast<size_t>(n)];
        return node.activation.none() && node.residual < 0 ? &node : nullptr;
    }
    const Node* dequantised(int value) const {
        if (value < 0) return nullptr;
        const int n = uses_.producer[static_cast<size_t>(value)];
        if (n < 0) return nullptr;
        const Node& node = graph_.nodes[static_cast<size_t>(n)];
        return node.op == "DequantizeLinear" && !node.has("block_size") ? &node : nullptr;
    }
    static bool plain_gemm(const Node& node) {
        return node.real("alpha", 1) == 1 && node.real("beta", 1) == 1 &&
               !node.integer("transA", 0);
    }
    bool one_scale(int value) const {
        const HostTensor* scale = graph_.constant(value);
        return scale && !scale->bytes.empty() && scale->size() == 1;
    }
    bool equal_zeros(int value) const {
        if (value < 0) return true;
        const HostTensor* zero = graph_.constant(value);
        if (!zero || zero->bytes.empty()) return false;
        const auto all = as_i64(*zero);
        return std::all_of(all.begin(), all.end(), [&](int64_t z) { return z == all[0]; });
    }
    bool byte_result(const Node& quantise) const {
        return is_byte(dtype(quantise.outputs[0])) && one_scale(quantise.input(1)) &&
               equal_zeros(quantise.input(2)) && !quantise.has("block_size");
    }
    bool zero_is_lowest(const Node& quantise) const {
        const int64_t lowest = dtype(quantise.outputs[0]) == ENPU_OP_U8 ? 0 : -128;
        const int zero = quantise.input(2);
        return (zero < 0 ? 0 : as_i64(*graph_.constant(zero))[0]) == lowest;
    }

    // One scale, or one for each output channel: index `axis` of the weights (-1: the last).
    bool weight_scales(const Node& weights, int64_t axis) const {
        const HostTensor* scale = graph_.constant(weights.input(1));
        const HostTensor* w = graph_.constant(weights.input(0));
        if (!scale || scale->bytes.empty() || !w || w->dims.empty()) return false;
        if (scale->size() == 1) return true;
        const size_t rank = w->dims.size();
        const int64_t own = normalise_axis(weights.integer("axis", 1), rank);
        return own == normalise_axis(axis, rank) &&
               scale->dims == Dims{w->dims[static_cast<size_t>(own)]};
    }

    // The integers of a bias that is quantised by the scales of the operands.
    std::optional<int> bias_of(const Node& product, const Node& x, const Node& w) const {
        if (product.input(2) < 0) return -1;
        const Node* bias = dequantised(product.input(2));
        if (!bias || dtype(bias->input(0)) != ENPU_OP_I32 || !equal_zeros(bias->input(2))) {
            return std::nullopt;
        }
        const HostTensor* own = graph_.constant(bias->input(1));
        const HostTensor* values = graph_.constant(bias->input(0));
        if (!own || own->bytes.empty() || !values || values->dims.size() != 1) return std::nullopt;
        const double sx = as_f64(*graph_.constant(x.input(1)))[0];
        const auto sw = as_f64(*graph_.constant(w.input(1))), sb = as_f64(*own);
        for (size_t i = 0; i < std::max(sw.size(), sb.size()); ++i) {
            const double want = sx * sw[sw.size() == 1 ? 0 : std::min(i, sw.size() - 1)];
            const double have = sb[sb.size() == 1 ? 0 : std::min(i, sb.size() - 1)];
            if (!(std::fabs(have - want) <= 1e-5 * std::fabs(want))) return std::nullopt;
        }
        return bias->input(0);
    }

    // A zero point left out is 0 of the type of what it belongs to.
    int zero_or(int zero, uint32_t type) {
        if (zero >= 0) return zero;
        return graph_.add_constant("zero",
                                   std::make_shared<const HostTensor>(make_host_tensor(type, {})));
    }

    bool become_product(Node& quantise, const Node& product, int64_t axis, const char* op) {
        const Node *x = dequantised(product.input(0)), *w = dequantised(product.input(1));
        if (!x || !w || !is_byte(dtype(x->input(0))) || !is_byte(dtype(w->input(0)))) return false;
        if (!one_scale(x->input(1)) || !equal_zeros(x->input(2)) || !equal_zeros(w->input(2)) ||
            !weight_scales(*w, axis)) {
            return false;
        }
        const auto bias = bias_of(product, *x, *w);
        if (!bias) return false;
        std::vector<int> inputs = {x->input(0), x->input(1), x->input(2),       w->input(0),
                                   w->input(1), w->input(2), quantise.input(1), quantise.input(2)};
        auto attributes = product.attributes;
        const uint32_t types[3] = {dtype(inputs[0]), dtype(inputs[3]), dtype(quantise.outputs[0])};
        inputs[2] = zero_or(inputs[2], types[0]);
        inputs[5] = zero_or(inputs[5], types[1]);
        inputs[7] = zero_or(inputs[7], types[2]);
        if (*bias >= 0) inputs.push_back(*bias);
        quantise.op = op;
        quantise.inputs = std::move(inputs);
        quantise.attributes = std::move(attributes);
        return true;
    }

    Graph& graph_;
    Uses uses_;
};

}  // namespace

size_t fold_quantised(Graph& graph) {
    QuantisedFolder folder(graph);
    size_t count = 0;
    for (Node& node : graph.nodes) count += folder.fold(node);
    remove_unused(graph);
    return count;
}

}  // namespace enpu::lowering
