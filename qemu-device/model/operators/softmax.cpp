// SPDX-License-Identifier: MIT
// SOFTMAX: log-sum-exp along the axis by the reduction engine, then one pass that writes y.
#include <array>
#include <memory>
#include <new>

#include "accumulators.h"
#include "families.h"
#include "rows.h"

namespace enpu::ops {
namespace {

constexpr int64_t kTileElements = 1 << 18;

struct Statistics {
    std::unique_ptr<float[]> origin;  // subtracted first
    std::unique_ptr<float[]> factor;  // 1 / sum, or log(sum)
};

Outcome statistics(const Call& call, const View& x, uint32_t axes, bool log, Statistics& out) {
    const auto count = static_cast<size_t>(kept_count(x, axes));
    if (count > kMaxScratchOutputs) return Outcome::kOutOfMemory;
    out.origin.reset(new (std::nothrow) float[count]);
    out.factor.reset(new (std::nothrow) float[count]);
    if (!out.origin || !out.factor) return Outcome::kOutOfMemory;
    const View scratch = scratch_view(x, axes, out.origin.get());
    return reduce<LogSumExp>(
        call.progress, x, scratch, axes,
        [&](const LogSumExp::State* states, int64_t offset, int64_t stride, int64_t n) {
            for (int64_t i = 0; i < n; ++i) {
                const double factor = log ? std::log(states[i].sum) : 1.0 / states[i].sum;
                out.origin[offset + i * stride] = states[i].origin();
                out.factor[offset + i * stride] = static_cast<float>(factor);
            }
        });
}

void normalise(bool log, const float* x, const float* origin, const float* factor, float* y,
               int64_t count) {
    if (log) {
        for (int64_t i = 0; i < count; ++i) y[i] = x[i] - origin[i] - factor[i];
    } else {
        for (int64_t i = 0; i < count; ++i) y[i] = math::exp(x[i] - origin[i]) * factor[i];
    }
}

}  // namespace

Outcome run_softmax(const Call& call) {
    const auto& params = call.packet.params.softmax;
    const View x = view_of(call.operands[0]);
    const uint32_t axes = 1u << params.axis;
    const bool log = params.log != 0;
    if (!log) {
        const View y = view_of(call.operands[1]);
        if (const auto outcome = softmax_rows(call.progress, x, y, params.axis)) return *outcome;
    }
    Statistics stats;
    const Outcome outcome = statistics(call, x, axes, log, stats);
    if (outcome != Outcome::kDone) return outcome;
    const std::array views{x, scratch_view(x, axes, stats.origin.get()),
                           scratch_view(x, axes, stats.factor.get()), view_of(call.operands[1])};
    const Loop loop = make_loop(views);
    return for_tiles(call.progress, loop.count, kTileElements, [&](int64_t begin, int64_t end) {
        alignas(64) float buffers[4][kBlockElements];
        for_blocks(loop, begin, end, [&](const Block& block) {
            const float* in = fetch<float>(views[0], block, 0, buffers[0]);
            const float* origin = fetch<float>(views[1], block, 1, buffers[1]);
            const float* factor = fetch<float>(views[2], block, 2, buffers[2]);
            normalise(log, in, origin, factor, buffers[3], block.size());
            put<float>(buffers[3], views[3], block, 3);
        });
    });
}

}  // namespace enpu::ops
