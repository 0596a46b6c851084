// SPDX-License-Identifier: MIT
// Rows in vectors of AVX-512. What a row is read and written with costs as much as its arithmetic, so each has the
// fewest visits, and the next row, which mostly lies behind it, is fetched meanwhile.
#include <limits>

#include "row_kernels.h"
#include "wide.h"

// gcc 12 takes the undefined operand of its own intrinsics for a mistake, wherever they are inlined.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

namespace enpu::ops {
namespace {

constexpr int64_t kVector = 16;
static_assert(kRowLanes == 2 * kVector);

// Which of 16 elements from `at` on belong to a row.
ENPU_WIDE_INLINE __mmask16 inside(int64_t count, int64_t at) {
    const int64_t left = std::clamp<int64_t>(count - at, 0, kVector);
    return static_cast<__mmask16>((1u << left) - 1);
}

// Calls step(at, mask of the elements from `at`, mask of those from at + 16) for each kRowLanes elements.
template <class Step>
ENPU_WIDE_INLINE void for_lanes(int64_t count, Step&& step) {
    int64_t at = 0;
    for (; at + kRowLanes <= count; at += kRowLanes) step(at, __mmask16(-1), __mmask16(-1));
    if (at < count) step(at, inside(count, at), inside(count, at + kVector));
}

// A hint alone: nothing is read, whether there is a next row or not.
ENPU_WIDE_INLINE void fetch_next_row(const float* x, int64_t count, int64_t at) {
    const auto next = reinterpret_cast<uintptr_t>(x) + (count + at) * sizeof(float);
    _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(next + kVector * sizeof(float)), _MM_HINT_T0);
}

// kRowLanes sums in f64.
struct Lanes {
    __m512d part[4];

    ENPU_WIDE_INLINE void clear() {
        for (__m512d& p : part) p = _mm512_setzero_pd();
    }
    ENPU_WIDE_INLINE double sum() const {
        alignas(64) double lanes[kRowLanes];
        for (int i = 0; i < 4; ++i) _mm512_store_pd(lanes + 8 * i, part[i]);
        return sum_of_lanes(lanes);
    }
};

ENPU_WIDE_INLINE __m512d low_half(__m512 v) {
    return _mm512_cvtps_pd(_mm512_castps512_ps256(v));
}
ENPU_WIDE_INLINE __m512d high_half(__m512 v) {
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
}

// math::exp. Scaling by 2^n rounds once, as its two factors do.
ENPU_WIDE_INLINE __m512 exponential(__m512 x) {
    // Of two operands one of which is no number the second is taken.
    x = _mm512_min_ps(_mm512_set1_ps(89.0f), x);
    x = _mm512_max_ps(_mm512_set1_ps(-104.5f), x);
    const __m512 round = _mm512_set1_ps(0x1.8p23f);
    const __m512 n = _mm512_sub_ps(_mm512_fmadd_ps(x, _mm512_set1_ps(0x1.715476p0f), round), round);
    const __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.7f7d1cp-20f),
                                      _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.62e4p-1f), x));
    __m512 p = _mm512_set1_ps(1.0f / 5040);
    for (const float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f})
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(c));
    p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
    return _mm512_scalef_ps(_mm512_add_ps(_mm512_set1_ps(1.0f), p), n);
}

ENPU_WIDE_INLINE float origin_of(const float* x, int64_t count) {
    const __m512 least = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
    __m512 largest[2] = {least, least};
    __mmask16 no_number = 0;
    for_lanes(count, [&](int64_t at, __mmask16 first, __mmask16 second) ENPU_WIDE_LAMBDA {
        const __m512 a = _mm512_mask_loadu_ps(least, first, x + at);
        const __m512 b = _mm512_mask_loadu_ps(least, second, x + at + kVector);
        no_number |= _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
        largest[0] = _mm512_max_ps(largest[0], a);
        largest[1] = _mm512_max_ps(largest[1], b);
    });
    if (no_number != 0) return 0;
    return softmax_origin(_mm512_reduce_max_ps(_mm512_max_ps(largest[0], largest[1])));
}

ENPU_WIDE_INLINE RowMoments measure(const float* x, int64_t count, const NormRow& row) {
    Lanes sums, squares;
    sums.clear();
    squares.clear();
    const auto add = [&](int quarter, __m512d v) ENPU_WIDE_LAMBDA {
        sums.part[quarter] = _mm512_add_pd(sums.part[quarter], v);
        // The product is exact, so this rounds once as an addition does.
        squares.part[quarter] = _mm512_fmadd_pd(v, v, squares.part[quarter]);
    };
    for_lanes(count, [&](int64_t at, __mmask16 first, __mmask16 second) ENPU_WIDE_LAMBDA {
        fetch_next_row(x, count, at);
        const __m512 a = _mm512_maskz_loadu_ps(first, x + at);
        const __m512 b = _mm512_maskz_loadu_ps(second, x + at + kVector);
        add(0, low_half(a));
        add(1, high_half(a));
        add(2, low_half(b));
        add(3, high_half(b));
    });
    return row_moments(row, sums.sum(), squares.sum(), static_cast<double>(count));
}

template <bool scaled, bool biased>
ENPU_WIDE_INLINE void normalise(const float* x, float* y, int64_t count, const RowMoments& m,
                                const NormRow& row) {
    const __m512 mean = _mm512_set1_ps(m.mean), low = _mm512_set1_ps(m.mean_low);
    const __m512 factor = _mm512_set1_ps(m.factor);
    const auto step = [&](int64_t at, __mmask16 mask) ENPU_WIDE_LAMBDA {
        __m512 v = _mm512_sub_ps(_mm512_maskz_loadu_ps(mask, x + at), mean);
        v = _mm512_mul_ps(_mm512_sub_ps(v, low), factor);
        if constexpr (scaled) v = _mm512_mul_ps(v, _mm512_maskz_loadu_ps(mask, row.scale + at));
        if constexpr (biased) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, row.bias + at));
        _mm512_mask_storeu_ps(y + at, mask, v);
    };
    for_lanes(count, [&](int64_t at, __mmask16 first, __mmask16 second) ENPU_WIDE_LAMBDA {
        step(at, first);
        step(at + kVector, second);
    });
}

}  // namespace

ENPU_WIDE void softmax_row_wide(const float* x, float* y, int64_t count) {
    const __m512 origin = _mm512_set1_ps(origin_of(x, count));
    Lanes sums;
    sums.clear();
    const auto element = [&](int64_t at, __mmask16 mask) ENPU_WIDE_LAMBDA {
        const __m512 e = exponential(_mm512_sub_ps(_mm512_maskz_loadu_ps(mask, x + at), origin));
        _mm512_mask_storeu_ps(y + at, mask, e);
        return _mm512_maskz_mov_ps(mask, e);
    };
    for_lanes(count, [&](int64_t at, __mmask16 first, __mmask16 second) ENPU_WIDE_LAMBDA {
        fetch_next_row(x, count, at);
        const __m512 a = element(at, first), b = element(at + kVector, second);
        sums.part[0] = _mm512_add_pd(sums.part[0], low_half(a));
        sums.part[1] = _mm512_add_pd(sums.part[1], high_half(a));
        sums.part[2] = _mm512_add_pd(sums.part[2], low_half(b));
        sums.part[3] = _mm512_add_pd(sums.part[3], high_half(b));
    });
    const __m512 factor = _mm512_set1_ps(static_cast<float>(1.0 / sums.sum()));
    const auto scale = [&](int64_t at, __mmask16 mask) ENPU_WIDE_LAMBDA {
        const __m512 e = _mm512_maskz_loadu_ps(mask, y + at);
        _mm512_mask_storeu_ps(y + at, mask, _mm512_mul_ps(e, factor));
    };
    for_lanes(count, [&](int64_t at, __mmask16 first, __mmask16 second) ENPU_WIDE_LAMBDA {
        scale(at, first);
        scale(at + kVector, second);
    });
}

ENPU_WIDE void norm_row_wide(const float* x, float* y, int64_t count, const NormRow& row) {
    const RowMoments m = measure(x, count, row);
    if (row.scale != nullptr && row.bias != nullptr)
        return normalise<true, true>(x, y, count, m, row);
    if (row.scale != nullptr) return normalise<true, false>(x, y, count, m, row);
    if (row.bias != nullptr) return normalise<false, true>(x, y, count, m, row);
    normalise<false, false>(x, y, count, m, row);
}

}  // namespace enpu::ops
