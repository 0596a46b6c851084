// SPDX-License-Identifier: MIT
// The typed functions of libenpu's builder under one signature, by opcode.
#pragma once

#include <enpu/enpu.h>

#include <type_traits>
#include <utility>

namespace enpu::fuzz {

using TypedBuild = int (*)(enpu_builder*, const void* params, const enpu_operand* const* operands,
                           enpu_error*);

// The operands of a function are all between its parameters, if it has some, and the error.
template <typename Function, typename Params, typename... Rest, size_t... I>
int call_typed(Function function, int (*)(enpu_builder*, const Params*, Rest...),
               enpu_builder* builder, const void* params, const enpu_operand* const* operands,
               enpu_error* error, std::index_sequence<I...>) {
    if constexpr (std::is_same_v<Params, enpu_operand>)
        return function(builder, operands[0], operands[1 + I]..., error);
    else
        return function(builder, static_cast<const Params*>(params), operands[I]..., error);
}

template <typename Params, typename... Rest>
constexpr auto operands_of(int (*)(enpu_builder*, const Params*, Rest...)) {
    return std::make_index_sequence<sizeof...(Rest) - 1>();
}

template <auto kFunction>
int typed(enpu_builder* builder, const void* params, const enpu_operand* const* operands,
          enpu_error* error) {
    return call_typed(kFunction, kFunction, builder, params, operands, error,
                      operands_of(kFunction));
}

inline TypedBuild typed_build(uint32_t opcode) {
    switch (opcode) {
        case ENPU_OPCODE_PACK:
            return typed<enpu_build_pack>;
        case ENPU_OPCODE_CONV2D:
            return typed<enpu_build_conv2d>;
        case ENPU_OPCODE_CONV_TRANSPOSE2D:
            return typed<enpu_build_conv_transpose2d>;
        case ENPU_OPCODE_MATMUL:
            return typed<enpu_build_matmul>;
        case ENPU_OPCODE_POOL:
            return typed<enpu_build_pool>;
        case ENPU_OPCODE_UNARY:
            return typed<enpu_build_unary>;
        case ENPU_OPCODE_BINARY:
            return typed<enpu_build_binary>;
        case ENPU_OPCODE_SELECT:
            return typed<enpu_build_select>;
        case ENPU_OPCODE_SOFTMAX:
            return typed<enpu_build_softmax>;
        case ENPU_OPCODE_NORM:
            return typed<enpu_build_norm>;
        case ENPU_OPCODE_REDUCE:
            return typed<enpu_build_reduce>;
        case ENPU_OPCODE_ARG:
            return typed<enpu_build_arg>;
        case ENPU_OPCODE_MOVE:
            return typed<enpu_build_move>;
        case ENPU_OPCODE_PAD:
            return typed<enpu_build_pad>;
        case ENPU_OPCODE_GATHER:
            return typed<enpu_build_gather>;
        case ENPU_OPCODE_RESIZE:
            return typed<enpu_build_resize>;
        case ENPU_OPCODE_CAST:
            return typed<enpu_build_cast>;
        case ENPU_OPCODE_QUANTIZE:
            return typed<enpu_build_quantize>;
        case ENPU_OPCODE_DEQUANTIZE:
            return typed<enpu_build_dequantize>;
        default:
            return nullptr;
    }
}

}  // namespace enpu::fuzz
