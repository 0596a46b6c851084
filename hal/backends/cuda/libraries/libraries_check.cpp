// SPDX-License-Identifier: MIT
// Our declarations of cuBLASLt and cuDNN against those of the toolkit. Compiled where there is one;
// nothing of it is linked.
#include <type_traits>

#include "cublaslt_api.h"
#include "cudnn_api.h"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif

namespace enpu::hal::cuda {
namespace {

#define SAME(ours, theirs) static_assert(int(ours) == int(theirs), #ours " and " #theirs)
#define SAME_FIELD(ours, our_field, theirs, their_field) \
    static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field), #our_field)

// What a parameter is to the calling convention: pointers are alike, and so are int and enum.
template <typename T>
struct Passed {
    static constexpr int kKind = std::is_pointer_v<T>                         ? 1
                                 : std::is_floating_point_v<T>                ? 2
                                 : std::is_enum_v<T> || std::is_integral_v<T> ? 3
                                                                              : 4;
    static constexpr size_t kBytes = sizeof(T);
};
template <typename A, typename B>
constexpr bool kPassedAlike =
    Passed<A>::kKind == Passed<B>::kKind&& Passed<A>::kBytes == Passed<B>::kBytes;

template <typename Ours, typename Theirs>
struct Alike : std::false_type {};
template <typename R, typename... P, typename S, typename... Q>
requires(sizeof...(P) == sizeof...(Q)) struct Alike<R (*)(P...), S (*)(Q...)>
    : std::bool_constant<kPassedAlike<R, S> && (kPassedAlike<P, Q> && ...)> {
};

#define ALIKE(result, name, parameters) \
    static_assert(Alike<result(*) parameters, decltype(&::name)>::value, #name);

#if __has_include(<cublasLt.h>)
namespace matrices {
using namespace lt;
ENPU_CUBLASLT_FUNCTIONS(ALIKE)
}  // namespace matrices
SAME(lt::kOk, CUBLAS_STATUS_SUCCESS);
SAME(lt::kNotInitialized, CUBLAS_STATUS_NOT_INITIALIZED);
SAME(lt::kInvalidValue, CUBLAS_STATUS_INVALID_VALUE);
SAME(lt::kExecutionFailed, CUBLAS_STATUS_EXECUTION_FAILED);
SAME(lt::kUnsupported, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(lt::kF32, CUDA_R_32F);
SAME(lt::kF16, CUDA_R_16F);
SAME(lt::kBf16, CUDA_R_16BF);
SAME(lt::kCompute32F, CUBLAS_COMPUTE_32F);
SAME(lt::kTransA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(lt::kTransB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(lt::kEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(lt::kBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(lt::kBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(lt::kBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(lt::kMaxWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(lt::kReductions, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(lt::kAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(lt::kAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(lt::kAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(lt::kAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(lt::kEpilogueDefault, CUBLASLT_EPILOGUE_DEFAULT);
SAME(lt::kEpilogueRelu, CUBLASLT_EPILOGUE_RELU);
SAME(lt::kEpilogueBias, CUBLASLT_EPILOGUE_BIAS);
SAME(lt::kEpilogueRelu | lt::kEpilogueBias, CUBLASLT_EPILOGUE_RELU_BIAS);
SAME(lt::kReduceInComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(0, CUBLAS_OP_N);
SAME(1, CUBLAS_OP_T);
static_assert(sizeof(lt::HeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t));
SAME_FIELD(lt::HeuristicResult, workspace_bytes, cublasLtMatmulHeuristicResult_t, workspaceSize);
SAME_FIELD(lt::HeuristicResult, state, cublasLtMatmulHeuristicResult_t, state);
#endif

#if __has_include(<cudnn.h>)
namespace convolutions {
using namespace dnn;
// The functions of convolutions are deprecated, but are all that works without compiling a graph.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
ENPU_CUDNN_FUNCTIONS(ALIKE)
SAME(dnn::kOk, CUDNN_STATUS_SUCCESS);
#if CUDNN_MAJOR >= 9
SAME(dnn::kNotInitialized, CUDNN_STATUS_NOT_INITIALIZED);
SAME(dnn::kBadParam, CUDNN_STATUS_BAD_PARAM);
SAME(dnn::kUnsupported, CUDNN_STATUS_NOT_SUPPORTED);
#endif
SAME(dnn::kFloat, CUDNN_DATA_FLOAT);
SAME(dnn::kHalf, CUDNN_DATA_HALF);
SAME(dnn::kBfloat16, CUDNN_DATA_BFLOAT16);
SAME(dnn::kNchw, CUDNN_TENSOR_NCHW);
SAME(dnn::kNhwc, CUDNN_TENSOR_NHWC);
SAME(dnn::kRelu, CUDNN_ACTIVATION_RELU);
SAME(dnn::kIdentity, CUDNN_ACTIVATION_IDENTITY);
SAME(dnn::kCrossCorrelation, CUDNN_CROSS_CORRELATION);
SAME(dnn::kPropagateNan, CUDNN_PROPAGATE_NAN);
SAME(dnn::kImplicitPrecompGemm, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
SAME(dnn::kForwardAlgorithms, CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
SAME(dnn::kFmaMath, CUDNN_FMA_MATH);
SAME(dnn::kTensorOpMath, CUDNN_TENSOR_OP_MATH);
static_assert(sizeof(dnn::AlgorithmPerf) == sizeof(cudnnConvolutionFwdAlgoPerf_t));
SAME_FIELD(dnn::AlgorithmPerf, status, cudnnConvolutionFwdAlgoPerf_t, status);
SAME_FIELD(dnn::AlgorithmPerf, memory, cudnnConvolutionFwdAlgoPerf_t, memory);
SAME_FIELD(dnn::AlgorithmPerf, math, cudnnConvolutionFwdAlgoPerf_t, mathType);
}  // namespace convolutions
#endif

}  // namespace
}  // namespace enpu::hal::cuda
