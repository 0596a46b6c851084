// SPDX-License-Identifier: MIT
// Memory of a plan: when buffers live and which kernels may work in place is found here, where they
// lie is planned by the runtime.
#include <algorithm>

#include "plan.h"
#include "session.h"

namespace enpu::lowering {
namespace {

void find_lifetimes(Plan& plan) {
    const auto count = static_cast<int>(plan.kernels.size());
    for (Buffer& b : plan.buffers) {
        if (b.kind == Buffer::Kind::kInput)
            b.first = b.last = 0;  // written before the first kernel
    }
    for (int k = 0; k < count; ++k) {
        for (const View& view : plan.kernels[static_cast<size_t>(k)].operands) {
            if (view.absent()) continue;
            Buffer& b = plan.buffers[static_cast<size_t>(view.buffer)];
            if (b.first < 0) b.first = k;
            b.last = std::max(b.last, k);
        }
    }
    for (const PlanOutput& output : plan.outputs) {
        if (!output.view.absent()) {
            plan.buffers[static_cast<size_t>(output.view.buffer)].last = count;
        }
    }
}

bool same_place(const View& a, const View& b) {
    return a.offset == b.offset && a.dtype == b.dtype && a.dims == b.dims && a.strides == b.strides;
}

// Values of the runtime's plan, by buffer; -1: not in the arena.
struct Numbering {
    std::vector<int> value_of;
    std::vector<size_t> buffer_of;

    explicit Numbering(const Plan& plan) : value_of(plan.buffers.size(), -1) {
        for (size_t b = 0; b < plan.buffers.size(); ++b) {
            const Buffer& buffer = plan.buffers[b];
            const bool in_arena =
                buffer.kind == Buffer::Kind::kTemporary || buffer.kind == Buffer::Kind::kInput;
            if (!in_arena || buffer.first < 0) continue;
            value_of[b] = static_cast<int>(buffer_of.size());
            buffer_of.push_back(b);
        }
    }
    int of(const View& view) const {
        return view.absent() ? -1 : value_of[static_cast<size_t>(view.buffer)];
    }
};

// Elementwise kernels may write over an operand of the same layout; the other operands must not
// see the memory change under them.
std::vector<rt_plan_reuse> find_reuses(const Plan& plan, const Numbering& numbers) {
    std::vector<rt_plan_reuse> reuses;
    for (size_t k = 0; k < plan.kernels.size(); ++k) {
        const Kernel& kernel = plan.kernels[k];
        if (!kernel.in_place) continue;
        const View& y = kernel.operands.back();
        if (plan.buffers[static_cast<size_t>(y.buffer)].kind != Buffer::Kind::kTemporary) continue;
        for (size_t i = 0; i + 1 < kernel.operands.size(); ++i) {
            const View& x = kernel.operands[i];
            if (numbers.of(x) < 0 || x.buffer == y.buffer || !same_place(x, y)) continue;
            rt_plan_reuse reuse{};
            reuse.step = static_cast<uint32_t>(k);
            reuse.from = static_cast<uint32_t>(numbers.of(x));
            reuse.to = static_cast<uint32_t>(numbers.of(y));
            for (size_t j = 0; j + 1 < kernel.operands.size(); ++j) {
                const View& other = kernel.operands[j];
                if (numbers.of(other) >= 0 && !same_place(other, y))
                    reuse.conflicts[reuse.conflict_count++] =
                        static_cast<uint32_t>(numbers.of(other));
            }
            reuses.push_back(reuse);
        }
    }
    return reuses;
}

}  // namespace

void plan_memory(Plan& plan) {
    find_lifetimes(plan);
    const Numbering numbers(plan);
    std::vector<rt_plan_value> values;
    for (size_t b : numbers.buffer_of) {
        const Buffer& buffer = plan.buffers[b];
        rt_plan_value value{};
        value.bytes = buffer.bytes;
        value.first = static_cast<uint32_t>(buffer.first);
        value.last = static_cast<uint32_t>(buffer.last);
        values.push_back(value);
    }
    const std::vector<rt_plan_reuse> reuses = find_reuses(plan, numbers);
    rt_plan_result result{};
    result.struct_size = sizeof(result);
    check(rt_plan_memory(values.data(), static_cast<uint32_t>(values.size()), reuses.data(),
                         static_cast<uint32_t>(reuses.size()), kBufferAlign, &result),
          "memory of a graph");
    plan.arena_bytes = result.arena_bytes;
    plan.lower_bound_bytes = result.lower_bound_bytes;
    for (size_t v = 0; v < values.size(); ++v) {
        Buffer& buffer = plan.buffers[numbers.buffer_of[v]];
        buffer.offset = values[v].offset;
        buffer.in_place = values[v].shares != 0;
    }
}

}  // namespace enpu::lowering
