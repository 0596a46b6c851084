// SPDX-License-Identifier: MIT
#include "requantise_row.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "enpu_hw.h"
#include "onednn.h"
#include "requantise_wide.h"

namespace enpu::ops {
namespace {

// Several sums at once, in steps so simple that each becomes vector instructions. One source, compiled for the
// vectors of either instruction set.
constexpr int64_t kStep = kRequantiseStep;

constexpr float kRound = 0x1.8p23f;  // adding it leaves the nearest integer, half to even

constexpr double kWideBound = 1 << 20;
constexpr double kWideRound = 0x1.8p52;

int32_t add(int32_t a, int32_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

template <uint32_t act, class Float>
[[gnu::always_inline]] inline Float activate(Float v, Float alpha, Float beta) {
    if constexpr (act == ENPU_UNARY_RELU) v = v > 0 ? v : 0;
    if constexpr (act == ENPU_UNARY_LEAKY_RELU) v = v < 0 ? v * alpha : v;
    if constexpr (act == ENPU_UNARY_CLIP) {
        v = v < alpha ? alpha : v;
        v = beta < v ? beta : v;
    }
    return v;
}

// False: f32 does not tell how one of them is rounded.
template <uint32_t act>
[[gnu::always_inline]] inline bool quick_step(const RequantiseRow& row, int64_t at) {
    const int32_t *sums = row.sums + at, *addends = row.addends + at;
    const float* scale = row.scale + at;
    auto* to = reinterpret_cast<uint8_t*>(row.to) + at;
    const float alpha = row.alpha, beta = row.beta;
    const int32_t low = row.low, high = row.high, zero_point = row.zero_point;
    alignas(64) int32_t q[kStep];
    int32_t farthest = 0;  // as bits: they are in the order of the numbers
    for (int64_t i = 0; i < kStep; ++i) {
        const auto sum = static_cast<float>(add(sums[i], addends[i]));
        float v = activate<act, float>(sum * scale[i], alpha, beta);
        v = v > -kRequantiseBound ? v : -kRequantiseBound;  // and what is not a number
        v = kRequantiseBound < v ? kRequantiseBound : v;
        const float r = (v + kRound) - kRound;
        farthest = std::max(farthest, std::bit_cast<int32_t>(std::fabs(v - r)));
        int32_t value = static_cast<int32_t>(r) + zero_point;
        value = value < low ? low : value;
        q[i] = high < value ? high : value;
    }
    if (std::bit_cast<float>(farthest) > kRequantiseSure) return false;
    for (int64_t i = 0; i < kStep; ++i) to[i] = static_cast<uint8_t>(q[i]);
    return true;
}

// What requantise_one does, operation by operation.
template <uint32_t act>
[[gnu::always_inline]] inline void exact_step(const RequantiseRow& row, int64_t at, int64_t count) {
    alignas(64) double v[kStep];
    alignas(64) int32_t q[kStep];
    const int32_t *sums = row.sums + at, *addends = row.addends + at;
    const float* scale = row.scale + at;
    auto* to = reinterpret_cast<uint8_t*>(row.to) + at;
    const double alpha = row.alpha, beta = row.beta, low = row.low, high = row.high;
    for (int64_t i = 0; i < count; ++i) q[i] = add(sums[i], addends[i]);
    for (int64_t i = 0; i < count; ++i)
        v[i] = static_cast<double>(q[i]) * static_cast<double>(scale[i]);
    for (int64_t i = 0; i < count; ++i) v[i] = activate<act, double>(v[i], alpha, beta);
    for (int64_t i = 0; i < count; ++i) {
        double r = v[i] < -kWideBound ? -kWideBound : v[i];
        r = kWideBound < r ? kWideBound : r;
        r = ((r + kWideRound) - kWideRound) + row.zero_point;
        r = r > low ? r : low;  // and what is not a number
        q[i] = static_cast<int32_t>(high < r ? high : r);
    }
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<uint8_t>(q[i]);
}

// Steps cover the row; the last overlaps the one before.
struct Step {
    int64_t at, count;
    bool quick;
};
[[gnu::always_inline]] inline Step step_of(const RequantiseRow& row, int64_t next) {
    const int64_t count = std::min(kStep, row.count);
    return {std::min(next, row.count - count), count, row.quick && count == kStep};
}

using Places = std::span<const int64_t>;

template <uint32_t act>
void requantise_loop(const RequantiseRow& given, Places places) {
    RequantiseRow row = given;  // its own, so that what is constant stays in registers
    for (const int64_t place : places) {
        row.to = given.to + place;
        for (int64_t next = 0; next < row.count && place >= 0; next += kStep) {
            const Step step = step_of(row, next);
            if (!step.quick || !quick_step<act>(row, step.at))
                exact_step<act>(row, step.at, step.count);
        }
        row.sums += row.count;
    }
}
template <uint32_t act, bool is_signed>
ENPU_WIDE void requantise_loop_wide(const RequantiseRow& given, Places places) {
    RequantiseRow row = given;  // its own, so that what is constant stays in registers
    const WideRule rule = wide_rule(row);
    for (const int64_t place : places) {
        row.to = given.to + place;
        for (int64_t next = 0; next < row.count && place >= 0; next += kStep) {
            const Step step = step_of(row, next);
            if (!step.quick ||
                !quick_step_wide<act, is_signed>(rule, row.sums + step.at, row.addends + step.at,
                                                 row.scale + step.at, row.to + step.at))
                exact_step<act>(row, step.at, step.count);
        }
        row.sums += row.count;
    }
}

template <uint32_t act>
void requantise_with(const RequantiseRow& row, Places places) {
    if (!has_wide_vectors()) return requantise_loop<act>(row, places);
    if (row.low < 0) return requantise_loop_wide<act, true>(row, places);
    requantise_loop_wide<act, false>(row, places);
}

}  // namespace

bool f32_may_round(const float* scale, int64_t count, float alpha) {
    constexpr float kLargest = 0x1p64f;  // times a sum it is a number
    return std::isfinite(alpha) && std::all_of(scale, scale + count, [](float value) {
               return std::fabs(value) <= kLargest;
           });
}

void requantise_rows(const RequantiseRow& row, uint32_t act, std::span<const int64_t> places) {
    switch (act) {
        case ENPU_UNARY_RELU:
            return requantise_with<ENPU_UNARY_RELU>(row, places);
        case ENPU_UNARY_LEAKY_RELU:
            return requantise_with<ENPU_UNARY_LEAKY_RELU>(row, places);
        case ENPU_UNARY_CLIP:
            return requantise_with<ENPU_UNARY_CLIP>(row, places);
        default:
            return requantise_with<ENPU_UNARY_IDENTITY>(row, places);
    }
}

void requantise_row(const RequantiseRow& row, uint32_t act) {
    const int64_t here = 0;
    requantise_rows(row, act, {&here, 1});
}

}  // namespace enpu::ops
