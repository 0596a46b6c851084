// SPDX-License-Identifier: MIT
// SELECT, MOVE, PAD, GATHER, RESIZE and POOL.
#pragma once

#include "device.h"
#include "pad_source.h"
#include "pool_window.h"

namespace enpu::hal::cuda {

ENPU_DEVICE void run_select(const SelectArgs& args, Lane lane) {
    for (uint32_t i = lane.first; i < args.walk.count; i += lane.step) {
        int32_t at[4];
        locate(args.walk, i, at);
        const bool first = load_bits(args.condition, at[0]) != 0;
        store_bits(args.y, at[3], first ? load_bits(args.a, at[1]) : load_bits(args.b, at[2]));
    }
}

ENPU_DEVICE void run_move(const MoveArgs& args, Lane lane) {
    for (uint32_t i = lane.first; i < args.walk.count; i += lane.step) {
        int32_t at[2];
        locate(args.walk, i, at);
        store_bits(args.y, at[1], load_bits(args.x, at[0]));
    }
}

// The index of axis `axis` in a position of a walk, taking it off the position. Axes go from the
// last to the first.
template <unsigned N>
ENPU_DEVICE uint32_t take_axis(const Walk<N>& walk, uint32_t axis, uint32_t& position) {
    const uint32_t rest = position / walk.dims[axis];
    const uint32_t index = position - rest * walk.dims[axis];
    position = rest;
    return index;
}

ENPU_DEVICE void run_pad(const PadArgs& args, Lane lane) {
    for (uint32_t i = lane.first; i < args.walk.count; i += lane.step) {
        uint32_t rest = i;
        int32_t from = 0, to = 0;
        bool constant = false;
        for (uint32_t axis = args.walk.rank; axis-- > 0;) {
            const uint32_t index = take_axis(args.walk, axis, rest);
            const int64_t source =
                ops::pad_source(index, {args.before[axis], args.x_dims[axis]}, args.mode);
            constant = constant || source < 0;
            from += static_cast<int32_t>(source) * args.walk.strides[0][axis];
            to += static_cast<int32_t>(index) * args.walk.strides[1][axis];
        }
        store_bits(args.y, to, constant ? args.value : load_bits(args.x, from));
    }
}

ENPU_DEVICE void run_gather(const GatherArgs& args, Lane lane) {
    for (uint32_t i = lane.first; i < args.walk.count; i += lane.step) {
        int32_t at[3];
        locate(args.walk, i, at);
        const auto given = load<int64_t>(args.indices, at[1]);
        const int64_t index = given < 0 ? given + args.axis_size : given;
        if (index < 0 || index >= args.axis_size) {
            report(args.offence, ENPU_GATHER_OPERAND_INDICES, given);
            continue;
        }
        const auto offset = static_cast<int32_t>(index * args.axis_stride);
        store_bits(args.y, at[2], load_bits(args.x, at[0] + offset));
    }
}

// One axis of an output element of RESIZE.
struct Sampled {
    uint32_t count;  // taps
    int32_t stride;
    ops::Tap taps[4];
};

// The sum over all products of taps; the last axis is summed first.
ENPU_DEVICE float interpolate(const Ref& x, int32_t base, const Sampled* axes, uint32_t count) {
    uint32_t tap[ENPU_MAX_RANK] = {};
    float sum = 0;
    const Sampled& inner = axes[count - 1];
    for (;;) {
        int32_t at = base;
        float weight = 1;
        for (uint32_t i = 0; i + 1 < count; ++i) {
            at += axes[i].taps[tap[i]].index * axes[i].stride;
            weight *= axes[i].taps[tap[i]].weight;
        }
        float value = 0;
        for (uint32_t i = 0; i < inner.count && weight != 0; ++i)
            if (inner.taps[i].weight != 0)
                value +=
                    inner.taps[i].weight * load<float>(x, at + inner.taps[i].index * inner.stride);
        if (weight != 0) sum += weight * value;
        uint32_t axis = count - 1;
        while (axis > 0 && ++tap[axis - 1] == axes[axis - 1].count) tap[--axis] = 0;
        if (axis == 0) return sum;
    }
}

// Integers are rounded to the nearest, half to even, and saturate.
ENPU_DEVICE void store_rounded(const Ref& y, int32_t at, float value) {
    if (y.dtype != ENPU_DTYPE_I8 && y.dtype != ENPU_DTYPE_U8) return store(y, at, value);
    const float low = y.dtype == ENPU_DTYPE_I8 ? -128.0f : 0.0f;
    const float rounded = ::rintf(value);
    const float bounded = rounded > low ? (rounded < low + 255 ? rounded : low + 255) : low;
    store(y, at, static_cast<int64_t>(bounded));
}

ENPU_DEVICE void resize_one(const ResizeArgs& args, uint32_t position) {
    const bool nearest = args.params.mode == ENPU_RESIZE_MODE_NEAREST;
    const uint32_t taps = ops::taps_of_mode(args.params.mode);
    Sampled axes[ENPU_MAX_RANK];
    uint32_t sampled = 0;
    int32_t base = 0, to = 0;
    bool outside = false;
    for (uint32_t axis = 0; axis < args.walk.rank; ++axis) {
        uint32_t below = 1;
        for (uint32_t next = axis + 1; next < args.walk.rank; ++next) below *= args.walk.dims[next];
        const uint32_t index = position / below % args.walk.dims[axis];
        to += static_cast<int32_t>(index) * args.walk.strides[1][axis];
        const ops::AxisRule& rule = args.rules[axis];
        const int32_t stride = args.walk.strides[0][axis];
        if (rule.copies()) {
            base += static_cast<int32_t>(index) * stride;
            continue;
        }
        const double at = ops::original(rule, index);
        outside = outside || rule.is_outside(at);
        Sampled& one = axes[sampled++];
        one.count = taps;
        one.stride = stride;
        ops::fill_taps(args.params, at, rule.input, taps, one.taps);
        if (nearest) base += one.taps[0].index * stride;
    }
    if (outside) return store_rounded(args.y, to, args.params.extrapolation);
    if (nearest || sampled == 0) return store_bits(args.y, to, load_bits(args.x, base));
    store_rounded(args.y, to, interpolate(args.x, base, axes, sampled));
}

ENPU_DEVICE void run_resize(const ResizeArgs& args, Lane lane) {
    for (uint32_t i = lane.first; i < args.walk.count; i += lane.step) resize_one(args, i);
}

template <class C>
ENPU_DEVICE C pool_window(const PoolArgs& args, int32_t base, const ops::Reach& rows,
                          const ops::Reach& cols, C start) {
    const bool max = args.params.function == ENPU_POOL_MAX;
    C sum = start;
    for (int64_t i = rows.begin; i < rows.end; ++i) {
        const auto row = static_cast<int32_t>(rows.first + i * args.params.dilation[0]);
        for (int64_t j = cols.begin; j < cols.end; ++j) {
            const auto col = static_cast<int32_t>(cols.first + j * args.params.dilation[1]);
            const C value = load<C>(
                args.x, base + row * args.walk.strides[0][2] + col * args.walk.strides[0][3]);
            sum = max ? ops::larger(sum, value) : sum + value;
        }
    }
    return sum;
}

ENPU_DEVICE int64_t smallest_of(uint32_t dtype) {
    switch (dtype) {
        case ENPU_DTYPE_I8:
            return INT8_MIN;
        case ENPU_DTYPE_I32:
            return INT32_MIN;
        case ENPU_DTYPE_I64:
            return INT64_MIN;
        default:
            return 0;
    }
}

ENPU_DEVICE void pool_one(const PoolArgs& args, uint32_t position) {
    uint32_t index[4];
    int32_t base = 0, to = 0;
    for (uint32_t axis = 4; axis-- > 0;) {
        index[axis] = take_axis(args.walk, axis, position);
        to += static_cast<int32_t>(index[axis]) * args.walk.strides[1][axis];
    }
    for (uint32_t axis = 0; axis < 2; ++axis)
        base += static_cast<int32_t>(index[axis]) * args.walk.strides[0][axis];
    const enpu_pool_params& p = args.params;
    const auto reach = [&](unsigned axis) {
        return ops::pool_reach({args.size[axis], p.kernel[axis], p.stride[axis], p.dilation[axis],
                                p.pad[axis], p.pad[2 + axis]},
                               index[2 + axis]);
    };
    const ops::Reach rows = reach(0), cols = reach(1);
    const int64_t high = rows.end > rows.begin ? rows.end - rows.begin : 0;
    const int64_t wide = cols.end > cols.begin ? cols.end - cols.begin : 0;
    const int64_t divisor =
        p.function == ENPU_POOL_AVERAGE ? high * wide : rows.padded * cols.padded;
    const bool average = p.function != ENPU_POOL_MAX;
    if (is_float(args.x.dtype)) {
        const float start = average ? 0.0f : -HUGE_VALF;
        const float sum = pool_window<float>(args, base, rows, cols, start);
        store(args.y, to, average && divisor != 0 ? sum / static_cast<float>(divisor) : sum);
    } else {
        const int64_t start = average ? 0 : smallest_of(args.x.dtype);
        const int64_t sum = pool_window<int64_t>(args, base, rows, cols, start);
        store(args.y, to, average && divisor != 0 ? ops::divide_round_even(sum, divisor) : sum);
    }
}

ENPU_DEVICE void run_pool(const PoolArgs& args, Lane lane) {
    for (uint32_t i = lane.first; i < args.walk.count; i += lane.step) pool_one(args, i);
}

}  // namespace enpu::hal::cuda
