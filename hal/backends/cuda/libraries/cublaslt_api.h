// SPDX-License-Identifier: MIT
// The part of cuBLASLt that the backend uses, declared here so that it builds without a toolkit.
// Source: NVIDIA's cuBLAS documentation, "Using the cuBLASLt API" (docs.nvidia.com/cuda/cublas); the
// numbers are the same since CUDA 11. libraries_check.cpp compares this with cublasLt.h where there
// is one. The double implements exactly this list.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../driver_api.h"

namespace enpu::hal::cuda::lt {

using Handle = struct HandleObject*;
using MatmulDesc = struct MatmulDescObject*;
using Layout = struct LayoutObject*;
using Preference = struct PreferenceObject*;

enum Status : int {
    kOk = 0,
    kNotInitialized = 1,
    kInvalidValue = 7,
    kExecutionFailed = 13,
    kUnsupported = 15,
};

// cudaDataType_t.
enum DataType : int32_t { kF32 = 0, kF16 = 2, kBf16 = 14 };
// Sums in float and no rounding of the inputs: not the faster TF32.
constexpr int32_t kCompute32F = 68;

enum DescAttribute : int {
    kTransA = 3,       // int32_t: 0 as stored, 1 transposed
    kTransB = 4,       // int32_t
    kEpilogue = 7,     // uint32_t, below
    kBiasPointer = 8,  // const void*: as many packed elements as D has rows
};
enum LayoutAttribute : int {
    kBatchCount = 5,   // int32_t
    kBatchStride = 6,  // int64_t, in elements
};
enum PreferenceAttribute : int {
    kMaxWorkspace = 1,  // uint64_t
    kReductions = 3,    // uint32_t, a mask
    kAlignmentA = 5,    // uint32_t, bytes
    kAlignmentB = 6,
    kAlignmentC = 7,
    kAlignmentD = 8,
};

// D = epilogue(alpha op(A) op(B) + beta C): the bias is added first, then RELU.
constexpr uint32_t kEpilogueDefault = 1, kEpilogueRelu = 2, kEpilogueBias = 4;
// Partial sums are added in the type of computation, so that a result is rounded once.
constexpr uint32_t kReduceInComputeType = 2;

struct Algorithm {
    uint64_t data[8];
};
struct HeuristicResult {
    Algorithm algorithm;
    size_t workspace_bytes;
    int state;  // enum Status; the rest is valid with kOk only
    float waves;
    int reserved[4];
};

// X(result, name, parameters)
#define ENPU_CUBLASLT_FUNCTIONS(X)                                                                \
    X(size_t, cublasLtGetVersion, ())                                                             \
    X(const char*, cublasLtGetStatusName, (int status))                                           \
    X(int, cublasLtCreate, (Handle * handle))                                                     \
    X(int, cublasLtDestroy, (Handle handle))                                                      \
    X(int, cublasLtMatmulDescCreate, (MatmulDesc * desc, int compute_type, int scale_type))       \
    X(int, cublasLtMatmulDescDestroy, (MatmulDesc desc))                                          \
    X(int, cublasLtMatmulDescSetAttribute,                                                        \
      (MatmulDesc desc, int attribute, const void* value, size_t bytes))                          \
    X(int, cublasLtMatrixLayoutCreate,                                                            \
      (Layout * layout, int type, uint64_t rows, uint64_t columns, int64_t leading))              \
    X(int, cublasLtMatrixLayoutDestroy, (Layout layout))                                          \
    X(int, cublasLtMatrixLayoutSetAttribute,                                                      \
      (Layout layout, int attribute, const void* value, size_t bytes))                            \
    X(int, cublasLtMatmulPreferenceCreate, (Preference * preference))                             \
    X(int, cublasLtMatmulPreferenceDestroy, (Preference preference))                              \
    X(int, cublasLtMatmulPreferenceSetAttribute,                                                  \
      (Preference preference, int attribute, const void* value, size_t bytes))                    \
    X(int, cublasLtMatmulAlgoGetHeuristic,                                                        \
      (Handle handle, MatmulDesc desc, Layout a, Layout b, Layout c, Layout d,                    \
       Preference preference, int wanted, HeuristicResult* results, int* count))                  \
    X(int, cublasLtMatmul,                                                                        \
      (Handle handle, MatmulDesc desc, const void* alpha, const void* a, Layout a_layout,         \
       const void* b, Layout b_layout, const void* beta, const void* c, Layout c_layout, void* d, \
       Layout d_layout, const Algorithm* algorithm, void* workspace, size_t workspace_bytes,      \
       Stream stream))

struct Functions {
#define ENPU_CUBLASLT_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
    ENPU_CUBLASLT_FUNCTIONS(ENPU_CUBLASLT_MEMBER)
#undef ENPU_CUBLASLT_MEMBER
};

}  // namespace enpu::hal::cuda::lt
