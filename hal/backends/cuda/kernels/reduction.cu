// SPDX-License-Identifier: MIT
#include "launch.cuh"
#include "reduction.h"

#define ENPU_GROUP_KERNEL(name, Args, function)                                               \
    extern "C" __global__ void __launch_bounds__(enpu::hal::cuda::kGroupThreads)              \
        name(const __grid_constant__ enpu::hal::cuda::Args args) {                            \
        __shared__ alignas(16) unsigned char shared[enpu::hal::cuda::kReduceShared];          \
        enpu::hal::cuda::function(args, enpu::hal::cuda::this_block(), shared);               \
    }

ENPU_GROUP_KERNEL(enpu_reduce, ReduceArgs, run_reduce)
ENPU_GROUP_KERNEL(enpu_softmax, SoftmaxArgs, run_softmax)
ENPU_GROUP_KERNEL(enpu_norm, NormArgs, run_norm)
