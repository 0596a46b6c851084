// SPDX-License-Identifier: MIT
// What the kernels proper know of their grid.
#pragma once

#include "device.h"

namespace enpu::hal::cuda {

__device__ inline Lane this_lane() {
    return {blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x};
}
__device__ inline Block this_block() {
    return {blockIdx.x};
}

}  // namespace enpu::hal::cuda

// A kernel whose threads take elements on their own.
#define ENPU_ELEMENT_KERNEL(name, Args, function)                                             \
    extern "C" __global__ void name(const __grid_constant__ enpu::hal::cuda::Args args) {     \
        enpu::hal::cuda::function(args, enpu::hal::cuda::this_lane());                        \
    }
