// SPDX-License-Identifier: MIT
// What float and integer matrix products share: operands brought to f32 matrices, and the loop over
// batches.
#pragma once

#include <optional>

#include "convert.h"
#include "families.h"
#include "scratch.h"
#include "strided.h"

namespace enpu::ops {

// A f32 operand [..., rows, cols] that gemm() takes as it is: the tensor itself, or a dense copy of
// it.
struct MatrixOperand {
    View view;
    Scratch copy;
};

// Brings an operand into that form: copies when it is not f32, is packed, has other strides or a
// zero point. In tiles, in no arena.
Outcome open_matrix(Progress& progress, const View& from, int32_t zero_point,
                    MatrixOperand& matrix);
// The view of operand b, also when it is PACKED; kBadOperand when the buffer is not that of this
// matrix.
// `blocked`: its layout is the block of PackedLayout::kBlocked with that number, and has no strides.
Outcome view_of_b(const Call& call, View& view, bool& has_zero_point, uint32_t& blocked);

// Operands of a batched product, with what the tiles of one packet share.
enum Stream { kA, kB, kY, kBias, kResidual, kStreams };

// Batches and rows, merged where every stream allows it: the last axis of `loop` counts rows, those
// before are batches.
struct BatchLoop {
    Loop batches;  // strides of the streams, rank at least 1
    int64_t rows;
    int64_t row_stride[kStreams];
};
BatchLoop make_batches(const View (&views)[kStreams]);

Outcome matmul_float(const Call& call);
Outcome matmul_integer(const Call& call);
// The same by kernels for integers; nothing when there is none for this one.
std::optional<Outcome> matmul_dot_products(const Call& call);

}  // namespace enpu::ops
