// SPDX-License-Identifier: MIT
// Recording graphs. Scheduling and launching: graph_exec.cpp.
#include "graph.h"

#include <algorithm>
#include <cstring>

#include "common/status.h"

namespace enpu::rt {
namespace {

// Elements that a tensor has; saturates.
uint64_t elements(const enpu_op_tensor& tensor) {
    uint64_t count = 1;
    for (uint32_t i = 0; i < tensor.rank && i < ENPU_OP_MAX_RANK; ++i)
        if (__builtin_mul_overflow(count, static_cast<uint64_t>(tensor.dims[i]), &count))
            return uint64_t{1} << 40;
    return std::min(count, uint64_t{1} << 40);
}

uint64_t kernel_cost(const OpRecord& op) {
    const enpu_op_tensor& out = op.operands[op.dispatch.operand_count - 1].tensor;
    uint64_t work = 0;
    for (uint32_t i = 0; i < op.dispatch.operand_count; ++i)
        if (op.operands[i].tensor.dtype != ENPU_OP_NONE)
            work = std::max(work, elements(op.operands[i].tensor));
    switch (op.dispatch.op) {
        case ENPU_OP_CONV2D_FWD:  // a dot product over the weights of an output channel for each
        case ENPU_OP_CONV_TRANSPOSE2D_FWD: {
            const enpu_op_tensor& weights = op.operands[1].tensor;
            const uint64_t channels = std::max<int64_t>(weights.dims[0], 1);
            work += elements(out) * std::max<uint64_t>(elements(weights) / channels, 1) / 8;
            break;
        }
        case ENPU_OP_MATMUL_FWD: {
            const enpu_op_tensor& a = op.operands[0].tensor;
            const int64_t inner = a.rank ? a.dims[a.rank - 1] : 1;
            work += elements(out) * static_cast<uint64_t>(std::max<int64_t>(inner, 1)) / 8;
            break;
        }
        default:
            break;
    }
    return work;
}

}  // namespace

std::string node_text(const GraphNode& node, size_t index) {
    return "node " + std::to_string(index) + " (" + node.label() + ")";
}

uint64_t guess_cost(const GraphNode& node) {
    constexpr uint64_t kFixedNs = 2000;
    if (node.kind == GraphNode::Kind::kEmpty) return 0;
    if (node.kind == GraphNode::Kind::kHost) return 5 * kFixedNs;
    switch (node.op.command.kind) {
        case ENPU_HAL_COMMAND_COPY:
            return kFixedNs + node.op.command.u.copy.width * node.op.command.u.copy.height / 8;
        case ENPU_HAL_COMMAND_FILL:
            return kFixedNs + node.op.command.u.fill.bytes / 8;
        case ENPU_HAL_COMMAND_DISPATCH:
            return kFixedNs + kernel_cost(node.op);
        default:
            return kFixedNs / 4;
    }
}

}  // namespace enpu::rt

using namespace enpu::rt;

rt_node rt_graph_impl::append(std::unique_ptr<GraphNode> node,
                              const std::vector<rt_node>& dependencies) {
    std::lock_guard lock(mutex);
    node->dependencies = dependencies;
    nodes.push_back(std::move(node));
    return static_cast<rt_node>(nodes.size() - 1);
}

void rt_graph_impl::append_all(const GraphNodes& from, const std::vector<rt_node>& dependencies,
                               std::vector<rt_node>& ends) {
    std::lock_guard lock(mutex);
    const rt_node base = static_cast<rt_node>(nodes.size());
    std::vector<bool> followed(from.size());
    for (const auto& node : from) {
        auto copy = std::make_unique<GraphNode>(*node);
        for (rt_node& dependency : copy->dependencies) {
            followed[dependency] = true;
            dependency += base;
        }
        if (copy->dependencies.empty()) copy->dependencies = dependencies;
        nodes.push_back(std::move(copy));
    }
    for (size_t i = 0; i < from.size(); ++i)
        if (!followed[i]) ends.push_back(base + static_cast<rt_node>(i));
}

namespace {

rt_status add_node(rt_graph graph, std::unique_ptr<GraphNode> node, const rt_node* dependencies,
                   uint32_t count, rt_node* out, const char* origin) {
    if (count && !dependencies)
        return make_status(RT_INVALID_ARGUMENT, origin, "dependencies is null");
    std::lock_guard lock(graph->mutex);
    for (uint32_t i = 0; i < count; ++i)
        if (dependencies[i] >= graph->nodes.size())
            return make_status(RT_INVALID_ARGUMENT, origin,
                               "dependency %u names node %u; the graph has %zu", i, dependencies[i],
                               graph->nodes.size());
    if (graph->nodes.size() >= UINT32_MAX / 4)
        return make_status(RT_RESOURCE_EXHAUSTED, origin, "the graph has too many nodes");
    node->dependencies.assign(dependencies, dependencies + count);
    if (out) *out = static_cast<rt_node>(graph->nodes.size());
    graph->nodes.push_back(std::move(node));
    return RT_OK;
}

std::unique_ptr<GraphNode> command_node(const enpu_hal_command& command, const char* what) {
    auto node = std::make_unique<GraphNode>();
    node->op.assign(command);
    node->what = what;
    return node;
}

// Runs `body` with the graph locked and the node's existence checked.
template <typename Body>
rt_status with_node(rt_graph graph, rt_node node, const char* origin, Body body) {
    return guarded(origin, [&]() -> rt_status {
        std::lock_guard lock(graph->mutex);
        if (node >= graph->nodes.size())
            return make_status(RT_INVALID_ARGUMENT, origin,
                               "there is no node %u; the graph has %zu", node, graph->nodes.size());
        return body(*graph->nodes[node]);
    });
}

}  // namespace

rt_status rt_graph_create(rt_device device, rt_graph* graph) {
    RT_NOT_NULL(device);
    RT_NOT_NULL(graph);
    *graph = nullptr;
    return guarded(__func__, [&]() -> rt_status {
        *graph = new rt_graph_impl(device);
        return RT_OK;
    });
}

void rt_graph_destroy(rt_graph graph) {
    delete graph;
}

rt_status rt_graph_add_kernel(rt_graph graph, rt_kernel kernel, const void* params,
                              size_t params_bytes, const rt_operand* operands,
                              uint32_t operand_count, const rt_node* dependencies,
                              uint32_t dependency_count, rt_node* node) {
    RT_NOT_NULL(graph);
    RT_NOT_NULL(kernel);
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_graph_add_kernel";
        if (kernel->device != graph->device)
            return make_status(RT_INVALID_ARGUMENT, kOrigin,
                               "%s: kernel and graph are of different devices", kernel->info->name);
        BoundKernel bound;
        RT_TRY(bind_kernel(kernel, params, params_bytes, operands, operand_count, true, kOrigin,
                           bound));
        enpu_hal_command command{};
        command.kind = ENPU_HAL_COMMAND_DISPATCH;
        command.u.dispatch = &bound.dispatch;
        return add_node(graph, command_node(command, describe_op(bound.dispatch.op)), dependencies,
                        dependency_count, node, kOrigin);
    });
}

rt_status rt_graph_add_copy(rt_graph graph, void* dst, const void* src, size_t bytes,
                            const rt_node* dependencies, uint32_t dependency_count, rt_node* node) {
    RT_NOT_NULL(graph);
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_graph_add_copy";
        if (bytes == 0) return make_status(RT_INVALID_ARGUMENT, kOrigin, "bytes is 0");
        enpu_hal_command command{};
        command.kind = ENPU_HAL_COMMAND_COPY;
        enpu_hal_copy& copy = command.u.copy;
        RT_TRY(graph->device->resolve(dst, bytes, kOrigin, "destination", copy.dst));
        RT_TRY(graph->device->resolve(src, bytes, kOrigin, "source", copy.src));
        copy.width = copy.dst_pitch = copy.src_pitch = bytes;
        copy.height = 1;
        return add_node(graph, command_node(command, "copy"), dependencies, dependency_count, node,
                        kOrigin);
    });
}

rt_status rt_graph_add_fill(rt_graph graph, void* dst, uint64_t pattern, uint32_t pattern_bytes,
                            size_t bytes, const rt_node* dependencies, uint32_t dependency_count,
                            rt_node* node) {
    RT_NOT_NULL(graph);
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_graph_add_fill";
        if (bytes == 0) return make_status(RT_INVALID_ARGUMENT, kOrigin, "bytes is 0");
        enpu_hal_command command{};
        command.kind = ENPU_HAL_COMMAND_FILL;
        enpu_hal_fill& fill = command.u.fill;
        RT_TRY(graph->device->resolve(dst, bytes, kOrigin, "destination", fill.dst));
        fill.bytes = bytes;
        fill.pattern = pattern;
        fill.pattern_bytes = pattern_bytes;
        return add_node(graph, command_node(command, "fill"), dependencies, dependency_count, node,
                        kOrigin);
    });
}

rt_status rt_graph_add_host(rt_graph graph, void (*function)(void* context), void* context,
                            const rt_node* dependencies, uint32_t dependency_count, rt_node* node) {
    RT_NOT_NULL(graph);
    RT_NOT_NULL(function);
    return guarded(__func__, [&]() -> rt_status {
        auto made = std::make_unique<GraphNode>();
        made->kind = GraphNode::Kind::kHost;
        made->function = function;
        made->context = context;
        made->what = "host function";
        return add_node(graph, std::move(made), dependencies, dependency_count, node,
                        "rt_graph_add_host");
    });
}

rt_status rt_graph_add_empty(rt_graph graph, const rt_node* dependencies, uint32_t dependency_count,
                             rt_node* node) {
    RT_NOT_NULL(graph);
    return guarded(__func__, [&]() -> rt_status {
        auto made = std::make_unique<GraphNode>();
        made->kind = GraphNode::Kind::kEmpty;
        made->what = "empty";
        return add_node(graph, std::move(made), dependencies, dependency_count, node,
                        "rt_graph_add_empty");
    });
}

rt_status rt_graph_add_dependency(rt_graph graph, rt_node node, rt_node dependency) {
    RT_NOT_NULL(graph);
    return with_node(graph, node, __func__, [&](GraphNode& found) -> rt_status {
        if (dependency >= graph->nodes.size())
            return make_status(RT_INVALID_ARGUMENT, "rt_graph_add_dependency",
                               "there is no node %u; the graph has %zu", dependency,
                               graph->nodes.size());
        found.dependencies.push_back(dependency);
        return RT_OK;
    });
}

rt_status rt_graph_set_name(rt_graph graph, rt_node node, const char* name) {
    RT_NOT_NULL(graph);
    RT_NOT_NULL(name);
    return with_node(graph, node, __func__, [&](GraphNode& found) -> rt_status {
        found.name = name;
        return RT_OK;
    });
}

rt_status rt_graph_set_cost(rt_graph graph, rt_node node, uint64_t ns) {
    RT_NOT_NULL(graph);
    return with_node(graph, node, __func__, [&](GraphNode& found) -> rt_status {
        // A sum over the longest way must not overflow.
        if (ns > (uint64_t{1} << 40))
            return make_status(RT_INVALID_ARGUMENT, "rt_graph_set_cost",
                               "node %u: a cost of %llu ns is more than 2^40", node,
                               static_cast<unsigned long long>(ns));
        found.cost_ns = ns;
        return RT_OK;
    });
}
