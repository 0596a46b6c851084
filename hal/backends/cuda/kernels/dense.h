// SPDX-License-Identifier: MIT
// Matrix products and convolutions: a block makes a tile of the result from tiles of both operands
// in shared memory. A convolution is the product of its windows and its weights, none of which is
// ever stored. Floats are summed in f32, integers exactly in 32 bits (they wrap).
#pragma once

#include "functions.h"
#include "quantise_one.h"

namespace enpu::hal::cuda {

constexpr unsigned kEdge = 4;  // a thread makes kEdge x kEdge elements
static_assert(kTileThreads == (kTile / kEdge) * (kTile / kEdge));

template <class C>
struct TileMemory {
    C a[kTileDepth][kTile + 1];
    C b[kTileDepth][kTile + 1];
};
template <class C>
struct Sums {
    C value[kEdge][kEdge];
};

ENPU_DEVICE float multiply_add(float a, float b, float sum) {
    return ::fmaf(a, b, sum);
}
ENPU_DEVICE int32_t multiply_add(int32_t a, int32_t b, int32_t sum) {
    return static_cast<int32_t>(static_cast<uint32_t>(sum) +
                                static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}

// An operand of a product: a float, or an integer less its zero point.
ENPU_DEVICE float load_term(const Ref& ref, int32_t at, float) {
    return load<float>(ref, at);
}
ENPU_DEVICE int32_t load_term(const Ref& ref, int32_t at, int32_t) {
    return static_cast<int32_t>(load<int64_t>(ref, at)) - ref.zero_point;
}

// Problem: m, n, k; a(row, depth), b(depth, col), finish(row, col, sum).
template <class C, class Problem>
ENPU_DEVICE void multiply_tile(const Problem& problem, uint32_t tile_m, uint32_t tile_n,
                               const Block& block, TileMemory<C>& memory) {
    PerThread<Sums<C>, kTileThreads> sums;
    block.each([&](uint32_t thread) {
        for (auto& row : sums[thread].value)
            for (C& each : row) each = 0;
    });
    for (uint32_t depth = 0; depth < problem.k; depth += kTileDepth) {
        block.each([&](uint32_t thread) {
            for (uint32_t i = thread; i < kTileDepth * kTile; i += kTileThreads) {
                // Threads next to each other take what lies next to each other in most layouts.
                const uint32_t a_depth = i % kTileDepth, a_row = i / kTileDepth;
                const uint32_t b_col = i % kTile, b_depth = i / kTile;
                const uint32_t row = tile_m * kTile + a_row, col = tile_n * kTile + b_col;
                const bool a_in = row < problem.m && depth + a_depth < problem.k;
                const bool b_in = col < problem.n && depth + b_depth < problem.k;
                memory.a[a_depth][a_row] = a_in ? problem.a(row, depth + a_depth) : C{0};
                memory.b[b_depth][b_col] = b_in ? problem.b(depth + b_depth, col) : C{0};
            }
        });
        block.each([&](uint32_t thread) {
            const uint32_t row = thread / (kTile / kEdge), col = thread % (kTile / kEdge);
            ENPU_UNROLL
            for (uint32_t d = 0; d < kTileDepth; ++d) ENPU_UNROLL
            for (uint32_t i = 0; i < kEdge; ++i) ENPU_UNROLL
            for (uint32_t j = 0; j < kEdge; ++j)
                sums[thread].value[i][j] =
                    multiply_add(memory.a[d][row + i * (kTile / kEdge)],
                                 memory.b[d][col + j * (kTile / kEdge)], sums[thread].value[i][j]);
        });
    }
    block.each([&](uint32_t thread) {
        ENPU_UNROLL
        for (uint32_t i = 0; i < kEdge; ++i) ENPU_UNROLL
        for (uint32_t j = 0; j < kEdge; ++j) {
            const uint32_t row = tile_m * kTile + thread / (kTile / kEdge) + i * (kTile / kEdge);
            const uint32_t col = tile_n * kTile + thread % (kTile / kEdge) + j * (kTile / kEdge);
            if (row < problem.m && col < problem.n)
                problem.finish(row, col, sums[thread].value[i][j]);
        }
    });
}

// y = act(scale * sum + bias + residual), rounded once.
ENPU_DEVICE_CALL void finish_sum(const Finish& finish, float sum, const Ref& bias, int32_t bias_at,
                                 const Ref& residual, int32_t residual_at, uint32_t, const Ref& y,
                                 int32_t y_at) {
    float value = sum * finish.scale;
    if (bias.address) value += load<float>(bias, bias_at);
    if (residual.address) value += load<float>(residual, residual_at);
    store(y, y_at, apply_unary(finish.act, value));
}

ENPU_DEVICE_CALL void finish_sum(const Finish& finish, int32_t sum, const Ref& bias,
                                 int32_t bias_at, const Ref&, int32_t, uint32_t channel,
                                 const Ref& y, int32_t y_at) {
    if (bias.address) sum = multiply_add(1, load<int64_t>(bias, bias_at), sum);
    if (y.dtype == ENPU_DTYPE_I32) return store(y, y_at, static_cast<int64_t>(sum));
    const float scale =
        finish.scales.address
            ? load<float>(finish.scales, static_cast<int32_t>(channel) * finish.scale_step)
            : finish.quant_scale;
    const double low = y.dtype == ENPU_DTYPE_I8 ? -128 : 0;
    const int32_t value = ops::requantise_one(sum, scale, finish.act.function, finish.act.alpha,
                                              finish.act.beta, y.zero_point, low, low + 255);
    store(y, y_at, static_cast<int64_t>(value));
}

template <class C>
struct MatmulProblem {
    const MatmulArgs& args;
    const int32_t* offsets;  // of the batch
    uint32_t m, n, k;

    ENPU_DEVICE int32_t at(MatmulStream stream, uint32_t row, uint32_t col) const {
        return offsets[stream] + static_cast<int32_t>(row) * args.row[stream] +
               static_cast<int32_t>(col) * args.col[stream];
    }
    ENPU_DEVICE C a(uint32_t row, uint32_t depth) const {
        return load_term(args.refs[kMatmulA], at(kMatmulA, row, depth), C{});
    }
    ENPU_DEVICE C b(uint32_t depth, uint32_t col) const {
        return load_term(args.refs[kMatmulB], at(kMatmulB, depth, col), C{});
    }
    ENPU_DEVICE void finish(uint32_t row, uint32_t col, C sum) const {
        finish_sum(args.finish, sum, args.refs[kMatmulBias], at(kMatmulBias, row, col),
                   args.refs[kMatmulResidual], at(kMatmulResidual, row, col), col,
                   args.refs[kMatmulY], at(kMatmulY, row, col));
    }
};

template <class C>
ENPU_DEVICE void run_matmul(const MatmulArgs& args, const Block& block, TileMemory<C>& memory) {
    const uint32_t tiles = args.tiles_m * args.tiles_n;
    const uint32_t batch = block.index / tiles, tile = block.index % tiles;
    int32_t offsets[kMatmulStreams];
    locate(args.batches, batch, offsets);
    const MatmulProblem<C> problem{args, offsets, args.m, args.n, args.k};
    multiply_tile<C>(problem, tile / args.tiles_n, tile % args.tiles_n, block, memory);
}

// Rows are output pixels, columns the output channels of a group, depth its input channels times
// the kernel. `transposed`: the stride spreads the input instead of thinning the output.
template <class C, bool transposed>
struct ConvProblem {
    const ConvArgs& args;
    uint32_t group;
    uint32_t m, n, k;

    struct Pixel {
        uint32_t image, row, col;
    };
    ENPU_DEVICE Pixel pixel(uint32_t row) const {
        const uint32_t line = row / args.out[1];
        return {line / args.out[0], line % args.out[0], row - line * args.out[1]};
    }
    // Index of the input along an axis; false where there is none.
    ENPU_DEVICE bool source(unsigned axis, uint32_t out, uint32_t tap, uint32_t size,
                            int32_t& in) const {
        const auto reach = static_cast<int32_t>(tap * args.dilation[axis]);
        const auto pad = static_cast<int32_t>(args.pad[axis]);
        const auto stride = static_cast<int32_t>(args.stride[axis]);
        if constexpr (transposed) {
            const int32_t spread = static_cast<int32_t>(out) + pad - reach;
            in = spread / stride;
            return spread >= 0 && in * stride == spread && in < static_cast<int32_t>(size);
        } else {
            in = static_cast<int32_t>(out) * stride + reach - pad;
            return in >= 0 && in < static_cast<int32_t>(size);
        }
    }
    ENPU_DEVICE int32_t at(ConvStream stream, uint32_t i, uint32_t j, int32_t row,
                           int32_t col) const {
        const int32_t* strides = args.strides[stream];
        return static_cast<int32_t>(i) * strides[0] + static_cast<int32_t>(j) * strides[1] +
               row * strides[2] + col * strides[3];
    }
    ENPU_DEVICE C a(uint32_t row, uint32_t depth) const {
        const uint32_t area = args.kernel[0] * args.kernel[1];
        const uint32_t channel = depth / area, tap = depth - channel * area;
        const uint32_t tap_row = tap / args.kernel[1];
        const Pixel p = pixel(row);
        int32_t in_row, in_col;
        if (!source(0, p.row, tap_row, args.height, in_row) ||
            !source(1, p.col, tap - tap_row * args.kernel[1], args.width, in_col))
            return C{0};
        const uint32_t from = group * args.group_in + channel;
        return load_term(args.refs[kConvX], at(kConvX, p.image, from, in_row, in_col), C{});
    }
    ENPU_DEVICE C b(uint32_t depth, uint32_t col) const {
        const uint32_t area = args.kernel[0] * args.kernel[1];
        const uint32_t channel = depth / area, tap = depth - channel * area;
        const auto tap_row = static_cast<int32_t>(tap / args.kernel[1]);
        const int32_t tap_col =
            static_cast<int32_t>(tap) - tap_row * static_cast<int32_t>(args.kernel[1]);
        // Weights are [out, in of a group, …], transposed [in, out of a group, …].
        const uint32_t i =
            transposed ? group * args.group_in + channel : group * args.group_out + col;
        const uint32_t j = transposed ? col : channel;
        return load_term(args.refs[kConvWeights], at(kConvWeights, i, j, tap_row, tap_col), C{});
    }
    ENPU_DEVICE void finish(uint32_t row, uint32_t col, C sum) const {
        const Pixel p = pixel(row);
        const uint32_t to = group * args.group_out + col;
        const auto y_row = static_cast<int32_t>(p.row), y_col = static_cast<int32_t>(p.col);
        finish_sum(args.finish, sum, args.refs[kConvBias],
                   static_cast<int32_t>(to) * args.strides[kConvBias][0], args.refs[kConvResidual],
                   at(kConvResidual, p.image, to, y_row, y_col), to, args.refs[kConvY],
                   at(kConvY, p.image, to, y_row, y_col));
    }
};

template <class C, bool transposed>
ENPU_DEVICE void run_conv(const ConvArgs& args, const Block& block, TileMemory<C>& memory) {
    const uint32_t tiles = args.tiles_m * args.tiles_n;
    const uint32_t group = block.index / tiles, tile = block.index % tiles;
    const ConvProblem<C, transposed> problem{args, group, args.images * args.out[0] * args.out[1],
                                             args.group_out,
                                             args.group_in * args.kernel[0] * args.kernel[1]};
    multiply_tile<C>(problem, tile / args.tiles_n, tile % args.tiles_n, block, memory);
}

}  // namespace enpu::hal::cuda
