// SPDX-License-Identifier: MIT
#ifndef ENPU_PYTORCH_REDUCE_H
#define ENPU_PYTORCH_REDUCE_H

#include "launch.h"

namespace enpu::pytorch {

// The axes of `self` as a mask; none given means all. Throws for an axis out of range or twice.
uint32_t axis_mask(const Tensor& self, at::OptionalIntArrayRef axes);
// out = f(self over the axes), computed in `type`. `self` has elements.
Tensor& reduce_into(uint32_t function, const Tensor& self, uint32_t axes, bool keepdim,
                    ScalarType type, Tensor& out);

}  // namespace enpu::pytorch
#endif
