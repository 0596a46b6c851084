// SPDX-License-Identifier: MIT
// f32 matrix products by oneDNN, kept for the next time.
#pragma once

#include <cstdint>

#include "onednn.h"

namespace enpu::ops {

// y[m,n] = act(alpha * sum_k a[m,k] b[k,n] + bias[n] + (sum ? y[m,n] : 0)). a and b have a stride
// of 1 on one axis (or one index there) and the other stride is at least the extent of that axis; y
// has stride 1 on n. Without padding: it is a key.
struct GemmSpec {
    int64_t m, n, k;
    int64_t a_m, a_k;  // strides
    int64_t b_k, b_n;
    int64_t y_m;
    int64_t bias;  // 0 or 1
    int64_t sum;
    int64_t threads;
    uint32_t alpha;     // bits of the float
    uint32_t b_block;   // not 0: b is in the layout block_desc() has under this number
    ActivationKey act;  // one that can_fuse()
};

// True when gemm() takes a matrix of these extents and strides.
bool is_gemm_matrix(int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride);
// The layout of b that a product of many rows likes best: in rows, or one that block_number() knows or not. In an
// arena.
dnnl::memory::desc gemm_layout(int64_t k, int64_t n);
// In an arena of spec.threads. `bias` is [n], contiguous; null unless spec.bias.
void gemm(const GemmSpec& spec, const float* a, const float* b, const float* bias, float* y);

}  // namespace enpu::ops
