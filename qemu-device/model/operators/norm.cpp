// SPDX-License-Identifier: MIT
// NORM: mean and variance by the reduction engine (or given, for BATCH), then one pass that
// normalises.
#include <array>
#include <memory>
#include <new>
#include <optional>

#include "accumulators.h"
#include "families.h"
#include "functions.h"
#include "rows.h"

namespace enpu::ops {
namespace {

constexpr int64_t kTileElements = 1 << 17;

enum Stream : unsigned { kX, kScale, kBias, kMean, kMeanLow, kFactor, kY, kStreams };
using Streams = std::array<View, kStreams>;

// The statistics, one an output of the reduction. The mean is kept in two floats: with one, its
// rounding would show in y as |mean| / deviation ulps.
struct Scratch {
    std::unique_ptr<float[]> mean;
    std::unique_ptr<float[]> mean_low;
    std::unique_ptr<float[]> factor;

    bool allocate(int64_t count) {
        if (count > kMaxScratchOutputs) return false;
        for (auto* array : {&mean, &mean_low, &factor}) {
            array->reset(new (std::nothrow) float[static_cast<size_t>(count)]);
            if (!*array) return false;
        }
        return true;
    }
};

// [N, C, …] seen as [N, G, C/G, …].
View split_channels(const View& view, int64_t groups) {
    View split = view;
    split.rank = view.rank + 1;
    for (unsigned axis = view.rank; axis > 2; --axis) {
        split.dims[axis] = view.dims[axis - 1];
        split.strides[axis] = view.strides[axis - 1];
    }
    split.dims[1] = groups;
    split.dims[2] = view.dims[1] / groups;
    split.strides[2] = view.strides[1];
    split.strides[1] = view.strides[1] * split.dims[2];
    return split;
}

// An operand broadcast to x: [C] along axis 1, or with the dims of x and strides of 0. A view
// without data when it is left out.
View parameter_view(const Operand& operand, const View& x, bool by_channel) {
    View view = x;
    view.data = nullptr;
    view.strides = {};
    if (!operand) return view;
    const enpu_tensor& desc = *operand.desc;
    view.data = operand.data;
    view.dtype = desc.dtype;
    if (by_channel) {
        view.strides[1] = desc.strides[0];
        return view;
    }
    for (unsigned axis = 0; axis < x.rank; ++axis) view.strides[axis] = desc.strides[axis];
    return view;
}

uint32_t reduced_axes(const enpu_norm_params& params, unsigned rank) {
    const uint32_t all = (1u << rank) - 1;
    switch (params.kind) {
        case ENPU_NORM_BATCH:
            return all & ~2u;
        case ENPU_NORM_INSTANCE:
        case ENPU_NORM_GROUP:
            return all & ~3u;
        default:
            return all & ~((1u << params.axis) - 1);
    }
}

Outcome measure(const Call& call, const View& x, uint32_t axes, Scratch& scratch) {
    const auto& params = call.packet.params.norm;
    const double count = static_cast<double>(element_count(x) / kept_count(x, axes));
    const bool centred = params.kind != ENPU_NORM_RMS;
    const auto sink = [&](const Moments::State* states, int64_t offset, int64_t stride, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
            const double mean = centred ? states[i].sum / count : 0.0;
            const double variance = states[i].squares / count - mean * mean;
            const double factor = 1.0 / std::sqrt(std::max(variance, 0.0) + double(params.epsilon));
            const int64_t at = offset + i * stride;
            scratch.mean[at] = static_cast<float>(mean);
            scratch.mean_low[at] = static_cast<float>(mean - scratch.mean[at]);
            scratch.factor[at] = static_cast<float>(variance == variance ? factor : variance);
        }
    };
    return reduce<Moments>(call.progress, x, scratch_view(x, axes, scratch.mean.get()), axes, sink);
}

// BATCH: 1 / sqrt(variance + epsilon) once a channel.
Outcome batch_factors(const Call& call, const View& x, Scratch& scratch) {
    const double epsilon = call.packet.params.norm.epsilon;
    const View variance = parameter_view(call.operands[ENPU_NORM_OPERAND_VARIANCE], x, true);
    const int64_t channels = x.dims[1];
    return for_tiles(call.progress, channels, kTileElements, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
            Block block;
            block.rows = block.cols = 1;
            block.offset[0] = c * variance.strides[1];
            float value;
            const double v = *fetch<float>(variance, block, 0, &value);
            scratch.factor[c] = static_cast<float>(1.0 / std::sqrt(v + epsilon));
        }
    });
}

Outcome normalise(const Call& call, const Streams& views) {
    const auto& params = call.packet.params.norm;
    const Activation act{params.act, params.alpha, params.beta};
    const Loop loop = make_loop(views);
    return for_tiles(call.progress, loop.count, kTileElements, [&](int64_t begin, int64_t end) {
        alignas(64) float buffers[2][kBlockElements];
        for_blocks(loop, begin, end, [&](const Block& block) {
            const int64_t count = block.size();
            float* y = buffers[0];
            const auto with = [&](Stream stream, auto function) {
                if (!views[stream].data) return;
                const float* p = fetch<float>(views[stream], block, stream, buffers[1]);
                for (int64_t i = 0; i < count; ++i) y[i] = function(y[i], p[i]);
            };
            const float* x = fetch<float>(views[kX], block, kX, y);
            if (x != y) std::copy_n(x, count, y);
            with(kMean, [](float v, float p) { return v - p; });
            with(kMeanLow, [](float v, float p) { return v - p; });
            with(kFactor, [](float v, float p) { return v * p; });
            with(kScale, [](float v, float p) { return v * p; });
            with(kBias, [](float v, float p) { return v + p; });
            apply_unary(act, y, y, count);
            put<float>(y, views[kY], block, kY);
        });
    });
}

// Layer and RMS norm of rows without gaps, with parameters that are the same for all of them.
std::optional<Outcome> run_rows(const Call& call, const Streams& views) {
    const auto& params = call.packet.params.norm;
    if (params.kind != ENPU_NORM_LAYER && params.kind != ENPU_NORM_RMS) return std::nullopt;
    if (params.act != ENPU_UNARY_IDENTITY) return std::nullopt;
    NormRow row{nullptr, nullptr, params.epsilon, params.kind == ENPU_NORM_LAYER};
    for (const Stream stream : {kScale, kBias}) {
        const View& view = views[stream];
        if (view.data == nullptr) continue;
        for (unsigned axis = 0; axis < params.axis; ++axis)
            if (view.dims[axis] != 1 && view.strides[axis] != 0) return std::nullopt;
        if (!is_row(view, params.axis)) return std::nullopt;
        (stream == kScale ? row.scale : row.bias) = reinterpret_cast<const float*>(view.data);
    }
    return norm_rows(call.progress, views[kX], views[kY], params.axis, row);
}

}  // namespace

Outcome run_norm(const Call& call) {
    const auto& params = call.packet.params.norm;
    const View given = view_of(call.operands[ENPU_NORM_OPERAND_X]);
    const bool batch = params.kind == ENPU_NORM_BATCH;
    const bool by_channel = params.kind >= ENPU_NORM_BATCH;
    Streams views;
    views[kX] = given;
    views[kScale] = parameter_view(call.operands[ENPU_NORM_OPERAND_SCALE], given, by_channel);
    views[kBias] = parameter_view(call.operands[ENPU_NORM_OPERAND_BIAS], given, by_channel);
    views[kMean] = parameter_view(call.operands[ENPU_NORM_OPERAND_MEAN], given, true);
    views[kY] = view_of(call.operands[ENPU_NORM_OPERAND_Y]);
    if (params.kind == ENPU_NORM_GROUP) {
        for (Stream stream : {kX, kScale, kBias, kMean, kY}) {
            views[stream] = split_channels(views[stream], params.groups);
        }
    }
    if (const auto outcome = run_rows(call, views)) return *outcome;
    const View& x = views[kX];
    const uint32_t axes = reduced_axes(params, x.rank);
    Scratch scratch;
    if (!scratch.allocate(kept_count(x, axes))) return Outcome::kOutOfMemory;
    views[kMeanLow] = scratch_view(x, axes, nullptr);
    views[kFactor] = scratch_view(x, axes, scratch.factor.get());
    if (batch) {
        const Outcome outcome = batch_factors(call, x, scratch);
        if (outcome != Outcome::kDone) return outcome;
    } else {
        const Outcome outcome = measure(call, x, axes, scratch);
        if (outcome != Outcome::kDone) return outcome;
        const bool centred = params.kind != ENPU_NORM_RMS;
        views[kMean] = scratch_view(x, axes, centred ? scratch.mean.get() : nullptr);
        views[kMeanLow] = scratch_view(x, axes, centred ? scratch.mean_low.get() : nullptr);
    }
    return normalise(call, views);
}

}  // namespace enpu::ops
