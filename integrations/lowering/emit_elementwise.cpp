// SPDX-License-Identifier: MIT
// Functions, arithmetic with broadcasting, comparisons, selection, conversions.
#include <limits>

#include "activation.h"
#include "emit_common.h"
#include "shapes.h"

namespace enpu::lowering {

enpu_op_unary_params unary_params(const Activation& a) {
    return {a.function, a.alpha, a.beta};
}

namespace {

void emit_function(Emitter& e, const Node& node, const View& x, const Activation& activation) {
    const uint32_t dtype =
        activation.function == ENPU_OP_UNARY_ISNAN || activation.function == ENPU_OP_UNARY_ISINF
            ? uint32_t{ENPU_OP_BOOL}
            : x.dtype;
    const View y = e.temporary(dtype, x.dims, strides_like(x, x.dims));
    e.add(ENPU_OP_UNARY, unary_params(activation), {x, y});
    e.define(node.outputs[0], y);
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

struct BinaryKind {
    uint32_t function;
    bool gives_bool;
};

const std::map<std::string, BinaryKind>& binary_kinds() {
    static const std::map<std::string, BinaryKind> kTable = {
        {"Add", {ENPU_OP_BINARY_ADD, false}},
        {"Sub", {ENPU_OP_BINARY_SUB, false}},
        {"Mul", {ENPU_OP_BINARY_MUL, false}},
        {"Div", {ENPU_OP_BINARY_DIV, false}},
        {"Min", {ENPU_OP_BINARY_MIN, false}},
        {"Max", {ENPU_OP_BINARY_MAX, false}},
        {"Pow", {ENPU_OP_BINARY_POW, false}},
        {"PRelu", {ENPU_OP_BINARY_PRELU, false}},
        {"Sum", {ENPU_OP_BINARY_ADD, false}},
        {"Equal", {ENPU_OP_BINARY_EQ, true}},
        {"Less", {ENPU_OP_BINARY_LT, true}},
        {"LessOrEqual", {ENPU_OP_BINARY_LE, true}},
        {"Greater", {ENPU_OP_BINARY_GT, true}},
        {"GreaterOrEqual", {ENPU_OP_BINARY_GE, true}},
        {"And", {ENPU_OP_BINARY_AND, false}},
        {"Or", {ENPU_OP_BINARY_OR, false}},
        {"Xor", {ENPU_OP_BINARY_XOR, false}},
        {"BitwiseAnd", {ENPU_OP_BINARY_BIT_AND, false}},
        {"BitwiseOr", {ENPU_OP_BINARY_BIT_OR, false}},
        {"BitwiseXor", {ENPU_OP_BINARY_BIT_XOR, false}},
    };
    return kTable;
}

// The layout of a result follows the operand that is not broadcast.
Dims result_strides(const View& a, const View& b, const Dims& dims) {
    if (a.dims == dims) return strides_like(a, dims);
    if (b.dims == dims) return strides_like(b, dims);
    return a.dims.size() == dims.size() ? strides_like(a, dims) : row_major_strides(dims);
}

View binary(Emitter& e, const BinaryKind& kind, const View& a, const View& b,
            const Activation& activation) {
    if (a.dtype != b.dtype) fail("operands of different element types");
    const Dims dims = broadcast_dims(a.dims, b.dims);
    const View y = e.temporary(kind.gives_bool ? uint32_t{ENPU_OP_BOOL} : a.dtype, dims,
                               result_strides(a, b, dims));
    const enpu_op_binary_params p{kind.function, activation.function, activation.alpha,
                                  activation.beta};
    e.add(ENPU_OP_BINARY, p, {e.broadcast(a, dims), e.broadcast(b, dims), y});
    return y;
}

void emit_binary(Emitter& e, const Node& node) {
    const auto it = binary_kinds().find(node.op);
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
        y = binary(e, {ENPU_OP_BINARY_ADD, false}, y, e.device(node.inputs[i]), {});
    }
    emit_function(e, node, y,
                  {ENPU_OP_UNARY_SCALE, 1.0f / static_cast<float>(node.inputs.size()), 0});
}

void emit_mod(Emitter& e, const Node& node) {
    const bool fmod = node.integer("fmod", 0) != 0;
    e.define(node.outputs[0], binary(e, {fmod ? ENPU_OP_BINARY_FMOD : ENPU_OP_BINARY_MOD, false},
                                     e.device(node.input(0)), e.device(node.input(1)), {}));
}

void emit_shift(Emitter& e, const Node& node) {
    const bool left = node.text("direction", "") == "LEFT";
    e.define(node.outputs[0],
             binary(e, {left ? ENPU_OP_BINARY_SHIFT_LEFT : ENPU_OP_BINARY_SHIFT_RIGHT, false},
                    e.device(node.input(0)), e.device(node.input(1)), {}));
}

void emit_where(Emitter& e, const Node& node) {
    const View c = e.device(node.input(0)), a = e.device(node.input(1)),
               b = e.device(node.input(2));
    if (a.dtype != b.dtype) fail("operands of different element types");
    const Dims dims = broadcast_dims(broadcast_dims(c.dims, a.dims), b.dims);
    const View y = e.temporary(a.dtype, dims, result_strides(a, b, dims));
    e.add(ENPU_OP_SELECT, {e.broadcast(c, dims), e.broadcast(a, dims), e.broadcast(b, dims), y});
    e.define(node.outputs[0], y);
}

void emit_cast(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    const auto dtype = static_cast<uint32_t>(node.integer("dtype", ENPU_OP_NONE));
    if (dtype == x.dtype) {
        e.define(node.outputs[0], x);
        return;
    }
    const View y = e.temporary(dtype, x.dims, strides_like(x, x.dims));
    e.add(ENPU_OP_CAST, {x, y});
    e.define(node.outputs[0], y);
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
            {"QuantizeLinear", emit_quantize},
            {"DequantizeLinear", emit_quantize},
        };
        for (const auto& [name, kind] : binary_kinds()) table[name] = emit_binary;
        return table;
    }();
    return kTable;
}

EmitFunction find_emitter(const std::string& op) {
    for (const EmitTable* table :
         {&conv_emitters(), &matmul_emitters(), &elementwise_emitters(), &reduction_emitters(),
          &movement_emitters(), &integer_emitters()}) {
        const auto it = table->find(op);
        if (it != table->end()) return it->second;
    }
    return is_unary_op(op) ? emit_unary : nullptr;
}

}  // namespace enpu::lowering
