// SPDX-License-Identifier: MIT
// REDUCE, ARG, SOFTMAX and NORM. Sums of floats are kept in double, so that their error is that of
// the final rounding.
#pragma once

#include "functions.h"

namespace enpu::hal::cuda {

// ---- partial results: add() takes one element in, merge() a partial result of other elements ----

struct FloatFold {
    uint32_t function;
    double value;

    ENPU_DEVICE void clear(const ReduceArgs& args) {
        function = args.function;
        value = function == ENPU_REDUCE_PROD  ? 1.0
                : function == ENPU_REDUCE_MAX ? -HUGE_VAL
                : function == ENPU_REDUCE_MIN ? HUGE_VAL
                                              : 0.0;
    }
    ENPU_DEVICE void add(const Ref& x, int32_t at, uint32_t) {
        const double v = load<float>(x, at);
        const bool squares = function == ENPU_REDUCE_L2 || function == ENPU_REDUCE_SUM_SQUARE;
        combine(function == ENPU_REDUCE_L1 ? ::fabs(v) : squares ? v * v : v);
    }
    ENPU_DEVICE void merge(const FloatFold& other) { combine(other.value); }
    ENPU_DEVICE void combine(double v) {
        if (function == ENPU_REDUCE_MAX)
            value = v > value || v != v ? v : value;
        else if (function == ENPU_REDUCE_MIN)
            value = v < value || v != v ? v : value;
        else if (function == ENPU_REDUCE_PROD)
            value *= v;
        else
            value += v;
    }
    ENPU_DEVICE void finish(const ReduceArgs& args, int32_t at) const {
        double result = value;
        if (function == ENPU_REDUCE_MEAN) result /= static_cast<double>(args.reduced.count);
        if (function == ENPU_REDUCE_L2) result = ::sqrt(result);
        if (function == ENPU_REDUCE_LOG_SUM) result = ::log(result);
        store(args.y, at, static_cast<float>(result));
    }
};

// Integers wrap.
struct IntegerFold {
    uint32_t function;
    int64_t value;

    ENPU_DEVICE void clear(const ReduceArgs& args) {
        function = args.function;
        value = function == ENPU_REDUCE_PROD  ? 1
                : function == ENPU_REDUCE_MAX ? INT64_MIN
                : function == ENPU_REDUCE_MIN ? INT64_MAX
                                              : 0;
    }
    ENPU_DEVICE void add(const Ref& x, int32_t at, uint32_t) {
        const auto v = load<int64_t>(x, at);
        const bool squares = function == ENPU_REDUCE_L2 || function == ENPU_REDUCE_SUM_SQUARE;
        combine(function == ENPU_REDUCE_L1 && v < 0 ? ops::subtract(0, v)
                : squares                           ? ops::multiply(v, v)
                                                    : v);
    }
    ENPU_DEVICE void merge(const IntegerFold& other) { combine(other.value); }
    ENPU_DEVICE void combine(int64_t v) {
        if (function == ENPU_REDUCE_MAX)
            value = v > value ? v : value;
        else if (function == ENPU_REDUCE_MIN)
            value = v < value ? v : value;
        else if (function == ENPU_REDUCE_PROD)
            value = ops::multiply(value, v);
        else
            value = ops::add(value, v);
    }
    ENPU_DEVICE void finish(const ReduceArgs& args, int32_t at) const {
        int64_t result = value;
        if (function == ENPU_REDUCE_MEAN) result /= static_cast<int64_t>(args.reduced.count);
        if (function == ENPU_REDUCE_L2)
            result = ops::saturate_i64(::sqrt(static_cast<double>(result)));
        if (function == ENPU_REDUCE_LOG_SUM)
            result = ops::saturate_i64(::log(static_cast<double>(result)));
        store(args.y, at, result);
    }
};

// log(sum(exp(x))) as a maximum and a sum relative to it. Where the maximum is not finite, the sum
// is relative to 0.
struct LogSumExp {
    float max;
    double sum;

    template <class Args>
    ENPU_DEVICE void clear(const Args&) {
        max = -HUGE_VALF;
        sum = 0;
    }
    ENPU_DEVICE float origin() const { return max - max == 0.0f ? max : 0.0f; }
    ENPU_DEVICE void raise(float to) {
        const float before = origin();
        max = to > max || to != to ? to : max;
        const float after = origin();
        if (before != after && sum != 0) sum *= ::exp(double(before) - after);
    }
    ENPU_DEVICE void add(const Ref& x, int32_t at, uint32_t) {
        const float v = load<float>(x, at);
        raise(v);
        sum += ops::math::exp(v - origin());
    }
    ENPU_DEVICE void merge(const LogSumExp& other) {
        LogSumExp part = other;
        raise(part.max);
        part.raise(max);
        sum += part.sum;
    }
    ENPU_DEVICE void finish(const ReduceArgs& args, int32_t at) const {
        const double result = origin() + ::log(sum);
        if (is_float(args.y.dtype))
            store(args.y, at, static_cast<float>(result));
        else
            store(args.y, at, ops::saturate_i64(result));
    }
};

// Index of the largest or smallest element; NaN beats every number.
template <class C>
struct Extremum {
    C value;
    uint32_t index;
    uint32_t smallest, last, any;

    ENPU_DEVICE void clear(const ReduceArgs& args) {
        smallest = args.smallest;
        last = args.last;
        any = 0;
    }
    ENPU_DEVICE void add(const Ref& x, int32_t at, uint32_t position) {
        take(load<C>(x, at), position);
    }
    ENPU_DEVICE void merge(const Extremum& other) {
        if (other.any) take(other.value, other.index);
    }
    // The order of arrival does not count: equal elements are told apart by their index.
    ENPU_DEVICE void take(C v, uint32_t position) {
        const bool new_nan = v != v, old_nan = value != value;
        const bool better = new_nan != old_nan ? new_nan : smallest ? v < value : v > value;
        const bool equal = v == value || (new_nan && old_nan);
        const bool later = last ? position > index : position < index;
        if (any && !better && !(equal && later)) return;
        value = v;
        index = position;
        any = 1;
    }
    ENPU_DEVICE void finish(const ReduceArgs& args, int32_t at) const {
        store(args.y, at, static_cast<int64_t>(index));
    }
};

// Sum and sum of squares: mean and variance. In double nothing is lost that f32 inputs had.
struct Moments {
    double sum, squares;

    template <class Args>
    ENPU_DEVICE void clear(const Args&) {
        sum = squares = 0;
    }
    ENPU_DEVICE void add(const Ref& x, int32_t at, uint32_t) {
        const double v = load<float>(x, at);
        sum += v;
        squares += v * v;
    }
    ENPU_DEVICE void merge(const Moments& other) {
        sum += other.sum;
        squares += other.squares;
    }
};

// ---- the threads of a block, `lanes` for an output -----------------------------------------------

struct Share {
    uint32_t output, lane, head;  // head: the thread that holds the result
    bool live;
};
template <class Args>
ENPU_DEVICE Share share_of(const Args& args, uint32_t block, uint32_t thread) {
    const uint32_t outputs = kGroupThreads / args.lanes;
    const uint32_t output = block * outputs + thread / args.lanes;
    return {output, thread % args.lanes, thread - thread % args.lanes, output < args.kept.count};
}

// Every group of lanes reduces its output into the state of its first thread.
template <class State, class Args>
ENPU_DEVICE void reduce_block(const Args& args, const Ref& x, const Block& block, State* states) {
    block.each([&](uint32_t thread) {
        const Share share = share_of(args, block.index, thread);
        State state;
        state.clear(args);
        if (share.live) {
            int32_t base[sizeof(args.kept.strides) / sizeof(args.kept.strides[0])];
            int32_t at[sizeof(args.reduced.strides) / sizeof(args.reduced.strides[0])];
            locate(args.kept, share.output, base);
            for (uint32_t i = share.lane; i < args.reduced.count; i += args.lanes) {
                locate(args.reduced, i, at);
                state.add(x, base[0] + at[0], i);
            }
        }
        states[thread] = state;
    });
    for (uint32_t half = args.lanes / 2; half > 0; half /= 2) {
        block.each([&](uint32_t thread) {
            if (thread % args.lanes < half) states[thread].merge(states[thread + half]);
        });
    }
}

template <class State>
ENPU_DEVICE void reduce_with(const ReduceArgs& args, const Block& block, void* shared) {
    auto* states = static_cast<State*>(shared);
    reduce_block(args, args.x, block, states);
    block.each([&](uint32_t thread) {
        const Share share = share_of(args, block.index, thread);
        if (!share.live || share.lane != 0) return;
        int32_t at[2];
        locate(args.kept, share.output, at);
        states[thread].finish(args, at[1]);
    });
}

// Bytes of `shared`, for any State.
constexpr unsigned kReduceShared = 32 * kGroupThreads;
static_assert(sizeof(Extremum<int64_t>) <= 32 && sizeof(FloatFold) <= 32 && sizeof(Moments) <= 32);

ENPU_DEVICE void run_reduce(const ReduceArgs& args, const Block& block, void* shared) {
    const bool floats = is_float(args.x.dtype);
    if (args.function == kArgFunction) {
        if (floats)
            reduce_with<Extremum<float>>(args, block, shared);
        else
            reduce_with<Extremum<int64_t>>(args, block, shared);
    } else if (args.function == ENPU_REDUCE_LOG_SUM_EXP) {
        reduce_with<LogSumExp>(args, block, shared);
    } else if (floats) {
        reduce_with<FloatFold>(args, block, shared);
    } else {
        reduce_with<IntegerFold>(args, block, shared);
    }
}

ENPU_DEVICE void run_softmax(const SoftmaxArgs& args, const Block& block, void* shared) {
    auto* states = static_cast<LogSumExp*>(shared);
    reduce_block(args, args.x, block, states);
    block.each([&](uint32_t thread) {
        const Share share = share_of(args, block.index, thread);
        if (!share.live) return;
        const LogSumExp& all = states[share.head];
        const float origin = all.origin();
        const auto factor = static_cast<float>(args.log ? ::log(all.sum) : 1.0 / all.sum);
        int32_t base[2], at[2];
        locate(args.kept, share.output, base);
        for (uint32_t i = share.lane; i < args.reduced.count; i += args.lanes) {
            locate(args.reduced, i, at);
            const float x = load<float>(args.x, base[0] + at[0]) - origin;
            store(args.y, base[1] + at[1], args.log ? x - factor : ops::math::exp(x) * factor);
        }
    });
}

// What one output of NORM is shifted and scaled by. The mean is kept in two floats: with one, its
// rounding would show as |mean| / deviation ulps.
struct Normal {
    float mean, mean_low, factor;
};

ENPU_DEVICE Normal measured(const NormArgs& args, const Moments& moments) {
    const double count = static_cast<double>(args.reduced.count);
    const double mean = args.kind == ENPU_NORM_RMS ? 0.0 : moments.sum / count;
    const double variance = moments.squares / count - mean * mean;
    const double bounded = variance > 0.0 ? variance : 0.0;
    const double factor = 1.0 / ::sqrt(bounded + double(args.epsilon));
    const auto high = static_cast<float>(mean);
    return {high, static_cast<float>(mean - high),
            static_cast<float>(variance == variance ? factor : variance)};
}

ENPU_DEVICE Normal given(const NormArgs& args, const int32_t* base) {
    const double variance = load<float>(args.refs[kNormVariance], base[kNormVariance]);
    return {load<float>(args.refs[kNormMean], base[kNormMean]), 0.0f,
            static_cast<float>(1.0 / ::sqrt(variance + double(args.epsilon)))};
}

ENPU_DEVICE void run_norm(const NormArgs& args, const Block& block, void* shared) {
    auto* states = static_cast<Moments*>(shared);
    const bool batch = args.kind == ENPU_NORM_BATCH;
    if (!batch) reduce_block(args, args.refs[kNormX], block, states);
    block.each([&](uint32_t thread) {
        const Share share = share_of(args, block.index, thread);
        if (!share.live) return;
        int32_t base[kNormStreams], at[kNormStreams];
        locate(args.kept, share.output, base);
        const Normal normal = batch ? given(args, base) : measured(args, states[share.head]);
        for (uint32_t i = share.lane; i < args.reduced.count; i += args.lanes) {
            locate(args.reduced, i, at);
            const auto value = [&](NormStream k) {
                return load<float>(args.refs[k], base[k] + at[k]);
            };
            float y = value(kNormX) - normal.mean;
            y = (y - normal.mean_low) * normal.factor;
            if (args.refs[kNormScale].address) y *= value(kNormScale);
            if (args.refs[kNormBias].address) y += value(kNormBias);
            store(args.refs[kNormY], base[kNormY] + at[kNormY], apply_unary(args.act, y));
        }
    });
}

}  // namespace enpu::hal::cuda
