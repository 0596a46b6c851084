// SPDX-License-Identifier: MIT
// Softmax, norms, reductions, arg max.
#include "blocks.h"
#include "emit_common.h"
#include "shapes.h"

namespace enpu::lowering {
namespace {

void emit_softmax(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    if (x.dims.empty()) fail("softmax of a scalar");
    const bool old = node.opset > 0 && node.opset < 13;  // flattened to a matrix at axis
    const auto axis =
        static_cast<size_t>(normalise_axis(node.integer("axis", old ? 1 : -1), x.dims.size()));
    if (!old || axis + 1 == x.dims.size()) {
        e.define(node.outputs[0], softmax(e, x, axis, node.op == "LogSoftmax"));
        return;
    }
    const auto split = x.dims.begin() + static_cast<std::ptrdiff_t>(axis);
    const Dims flat = {element_count(Dims(x.dims.begin(), split)),
                       element_count(Dims(split, x.dims.end()))};
    const View y = softmax(e, e.reshape(x, flat), 1, node.op == "LogSoftmax");
    e.define(node.outputs[0], e.reshape(y, x.dims));
}

enpu_op_norm_params norm_params(uint32_t kind, const Node& node) {
    enpu_op_norm_params p{};
    p.kind = kind;
    p.epsilon = node.real("epsilon", 1e-5f);
    p.act = node.activation.function;
    p.alpha = node.activation.alpha;
    p.beta = node.activation.beta;
    return p;
}

View broadcast_optional(Emitter& e, int value, const Dims& dims) {
    return value < 0 ? View{} : e.broadcast(e.device(value), dims);
}

void emit_layer_norm(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    const bool rms = node.op == "RMSNormalization";
    enpu_op_norm_params p = norm_params(rms ? ENPU_OP_NORM_RMS : ENPU_OP_NORM_LAYER, node);
    p.axis = static_cast<uint32_t>(normalise_axis(node.integer("axis", -1), x.dims.size()));
    const View y = e.temporary(x.dtype, x.dims, strides_like(x, x.dims));
    e.add(ENPU_OP_NORM_FWD, p,
          {x, broadcast_optional(e, node.input(1), x.dims),
           broadcast_optional(e, node.input(2), x.dims), View{}, View{}, y});
    e.define(node.outputs[0], y);
    if (node.outputs.size() < 2) return;
    uint32_t axes = 0;
    for (size_t axis = p.axis; axis < x.dims.size(); ++axis) axes |= 1u << axis;
    const Moments m = moments(e, x, axes);
    e.define(node.outputs[1], m.mean);
    if (node.outputs.size() > 2) {
        e.define(node.outputs[2], inverse_deviation(e, m.variance, p.epsilon));
    }
}

void emit_batch_norm(Emitter& e, const Node& node) {
    if (node.integer("training_mode", 0)) fail("training is unsupported");
    const View x = e.device(node.input(0));
    const View y = e.temporary(x.dtype, x.dims, strides_like(x, x.dims));
    e.add(ENPU_OP_NORM_FWD, norm_params(ENPU_OP_NORM_BATCH, node),
          {x, e.device(node.input(1)), e.device(node.input(2)), e.device(node.input(3)),
           e.device(node.input(4)), y});
    e.define(node.outputs[0], y);
}

void emit_group_norm(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    const bool instance = node.op == "InstanceNormalization";
    enpu_op_norm_params p =
        norm_params(instance ? ENPU_OP_NORM_INSTANCE : ENPU_OP_NORM_GROUP, node);
    if (!instance) p.groups = static_cast<uint32_t>(node.integer("num_groups", 0));
    const View y = e.temporary(x.dtype, x.dims, strides_like(x, x.dims));
    e.add(ENPU_OP_NORM_FWD, p,
          {x, e.device(node.input(1)), e.device(node.input(2)), View{}, View{}, y});
    e.define(node.outputs[0], y);
}

const std::map<std::string, uint32_t>& reduce_functions() {
    static const std::map<std::string, uint32_t> kTable = {
        {"ReduceSum", ENPU_OP_REDUCE_SUM},        {"ReduceMean", ENPU_OP_REDUCE_MEAN},
        {"ReduceMax", ENPU_OP_REDUCE_MAX},        {"ReduceMin", ENPU_OP_REDUCE_MIN},
        {"ReduceProd", ENPU_OP_REDUCE_PROD},      {"ReduceL1", ENPU_OP_REDUCE_L1},
        {"ReduceL2", ENPU_OP_REDUCE_L2},          {"ReduceSumSquare", ENPU_OP_REDUCE_SUM_SQUARE},
        {"ReduceLogSum", ENPU_OP_REDUCE_LOG_SUM}, {"ReduceLogSumExp", ENPU_OP_REDUCE_LOG_SUM_EXP},
    };
    return kTable;
}

// Drops the axes of a mask, all of them 1.
View squeezed(Emitter& e, const View& view, uint32_t axes) {
    Dims dims;
    for (size_t i = 0; i < view.dims.size(); ++i) {
        if (!(axes >> i & 1)) dims.push_back(view.dims[i]);
    }
    return e.reshape(view, dims);
}

void emit_reduce(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    const auto named = node.has("axes") ? node.integers("axes") : e.integers(node.input(1), "axes");
    if (named.empty() && node.integer("noop_with_empty_axes", 0)) {
        e.define(node.outputs[0], x);
        return;
    }
    uint32_t axes = 0;
    for (int64_t axis : named) axes |= 1u << normalise_axis(axis, x.dims.size());
    if (named.empty()) axes = (1u << x.dims.size()) - 1;
    const View y = reduce(e, reduce_functions().at(node.op), x, axes);
    e.define(node.outputs[0], node.integer("keepdims", 1) ? y : squeezed(e, y, axes));
}

void emit_arg(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    const auto axis = static_cast<size_t>(normalise_axis(node.integer("axis", 0), x.dims.size()));
    const View y =
        arg_reduce(e, x, axis, node.op == "ArgMin", node.integer("select_last_index", 0) != 0);
    e.define(node.outputs[0], node.integer("keepdims", 1) ? y : squeezed(e, y, 1u << axis));
}

}  // namespace

const EmitTable& reduction_emitters() {
    static const EmitTable kTable = [] {
        EmitTable table = {
            {"Softmax", emit_softmax},
            {"LogSoftmax", emit_softmax},
            {"LayerNormalization", emit_layer_norm},
            {"RMSNormalization", emit_layer_norm},
            {"BatchNormalization", emit_batch_norm},
            {"InstanceNormalization", emit_group_norm},
            {"GroupNormalization", emit_group_norm},
            {"ArgMax", emit_arg},
            {"ArgMin", emit_arg},
        };
        for (const auto& [name, function] : reduce_functions()) table[name] = emit_reduce;
        return table;
    }();
    return kTable;
}

}  // namespace enpu::lowering
