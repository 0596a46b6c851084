// SPDX-License-Identifier: MIT
// The operator families: one function an opcode, one file a family. ops::run dispatches to them by
// opcode.
#pragma once

#include <span>

#include "operator.h"

namespace enpu::ops {

// One packet that passed the rules, its operands and who runs it.
struct Call {
    const enpu_operator_packet& packet;
    std::span<const Operand> operands;  // as many as the opcode has; left-out ones are null
    Progress& progress;
};

// Dense operators.
Outcome run_pack(const Call& call);
Outcome run_conv2d(const Call& call);
Outcome run_conv_transpose2d(const Call& call);
Outcome run_matmul(const Call& call);
Outcome run_pool(const Call& call);

// The others.
Outcome run_unary(const Call& call);
Outcome run_binary(const Call& call);
Outcome run_select(const Call& call);
Outcome run_softmax(const Call& call);
Outcome run_norm(const Call& call);
Outcome run_reduce(const Call& call);
Outcome run_arg(const Call& call);
Outcome run_move(const Call& call);
Outcome run_pad(const Call& call);
Outcome run_gather(const Call& call);
Outcome run_resize(const Call& call);
Outcome run_cast(const Call& call);
Outcome run_quantize(const Call& call);
Outcome run_dequantize(const Call& call);

}  // namespace enpu::ops
