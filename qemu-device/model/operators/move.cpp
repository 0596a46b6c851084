// SPDX-License-Identifier: MIT
// MOVE: runs by memcpy, transposes in square blocks, everything else element by element.
#include <array>
#include <cstring>

#include "element.h"
#include "families.h"
#include "tiles.h"

namespace enpu::ops {
namespace {

constexpr int64_t kTileElements = 1 << 19;
constexpr int64_t kSquare = 64;  // edge of a transposed block: both sides of it fit the L1 cache

template <class T>
struct Plane {
    const T* from;
    T* to;
    int64_t from_stride;  // of the axis that is contiguous in `to`
    int64_t to_stride;    // of the axis that is contiguous in `from`
};

void transpose_8x8(const Plane<uint32_t>& p) {
    __m256 r[8];
    __m256 t[8];
    for (int i = 0; i < 8; ++i) {
        r[i] = _mm256_loadu_ps(reinterpret_cast<const float*>(p.from + i * p.from_stride));
    }
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int i = 0; i < 4; ++i) {
        float* low = reinterpret_cast<float*>(p.to + i * p.to_stride);
        float* high = reinterpret_cast<float*>(p.to + (i + 4) * p.to_stride);
        _mm256_storeu_ps(low, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps(high, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}

template <class T>
void transpose(const Plane<T>& p, int64_t rows, int64_t cols) {
    int64_t row = 0;
    if constexpr (sizeof(T) == 4) {
        for (; row + 8 <= rows; row += 8) {
            int64_t col = 0;
            for (; col + 8 <= cols; col += 8) {
                transpose_8x8({p.from + row + col * p.from_stride, p.to + row * p.to_stride + col,
                               p.from_stride, p.to_stride});
            }
            for (; col < cols; ++col) {
                for (int64_t i = row; i < row + 8; ++i) {
                    p.to[i * p.to_stride + col] = p.from[i + col * p.from_stride];
                }
            }
        }
    }
    for (; row < rows; ++row) {
        for (int64_t col = 0; col < cols; ++col) {
            p.to[row * p.to_stride + col] = p.from[row + col * p.from_stride];
        }
    }
}

// Moves the axis that is contiguous in x next to the innermost one, which is contiguous in y. False
// when this is no transpose.
bool arrange_transpose(Loop& loop) {
    if (loop.rank < 2 || loop.strides[1][loop.rank - 1] != 1) return false;
    const unsigned inner = loop.rank - 1;
    for (unsigned axis = 0; axis < inner; ++axis) {
        if (loop.strides[0][axis] != 1 || loop.dims[axis] < 4) continue;
        std::swap(loop.dims[axis], loop.dims[inner - 1]);
        for (unsigned k = 0; k < 2; ++k) {
            std::swap(loop.strides[k][axis], loop.strides[k][inner - 1]);
        }
        return true;
    }
    return false;
}

template <class T>
Outcome move_transposed(Progress& progress, const Loop& loop, const T* from, T* to) {
    const unsigned inner = loop.rank - 1;
    const int64_t rows = loop.dims[inner - 1];
    const int64_t cols = loop.dims[inner];
    const int64_t row_squares = (rows + kSquare - 1) / kSquare;
    const int64_t col_squares = (cols + kSquare - 1) / kSquare;
    const int64_t squares = row_squares * col_squares;
    const int64_t planes = loop.count / (rows * cols);
    const int64_t tile = kTileElements / (kSquare * kSquare);
    return for_tiles(progress, planes * squares, tile, [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item) {
            const int64_t square = item % squares;
            const int64_t row = square / col_squares * kSquare;
            const int64_t col = square % col_squares * kSquare;
            const int64_t plane = item / squares;
            const Block block = block_at(loop, plane * rows * cols, 1);
            const int64_t from_stride = loop.strides[0][inner];
            const int64_t to_stride = loop.strides[1][inner - 1];
            transpose<T>({from + block.offset[0] + row + col * from_stride,
                          to + block.offset[1] + row * to_stride + col, from_stride, to_stride},
                         std::min(kSquare, rows - row), std::min(kSquare, cols - col));
        }
    });
}

template <class T>
void move_block(const Block& block, const T* from, T* to) {
    const bool one_line = is_line(block, 0) && is_line(block, 1);
    const int64_t rows = one_line ? 1 : block.rows;
    const int64_t cols = one_line ? block.size() : block.cols;
    const int64_t from_stride = block.col_stride[0];
    const int64_t to_stride = block.col_stride[1];
    for (int64_t row = 0; row < rows; ++row) {
        const T* source = from + block.offset[0] + row * block.row_stride[0];
        T* sink = to + block.offset[1] + row * block.row_stride[1];
        if (from_stride == 1 && to_stride == 1) {
            std::memcpy(sink, source, cols * sizeof(T));
        } else if (from_stride == 0 && to_stride == 1) {
            std::fill_n(sink, cols, *source);
        } else {
            for (int64_t col = 0; col < cols; ++col)
                sink[col * to_stride] = source[col * from_stride];
        }
    }
}

template <class T>
Outcome move(const Call& call) {
    const std::array views{view_of(call.operands[0]), view_of(call.operands[1])};
    const T* from = reinterpret_cast<const T*>(views[0].data);
    T* to = reinterpret_cast<T*>(views[1].data);
    Loop loop = make_loop(views);
    const bool runs = loop.strides[0][loop.rank - 1] == 1;
    if (!runs && arrange_transpose(loop)) return move_transposed(call.progress, loop, from, to);
    return for_tiles(call.progress, loop.count, kTileElements, [&](int64_t begin, int64_t end) {
        for_blocks(
            loop, begin, end, [&](const Block& block) { move_block(block, from, to); }, 1 << 16);
    });
}

}  // namespace

Outcome run_move(const Call& call) {
    return with_element_size(call.operands[0].desc->dtype,
                             [&](auto tag) { return move<typename decltype(tag)::Type>(call); });
}

}  // namespace enpu::ops
