// SPDX-License-Identifier: MIT
#include "host_kernels.h"

#include <memory>

#include "kernels/dense.h"
#include "kernels/elementwise.h"
#include "kernels/reduction.h"
#include "kernels/shape.h"

namespace enpu::hal::cuda {
namespace {

template <class Args>
const Args& args_of(const KernelCall& call) {
    return *reinterpret_cast<const Args*>(call.args);
}

template <class Args>
void elements(const KernelCall& call, void (*function)(const Args&, Lane)) {
    const uint32_t step = call.grid * call.block;
    for (uint32_t first = 0; first < step; ++first) function(args_of<Args>(call), {first, step});
}

template <class Args>
void groups(const KernelCall& call, void (*function)(const Args&, const Block&, void*)) {
    alignas(16) unsigned char shared[kReduceShared];
    for (uint32_t block = 0; block < call.grid; ++block)
        function(args_of<Args>(call), {block, call.block}, shared);
}

template <class C, class Args>
void tiles(const KernelCall& call, void (*function)(const Args&, const Block&, TileMemory<C>&)) {
    const auto memory = std::make_unique<TileMemory<C>>();
    for (uint32_t block = 0; block < call.grid; ++block)
        function(args_of<Args>(call), {block, call.block}, *memory);
}

}  // namespace

void run_on_host(const KernelCall& call) {
    switch (call.id) {
        case KernelId::kFill:
            return elements<FillArgs>(call, run_fill);
        case KernelId::kUnary:
            return elements<UnaryArgs>(call, run_unary);
        case KernelId::kBinary:
            return elements<BinaryArgs>(call, run_binary);
        case KernelId::kSelect:
            return elements<SelectArgs>(call, run_select);
        case KernelId::kCast:
            return elements<CastArgs>(call, run_cast);
        case KernelId::kMove:
            return elements<MoveArgs>(call, run_move);
        case KernelId::kPad:
            return elements<PadArgs>(call, run_pad);
        case KernelId::kGather:
            return elements<GatherArgs>(call, run_gather);
        case KernelId::kQuantize:
            return elements<QuantizeArgs>(call, run_quantize);
        case KernelId::kDequantize:
            return elements<QuantizeArgs>(call, run_dequantize);
        case KernelId::kResize:
            return elements<ResizeArgs>(call, run_resize);
        case KernelId::kPool:
            return elements<PoolArgs>(call, run_pool);
        case KernelId::kReduce:
            return groups<ReduceArgs>(call, run_reduce);
        case KernelId::kSoftmax:
            return groups<SoftmaxArgs>(call, run_softmax);
        case KernelId::kNorm:
            return groups<NormArgs>(call, run_norm);
        case KernelId::kMatmulFloat:
            return tiles<float, MatmulArgs>(call, run_matmul<float>);
        case KernelId::kMatmulInteger:
            return tiles<int32_t, MatmulArgs>(call, run_matmul<int32_t>);
        case KernelId::kConvFloat:
            return tiles<float, ConvArgs>(call, run_conv<float, false>);
        case KernelId::kConvInteger:
            return tiles<int32_t, ConvArgs>(call, run_conv<int32_t, false>);
        case KernelId::kConvTransposeFloat:
            return tiles<float, ConvArgs>(call, run_conv<float, true>);
        case KernelId::kTimestamp:  // reads a clock that only a GPU has
        case KernelId::kCount:
            return;
    }
}

}  // namespace enpu::hal::cuda
