// SPDX-License-Identifier: MIT
// Operators in the terms of the libraries. Nothing here calls one: these are the rules for what a
// library is asked for.
#pragma once

#include "library.h"

namespace enpu::hal::cuda {

// D = epilogue(op(A) op(B) + C) over `batch` matrices. Libraries count columns: a matrix has `rows`
// that lie next to each other, and columns that are `leading` elements apart.
struct MatmulProblem {
    struct Matrix {
        int64_t rows = 0, columns = 0, leading = 0;  // as stored
        int64_t transposed = 0;                      // op swaps them
        int64_t batch_stride = 0;
        int64_t alignment = 0;  // of its address, at most 256
    };
    int64_t dtype = 0, out_dtype = 0;  // of the packet: A and B; C, D and the bias
    int64_t batch = 1;
    Matrix a, b, c, d;
    int64_t bias = 0, residual = 0, relu = 0;

    ShapeKey key() const;
};
// Null, or why cuBLASLt is not asked. Fills the addresses of the call in the order of the library:
// x is A, weights is B.
const char* matmul_problem(const enpu_operator_packet& packet, MatmulProblem& problem,
                           LibraryCall& call);

struct ConvProblem {
    int64_t dtype = 0;
    int64_t x[4] = {}, w[4] = {}, y[4] = {};       // dims
    int64_t x_strides[4] = {}, y_strides[4] = {};  // elements
    int64_t channels_last_weights = 0;             // [O, KH, KW, C] in memory, else [O, C, KH, KW]
    int64_t pad[2] = {}, stride[2] = {}, dilation[2] = {}, groups = 1;
    int64_t bias = 0, residual = 0, relu = 0;

    ShapeKey key() const;
};
// Null, or why cuDNN is not asked.
const char* conv_problem(const enpu_operator_packet& packet, ConvProblem& problem,
                         LibraryCall& call);

}  // namespace enpu::hal::cuda
