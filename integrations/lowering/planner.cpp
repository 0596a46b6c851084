// SPDX-License-Identifier: MIT
// Memory of a plan: when buffers live, which share memory, where they lie.
#include <algorithm>
#include <numeric>

#include "plan.h"

namespace enpu::lowering {
namespace {

uint64_t align(uint64_t bytes) {
    return (bytes + kBufferAlign - 1) / kBufferAlign * kBufferAlign;
}

int root(const Plan& plan, int buffer) {
    while (plan.buffers[static_cast<size_t>(buffer)].alias >= 0) {
        buffer = plan.buffers[static_cast<size_t>(buffer)].alias;
    }
    return buffer;
}

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

// Elementwise kernels write over an operand that nobody reads later.
void share_in_place(Plan& plan) {
    for (int k = 0; k < static_cast<int>(plan.kernels.size()); ++k) {
        const Kernel& kernel = plan.kernels[static_cast<size_t>(k)];
        if (!kernel.in_place) continue;
        const View& y = kernel.operands.back();
        Buffer& out = plan.buffers[static_cast<size_t>(y.buffer)];
        if (out.first != k || out.kind != Buffer::Kind::kTemporary || out.alias >= 0) continue;
        for (size_t i = 0; i + 1 < kernel.operands.size(); ++i) {
            const View& x = kernel.operands[i];
            if (x.absent() || x.buffer == y.buffer || !same_place(x, y)) continue;
            const int home = root(plan, x.buffer);
            Buffer& in = plan.buffers[static_cast<size_t>(home)];
            if (in.kind == Buffer::Kind::kConstant || in.last != k || in.bytes < out.bytes)
                continue;
            // Other operands must not see the memory change under them.
            const bool shared =
                std::any_of(kernel.operands.begin(), kernel.operands.end() - 1, [&](const View& v) {
                    return !v.absent() && root(plan, v.buffer) == home && !same_place(v, y);
                });
            if (shared) continue;
            out.alias = home;
            in.last = out.last;
            break;
        }
    }
}

bool overlap_in_time(const Buffer& a, const Buffer& b) {
    return a.first <= b.last && b.first <= a.last;
}

uint64_t lower_bound(const Plan& plan, const std::vector<size_t>& order) {
    uint64_t most = 0;
    for (int k = 0; k <= static_cast<int>(plan.kernels.size()); ++k) {
        uint64_t alive = 0;
        for (size_t b : order) {
            const Buffer& buffer = plan.buffers[b];
            if (buffer.first <= k && k <= buffer.last) alive += align(buffer.bytes);
        }
        most = std::max(most, alive);
    }
    return most;
}

// Largest first, each into the smallest gap between those that live at the same time.
void place(Plan& plan, std::vector<size_t> order) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return plan.buffers[a].bytes > plan.buffers[b].bytes;
    });
    std::vector<size_t> placed;  // by offset
    for (size_t b : order) {
        Buffer& buffer = plan.buffers[b];
        const uint64_t need = align(buffer.bytes);
        uint64_t at = 0, best = UINT64_MAX, best_gap = UINT64_MAX;
        for (size_t other : placed) {
            const Buffer& o = plan.buffers[other];
            if (!overlap_in_time(buffer, o)) continue;
            if (o.offset >= at + need && o.offset - at < best_gap) {
                best_gap = o.offset - at;
                best = at;
            }
            at = std::max(at, o.offset + align(o.bytes));
        }
        buffer.offset = best == UINT64_MAX ? at : best;
        plan.arena_bytes = std::max(plan.arena_bytes, buffer.offset + need);
        const auto where = std::upper_bound(
            placed.begin(), placed.end(), buffer.offset,
            [&](uint64_t offset, size_t p) { return offset < plan.buffers[p].offset; });
        placed.insert(where, b);
    }
}

}  // namespace

void plan_memory(Plan& plan) {
    find_lifetimes(plan);
    share_in_place(plan);
    std::vector<size_t> order;
    for (size_t b = 0; b < plan.buffers.size(); ++b) {
        const Buffer& buffer = plan.buffers[b];
        if (buffer.kind != Buffer::Kind::kConstant && buffer.alias < 0 && buffer.first >= 0) {
            order.push_back(b);
        }
    }
    plan.lower_bound_bytes = lower_bound(plan, order);
    plan.arena_bytes = 0;
    place(plan, order);
    for (size_t b = 0; b < plan.buffers.size(); ++b) {
        Buffer& buffer = plan.buffers[b];
        if (buffer.alias >= 0) {
            buffer.offset =
                plan.buffers[static_cast<size_t>(root(plan, static_cast<int>(b)))].offset;
        }
    }
}

}  // namespace enpu::lowering
