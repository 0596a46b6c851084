// SPDX-License-Identifier: MIT
#pragma once

#include "device.h"

namespace enpu::rt {

// A dispatch with its operands resolved; `params` stays the caller's.
struct BoundKernel {
    enpu_hal_operand operands[ENPU_OP_MAX_OPERANDS];
    enpu_hal_dispatch dispatch;
};

// Checks number of operands and size of parameters, and resolves the operands when `resolve` says
// so.
rt_status bind_kernel(rt_kernel kernel, const void* params, size_t params_bytes,
                      const rt_operand* operands, uint32_t count, bool resolve, const char* origin,
                      BoundKernel& bound);

// "kernel conv2d_fwd", static.
const char* describe_op(uint32_t op);

}  // namespace enpu::rt
