// SPDX-License-Identifier: MIT
// Elements in memory and in computation: every dtype is loaded to float or int64_t, computed there
// and stored with one rounding.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "scalar.h"
#include "strided.h"

namespace enpu::ops {

template <class T>
struct Tag {
    using Type = T;
};

// Calls function(Tag<storage type>) for a dtype that passed the rules.
template <class Function>
inline auto with_dtype(uint32_t dtype, Function&& function) {
    switch (dtype) {
        case ENPU_DTYPE_F16:
            return function(Tag<Half>{});
        case ENPU_DTYPE_BF16:
            return function(Tag<Bfloat>{});
        case ENPU_DTYPE_I8:
            return function(Tag<int8_t>{});
        case ENPU_DTYPE_U8:
            return function(Tag<uint8_t>{});
        case ENPU_DTYPE_I32:
            return function(Tag<int32_t>{});
        case ENPU_DTYPE_I64:
            return function(Tag<int64_t>{});
        case ENPU_DTYPE_BOOL:
            return function(Tag<Bool>{});
        default:
            return function(Tag<float>{});
    }
}

// Calls function(Tag<uintN_t>) for the size of a dtype: operators that only move elements.
template <class Function>
inline auto with_element_size(uint32_t dtype, Function&& function) {
    switch (dtype) {
        case ENPU_DTYPE_I8:
        case ENPU_DTYPE_U8:
        case ENPU_DTYPE_BOOL:
            return function(Tag<uint8_t>{});
        case ENPU_DTYPE_F16:
        case ENPU_DTYPE_BF16:
            return function(Tag<uint16_t>{});
        case ENPU_DTYPE_I64:
            return function(Tag<uint64_t>{});
        default:
            return function(Tag<uint32_t>{});
    }
}

template <class C, class T>
inline void load_line(const T* from, int64_t stride, int64_t count, C* to) {
    if (stride == 0) {
        const C value = load<C>(from[0]);
        for (int64_t i = 0; i < count; ++i) to[i] = value;
        return;
    }
    if (stride != 1) {
        for (int64_t i = 0; i < count; ++i) to[i] = load<C>(from[i * stride]);
        return;
    }
    int64_t i = 0;
    if constexpr (std::is_same_v<T, Half> && std::is_same_v<C, float>) {
        for (; i + 8 <= count; i += 8) {
            const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
            _mm256_storeu_ps(to + i, _mm256_cvtph_ps(bits));
        }
    }
    for (; i < count; ++i) to[i] = load<C>(from[i]);
}

template <class T, class C>
inline void store_line(const C* from, T* to, int64_t stride, int64_t count) {
    if (stride != 1) {
        for (int64_t i = 0; i < count; ++i) to[i * stride] = store<T>(from[i]);
        return;
    }
    int64_t i = 0;
    if constexpr (std::is_same_v<T, Half> && std::is_same_v<C, float>) {
        for (; i + 8 <= count; i += 8) {
            const __m128i bits =
                _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
            _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), bits);
        }
    }
    for (; i < count; ++i) to[i] = store<T>(from[i]);
}

// True when stream k of a block is one evenly strided line; its stride is then col_stride.
inline bool is_line(const Block& block, unsigned k) {
    return block.rows == 1 || block.row_stride[k] == block.cols * block.col_stride[k];
}

// The elements of stream k of a block as C, row after row: in `buffer` (kBlockElements), or where
// they are when that is the same.
template <class C, class T>
inline const C* fetch_as(const T* base, const Block& block, unsigned k, C* buffer) {
    const T* from = base + block.offset[k];
    if (is_line(block, k)) {
        if constexpr (std::is_same_v<C, T>) {
            if (block.col_stride[k] == 1 || block.size() == 1) return from;
        }
        load_line<C, T>(from, block.col_stride[k], block.size(), buffer);
        return buffer;
    }
    for (int64_t row = 0; row < block.rows; ++row) {
        load_line<C, T>(from + row * block.row_stride[k], block.col_stride[k], block.cols,
                        buffer + row * block.cols);
    }
    return buffer;
}
template <class C>
inline const C* fetch(const View& view, const Block& block, unsigned k, C* buffer) {
    return with_dtype(view.dtype, [&](auto tag) -> const C* {
        using T = typename decltype(tag)::Type;
        return fetch_as<C, T>(reinterpret_cast<const T*>(view.data), block, k, buffer);
    });
}

// Where to compute stream k of a block: in memory itself when the element type is C and the block
// is contiguous, else in `buffer`. put() stores the result.
template <class C, class T>
inline C* target_as(T* base, const Block& block, unsigned k, C* buffer) {
    if constexpr (std::is_same_v<C, T>) {
        if (is_line(block, k) && (block.col_stride[k] == 1 || block.size() == 1)) {
            return base + block.offset[k];
        }
    }
    return buffer;
}
template <class C, class T>
inline void put_as(const C* values, T* base, const Block& block, unsigned k) {
    T* to = base + block.offset[k];
    if constexpr (std::is_same_v<C, T>) {
        if (values == to) return;
    }
    if (is_line(block, k)) {
        store_line<T, C>(values, to, block.col_stride[k], block.size());
        return;
    }
    for (int64_t row = 0; row < block.rows; ++row) {
        store_line<T, C>(values + row * block.cols, to + row * block.row_stride[k],
                         block.col_stride[k], block.cols);
    }
}
template <class C>
inline C* target(const View& view, const Block& block, unsigned k, C* buffer) {
    constexpr uint32_t native = std::is_same_v<C, float> ? ENPU_DTYPE_F32 : ENPU_DTYPE_I64;
    if (view.dtype != native) return buffer;
    return target_as<C, C>(reinterpret_cast<C*>(view.data), block, k, buffer);
}
template <class C>
inline void put(const C* values, const View& view, const Block& block, unsigned k) {
    with_dtype(view.dtype, [&](auto tag) {
        using T = typename decltype(tag)::Type;
        put_as<C, T>(values, reinterpret_cast<T*>(view.data), block, k);
    });
}

}  // namespace enpu::ops
