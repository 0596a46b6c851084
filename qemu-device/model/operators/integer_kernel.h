// SPDX-License-Identifier: MIT
// Products of u8 by s8 with exact sums in 32 bits, by oneDNN, where the processor has instructions for it.
// Each kernel is tried on numbers that show every rounding and saturation before it is used: which
// implementation oneDNN takes, and how that one adds, is its own affair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "conv_kernel.h"
#include "onednn.h"

namespace enpu::ops {

// y[m,n] = sum_k a[m,k] b[k,n]: a is u8, row-major with a stride of a_m; b is s8; y is dense. Without padding: it
// is a key.
struct IntegerGemmSpec {
    int64_t m, n, k;
    int64_t a_m;
    int64_t b_k, b_n;  // strides of b; both 0: b is in the layout of the kernel
    int64_t threads;
};

class IntegerGemm {
  public:
    explicit IntegerGemm(const IntegerGemmSpec& spec);
    bool is_exact() const { return exact_; }
    const dnnl::memory::desc& weights() const { return b_; }
    // In an arena of spec.threads.
    void run(const void* a, const void* b, int32_t* y) const;

  private:
    dnnl::memory::desc b_;
    size_t scratch_bytes_ = 0;
    PreparedCall call_;
    bool exact_ = false;
};

// A convolution: x is u8 [n,h,w,c], weights are s8 in the layout of the kernel, y is s32 [n,oh,ow,o]. Padding
// counts as 0. Of the spec, bias, sum and act are not used.
class IntegerConvKernel {
  public:
    explicit IntegerConvKernel(const ConvSpec& spec);
    bool is_exact() const { return exact_; }
    const dnnl::memory::desc& weights() const { return weights_; }
    void run(const void* x, const void* weights, int32_t* y) const;

  private:
    dnnl::memory::desc weights_;
    size_t scratch_bytes_ = 0;
    PreparedCall call_;
    bool exact_ = false;
};

// The kernel for a spec, from the cache or new, in an arena of spec.threads. Null where the processor or
// oneDNN has no exact one.
std::shared_ptr<const IntegerGemm> integer_gemm(const IntegerGemmSpec& spec);
std::shared_ptr<const IntegerConvKernel> integer_conv_kernel(const ConvSpec& spec);

// s8 in row-major order: [k, n], or the dims of weight_dims().
dnnl::memory::desc integer_desc(const dnnl::memory::dims& dims);

}  // namespace enpu::ops
