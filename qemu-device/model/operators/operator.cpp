// SPDX-License-Identifier: MIT
#include "operator.h"

#include <new>

#include "families.h"

namespace enpu::ops {
namespace {

using Function = Outcome (*)(const Call&);

Function function_of(uint16_t opcode) {
    switch (opcode) {
        case ENPU_OPCODE_PACK:
            return run_pack;
        case ENPU_OPCODE_CONV2D:
            return run_conv2d;
        case ENPU_OPCODE_CONV_TRANSPOSE2D:
            return run_conv_transpose2d;
        case ENPU_OPCODE_MATMUL:
            return run_matmul;
        case ENPU_OPCODE_POOL:
            return run_pool;
        case ENPU_OPCODE_UNARY:
            return run_unary;
        case ENPU_OPCODE_BINARY:
            return run_binary;
        case ENPU_OPCODE_SELECT:
            return run_select;
        case ENPU_OPCODE_SOFTMAX:
            return run_softmax;
        case ENPU_OPCODE_NORM:
            return run_norm;
        case ENPU_OPCODE_REDUCE:
            return run_reduce;
        case ENPU_OPCODE_ARG:
            return run_arg;
        case ENPU_OPCODE_MOVE:
            return run_move;
        case ENPU_OPCODE_PAD:
            return run_pad;
        case ENPU_OPCODE_GATHER:
            return run_gather;
        case ENPU_OPCODE_RESIZE:
            return run_resize;
        case ENPU_OPCODE_CAST:
            return run_cast;
        case ENPU_OPCODE_QUANTIZE:
            return run_quantize;
        case ENPU_OPCODE_DEQUANTIZE:
            return run_dequantize;
        default:
            return nullptr;
    }
}

}  // namespace

Outcome run(const enpu_operator_packet& packet, std::span<const Operand> operands,
            Progress& progress) {
    const Function function = function_of(packet.header.opcode);
    if (function == nullptr) return Outcome::kBadOperand;
    try {
        return function({packet, operands, progress});
    } catch (const std::bad_alloc&) {
        return Outcome::kOutOfMemory;
    }
}

}  // namespace enpu::ops
