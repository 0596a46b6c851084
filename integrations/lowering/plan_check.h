// SPDX-License-Identifier: MIT
// For tests and fuzzers: whatever a plan gives a kernel lies in its buffer, and buffers in the arena.
#ifndef ENPU_LOWERING_PLAN_CHECK_H
#define ENPU_LOWERING_PLAN_CHECK_H

#include <algorithm>

#include "plan.h"

namespace enpu::lowering {

inline bool is_inside(const Plan& plan, const View& view) {
    int64_t first = view.offset, last = view.offset;
    for (size_t i = 0; i < view.dims.size(); ++i) {
        const int64_t reach = (view.dims[i] - 1) * view.strides[i];
        (reach < 0 ? first : last) += reach;
    }
    const auto size = static_cast<int64_t>(dtype_bytes(view.dtype));
    const uint64_t bytes = plan.buffers.at(static_cast<size_t>(view.buffer)).bytes;
    return first >= 0 && (last + 1) * size <= static_cast<int64_t>(bytes);
}

// What lies outside, or "".
inline std::string outside(const Plan& plan) {
    for (const Kernel& kernel : plan.kernels)
        for (const View& view : kernel.operands)
            if (!view.absent() && !is_inside(plan, view))
                return kernel.node + ": an operand of " + to_string(view.dims) + ", strides " +
                       to_string(view.strides);
    for (const Buffer& buffer : plan.buffers) {
        if (buffer.kind == Buffer::Kind::kConstant || buffer.first < 0) continue;
        if (buffer.offset > plan.arena_bytes || buffer.bytes > plan.arena_bytes - buffer.offset)
            return "a buffer of " + std::to_string(buffer.bytes) + " bytes in the arena";
    }
    return {};
}

}  // namespace enpu::lowering
#endif
