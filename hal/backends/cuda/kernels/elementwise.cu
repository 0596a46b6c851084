// SPDX-License-Identifier: MIT
#include "elementwise.h"
#include "launch.cuh"

ENPU_ELEMENT_KERNEL(enpu_fill, FillArgs, run_fill)
ENPU_ELEMENT_KERNEL(enpu_unary, UnaryArgs, run_unary)
ENPU_ELEMENT_KERNEL(enpu_binary, BinaryArgs, run_binary)
ENPU_ELEMENT_KERNEL(enpu_cast, CastArgs, run_cast)
ENPU_ELEMENT_KERNEL(enpu_quantize, QuantizeArgs, run_quantize)
ENPU_ELEMENT_KERNEL(enpu_dequantize, QuantizeArgs, run_dequantize)

// The clock of the GPU in ns, the same on all of its processors.
extern "C" __global__ void enpu_timestamp(
    const __grid_constant__ enpu::hal::cuda::TimestampArgs args) {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    *reinterpret_cast<volatile unsigned long long*>(args.address) = now;
    __threadfence_system();
}
