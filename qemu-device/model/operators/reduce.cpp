// SPDX-License-Identifier: MIT
// REDUCE and ARG.
#include "accumulators.h"
#include "families.h"

namespace enpu::ops {
namespace {

// Writes finish(state) of neighbouring outputs to y.
template <class C, class State, class Finish>
void write_row(const View& y, const State* states, int64_t offset, int64_t stride, int64_t count,
               Finish&& finish) {
    C values[kColumns];
    for (int64_t i = 0; i < count; ++i) values[i] = finish(states[i]);
    Block block;
    block.rows = 1;
    block.cols = count;
    block.offset[0] = offset;
    block.col_stride[0] = stride;
    put<C>(values, y, block, 0);
}

struct Reduction {
    Progress& progress;
    View x;
    View y;
    uint32_t axes;

    template <class Accumulator, class C, class Finish>
    Outcome run(Finish finish) const {
        const auto sink = [&](const typename Accumulator::State* states, int64_t offset,
                              int64_t stride, int64_t count) {
            write_row<C>(y, states, offset, stride, count, finish);
        };
        return reduce<Accumulator>(progress, x, y, axes, sink);
    }
    template <class Transform, class Finish>
    Outcome sum_float(Finish finish) const {
        return run<Fold<float, double, Transform, Plus<double>>, float>(
            [&](const auto& state) { return static_cast<float>(finish(state.value)); });
    }
    template <class Operation, class W>
    Outcome fold_float() const {
        return run<Fold<float, W, AsIs, Operation>, float>(
            [](const auto& state) { return static_cast<float>(state.value); });
    }
    template <class Transform, class Finish>
    Outcome sum_integer(Finish finish) const {
        return run<Fold<int64_t, uint64_t, Transform, Plus<uint64_t>>, int64_t>(
            [&](const auto& state) { return finish(static_cast<int64_t>(state.value)); });
    }
    template <class Operation, class W>
    Outcome fold_integer() const {
        return run<Fold<int64_t, W, AsIs, Operation>, int64_t>(
            [](const auto& state) { return static_cast<int64_t>(state.value); });
    }
    int64_t reduced_count() const { return element_count(x) / kept_count(x, axes); }
};

Outcome reduce_float(uint32_t function, const Reduction& r) {
    const auto same = [](double v) { return v; };
    const double count = static_cast<double>(r.reduced_count());
    switch (function) {
        case ENPU_REDUCE_MEAN:
            return r.sum_float<AsIs>([=](double v) { return v / count; });
        case ENPU_REDUCE_MAX:
            return r.fold_float<Larger<float>, float>();
        case ENPU_REDUCE_MIN:
            return r.fold_float<Smaller<float>, float>();
        case ENPU_REDUCE_PROD:
            return r.fold_float<Times<double>, double>();
        case ENPU_REDUCE_L1:
            return r.sum_float<Magnitude>(same);
        case ENPU_REDUCE_L2:
            return r.sum_float<Squared>([](double v) { return std::sqrt(v); });
        case ENPU_REDUCE_SUM_SQUARE:
            return r.sum_float<Squared>(same);
        case ENPU_REDUCE_LOG_SUM:
            return r.sum_float<AsIs>([](double v) { return std::log(v); });
        default:
            return r.sum_float<AsIs>(same);
    }
}

Outcome reduce_integer(uint32_t function, const Reduction& r) {
    const auto same = [](int64_t v) { return v; };
    const int64_t count = r.reduced_count();
    switch (function) {
        case ENPU_REDUCE_MEAN:
            return r.sum_integer<AsIs>([=](int64_t v) { return v / count; });
        case ENPU_REDUCE_MAX:
            return r.fold_integer<Larger<int64_t>, int64_t>();
        case ENPU_REDUCE_MIN:
            return r.fold_integer<Smaller<int64_t>, int64_t>();
        case ENPU_REDUCE_PROD:
            return r.fold_integer<Times<uint64_t>, uint64_t>();
        case ENPU_REDUCE_L1:
            return r.sum_integer<Magnitude>(same);
        case ENPU_REDUCE_L2:
            return r.sum_integer<Squared>(
                [](int64_t v) { return saturate_i64(std::sqrt(static_cast<double>(v))); });
        case ENPU_REDUCE_SUM_SQUARE:
            return r.sum_integer<Squared>(same);
        case ENPU_REDUCE_LOG_SUM:
            return r.sum_integer<AsIs>(
                [](int64_t v) { return saturate_i64(std::log(static_cast<double>(v))); });
        default:
            return r.sum_integer<AsIs>(same);
    }
}

template <class C>
Outcome arg(const Call& call, const Reduction& r) {
    const auto& params = call.packet.params.arg;
    const auto index = [](const auto& state) { return state.index; };
    if (params.smallest) {
        return params.last ? r.run<Extremum<C, true, true>, int64_t>(index)
                           : r.run<Extremum<C, true, false>, int64_t>(index);
    }
    return params.last ? r.run<Extremum<C, false, true>, int64_t>(index)
                       : r.run<Extremum<C, false, false>, int64_t>(index);
}

}  // namespace

Outcome run_reduce(const Call& call) {
    const auto& params = call.packet.params.reduce;
    const Reduction r{call.progress, view_of(call.operands[0]), view_of(call.operands[1]),
                      params.axes};
    if (params.function == ENPU_REDUCE_LOG_SUM_EXP && is_float(r.x.dtype)) {
        return r.run<LogSumExp, float>(
            [](const auto& state) { return static_cast<float>(state.log_sum()); });
    }
    if (params.function == ENPU_REDUCE_LOG_SUM_EXP) {
        return r.run<LogSumExp, int64_t>(
            [](const auto& state) { return saturate_i64(state.log_sum()); });
    }
    return is_float(r.x.dtype) ? reduce_float(params.function, r)
                               : reduce_integer(params.function, r);
}

Outcome run_arg(const Call& call) {
    const Reduction r{call.progress, view_of(call.operands[0]), view_of(call.operands[1]),
                      1u << call.packet.params.arg.axis};
    return is_float(r.x.dtype) ? arg<float>(call, r) : arg<int64_t>(call, r);
}

}  // namespace enpu::ops
