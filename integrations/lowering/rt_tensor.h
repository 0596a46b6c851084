// SPDX-License-Identifier: MIT
#ifndef ENPU_LOWERING_RT_TENSOR_H
#define ENPU_LOWERING_RT_TENSOR_H

#include "plan.h"

namespace enpu::lowering {

enpu_op_tensor tensor_desc(uint32_t dtype, const Dims& dims, const Dims& strides);
enpu_op_tensor tensor_desc(const View& view);

}  // namespace enpu::lowering
#endif
