// SPDX-License-Identifier: MIT
// The part of cuDNN that the backend uses: convolutions of the API of version 7, which 8 and 9 keep
// with the same numbers. Source: NVIDIA's cuDNN documentation, cudnn_cnn library
// (docs.nvidia.com/deeplearning/cudnn). libraries_check.cpp compares this with cudnn.h where there
// is one. The double implements exactly this list.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../driver_api.h"

namespace enpu::hal::cuda::dnn {

using Handle = struct HandleObject*;
using TensorDesc = struct TensorDescObject*;
using FilterDesc = struct FilterDescObject*;
using ConvDesc = struct ConvDescObject*;
using ActivationDesc = struct ActivationDescObject*;

// Status of this version; others have other numbers for everything but 0.
enum Status : int { kOk = 0, kNotInitialized = 1001, kBadParam = 2000, kUnsupported = 3000 };

enum DataType : int { kFloat = 0, kHalf = 2, kBfloat16 = 9 };
enum Format : int { kNchw = 0, kNhwc = 1 };
enum Activation : int { kRelu = 1, kIdentity = 5 };
constexpr int kCrossCorrelation = 1;
constexpr int kPropagateNan = 1;
// The algorithm that alone can end with the identity.
constexpr int kImplicitPrecompGemm = 1;
// Products of float inputs as they are; the default rounds them to TF32.
constexpr int kFmaMath = 3;
constexpr int kTensorOpMath = 1;
constexpr int kForwardAlgorithms = 8;

struct AlgorithmPerf {
    int algorithm;
    int status;
    float time;
    size_t memory;
    int determinism;
    int math;
    int reserved[3];
};

// X(result, name, parameters)
#define ENPU_CUDNN_FUNCTIONS(X)                                                                \
    X(size_t, cudnnGetVersion, ())                                                             \
    X(const char*, cudnnGetErrorString, (int status))                                          \
    X(int, cudnnCreate, (Handle * handle))                                                     \
    X(int, cudnnDestroy, (Handle handle))                                                      \
    X(int, cudnnSetStream, (Handle handle, Stream stream))                                     \
    X(int, cudnnCreateTensorDescriptor, (TensorDesc * desc))                                   \
    X(int, cudnnDestroyTensorDescriptor, (TensorDesc desc))                                    \
    X(int, cudnnSetTensor4dDescriptorEx,                                                       \
      (TensorDesc desc, int type, int n, int c, int h, int w, int n_stride, int c_stride,      \
       int h_stride, int w_stride))                                                            \
    X(int, cudnnCreateFilterDescriptor, (FilterDesc * desc))                                   \
    X(int, cudnnDestroyFilterDescriptor, (FilterDesc desc))                                    \
    X(int, cudnnSetFilter4dDescriptor,                                                         \
      (FilterDesc desc, int type, int format, int k, int c, int h, int w))                     \
    X(int, cudnnCreateActivationDescriptor, (ActivationDesc * desc))                           \
    X(int, cudnnDestroyActivationDescriptor, (ActivationDesc desc))                            \
    X(int, cudnnSetActivationDescriptor,                                                       \
      (ActivationDesc desc, int mode, int nan_propagation, double coefficient))                \
    X(int, cudnnCreateConvolutionDescriptor, (ConvDesc * desc))                                \
    X(int, cudnnDestroyConvolutionDescriptor, (ConvDesc desc))                                 \
    X(int, cudnnSetConvolution2dDescriptor,                                                    \
      (ConvDesc desc, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h,        \
       int dilation_w, int mode, int compute_type))                                            \
    X(int, cudnnSetConvolutionGroupCount, (ConvDesc desc, int groups))                         \
    X(int, cudnnSetConvolutionMathType, (ConvDesc desc, int math))                             \
    X(int, cudnnGetConvolutionForwardAlgorithm_v7,                                             \
      (Handle handle, TensorDesc x, FilterDesc w, ConvDesc desc, TensorDesc y, int wanted,     \
       int* count, AlgorithmPerf* results))                                                    \
    X(int, cudnnGetConvolutionForwardWorkspaceSize,                                            \
      (Handle handle, TensorDesc x, FilterDesc w, ConvDesc desc, TensorDesc y, int algorithm,  \
       size_t* bytes))                                                                         \
    X(int, cudnnConvolutionForward,                                                            \
      (Handle handle, const void* alpha, TensorDesc x_desc, const void* x, FilterDesc w_desc,  \
       const void* w, ConvDesc desc, int algorithm, void* workspace, size_t workspace_bytes,   \
       const void* beta, TensorDesc y_desc, void* y))                                          \
    X(int, cudnnConvolutionBiasActivationForward,                                              \
      (Handle handle, const void* alpha1, TensorDesc x_desc, const void* x, FilterDesc w_desc, \
       const void* w, ConvDesc desc, int algorithm, void* workspace, size_t workspace_bytes,   \
       const void* alpha2, TensorDesc z_desc, const void* z, TensorDesc bias_desc,             \
       const void* bias, ActivationDesc activation, TensorDesc y_desc, void* y))

struct Functions {
#define ENPU_CUDNN_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
    ENPU_CUDNN_FUNCTIONS(ENPU_CUDNN_MEMBER)
#undef ENPU_CUDNN_MEMBER
};

}  // namespace enpu::hal::cuda::dnn
