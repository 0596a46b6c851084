// SPDX-License-Identifier: MIT
// New addresses for executables, and measured costs for graphs.
#include <algorithm>
#include <cstring>

#include "graph.h"

using namespace enpu::rt;

namespace {

// Takes away what an update may change.
void forget_places(OpRecord& op) {
    switch (op.command.kind) {
        case ENPU_HAL_COMMAND_DISPATCH:
            for (enpu_hal_operand& operand : op.operands) operand.place = {};
            break;
        case ENPU_HAL_COMMAND_COPY:
            op.command.u.copy.dst = op.command.u.copy.src = {};
            break;
        case ENPU_HAL_COMMAND_FILL:
            op.command.u.fill.dst = {};
            break;
        case ENPU_HAL_COMMAND_TIMESTAMP:
            op.command.u.timestamp.dst = {};
            break;
        default:
            break;
    }
}

bool same_dispatch(const OpRecord& a, const OpRecord& b) {
    if (a.dispatch.op != b.dispatch.op || a.dispatch.params_bytes != b.dispatch.params_bytes ||
        a.dispatch.operand_count != b.dispatch.operand_count ||
        std::memcmp(a.params, b.params, a.dispatch.params_bytes) != 0)
        return false;
    for (uint32_t i = 0; i < a.dispatch.operand_count; ++i)
        if (std::memcmp(&a.operands[i].tensor, &b.operands[i].tensor,
                        sizeof(a.operands[i].tensor)) != 0)
            return false;
    return true;
}

bool same_but_places(const OpRecord& one, const OpRecord& other) {
    if (one.command.kind != other.command.kind) return false;
    if (one.is_kernel()) return same_dispatch(one, other);
    OpRecord a = one, b = other;
    forget_places(a);
    forget_places(b);
    return std::memcmp(&a.command.u, &b.command.u, sizeof(a.command.u)) == 0;
}

// "" when a node may take the other's place, else what differs.
const char* difference(const GraphNode& a, const GraphNode& b) {
    if (a.kind != b.kind) return "is of another kind";
    if (a.dependencies != b.dependencies) return "has other dependencies";
    if (a.kind == GraphNode::Kind::kCommand && !same_but_places(a.op, b.op))
        return "differs in more than addresses";
    return "";
}

rt_status check_same(const GraphNodes& old, const GraphNodes& now, const char* origin) {
    if (old.size() != now.size())
        return make_status(RT_INVALID_ARGUMENT, origin,
                           "the graph has %zu nodes, the executable %zu", now.size(), old.size());
    for (size_t i = 0; i < old.size(); ++i) {
        const char* what = difference(*old[i], *now[i]);
        if (*what)
            return make_status(RT_INVALID_ARGUMENT, origin, "%s %s", node_text(*now[i], i).c_str(),
                               what);
    }
    return RT_OK;
}

rt_status check_node(rt_graph_exec exec, rt_node node, enpu_hal_command_kind kind, const char* what,
                     const char* origin) {
    if (node < exec->nodes.size() && exec->nodes[node]->is(kind)) return RT_OK;
    return make_status(RT_INVALID_ARGUMENT, origin, "node %u is no %s of the graph", node, what);
}

}  // namespace

rt_status rt_graph_update_kernel(rt_graph_exec exec, rt_node node, uint32_t operand, void* data,
                                 uint64_t deadline_ns) {
    RT_NOT_NULL(exec);
    RT_NOT_NULL(data);
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_graph_update_kernel";
        std::lock_guard lock(exec->mutex);
        RT_TRY(check_node(exec, node, ENPU_HAL_COMMAND_DISPATCH, "kernel", kOrigin));
        OpRecord changed = exec->nodes[node]->op;
        const auto& info = *enpu::hal::find_op(changed.dispatch.op);
        if (operand >= info.operands || changed.operands[operand].tensor.dtype == ENPU_OP_NONE)
            return make_status(RT_INVALID_ARGUMENT, kOrigin, "node %u (%s) has no operand %u", node,
                               info.name, operand);
        const rt_operand wanted{data, nullptr, changed.operands[operand].tensor};
        RT_TRY(exec->device->resolve_operand(wanted, info, operand, kOrigin,
                                             changed.operands[operand]));
        RT_TRY(exec->wait_idle(deadline_ns, kOrigin));
        return exec->update(node, changed.command, kOrigin);
    });
}

rt_status rt_graph_update_copy(rt_graph_exec exec, rt_node node, void* dst, const void* src,
                               uint64_t deadline_ns) {
    RT_NOT_NULL(exec);
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_graph_update_copy";
        std::lock_guard lock(exec->mutex);
        RT_TRY(check_node(exec, node, ENPU_HAL_COMMAND_COPY, "copy", kOrigin));
        enpu_hal_command changed = exec->nodes[node]->op.command;
        enpu_hal_copy& copy = changed.u.copy;
        const uint64_t dst_span = copy.dst_pitch * (copy.height - 1) + copy.width;
        const uint64_t src_span = copy.src_pitch * (copy.height - 1) + copy.width;
        if (dst) RT_TRY(exec->device->resolve(dst, dst_span, kOrigin, "destination", copy.dst));
        if (src) RT_TRY(exec->device->resolve(src, src_span, kOrigin, "source", copy.src));
        RT_TRY(exec->wait_idle(deadline_ns, kOrigin));
        return exec->update(node, changed, kOrigin);
    });
}

rt_status rt_graph_exec_update(rt_graph_exec exec, rt_graph graph, uint64_t deadline_ns) {
    RT_NOT_NULL(exec);
    RT_NOT_NULL(graph);
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_graph_exec_update";
        if (exec->device != graph->device)
            return make_status(RT_INVALID_ARGUMENT, kOrigin,
                               "graph and executable are of different devices");
        std::scoped_lock lock(exec->mutex, graph->mutex);
        RT_TRY(check_same(exec->nodes, graph->nodes, kOrigin));
        RT_TRY(exec->wait_idle(deadline_ns, kOrigin));
        for (rt_node node = 0; node < exec->nodes.size(); ++node) {
            GraphNode& old = *exec->nodes[node];
            const GraphNode& now = *graph->nodes[node];
            old.function = now.function;
            old.context = now.context;
            if (old.kind == GraphNode::Kind::kCommand)
                RT_TRY(exec->update(node, now.op.command, kOrigin));
        }
        return RT_OK;
    });
}

rt_status rt_graph_measure(rt_graph graph, rt_stream stream, uint64_t deadline_ns) {
    RT_NOT_NULL(graph);
    RT_NOT_NULL(stream);
    return guarded(__func__, [&]() -> rt_status {
        rt_graph_options options{};
        options.struct_size = sizeof(options);
        options.flags = RT_GRAPH_SERIAL | RT_GRAPH_TIMING;
        rt_graph_exec raw = nullptr;
        RT_TRY(rt_graph_instantiate_with(graph, &options, &raw));
        const std::unique_ptr<rt_graph_exec_impl, void (*)(rt_graph_exec)> exec(
            raw, rt_graph_exec_destroy);
        RT_TRY(rt_graph_launch(raw, stream));
        RT_TRY(rt_stream_sync(stream, deadline_ns));
        std::lock_guard lock(graph->mutex);
        for (rt_node node = 0; node < graph->nodes.size() && node < raw->nodes.size(); ++node) {
            if (graph->nodes[node]->kind != GraphNode::Kind::kCommand) continue;
            rt_node_time time{};
            time.struct_size = sizeof(time);
            RT_TRY(rt_graph_exec_node_time(raw, node, &time));
            graph->nodes[node]->cost_ns = std::max<uint64_t>(time.end_ns - time.start_ns, 1);
        }
        return RT_OK;
    });
}
