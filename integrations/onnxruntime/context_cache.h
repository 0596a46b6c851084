// SPDX-License-Identifier: MIT
// Compiled subgraphs in models: EPContext nodes, with the optimised graph and its weights inside or in a file beside
// the model.
#ifndef ENPU_ORT_CONTEXT_CACHE_H
#define ENPU_ORT_CONTEXT_CACHE_H

#include "graph.h"
#include "ort_api.h"

namespace enpu::ort {

struct ContextOptions {
    bool enabled = false;  // the session writes a model with contexts
    bool embedded = false;
    std::string model_path;  // of the model that is written; empty: beside the one that is read
};

ContextOptions read_context_options(const OrtSessionOptions* options);

// Whether the node is a context of this provider.
bool is_context(const lowering::Node& node);

// The node for one compiled subgraph; writes its file unless embedded. ONNX Runtime owns it.
OrtNode* make_context_node(const ContextOptions& options, const std::string& read_model,
                           const OrtNode* fused, const lowering::Graph& graph);

// The graph of a context node. `read_model` is the path of the model it is in. Throws
// lowering::Error: the file is missing, damaged, outside the folder of the model, of another
// version.
lowering::Graph load_context(const lowering::Node& node, const std::string& read_model);

}  // namespace enpu::ort
#endif
