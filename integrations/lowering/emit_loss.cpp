// SPDX-License-Identifier: MIT
// Losses over classes, as ONNX defines them.
#include "blocks.h"
#include "emit_common.h"
#include "shapes.h"

namespace enpu::lowering {
namespace {

// The loss of each target, its weight, and what is left of both after the reduction.
// log_probability is [N, C, spatial…], target [N, spatial…].
View likelihood_loss(Emitter& e, const Node& node, const View& log_probability) {
    const View target = e.device(node.input(1));
    if (log_probability.dims.size() < 2 || target.dims.size() + 1 != log_probability.dims.size()) {
        fail("the target must have the dims of the input without the classes");
    }
    const uint32_t dtype = log_probability.dtype;
    View index = target, counts;  // counts: BOOL, false where a target is ignored
    if (node.has("ignore_index")) {
        const View ignored =
            scalar(e, target.dtype, static_cast<double>(node.integer("ignore_index", 0)));
        counts = binary(e, ENPU_OP_BINARY_NE, target, ignored);
        index = select(e, counts, target, scalar(e, target.dtype, 0));
    }
    const View picked =
        without_axis(gather_elements(e, log_probability, with_axis(index, 1), 1), 1);
    View loss = unary(e, ENPU_OP_UNARY_NEG, picked);
    View weight;
    if (node.input(2) >= 0) weight = take(e, e.device(node.inputs[2]), index, 0);
    if (!counts.absent()) {
        weight =
            select(e, counts, weight.absent() ? scalar(e, dtype, 1) : weight, scalar(e, dtype, 0));
    }
    if (!weight.absent()) loss = binary(e, ENPU_OP_BINARY_MUL, loss, weight);
    const std::string reduction = node.text("reduction", "mean");
    if (reduction == "none") return loss;
    if (reduction != "mean" && reduction != "sum") fail("reduction '" + reduction + "' is unknown");
    const uint32_t all = (1u << loss.dims.size()) - 1;
    const bool plain_mean = reduction == "mean" && weight.absent();
    View result = reduce(e, plain_mean ? ENPU_OP_REDUCE_MEAN : ENPU_OP_REDUCE_SUM, loss, all);
    if (reduction == "mean" && !plain_mean) {
        result = binary(e, ENPU_OP_BINARY_DIV, result,
                        reduce(e, ENPU_OP_REDUCE_SUM, e.broadcast(weight, loss.dims), all));
    }
    return e.reshape(result, {});
}

void emit_likelihood_loss(Emitter& e, const Node& node) {
    e.define(node.outputs[0], likelihood_loss(e, node, e.device(node.input(0))));
}

void emit_cross_entropy(Emitter& e, const Node& node) {
    const View scores = e.device(node.input(0));
    if (scores.dims.size() < 2) fail("the scores must have at least two dims");
    const View log_probability = softmax(e, scores, 1, true);
    e.define(node.outputs[0], likelihood_loss(e, node, log_probability));
    if (node.outputs.size() > 1) e.define(node.outputs[1], log_probability);
}

}  // namespace

const EmitTable& loss_emitters() {
    static const EmitTable kTable = {{"NegativeLogLikelihoodLoss", emit_likelihood_loss},
                                     {"SoftmaxCrossEntropyLoss", emit_cross_entropy}};
    return kTable;
}

}  // namespace enpu::lowering
