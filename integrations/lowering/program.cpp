// SPDX-License-Identifier: MIT
#include "program.h"

#include "rt_tensor.h"

namespace enpu::lowering {

namespace {

constexpr uint64_t kRebindNs = 60ull * 1000 * 1000 * 1000;

int64_t byte_offset(const View& view) {
    return view.offset * static_cast<int64_t>(dtype_bytes(view.dtype));
}

}  // namespace

Program::Program(DeviceSession& session, Plan lowered)
    : plan(std::move(lowered)),
      stream_(session.stream()),
      bound_(plan.buffers.size(), nullptr),
      uses_(plan.buffers.size()) {
    if (plan.arena_bytes)
        check(rt_malloc(stream_, plan.arena_bytes, &arena_), "memory for a program");
    try {
        for (size_t b = 0; b < plan.buffers.size(); ++b) {
            const Buffer& buffer = plan.buffers[b];
            if (buffer.kind == Buffer::Kind::kInput && buffer.first >= 0) {
                inputs.emplace_back(static_cast<size_t>(buffer.index), static_cast<int>(b));
            }
        }
        if (!plan.kernels.empty()) encode(session);
        check(rt_event_create(session.device(), 0, &finished), "event");
    } catch (...) {
        release();
        throw;
    }
}

Program::~Program() {
    release();
}

void Program::release() {
    rt_graph_exec_destroy(exec);
    rt_event_destroy(finished);
    rt_status_free(rt_free(stream_, arena_));
}

void* Program::address(const View& view) const {
    const auto index = static_cast<size_t>(view.buffer);
    const Buffer& buffer = plan.buffers[index];
    char* base = buffer.kind == Buffer::Kind::kExternal
                     ? static_cast<char*>(buffer.address)
                     : static_cast<char*>(arena_) + buffer.offset;
    if (bound_[index]) base = static_cast<char*>(bound_[index]);
    return base + byte_offset(view);
}

void Program::bind(int buffer, void* memory) {
    const auto index = static_cast<size_t>(buffer);
    if (bound_[index] == memory) return;
    bound_[index] = memory;
    View start;
    start.buffer = buffer;
    char* base = static_cast<char*>(address(start));
    for (const Use& use : uses_[index]) {
        check(rt_graph_update_kernel(exec, use.node, use.operand, base + use.offset,
                                     rt_deadline_ns(kRebindNs)),
              "memory of an input or output");
    }
}

void Program::copy_in(rt_stream stream, int buffer, const void* from, uint64_t bytes) {
    bind(buffer, nullptr);
    View start;
    start.buffer = buffer;
    check(rt_memcpy_h2d(stream, address(start), from, bytes), "copy of an input");
}

bool Program::is_whole_temporary(const View& view) const {
    const Buffer& buffer = plan.buffers[static_cast<size_t>(view.buffer)];
    return buffer.kind == Buffer::Kind::kTemporary && view.offset == 0 &&
           buffer.bytes ==
               static_cast<uint64_t>(element_count(view.dims)) * dtype_bytes(view.dtype);
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
        for (size_t i = 0; i < kernel.operands.size(); ++i) {
            const View& view = kernel.operands[i];
            if (view.absent()) continue;
            uses_[static_cast<size_t>(view.buffer)].push_back(
                {node, static_cast<uint32_t>(i), byte_offset(view)});
        }
        previous = node;
        first = false;
    }
    check(rt_graph_instantiate(graph, &exec), "graph");
}

}  // namespace enpu::lowering
