// SPDX-License-Identifier: MIT
#include "graph.h"

#include "profile_hook.h"

#include <algorithm>
#include <cstring>

using namespace enpu::rt;

GraphNode& GraphNode::operator=(const GraphNode& other) {
    if (this == &other) return *this;
    command = other.command;
    dispatch = other.dispatch;
    std::memcpy(operands, other.operands, sizeof(operands));
    std::memcpy(params, other.params, sizeof(params));
    std::memcpy(sources, other.sources, sizeof(sources));
    dependencies = other.dependencies;
    what = other.what;
    if (command.kind == ENPU_HAL_COMMAND_DISPATCH) {
        command.u.dispatch = &dispatch;
        dispatch.operands = operands;
        dispatch.params = dispatch.params_bytes ? params : nullptr;
    }
    return *this;
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
    node->dependencies.assign(dependencies, dependencies + count);
    if (out) *out = static_cast<rt_node>(graph->nodes.size());
    graph->nodes.push_back(std::move(node));
    return RT_OK;
}

std::unique_ptr<GraphNode> kernel_node(const BoundKernel& bound, const rt_operand* operands) {
    auto node = std::make_unique<GraphNode>();
    node->dispatch = bound.dispatch;
    std::copy_n(bound.operands, bound.dispatch.operand_count, node->operands);
    std::copy_n(operands, bound.dispatch.operand_count, node->sources);
    if (bound.dispatch.params_bytes)
        std::memcpy(node->params, bound.dispatch.params, bound.dispatch.params_bytes);
    node->dispatch.operands = node->operands;
    node->dispatch.params = bound.dispatch.params_bytes ? node->params : nullptr;
    node->command.kind = ENPU_HAL_COMMAND_DISPATCH;
    node->command.u.dispatch = &node->dispatch;
    node->what = describe_op(bound.dispatch.op);
    return node;
}

}  // namespace

// --------------------------------------------------------------------------------------------
// record

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
        return add_node(graph, kernel_node(bound, operands), dependencies, dependency_count, node,
                        kOrigin);
    });
}

rt_status rt_graph_add_copy(rt_graph graph, void* dst, const void* src, size_t bytes,
                            const rt_node* dependencies, uint32_t dependency_count, rt_node* node) {
    RT_NOT_NULL(graph);
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_graph_add_copy";
        if (bytes == 0) return make_status(RT_INVALID_ARGUMENT, kOrigin, "bytes is 0");
        auto made = std::make_unique<GraphNode>();
        made->command.kind = ENPU_HAL_COMMAND_COPY;
        enpu_hal_copy& copy = made->command.u.copy;
        RT_TRY(graph->device->resolve(dst, bytes, kOrigin, "destination", copy.dst));
        RT_TRY(graph->device->resolve(src, bytes, kOrigin, "source", copy.src));
        copy.width = copy.dst_pitch = copy.src_pitch = bytes;
        copy.height = 1;
        made->what = "copy";
        return add_node(graph, std::move(made), dependencies, dependency_count, node, kOrigin);
    });
}

rt_status rt_graph_add_fill(rt_graph graph, void* dst, uint64_t pattern, uint32_t pattern_bytes,
                            size_t bytes, const rt_node* dependencies, uint32_t dependency_count,
                            rt_node* node) {
    RT_NOT_NULL(graph);
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_graph_add_fill";
        if (bytes == 0) return make_status(RT_INVALID_ARGUMENT, kOrigin, "bytes is 0");
        auto made = std::make_unique<GraphNode>();
        made->command.kind = ENPU_HAL_COMMAND_FILL;
        enpu_hal_fill& fill = made->command.u.fill;
        RT_TRY(graph->device->resolve(dst, bytes, kOrigin, "destination", fill.dst));
        fill.bytes = bytes;
        fill.pattern = pattern;
        fill.pattern_bytes = pattern_bytes;
        made->what = "fill";
        return add_node(graph, std::move(made), dependencies, dependency_count, node, kOrigin);
    });
}

// -----------------------------------------------------------------------------------------
// executable

rt_graph_exec_impl::~rt_graph_exec_impl() {
    if (handle) device->hal.graph->destroy(handle);
    last = {};
    device->release();
}

rt_status rt_graph_exec_impl::encode() {
    for (const auto& node : nodes) commands.push_back(node->command);
    if (!(device->info.caps & ENPU_HAL_CAP_GRAPH)) return RT_OK;
    enpu_hal_status status{};
    if (device->hal.graph->create(device->handle, commands.data(),
                                  static_cast<uint32_t>(commands.size()), &handle,
                                  &status) == ENPU_HAL_OK)
        return RT_OK;
    rt_status made = from_hal(status, "rt_graph_instantiate");
    if (status.op_id >= 1 && status.op_id <= nodes.size())
        made->message = "node " + std::to_string(status.op_id - 1) + " (" +
                        nodes[status.op_id - 1]->what + "): " + made->message;
    return made;
}

rt_status rt_graph_exec_impl::wait_idle(uint64_t deadline_ns, const char* origin) {
    if (last.settled()) return RT_OK;
    const enpu_hal_point wanted{last.timeline->fence(), last.value};
    enpu_hal_status status{};
    const uint32_t code =
        device->hal.fence->wait(device->handle, &wanted, 1, 0, deadline_ns, &status);
    // Failed is idle, too.
    return code == ENPU_HAL_DEADLINE_EXCEEDED ? from_hal(status, origin) : RT_OK;
}

rt_status rt_graph_instantiate(rt_graph graph, rt_graph_exec* exec) {
    RT_NOT_NULL(graph);
    RT_NOT_NULL(exec);
    *exec = nullptr;
    return guarded(__func__, [&]() -> rt_status {
        auto made = std::make_unique<rt_graph_exec_impl>(graph->device);
        {
            std::lock_guard lock(graph->mutex);
            for (const auto& node : graph->nodes)
                made->nodes.push_back(std::make_unique<GraphNode>(*node));
        }
        if (made->nodes.empty())
            return make_status(RT_INVALID_ARGUMENT, "rt_graph_instantiate", "the graph is empty");
        RT_TRY(made->encode());
        *exec = made.release();
        return RT_OK;
    });
}

void rt_graph_exec_destroy(rt_graph_exec exec) {
    if (!exec) return;
    rt_status_free(guarded(__func__, [&] {
        return exec->wait_idle(rt_deadline_ms(60'000), "rt_graph_exec_destroy");
    }));
    delete exec;
}

rt_status rt_graph_launch(rt_graph_exec exec, rt_stream stream) {
    RT_NOT_NULL(exec);
    RT_NOT_NULL(stream);
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_graph_launch";
        if (exec->device != stream->device)
            return make_status(RT_INVALID_ARGUMENT, kOrigin,
                               "graph and stream are of different devices");
        std::lock_guard lock(exec->mutex);
        Point point;
        // Node by node when it is recorded, so that every kernel has its times.
        const bool recorded = profile::on(RT_PROFILE_DEVICE);
        if (exec->handle && !recorded) {
            RT_TRY(stream->enqueue({nullptr, 0, exec->handle, "graph", kOrigin, &exec->last},
                                   &point.value, &point.timeline));
        } else {
            const size_t limit = exec->device->info.max_commands;
            const size_t most = std::max<size_t>(recorded ? limit / 2 - 1 : limit, 1);
            for (size_t i = 0; i < exec->commands.size(); i += most) {
                const uint32_t count =
                    static_cast<uint32_t>(std::min(most, exec->commands.size() - i));
                RT_TRY(stream->enqueue({exec->commands.data() + i, count, nullptr, "graph", kOrigin,
                                        i == 0 ? &exec->last : nullptr},
                                       &point.value, &point.timeline));
            }
        }
        exec->last = std::move(point);
        exec->device->counted.launches.fetch_add(1, std::memory_order_relaxed);
        return RT_OK;
    });
}

rt_status rt_graph_exec_impl::update(rt_node node, const GraphNode& changed, uint64_t deadline_ns,
                                     const char* origin) {
    RT_TRY(wait_idle(deadline_ns, origin));
    if (handle) {
        enpu_hal_status status{};
        if (device->hal.graph->update(handle, node, &changed.command, &status) != ENPU_HAL_OK)
            return from_hal(status, origin);
    }
    *nodes[node] = changed;
    commands[node] = nodes[node]->command;
    return RT_OK;
}

rt_status rt_graph_update_kernel(rt_graph_exec exec, rt_node node, uint32_t operand, void* data,
                                 uint64_t deadline_ns) {
    RT_NOT_NULL(exec);
    RT_NOT_NULL(data);
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_graph_update_kernel";
        std::lock_guard lock(exec->mutex);
        if (node >= exec->nodes.size() ||
            exec->nodes[node]->command.kind != ENPU_HAL_COMMAND_DISPATCH)
            return make_status(RT_INVALID_ARGUMENT, kOrigin, "node %u is no kernel of the graph",
                               node);
        GraphNode changed = *exec->nodes[node];
        const auto& info = *enpu::hal::find_op(changed.dispatch.op);
        if (operand >= info.operands || changed.sources[operand].desc.dtype == ENPU_OP_NONE)
            return make_status(RT_INVALID_ARGUMENT, kOrigin, "node %u (%s) has no operand %u", node,
                               info.name, operand);
        changed.sources[operand].data = data;
        changed.sources[operand].tensor = nullptr;
        RT_TRY(exec->device->resolve_operand(changed.sources[operand], info, operand, kOrigin,
                                             changed.operands[operand]));
        return exec->update(node, changed, deadline_ns, kOrigin);
    });
}

rt_status rt_graph_update_copy(rt_graph_exec exec, rt_node node, void* dst, const void* src,
                               uint64_t deadline_ns) {
    RT_NOT_NULL(exec);
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_graph_update_copy";
        std::lock_guard lock(exec->mutex);
        if (node >= exec->nodes.size() || exec->nodes[node]->command.kind != ENPU_HAL_COMMAND_COPY)
            return make_status(RT_INVALID_ARGUMENT, kOrigin, "node %u is no copy of the graph",
                               node);
        GraphNode changed = *exec->nodes[node];
        enpu_hal_copy& copy = changed.command.u.copy;
        if (dst) RT_TRY(exec->device->resolve(dst, copy.width, kOrigin, "destination", copy.dst));
        if (src) RT_TRY(exec->device->resolve(src, copy.width, kOrigin, "source", copy.src));
        return exec->update(node, changed, deadline_ns, kOrigin);
    });
}
