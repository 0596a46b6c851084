// SPDX-License-Identifier: MIT
#include "op_table.h"

namespace enpu::hal {
namespace {

constexpr OpInfo kOps[] = {
    {ENPU_OP_PACK_WEIGHTS,
     "pack_weights",
     sizeof(enpu_op_pack_params),
     ENPU_OP_PACK_OPERANDS,
     0,
     {"weights", "packed"}},
    {ENPU_OP_CONV2D_FWD,
     "conv2d_fwd",
     sizeof(enpu_op_conv_params),
     ENPU_OP_CONV2D_OPERANDS,
     0x1c,
     {"x", "weights", "bias", "residual", "scale", "y"}},
    {ENPU_OP_CONV_TRANSPOSE2D_FWD,
     "conv_transpose2d_fwd",
     sizeof(enpu_op_conv_params),
     ENPU_OP_CONV_TRANSPOSE2D_OPERANDS,
     0x4,
     {"x", "weights", "bias", "y"}},
    {ENPU_OP_MATMUL_FWD,
     "matmul_fwd",
     sizeof(enpu_op_matmul_params),
     ENPU_OP_MATMUL_OPERANDS,
     0x1c,
     {"a", "b", "bias", "residual", "scale", "y"}},
    {ENPU_OP_POOL2D_FWD,
     "pool2d_fwd",
     sizeof(enpu_op_pool_params),
     ENPU_OP_POOL2D_OPERANDS,
     0,
     {"x", "y"}},
    {ENPU_OP_UNARY, "unary", sizeof(enpu_op_unary_params), ENPU_OP_UNARY_OPERANDS, 0, {"x", "y"}},
    {ENPU_OP_BINARY,
     "binary",
     sizeof(enpu_op_binary_params),
     ENPU_OP_BINARY_OPERANDS,
     0,
     {"a", "b", "y"}},
    {ENPU_OP_SELECT, "select", 0, ENPU_OP_SELECT_OPERANDS, 0, {"condition", "a", "b", "y"}},
    {ENPU_OP_SOFTMAX_FWD,
     "softmax_fwd",
     sizeof(enpu_op_softmax_params),
     ENPU_OP_SOFTMAX_OPERANDS,
     0,
     {"x", "y"}},
    {ENPU_OP_NORM_FWD,
     "norm_fwd",
     sizeof(enpu_op_norm_params),
     ENPU_OP_NORM_OPERANDS,
     0x1e,
     {"x", "scale", "bias", "mean", "variance", "y"}},
    {ENPU_OP_REDUCE,
     "reduce",
     sizeof(enpu_op_reduce_params),
     ENPU_OP_REDUCE_OPERANDS,
     0,
     {"x", "y"}},
    {ENPU_OP_ARG_REDUCE,
     "arg_reduce",
     sizeof(enpu_op_arg_params),
     ENPU_OP_ARG_REDUCE_OPERANDS,
     0,
     {"x", "y"}},
    {ENPU_OP_MOVE, "move", 0, ENPU_OP_MOVE_OPERANDS, 0, {"x", "y"}},
    {ENPU_OP_PAD, "pad", sizeof(enpu_op_pad_params), ENPU_OP_PAD_OPERANDS, 0, {"x", "y"}},
    {ENPU_OP_GATHER,
     "gather",
     sizeof(enpu_op_gather_params),
     ENPU_OP_GATHER_OPERANDS,
     0,
     {"x", "indices", "y"}},
    {ENPU_OP_RESIZE,
     "resize",
     sizeof(enpu_op_resize_params),
     ENPU_OP_RESIZE_OPERANDS,
     0,
     {"x", "y"}},
    {ENPU_OP_CAST, "cast", 0, ENPU_OP_CAST_OPERANDS, 0, {"x", "y"}},
    {ENPU_OP_QUANTIZE,
     "quantize",
     0,
     ENPU_OP_QUANTIZE_OPERANDS,
     0x4,
     {"x", "scale", "zero_point", "y"}},
    {ENPU_OP_DEQUANTIZE,
     "dequantize",
     0,
     ENPU_OP_DEQUANTIZE_OPERANDS,
     0x4,
     {"x", "scale", "zero_point", "y"}},
};

constexpr bool in_order() {
    for (uint32_t i = 0; i < ENPU_OPS; ++i)
        if (kOps[i].op != i) return false;
    return true;
}
static_assert(sizeof(kOps) / sizeof(kOps[0]) == ENPU_OPS && in_order());

}  // namespace

const OpInfo* find_op(uint32_t op) {
    return op < ENPU_OPS ? &kOps[op] : nullptr;
}

const OpInfo* find_op(std::string_view name) {
    for (const OpInfo& info : kOps)
        if (name == info.name) return &info;
    return nullptr;
}

uint32_t dtype_bytes(uint32_t dtype) {
    static constexpr uint32_t kBytes[ENPU_OP_DTYPES] = {0, 4, 2, 2, 1, 1, 4, 8, 1};
    return dtype < ENPU_OP_DTYPES ? kBytes[dtype] : 0;
}

}  // namespace enpu::hal
