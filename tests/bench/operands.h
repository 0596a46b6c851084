// SPDX-License-Identifier: MIT
// Tensors in local memory with numbers in them, and weights packed as the device likes them.
#pragma once

#include "stand.h"

namespace enpu::bench {

struct Tensor {
    Buffer buffer;
    enpu_operand operand{};
};

// A dense tensor of small numbers; with channels_last axis 1 lies innermost.
Tensor make_tensor(const Stand& stand, uint32_t dtype, const std::vector<uint32_t>& dims,
                   bool channels_last = false);
// Quantisation of an I8 or U8 tensor.
Tensor with_scale(Tensor tensor, float scale, int32_t zero_point = 0);
// What PACK makes of weights.
Tensor pack(Stand& stand, const Tensor& weights, enpu_pack_kind kind, uint32_t groups = 1);

}  // namespace enpu::bench
