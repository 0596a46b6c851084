// SPDX-License-Identifier: MIT
// What the host gives to each kernel: plain data, the same for the host's compiler and nvcc.
#pragma once

#include <cstdint>

#include "enpu_hw.h"
#include "resize_rule.h"

namespace enpu::hal::cuda {

// Axes of a walk: those of a tensor, and one that is split.
constexpr unsigned kAxes = ENPU_MAX_RANK + 1;
constexpr unsigned kGroupThreads = 128;  // block of the reductions
constexpr unsigned kTile = 64;           // edge of the part of a product that a block makes
constexpr unsigned kTileDepth = 16;      // terms it takes at a time
constexpr unsigned kTileThreads = 256;

// What a fallible kernel tells the host, in pinned memory.
struct Offence {
    uint32_t found;  // 1: the kernel met a value that it may not use
    uint32_t operand;
    int64_t value;
};

// The element of a tensor with all indices 0; address 0: left out.
struct Ref {
    uint64_t address;
    uint32_t dtype;
    int32_t zero_point;
};

// An index space shared by N tensors; its last axis changes fastest. Tensors are at most 1 GiB, so
// that counts and offsets in elements fit in 32 bits.
template <unsigned N>
struct Walk {
    uint32_t rank;  // at least 1
    uint32_t count;
    uint32_t dims[kAxes];
    int32_t strides[N][kAxes];
};

struct Act {
    uint32_t function;  // enum enpu_unary
    float alpha, beta;
};

struct TimestampArgs {
    uint64_t address;
};

// `units` patterns of 1, 2, 4 or 8 bytes, one after the other, at any address.
struct FillArgs {
    uint64_t address;
    uint64_t units;
    uint64_t pattern;
    uint32_t unit_bytes;
};

struct UnaryArgs {
    Walk<2> walk;
    Ref x, y;
    Act function;
};

struct BinaryArgs {
    Walk<3> walk;
    Ref a, b, y;
    uint32_t function;  // enum enpu_binary
    Act act;
};

struct SelectArgs {
    Walk<4> walk;
    Ref condition, a, b, y;
};

struct CastArgs {
    Walk<2> walk;
    Ref x, y;
    uint32_t through_float;  // else through 64-bit integers
};

struct MoveArgs {
    Walk<2> walk;
    Ref x, y;
};

struct QuantizeArgs {
    Walk<4> walk;
    Ref x, scale, zero, y;
};

struct PadArgs {
    Walk<2> walk;  // of y; the strides of x are for its own dims
    Ref x, y;
    uint32_t x_dims[kAxes];
    int32_t before[kAxes];
    uint32_t mode;
    uint64_t value;
};

struct GatherArgs {
    Walk<3> walk;  // x without the axis, indices, y
    Ref x, indices, y;
    int64_t axis_size;
    int64_t axis_stride;
    uint64_t offence;
};

struct ResizeArgs {
    Walk<2> walk;  // of y; the strides of x are for its own dims
    Ref x, y;
    ops::AxisRule rules[ENPU_MAX_RANK];
    enpu_resize_params params;
};

struct PoolArgs {
    Walk<2> walk;  // of y [N,C,OH,OW]; the strides of x are for its own dims
    Ref x, y;
    uint32_t size[2];  // of x
    enpu_pool_params params;
};

// Reductions: every output is made by `lanes` threads of a block, a power of two.
struct ReduceArgs {
    Walk<2> kept;     // x, y
    Walk<1> reduced;  // x
    Ref x, y;
    uint32_t function;  // enum enpu_reduce; or kArg…
    uint32_t smallest, last;
    uint32_t lanes;
};
constexpr uint32_t kArgFunction = 0x100;

struct SoftmaxArgs {
    Walk<2> kept, reduced;  // x, y
    Ref x, y;
    uint32_t log;
    uint32_t lanes;
};

enum NormStream : unsigned {
    kNormX,
    kNormScale,
    kNormBias,
    kNormMean,
    kNormVariance,
    kNormY,
    kNormStreams
};
struct NormArgs {
    Walk<kNormStreams> kept, reduced;
    Ref refs[kNormStreams];
    uint32_t kind;  // enum enpu_norm
    float epsilon;
    Act act;
    uint32_t lanes;
};

// How a product is finished.
struct Finish {
    Act act;
    float scale;         // floats: of the sum
    float quant_scale;   // integers: when there is no operand `scale`
    int32_t scale_step;  // stride of that operand
    Ref scales;
};

enum MatmulStream : unsigned {
    kMatmulA,
    kMatmulB,
    kMatmulY,
    kMatmulBias,
    kMatmulResidual,
    kMatmulStreams
};
struct MatmulArgs {
    uint32_t m, n, k;
    uint32_t tiles_m, tiles_n;
    Walk<kMatmulStreams> batches;
    Ref refs[kMatmulStreams];
    int32_t row[kMatmulStreams];  // strides along m (of b: along k)
    int32_t col[kMatmulStreams];  // strides along n (of a: along k)
    Finish finish;
};

enum ConvStream : unsigned { kConvX, kConvWeights, kConvY, kConvBias, kConvResidual, kConvStreams };
struct ConvArgs {
    uint32_t tiles_m, tiles_n;
    uint32_t groups, images, height, width;  // of x
    uint32_t group_in, group_out;            // channels of a group
    uint32_t kernel[2], stride[2], dilation[2];
    uint32_t pad[2];  // top, left
    uint32_t out[2];
    Ref refs[kConvStreams];
    int32_t strides[kConvStreams][4];  // of the bias: [0]
    Finish finish;
};

}  // namespace enpu::hal::cuda
