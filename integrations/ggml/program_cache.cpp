// SPDX-License-Identifier: MIT
#include "program_cache.h"

#include <algorithm>

#include "lower.h"

namespace enpu::ggml {
namespace {

void append(std::string& to, const void* data, size_t bytes) {
    to.append(static_cast<const char*>(data), bytes);
}

// All that the kernels of a node depend on.
void append_tensor(std::string& to, const ggml_tensor* t) {
    append(to, &t->type, sizeof(t->type));
    append(to, t->ne, sizeof(t->ne));
    append(to, t->nb, sizeof(t->nb));
    append(to, &t->data, sizeof(t->data));
}

}  // namespace

std::string why_not(lowering::DeviceSession& session, const ggml_tensor* node) {
    try {
        lowering::Plan plan;
        Lowering(plan).node(node);
        for (const lowering::Kernel& kernel : plan.kernels) {
            const std::string reason = session.check_kernel(kernel);
            if (!reason.empty()) return reason;
        }
        return {};
    } catch (const std::exception& error) {
        return error.what();
    }
}

std::string ProgramCache::signature(ggml_cgraph* graph) const {
    std::string key;
    for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
        const ggml_tensor* node = ggml_graph_node(graph, i);
        append(key, &node->op, sizeof(node->op));
        append(key, node->op_params, sizeof(node->op_params));
        append_tensor(key, node);
        for (const ggml_tensor* src : node->src) {
            if (src) append_tensor(key, src);
            key.push_back(src ? 1 : 0);
        }
    }
    return key;
}

void ProgramCache::launch(ggml_cgraph* graph, rt_stream stream) {
    const std::lock_guard guard(session_->lock());
    ++counters_.graphs;
    counters_.nodes += static_cast<uint64_t>(ggml_graph_n_nodes(graph));
    std::string key = signature(graph);
    auto found = std::find_if(programs_.begin(), programs_.end(),
                              [&](const auto& entry) { return entry.first == key; });
    if (found != programs_.end()) {
        ++counters_.hits;
        programs_.splice(programs_.begin(), programs_, found);
    } else {
        lowering::Plan plan;
        Lowering lowering(plan);
        for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
            const ggml_tensor* node = ggml_graph_node(graph, i);
            if (!ggml_is_empty(node)) lowering.node(node);
        }
        lowering::plan_memory(plan);
        if (programs_.size() >= kPrograms) programs_.pop_back();
        programs_.emplace_front(std::move(key),
                                std::make_unique<lowering::Program>(*session_, std::move(plan)));
        // Constants were uploaded, and memory came from, the session's own stream.
        lowering::check(rt_stream_sync(session_->stream(), rt_deadline_ms(60000)), "constants");
    }
    lowering::Program& program = *programs_.front().second;
    counters_.kernels += program.plan.kernels.size();
    if (program.exec) lowering::check(rt_graph_launch(program.exec, stream), "graph");
}

}  // namespace enpu::ggml
