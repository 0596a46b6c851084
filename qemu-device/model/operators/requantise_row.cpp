// SPDX-License-Identifier: MIT
#include "requantise_row.h"

#include <algorithm>
#include <bit>
#include <cmath>

// gcc 12 takes the undefined operand of its own intrinsics for a mistake, wherever they are inlined.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include "enpu_hw.h"
#include "onednn.h"
#include "wide.h"

namespace enpu::ops {
namespace {

// Several sums at once, in steps so simple that each becomes vector instructions. One source, compiled for the
// vectors of either instruction set.
constexpr int64_t kStep = 64;

// Beyond what any result can be after rounding.
constexpr float kBound = 512;
constexpr float kRound = 0x1.8p23f;  // adding it leaves the nearest integer, half to even
// f32 rounds a product three times at most, each time by 2^-24 of it: below kBound that is less than 2^-13. Where
// the nearest half is farther away, f32 rounds to the same integer as f64.
constexpr float kSure = 0.5f - 0x1p-13f;

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
        v = v > -kBound ? v : -kBound;  // and what is not a number
        v = kBound < v ? kBound : v;
        const float r = (v + kRound) - kRound;
        farthest = std::max(farthest, std::bit_cast<int32_t>(std::fabs(v - r)));
        int32_t value = static_cast<int32_t>(r) + zero_point;
        value = value < low ? low : value;
        q[i] = high < value ? high : value;
    }
    if (std::bit_cast<float>(farthest) > kSure) return false;
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

// Sixteen of quick_step, as whole numbers that are not yet bounded, and in `farthest` the largest distance from one.
template <uint32_t act>
ENPU_WIDE_INLINE __m512i quick_sixteen(const RequantiseRow& row, int64_t at, __m512& farthest) {
    const __m512i sums =
        _mm512_add_epi32(_mm512_loadu_si512(row.sums + at), _mm512_loadu_si512(row.addends + at));
    __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_loadu_ps(row.scale + at));
    if constexpr (act == ENPU_UNARY_RELU) v = _mm512_max_ps(v, _mm512_setzero_ps());
    if constexpr (act == ENPU_UNARY_LEAKY_RELU) {
        const __mmask16 negative = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LT_OQ);
        v = _mm512_mask_mul_ps(v, negative, v, _mm512_set1_ps(row.alpha));
    }
    if constexpr (act == ENPU_UNARY_CLIP) {
        // Of two operands one of which is no number the second is taken.
        v = _mm512_max_ps(_mm512_set1_ps(row.alpha), v);
        v = _mm512_min_ps(_mm512_set1_ps(row.beta), v);
    }
    // What is too large for 32 bits becomes the smallest number: right for the small ones and for what is no number.
    v = _mm512_min_ps(_mm512_set1_ps(kBound), v);
    constexpr int kToNearest = 0, kLargestMagnitude = 0b1011;
    farthest = _mm512_range_ps(farthest, _mm512_reduce_ps(v, kToNearest), kLargestMagnitude);
    return _mm512_cvt_roundps_epi32(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

// quick_step for kStep sums. Zero points and bounds are those of bytes, so 16 bits hold every number on the way.
template <uint32_t act, bool is_signed>
ENPU_WIDE_INLINE bool quick_step_wide(const RequantiseRow& row, int64_t at) {
    __m512 farthest = _mm512_setzero_ps();
    const __m512i a = quick_sixteen<act>(row, at, farthest);
    const __m512i b = quick_sixteen<act>(row, at + 16, farthest);
    const __m512i c = quick_sixteen<act>(row, at + 32, farthest);
    const __m512i d = quick_sixteen<act>(row, at + 48, farthest);
    if (_mm512_cmp_ps_mask(farthest, _mm512_set1_ps(kSure), _CMP_GT_OQ) != 0) return false;
    const __m512i zero_point = _mm512_set1_epi16(static_cast<int16_t>(row.zero_point));
    const __m512i ab = _mm512_adds_epi16(_mm512_packs_epi32(a, b), zero_point);
    const __m512i cd = _mm512_adds_epi16(_mm512_packs_epi32(c, d), zero_point);
    const __m512i bytes = is_signed ? _mm512_packs_epi16(ab, cd) : _mm512_packus_epi16(ab, cd);
    // Packing goes by quarters of a vector.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(row.to + at, _mm512_permutexvar_epi32(order, bytes));
    return true;
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
    for (const int64_t place : places) {
        row.to = given.to + place;
        for (int64_t next = 0; next < row.count && place >= 0; next += kStep) {
            const Step step = step_of(row, next);
            if (!step.quick || !quick_step_wide<act, is_signed>(row, step.at))
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
