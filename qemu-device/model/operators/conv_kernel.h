// SPDX-License-Identifier: MIT
// One f32 convolution on dense channels-last tensors, made by oneDNN and kept for the next time.
#pragma once

#include <memory>

#include "prepared_call.h"

namespace enpu::ops {

// Everything that makes one convolution another. Without padding: it is a key.
struct ConvSpec {
    int64_t n, c, h, w;  // input
    int64_t o, kh, kw;   // weights [o, c / groups, kh, kw]
    int64_t oh, ow;      // output
    int64_t groups;
    int64_t stride[2], dilation[2];
    int64_t pad[4];  // top, left, bottom, right
    int64_t bias;    // 0 or 1
    int64_t sum;     // 1: the result is added to what the output holds
    int64_t threads;
    ActivationKey act;  // one that can_fuse()
};

class ConvKernel {
  public:
    explicit ConvKernel(const ConvSpec& spec);

    const dnnl::memory::desc& weights() const { return weights_; }
    size_t scratch_bytes() const { return scratch_.get_size(); }
    // In an arena of spec.threads. x and y are [n,h,w,c] and [n,oh,ow,o]; weights in the layout
    // above.
    void run(const float* x, const float* weights, const float* bias, float* y,
             void* scratch) const;

  private:
    dnnl::memory::desc weights_, scratch_;
    PreparedCall call_;
};

// The kernel for a spec, from the cache or new. In an arena of spec.threads, which the kernel is
// made for.
std::shared_ptr<const ConvKernel> conv_kernel(const ConvSpec& spec);

// Dims of weights for oneDNN: [g, o/g, c/g, kh, kw], or without g when there is one group.
dnnl::memory::dims weight_dims(int64_t groups, int64_t o, int64_t c, int64_t kh, int64_t kw);

}  // namespace enpu::ops
