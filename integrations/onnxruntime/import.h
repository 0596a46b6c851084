// SPDX-License-Identifier: MIT
// ONNX Runtime's view of a graph as a graph of the lowering library.
#ifndef ENPU_ORT_IMPORT_H
#define ENPU_ORT_IMPORT_H

#include "graph.h"
#include "ort_api.h"

namespace enpu::ort {

uint32_t dtype_of(ONNXTensorElementDataType type);  // ENPU_OP_NONE for types that we lack

// Nodes keep their order. Without `data`, large constants have dims but no bytes.
lowering::Graph import_graph(const Ort::ConstGraph& graph, bool data);

}  // namespace enpu::ort
#endif
