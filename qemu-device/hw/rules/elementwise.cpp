// SPDX-License-Identifier: MIT
// Elementwise operators, moves and conversions.
#include "checker.h"

namespace enpu::rules {
namespace {

using Packet = enpu_operator_packet;

constexpr uint32_t kBool = bit(ENPU_DTYPE_BOOL);
constexpr uint32_t kAll = kFloats | kIntegers | kBool;

// Dtypes of the operand of a UNARY function.
uint32_t unary_dtypes(uint32_t function) {
    switch (function) {
        case ENPU_UNARY_IDENTITY:
            return kAll;
        case ENPU_UNARY_NOT:
            return kBool;
        case ENPU_UNARY_BIT_NOT:
            return kIntegers;
        case ENPU_UNARY_RELU:
        case ENPU_UNARY_CLIP:
        case ENPU_UNARY_ABS:
        case ENPU_UNARY_NEG:
        case ENPU_UNARY_SIGN:
        case ENPU_UNARY_SQUARE:
        case ENPU_UNARY_SCALE:
        case ENPU_UNARY_FLOOR:
        case ENPU_UNARY_CEIL:
        case ENPU_UNARY_ROUND:
            return kFloats | kIntegers;
        default:
            return kFloats;
    }
}

bool is_known_binary(uint32_t function) {
    return function <= ENPU_BINARY_PRELU ||
           (function >= ENPU_BINARY_EQ && function <= ENPU_BINARY_SHIFT_RIGHT);
}
bool is_comparison(uint32_t function) {
    return function >= ENPU_BINARY_EQ && function <= ENPU_BINARY_GE;
}
bool is_logic(uint32_t function) {
    return function >= ENPU_BINARY_AND && function <= ENPU_BINARY_XOR;
}

uint32_t binary_dtypes(uint32_t function) {
    if (is_logic(function)) return kBool;
    if (function >= ENPU_BINARY_BIT_AND) return kIntegers;
    if (is_comparison(function)) return kAll;
    return function == ENPU_BINARY_MIN || function == ENPU_BINARY_MAX ? kAll : kFloats | kIntegers;
}

Violation check_output_like(const Packet& p, unsigned y, unsigned x, uint32_t dtype,
                            const char* must) {
    if (p.operands[y].dtype != dtype)
        return fail_expected(Rule::kDtype, y, p.operands[y].dtype, "dtype", must, dtype);
    return check_same_dims(p, y, x, "as the input");
}

// Scale of QUANTIZE and DEQUANTIZE: F32, or the dtype of the float side.
Violation check_quantiser(const Packet& p, unsigned scale, unsigned zero_point, unsigned like_float,
                          unsigned like_integer) {
    if (p.operands[scale].dtype != ENPU_DTYPE_F32) {
        if (Violation v = check_same_dtype(p, scale, like_float, "F32 or that of the float tensor"))
            return v;
    }
    if (Violation v = check_same_dims(p, scale, 0, "as the input (broadcast by stride 0)"))
        return v;
    if (!present(p.operands[zero_point])) return kOk;
    if (Violation v = check_same_dtype(p, zero_point, like_integer, "that of the integer tensor"))
        return v;
    return check_same_dims(p, zero_point, 0, "as the input (broadcast by stride 0)");
}

}  // namespace

Violation check_unary(const Packet& p) {
    const auto& u = p.params.unary;
    if (Violation v = check_below(u.function, ENPU_UNARY_SHRINK + 1, "function", "below")) return v;
    if (Violation v = check_number(u.alpha, "alpha")) return v;
    if (Violation v = check_number(u.beta, "beta")) return v;
    if (Violation v = check_dtype(p, 0, unary_dtypes(u.function), "one that the function takes"))
        return v;
    const bool test = u.function == ENPU_UNARY_ISNAN || u.function == ENPU_UNARY_ISINF;
    return check_output_like(p, 1, 0, test ? uint32_t{ENPU_DTYPE_BOOL} : p.operands[0].dtype,
                             test ? "BOOL, which is" : "that of the input");
}

Violation check_binary(const Packet& p) {
    const auto& b = p.params.binary;
    if (!is_known_binary(b.function))
        return fail(Rule::kParameter, kPacketItself, b.function, "function", "a known one");
    if (Violation v = check_activation(b.act, b.alpha, b.beta)) return v;
    if (Violation v = check_dtype(p, 0, binary_dtypes(b.function), "one that the function takes"))
        return v;
    if (Violation v = check_same_dtype(p, 1, 0, "that of a")) return v;
    if (Violation v = check_same_dims(p, 1, 0, "as a (broadcast by stride 0)")) return v;
    const bool test = is_comparison(b.function);
    if ((test || !is_float(p.operands[0].dtype)) && b.act != ENPU_UNARY_IDENTITY) {
        return fail(Rule::kParameter, kPacketItself, b.act, "act",
                    "IDENTITY unless the result is float");
    }
    return check_output_like(p, 2, 0, test ? uint32_t{ENPU_DTYPE_BOOL} : p.operands[0].dtype,
                             test ? "BOOL, which is" : "that of a");
}

Violation check_select(const Packet& p) {
    if (Violation v = check_dtype(p, ENPU_SELECT_OPERAND_CONDITION, kBool, "BOOL")) return v;
    if (Violation v =
            check_same_dtype(p, ENPU_SELECT_OPERAND_B, ENPU_SELECT_OPERAND_A, "that of a"))
        return v;
    if (Violation v =
            check_same_dtype(p, ENPU_SELECT_OPERAND_Y, ENPU_SELECT_OPERAND_A, "that of a"))
        return v;
    for (unsigned i :
         {ENPU_SELECT_OPERAND_CONDITION, ENPU_SELECT_OPERAND_A, ENPU_SELECT_OPERAND_B}) {
        if (Violation v = check_same_dims(p, i, ENPU_SELECT_OPERAND_Y,
                                          "as the output (broadcast by stride 0)"))
            return v;
    }
    return kOk;
}

Violation check_move(const Packet& p) {
    return check_output_like(p, 1, 0, p.operands[0].dtype, "that of the input");
}

Violation check_cast(const Packet& p) {
    return check_same_dims(p, 1, 0, "as the input");
}

Violation check_quantize(const Packet& p) {
    constexpr unsigned kY = ENPU_QUANTIZE_OPERAND_Y;
    if (Violation v = check_dtype(p, 0, kFloats, "F32, F16 or BF16")) return v;
    if (Violation v = check_dtype(p, kY, kBytes, "I8 or U8")) return v;
    if (Violation v = check_same_dims(p, kY, 0, "as the input")) return v;
    return check_quantiser(p, ENPU_QUANTIZE_OPERAND_SCALE, ENPU_QUANTIZE_OPERAND_ZERO_POINT, 0, kY);
}

Violation check_dequantize(const Packet& p) {
    constexpr unsigned kY = ENPU_DEQUANTIZE_OPERAND_Y;
    if (Violation v = check_dtype(p, 0, kBytes | bit(ENPU_DTYPE_I32), "I8, U8 or I32")) return v;
    if (Violation v = check_dtype(p, kY, kFloats, "F32, F16 or BF16")) return v;
    if (Violation v = check_same_dims(p, kY, 0, "as the input")) return v;
    return check_quantiser(p, ENPU_DEQUANTIZE_OPERAND_SCALE, ENPU_DEQUANTIZE_OPERAND_ZERO_POINT, kY,
                           0);
}

}  // namespace enpu::rules
