// SPDX-License-Identifier: MIT
// A step of requantise_row() in vectors of AVX-512, for what is inlined into functions of that instruction set.
#pragma once

#include <cstdint>

#include "enpu_hw.h"
#include "requantise_row.h"
#include "wide.h"

// gcc 12 takes the undefined operand of its own intrinsics for a mistake, wherever they are inlined.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

namespace enpu::ops {

constexpr int64_t kRequantiseStep = 64;

// Beyond what any result can be after rounding.
constexpr float kRequantiseBound = 512;
// Results lie 255 from the zero point at most: what is farther is saturated, whichever way it is rounded. f32 rounds a
// product three times at most, each time by 2^-24 of it, which is less than 2^-14 together. Where the nearest half is
// farther away, f32 rounds to the same integer as f64.
constexpr float kRequantiseSure = 0.5f - 0x1p-14f;

// What is the same for every sum.
struct WideRule {
    __m512 alpha, beta, bound, sure;
    __m512i zero_point;
};
ENPU_WIDE_INLINE WideRule wide_rule(const RequantiseRow& row) {
    return {_mm512_set1_ps(row.alpha), _mm512_set1_ps(row.beta), _mm512_set1_ps(kRequantiseBound),
            _mm512_set1_ps(kRequantiseSure),
            _mm512_set1_epi16(static_cast<int16_t>(row.zero_point))};
}

// Sixteen sums as whole numbers that are not yet bounded, and in `farthest` the largest distance from one.
template <uint32_t act>
ENPU_WIDE_INLINE __m512i quick_sixteen(const WideRule& rule, const int32_t* sums,
                                       const int32_t* addends, const float* scale,
                                       __m512& farthest) {
    const __m512i sum = _mm512_add_epi32(_mm512_loadu_si512(sums), _mm512_loadu_si512(addends));
    __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_loadu_ps(scale));
    if constexpr (act == ENPU_UNARY_RELU) v = _mm512_max_ps(v, _mm512_setzero_ps());
    if constexpr (act == ENPU_UNARY_LEAKY_RELU) {
        const __mmask16 negative = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LT_OQ);
        v = _mm512_mask_mul_ps(v, negative, v, rule.alpha);
    }
    if constexpr (act == ENPU_UNARY_CLIP) {
        // Of two operands one of which is no number the second is taken.
        v = _mm512_max_ps(rule.alpha, v);
        v = _mm512_min_ps(rule.beta, v);
    }
    // What is too large for 32 bits becomes the smallest number: right for the small ones and for what is no number.
    v = _mm512_min_ps(rule.bound, v);
    constexpr int kToNearest = 0, kLargestMagnitude = 0b1011;
    farthest = _mm512_range_ps(farthest, _mm512_reduce_ps(v, kToNearest), kLargestMagnitude);
    return _mm512_cvt_roundps_epi32(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

// kRequantiseStep sums become bytes. Zero points and bounds are those of bytes, so 16 bits hold every number on the way.
// False: f32 does not tell how one of them is rounded.
template <uint32_t act, bool is_signed>
ENPU_WIDE_INLINE bool quick_step_wide(const WideRule& rule, const int32_t* sums,
                                      const int32_t* addends, const float* scale, std::byte* to) {
    __m512 farthest = _mm512_setzero_ps();
    const __m512i a = quick_sixteen<act>(rule, sums, addends, scale, farthest);
    const __m512i b = quick_sixteen<act>(rule, sums + 16, addends + 16, scale + 16, farthest);
    const __m512i c = quick_sixteen<act>(rule, sums + 32, addends + 32, scale + 32, farthest);
    const __m512i d = quick_sixteen<act>(rule, sums + 48, addends + 48, scale + 48, farthest);
    if (_mm512_cmp_ps_mask(farthest, rule.sure, _CMP_GT_OQ) != 0) return false;
    const __m512i ab = _mm512_adds_epi16(_mm512_packs_epi32(a, b), rule.zero_point);
    const __m512i cd = _mm512_adds_epi16(_mm512_packs_epi32(c, d), rule.zero_point);
    const __m512i bytes = is_signed ? _mm512_packs_epi16(ab, cd) : _mm512_packus_epi16(ab, cd);
    // Packing goes by quarters of a vector.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, bytes));
    return true;
}

}  // namespace enpu::ops
