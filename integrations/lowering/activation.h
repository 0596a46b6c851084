// SPDX-License-Identifier: MIT
// Operators of one operand as functions that the device applies, by themselves or fused.
#ifndef ENPU_LOWERING_ACTIVATION_H
#define ENPU_LOWERING_ACTIVATION_H

#include "graph.h"

namespace enpu::lowering {

bool is_unary_op(const std::string& op);
std::vector<std::string> unary_ops();  // all of them
// The function of a node whose other operands are constants (Relu, Clip, HardSigmoid …, and Add,
// Sub, Mul, Div, Pow with a constant of one element). nullopt: it is none. *input is the index of
// the operand that it is applied to.
std::optional<Activation> activation_of(const Graph& graph, const Node& node, size_t* input);

}  // namespace enpu::lowering
#endif
