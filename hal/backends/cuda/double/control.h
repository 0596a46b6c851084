/* SPDX-License-Identifier: MIT */
/*
 * What tests tell the double of the CUDA driver library, and ask it. The same file stands in for
 * cuBLASLt and cuDNN (ENPU_CUBLASLT_LIBRARY, ENPU_CUDNN_LIBRARY). The functions are exported by
 * the double next to cuGetProcAddress_v2; results are enum Result of driver_api.h.
 *
 * The environment decides what is fixed at load:
 *   ENPU_CUDA_DOUBLE_DEVICES   number of GPUs, default 1
 *   ENPU_CUDA_DOUBLE_MEMORY    bytes of each GPU, default 256 MiB
 *   ENPU_CUDA_DOUBLE_INIT      result of cuInit, default 0
 *   ENPU_CUDA_DOUBLE_MISSING   a function that this driver does not have
 *   ENPU_CUDA_DOUBLE_POOLS     0: GPUs without memory pools
 *   ENPU_CUDA_DOUBLE_KERNELS   1: code loads, and launches are counted under the name of the kernel; they
 *                              compute nothing
 */
#ifndef ENPU_CUDA_DOUBLE_CONTROL_H
#define ENPU_CUDA_DOUBLE_CONTROL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects that are alive. */
struct enpu_cuda_double_objects {
    int64_t contexts, streams, events, graphs, graph_execs, pools;
    int64_t local, host, registered; /* allocations */
    int64_t local_bytes;
    int64_t library_objects; /* handles and descriptors of cuBLASLt and cuDNN */
};
void enpu_cuda_double_live(struct enpu_cuda_double_objects* live);

/* How often a function was called, since the start of the process. */
uint64_t enpu_cuda_double_calls(const char* function);

/* The calls of `function` after the next `skip` ones give `result`, `count` times. */
void enpu_cuda_double_fail(const char* function, uint64_t skip, uint64_t count, int result);

/* The next operation that a stream runs (a copy, a fill, a host call) fails with this sticky error:
 * its context is of no more use. */
void enpu_cuda_double_break(int result);

/* Operations of streams block from now on, until released. */
void enpu_cuda_double_hang(int hang);

/* Every operation of a stream takes this long. */
void enpu_cuda_double_delay_us(uint64_t microseconds);

#ifdef __cplusplus
}
#endif
#endif
