// SPDX-License-Identifier: MIT
#include "dense.h"
#include "launch.cuh"

#define ENPU_TILE_KERNEL(name, Args, C, ...)                                                  \
    extern "C" __global__ void __launch_bounds__(enpu::hal::cuda::kTileThreads)               \
        name(const __grid_constant__ enpu::hal::cuda::Args args) {                            \
        __shared__ enpu::hal::cuda::TileMemory<C> memory;                                     \
        enpu::hal::cuda::__VA_ARGS__(args, enpu::hal::cuda::this_block(), memory);            \
    }

ENPU_TILE_KERNEL(enpu_matmul_float, MatmulArgs, float, run_matmul<float>)
ENPU_TILE_KERNEL(enpu_matmul_integer, MatmulArgs, int32_t, run_matmul<int32_t>)
ENPU_TILE_KERNEL(enpu_conv_float, ConvArgs, float, run_conv<float, false>)
ENPU_TILE_KERNEL(enpu_conv_integer, ConvArgs, int32_t, run_conv<int32_t, false>)
ENPU_TILE_KERNEL(enpu_conv_transpose_float, ConvArgs, float, run_conv<float, true>)
