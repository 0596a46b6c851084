// SPDX-License-Identifier: MIT
#include "program.h"

#include "rt_tensor.h"

namespace enpu::lowering {

Program::Program(DeviceSession& session, Plan lowered)
    : plan(std::move(lowered)), stream_(session.stream()) {
    if (plan.arena_bytes)
        check(rt_malloc(stream_, plan.arena_bytes, &arena_), "memory for a program");
    try {
        for (const Buffer& buffer : plan.buffers) {
            if (buffer.kind == Buffer::Kind::kInput && buffer.first >= 0) {
                inputs.emplace_back(static_cast<size_t>(buffer.index),
                                    static_cast<char*>(arena_) + buffer.offset);
            }
        }
        if (!plan.kernels.empty()) encode(session);
    } catch (...) {
        rt_status_free(rt_free(stream_, arena_));
        throw;
    }
}

Program::~Program() {
    rt_graph_exec_destroy(exec);
    rt_status_free(rt_free(stream_, arena_));
}

void* Program::address(const View& view) const {
    const Buffer& buffer = plan.buffers[static_cast<size_t>(view.buffer)];
    char* base = buffer.kind == Buffer::Kind::kExternal
                     ? static_cast<char*>(buffer.address)
                     : static_cast<char*>(arena_) + buffer.offset;
    return base + view.offset * static_cast<int64_t>(dtype_bytes(view.dtype));
}

rt_operand Program::operand(DeviceSession& session, const View& view) {
    rt_operand result{};
    if (view.absent()) return result;
    result.desc = tensor_desc(view);
    const Buffer& buffer = plan.buffers[static_cast<size_t>(view.buffer)];
    if (buffer.kind != Buffer::Kind::kConstant) {
        result.data = address(view);
        return result;
    }
    const auto& weight = session.weights().get(plan.constants[static_cast<size_t>(buffer.index)]);
    if (weight.packed) {
        result.data = weight.data;
        result.desc = weight.desc;
    } else {
        result.data = static_cast<char*>(weight.data) +
                      view.offset * static_cast<int64_t>(dtype_bytes(view.dtype));
    }
    return result;
}

void Program::encode(DeviceSession& session) {
    rt_graph graph = nullptr;
    check(rt_graph_create(session.device(), &graph), "graph");
    const std::unique_ptr<rt_graph_impl, void (*)(rt_graph)> owner(graph, rt_graph_destroy);
    rt_node previous = 0;
    bool first = true;
    for (const Kernel& kernel : plan.kernels) {
        rt_kernel function = nullptr;
        check(rt_kernel_for_op(session.device(), static_cast<enpu_op>(kernel.op), &function),
              kernel.node.c_str());
        std::vector<rt_operand> operands;
        for (const View& view : kernel.operands) operands.push_back(operand(session, view));
        // Temporaries share memory, so the order of the plan is kept.
        rt_node node = 0;
        check(rt_graph_add_kernel(
                  graph, function, kernel.params_bytes ? kernel.params.data() : nullptr,
                  kernel.params_bytes, operands.data(), static_cast<uint32_t>(operands.size()),
                  first ? nullptr : &previous, first ? 0 : 1, &node),
              kernel.node.c_str());
        previous = node;
        first = false;
    }
    check(rt_graph_instantiate(graph, &exec), "graph");
}

}  // namespace enpu::lowering
