// SPDX-License-Identifier: MIT
// Passes over a graph, each correct by itself; optimise() runs them in the order that works best.
#ifndef ENPU_LOWERING_PASSES_H
#define ENPU_LOWERING_PASSES_H

#include "graph.h"

namespace enpu::lowering {

struct OptimiseReport {
    size_t folded_constants = 0;     // nodes computed on the host
    size_t folded_into_weights = 0;  // BatchNormalization, Mul, Add that went into weights and bias
    size_t quantised = 0;            // products that became products of integers
    size_t patterns = 0;             // groups of nodes that became one
    size_t fused = 0;                // activations and additions that went into their producer
};

size_t fold_constants(Graph& graph);
// BatchNormalization, and Mul and Add by a constant per channel, into Conv, ConvTranspose; Add of a
// constant vector into MatMul.
size_t fold_into_weights(Graph& graph);
// Products between DequantizeLinear and QuantizeLinear.
size_t fold_quantised(Graph& graph);
// Hard swish, SiLU, GELU, layer norm as frameworks spell them.
size_t match_patterns(Graph& graph);
// Chains of functions, activations into their producer, residual additions into Conv and MatMul.
size_t fuse_epilogues(Graph& graph);

OptimiseReport optimise(Graph& graph);

}  // namespace enpu::lowering
#endif
