// SPDX-License-Identifier: MIT
// Elementwise kernels with PyTorch's rules of types and broadcasting.
#ifndef ENPU_PYTORCH_POINTWISE_H
#define ENPU_PYTORCH_POINTWISE_H

#include "launch.h"

namespace enpu::pytorch {

// out = f(self); integers become f32 when `to_float`.
Tensor& unary_into(uint32_t function, const Tensor& self, Tensor& out, float alpha = 0,
                   float beta = 0, bool to_float = true);
Tensor unary(uint32_t function, const Tensor& self, float alpha = 0, float beta = 0);
// out = f(a, b) computed in `type`.
Tensor& binary_into(uint32_t function, const Tensor& a, const Tensor& b, ScalarType type,
                    Tensor& out);
// The dtype itself when it is floating point, else f32.
ScalarType float_type(ScalarType type);

}  // namespace enpu::pytorch
#endif
