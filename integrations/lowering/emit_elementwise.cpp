// SPDX-License-Identifier: MIT
// Functions, arithmetic with broadcasting, comparisons, selection, conversions.
#include <limits>

#include <array>

#include "activation.h"
#include "blocks.h"
#include "emit_common.h"
#include "shapes.h"

namespace enpu::lowering {

enpu_op_unary_params unary_params(const Activation& a) {
    return {a.function, a.alpha, a.beta};
}

namespace {

void emit_function(Emitter& e, const Node& node, const View& x, const Activation& activation) {
    e.define(node.outputs[0], activate(e, activation, x));
}

// "Unary" made by the passes, and functions that they left alone.
void emit_unary(Emitter& e, const Node& node) {
    if (node.op == "Unary") {
        emit_function(e, node, e.device(node.input(0)), node.activation);
        return;
    }
    if (node.op == "Clip" && e.known(node.input(0))) {
        // Bounds that are inputs of the graph: known now.
        float low = -std::numeric_limits<float>::infinity(), high = -low;
        for (size_t i : {size_t{1}, size_t{2}}) {
            if (node.input(i) < 0) continue;
            const HostTensorPtr bound = e.host(node.inputs[i]);
            if (!bound || bound->size() != 1)
                fail("the bounds of Clip are not known while compiling");
            (i == 1 ? low : high) = static_cast<float>(as_f64(*bound)[0]);
        }
        emit_function(e, node, e.device(node.inputs[0]),
                      {ENPU_OP_UNARY_CLIP, low > high ? high : low, high});
        return;
    }
    size_t input = 0;
    const auto activation = activation_of(e.graph(), node, &input);
    if (!activation) fail("the parameters of this function are not supported");
    emit_function(e, node, e.device(node.input(input)), *activation);
}

void emit_is_inf(Emitter& e, const Node& node) {
    const bool negative = node.integer("detect_negative", 1) != 0;
    const bool positive = node.integer("detect_positive", 1) != 0;
    if (!negative && !positive) fail("IsInf that detects nothing is unsupported");
    const float which = negative && positive ? 0.0f : positive ? 1.0f : -1.0f;
    emit_function(e, node, e.device(node.input(0)), {ENPU_OP_UNARY_ISINF, which, 0});
}

const std::map<std::string, uint32_t>& binary_functions() {
    static const std::map<std::string, uint32_t> kTable = {
        {"Add", ENPU_OP_BINARY_ADD},          {"Sub", ENPU_OP_BINARY_SUB},
        {"Mul", ENPU_OP_BINARY_MUL},          {"Div", ENPU_OP_BINARY_DIV},
        {"Min", ENPU_OP_BINARY_MIN},          {"Max", ENPU_OP_BINARY_MAX},
        {"Pow", ENPU_OP_BINARY_POW},          {"PRelu", ENPU_OP_BINARY_PRELU},
        {"Sum", ENPU_OP_BINARY_ADD},          {"Equal", ENPU_OP_BINARY_EQ},
        {"Less", ENPU_OP_BINARY_LT},          {"LessOrEqual", ENPU_OP_BINARY_LE},
        {"Greater", ENPU_OP_BINARY_GT},       {"GreaterOrEqual", ENPU_OP_BINARY_GE},
        {"And", ENPU_OP_BINARY_AND},          {"Or", ENPU_OP_BINARY_OR},
        {"Xor", ENPU_OP_BINARY_XOR},          {"BitwiseAnd", ENPU_OP_BINARY_BIT_AND},
        {"BitwiseOr", ENPU_OP_BINARY_BIT_OR}, {"BitwiseXor", ENPU_OP_BINARY_BIT_XOR},
    };
    return kTable;
}

// Base and exponent of different types: computed in that of the one that is a float.
bool emit_mixed_power(Emitter& e, const Node& node) {
    const View base = e.device(node.input(0)), exponent = e.device(node.input(1));
    if (base.dtype == exponent.dtype) return false;
    const uint32_t dtype = is_float(base.dtype)       ? base.dtype
                           : is_float(exponent.dtype) ? exponent.dtype
                                                      : uint32_t{ENPU_OP_I64};
    const View y = binary(e, ENPU_OP_BINARY_POW, cast(e, base, dtype), cast(e, exponent, dtype));
    e.define(node.outputs[0], cast(e, y, base.dtype));
    return true;
}

void emit_binary(Emitter& e, const Node& node) {
    const auto it = binary_functions().find(node.op);
    if (node.op == "Pow" && emit_mixed_power(e, node)) return;
    View y = e.device(node.input(0));
    if (node.inputs.size() == 1) {
        e.define(node.outputs[0], y);
        return;
    }
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        const bool last = i + 1 == node.inputs.size();
        View b = e.device(node.inputs[i]);
        if (node.op == "PRelu") b = e.broadcast(b, y.dims);
        y = binary(e, it->second, y, b, last ? node.activation : Activation{});
    }
    e.define(node.outputs[0], y);
}

void emit_mean(Emitter& e, const Node& node) {
    View y = e.device(node.input(0));
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        y = binary(e, ENPU_OP_BINARY_ADD, y, e.device(node.inputs[i]));
    }
    emit_function(e, node, y,
                  {ENPU_OP_UNARY_SCALE, 1.0f / static_cast<float>(node.inputs.size()), 0});
}

void emit_mod(Emitter& e, const Node& node) {
    const bool fmod = node.integer("fmod", 0) != 0;
    e.define(node.outputs[0], binary(e, fmod ? ENPU_OP_BINARY_FMOD : ENPU_OP_BINARY_MOD,
                                     e.device(node.input(0)), e.device(node.input(1))));
}

void emit_shift(Emitter& e, const Node& node) {
    const bool left = node.text("direction", "") == "LEFT";
    e.define(node.outputs[0],
             binary(e, left ? ENPU_OP_BINARY_SHIFT_LEFT : ENPU_OP_BINARY_SHIFT_RIGHT,
                    e.device(node.input(0)), e.device(node.input(1))));
}

void emit_where(Emitter& e, const Node& node) {
    e.define(node.outputs[0],
             select(e, e.device(node.input(0)), e.device(node.input(1)), e.device(node.input(2))));
}

void emit_cast(Emitter& e, const Node& node) {
    // CastLike: the type of the second operand.
    const uint32_t dtype = node.op == "CastLike"
                               ? e.dtype(node.input(1))
                               : static_cast<uint32_t>(node.integer("dtype", ENPU_OP_NONE));
    e.define(node.outputs[0], cast(e, e.device(node.input(0)), dtype));
}

// A scale or zero point: one element, or one an index of `axis`.
View along_axis(Emitter& e, const View& view, const Dims& dims, int64_t axis) {
    if (element_count(view.dims) == 1) {
        View scalar = view;
        scalar.dims.clear();
        scalar.strides.clear();
        return e.broadcast(scalar, dims);
    }
    const auto a = static_cast<size_t>(normalise_axis(axis, dims.size()));
    if (view.dims.size() != 1 || view.dims[0] != dims[a])
        fail("blocked quantisation is unsupported");
    Dims shape(dims.size() - a, 1);
    shape[0] = view.dims[0];
    return e.broadcast(e.reshape(view, shape), dims);
}

void emit_quantize(Emitter& e, const Node& node) {
    const bool quantise = node.op == "QuantizeLinear";
    const View x = e.device(node.input(0));
    const int64_t axis = node.integer("axis", 1);
    const View scale = along_axis(e, e.device(node.input(1)), x.dims, axis);
    View zero;
    if (node.input(2) >= 0) zero = along_axis(e, e.device(node.inputs[2]), x.dims, axis);
    const uint32_t dtype =
        quantise ? (zero.absent() ? uint32_t{ENPU_OP_U8} : zero.dtype) : scale.dtype;
    const View y = e.temporary(dtype, x.dims, strides_like(x, x.dims));
    e.add(quantise ? ENPU_OP_QUANTIZE : ENPU_OP_DEQUANTIZE, {x, scale, zero, y});
    e.define(node.outputs[0], y);
}

}  // namespace

const EmitTable& elementwise_emitters() {
    static const EmitTable kTable = [] {
        EmitTable table = {
            {"Unary", emit_unary},
            {"IsInf", emit_is_inf},
            {"Mean", emit_mean},
            {"Mod", emit_mod},
            {"BitShift", emit_shift},
            {"Where", emit_where},
            {"Cast", emit_cast},
            {"CastLike", emit_cast},
            {"QuantizeLinear", emit_quantize},
            {"DequantizeLinear", emit_quantize},
        };
        for (const auto& [name, function] : binary_functions()) table[name] = emit_binary;
        return table;
    }();
    return kTable;
}

namespace {

std::array<const EmitTable*, 12> emit_tables() {
    return {&conv_emitters(),        &resize_emitters(),    &matmul_emitters(),
            &elementwise_emitters(), &reduction_emitters(), &movement_emitters(),
            &integer_emitters(),     &loss_emitters(),      &attention_emitters(),
            &recurrent_emitters(),   &selection_emitters(), &statistics_emitters()};
}

}  // namespace

EmitFunction find_emitter(const std::string& op) {
    for (const EmitTable* table : emit_tables()) {
        const auto it = table->find(op);
        if (it != table->end()) return it->second;
    }
    return is_unary_op(op) ? emit_unary : nullptr;
}

std::vector<std::string> operators() {
    std::vector<std::string> names = unary_ops();
    for (const EmitTable* table : emit_tables())
        for (const auto& [name, function] : *table) names.push_back(name);
    return names;
}

}  // namespace enpu::lowering
