// SPDX-License-Identifier: MIT
// One element: every dtype is loaded to float or int64_t, computed there and stored with one
// rounding.
#pragma once

#ifdef __CUDACC__
#include <cuda_fp16.h>
#else
#include <immintrin.h>
#endif

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "enpu_hw.h"
#include "portable.h"

namespace enpu::ops {

struct Half {
    uint16_t bits;
};
struct Bfloat {
    uint16_t bits;
};
struct Bool {
    uint8_t bits;
};

ENPU_PORTABLE bool is_float(uint32_t dtype) {
    return dtype == ENPU_DTYPE_F32 || dtype == ENPU_DTYPE_F16 || dtype == ENPU_DTYPE_BF16;
}

// Truncates toward zero; out of range saturates, NaN is 0.
ENPU_PORTABLE int64_t saturate_i64(double value) {
    if (value >= 0x1p63) return INT64_MAX;
    if (value < -0x1p63) return INT64_MIN;
    return value == value ? static_cast<int64_t>(value) : 0;
}

ENPU_PORTABLE float half_to_float(Half value) {
#ifdef __CUDA_ARCH__
    return __half2float(__ushort_as_half(value.bits));
#else
    return _cvtsh_ss(value.bits);
#endif
}
ENPU_PORTABLE float bfloat_to_float(Bfloat value) {
    return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}
ENPU_PORTABLE Half float_to_half(float value) {
#ifdef __CUDA_ARCH__
    return {__half_as_ushort(__float2half_rn(value))};
#else
    return {static_cast<uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT))};
#endif
}
ENPU_PORTABLE Bfloat float_to_bfloat(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x40u;
    return {static_cast<uint16_t>(value == value ? rounded : quiet)};
}

// C is float, int64_t, or T itself (elements that are only moved).
template <class C, class T>
ENPU_PORTABLE C load(T value) {
    if constexpr (std::is_same_v<C, T>) {
        return value;
    } else if constexpr (std::is_same_v<T, Half>) {
        return load<C>(half_to_float(value));
    } else if constexpr (std::is_same_v<T, Bfloat>) {
        return load<C>(bfloat_to_float(value));
    } else if constexpr (std::is_same_v<T, Bool>) {
        return static_cast<C>(value.bits != 0);
    } else if constexpr (std::is_same_v<T, float> && std::is_same_v<C, int64_t>) {
        return saturate_i64(value);
    } else {
        return static_cast<C>(value);
    }
}

template <class T, class C>
ENPU_PORTABLE T store(C value) {
    if constexpr (std::is_same_v<C, T>) {
        return value;
    } else if constexpr (std::is_same_v<T, Bool>) {
        return {static_cast<uint8_t>(value != 0)};
    } else if constexpr (std::is_same_v<T, Half>) {
        return float_to_half(static_cast<float>(value));
    } else if constexpr (std::is_same_v<T, Bfloat>) {
        return float_to_bfloat(static_cast<float>(value));
    } else if constexpr (std::is_same_v<C, float> && std::is_integral_v<T>) {
        return static_cast<T>(saturate_i64(value));
    } else {
        return static_cast<T>(value);
    }
}

}  // namespace enpu::ops
