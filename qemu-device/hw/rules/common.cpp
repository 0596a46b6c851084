// SPDX-License-Identifier: MIT
// Checks that the operator families share.
#include <cmath>

#include "checker.h"

namespace enpu::rules {

const char* dim_field(unsigned axis) {
    static constexpr const char* kNames[ENPU_MAX_RANK] = {
        "dims[0]", "dims[1]", "dims[2]", "dims[3]", "dims[4]", "dims[5]", "dims[6]", "dims[7]"};
    return axis < ENPU_MAX_RANK ? kNames[axis] : "dims";
}
const char* stride_field(unsigned axis) {
    static constexpr const char* kNames[ENPU_MAX_RANK] = {"strides[0]", "strides[1]", "strides[2]",
                                                          "strides[3]", "strides[4]", "strides[5]",
                                                          "strides[6]", "strides[7]"};
    return axis < ENPU_MAX_RANK ? kNames[axis] : "strides";
}

Violation check_dtype(const enpu_operator_packet& packet, unsigned operand, uint32_t allowed,
                      const char* must) {
    const uint32_t dtype = packet.operands[operand].dtype;
    return (bit(dtype) & allowed) != 0 ? kOk : fail(Rule::kDtype, operand, dtype, "dtype", must);
}

Violation check_same_dtype(const enpu_operator_packet& packet, unsigned operand, unsigned like,
                           const char* must) {
    const uint32_t dtype = packet.operands[operand].dtype, expected = packet.operands[like].dtype;
    return dtype == expected ? kOk
                             : fail_expected(Rule::kDtype, operand, dtype, "dtype", must, expected);
}

Violation check_rank(const enpu_operator_packet& packet, unsigned operand, unsigned rank,
                     const char* must) {
    const unsigned actual = packet.operands[operand].rank;
    return actual == rank ? kOk : fail_expected(Rule::kRank, operand, actual, "rank", must, rank);
}

Violation check_dim(const enpu_operator_packet& packet, unsigned operand, unsigned axis,
                    uint64_t expected, const char* must) {
    const uint32_t actual = packet.operands[operand].dims[axis];
    return actual == expected
               ? kOk
               : fail_expected(Rule::kDims, operand, actual, dim_field(axis), must, expected);
}

Violation check_same_dims(const enpu_operator_packet& packet, unsigned operand, unsigned like,
                          const char* must) {
    const enpu_tensor& expected = packet.operands[like];
    if (Violation v = check_rank(packet, operand, expected.rank, must)) return v;
    for (unsigned axis = 0; axis < expected.rank; ++axis) {
        if (Violation v = check_dim(packet, operand, axis, expected.dims[axis], must)) return v;
    }
    return kOk;
}

Violation check_vector(const enpu_operator_packet& packet, unsigned operand, uint64_t size,
                       bool or_one, const char* must) {
    if (Violation v = check_rank(packet, operand, 1, must)) return v;
    if (or_one && packet.operands[operand].dims[0] == 1) return kOk;
    return check_dim(packet, operand, 0, size, must);
}

Violation check_below(uint64_t value, uint64_t limit, const char* field, const char* must) {
    return value < limit
               ? kOk
               : fail_expected(Rule::kParameter, kPacketItself, value, field, must, limit);
}

Violation check_window(uint32_t value, bool zero_allowed, const char* field) {
    if ((value == 0 && !zero_allowed) || value > kMaxWindow) {
        return fail_expected(Rule::kParameter, kPacketItself, value, field,
                             zero_allowed ? "at most" : "at least 1 and at most", kMaxWindow);
    }
    return kOk;
}

Violation check_axis(uint32_t axis, const enpu_tensor& x) {
    return check_below(axis, x.rank, "axis", "below the rank");
}

Violation check_number(float value, const char* field) {
    return std::isnan(value) ? fail_float(Rule::kParameter, kPacketItself, value, field, "a number")
                             : kOk;
}

Violation check_activation(uint32_t function, float alpha, float beta) {
    if (function > ENPU_UNARY_SHRINK) {
        return fail(Rule::kParameter, kPacketItself, function, "act", "a known function");
    }
    if (function == ENPU_UNARY_NOT || function == ENPU_UNARY_BIT_NOT ||
        function == ENPU_UNARY_ISNAN || function == ENPU_UNARY_ISINF) {
        return fail(Rule::kParameter, kPacketItself, function, "act",
                    "a function from float to float");
    }
    if (Violation v = check_number(alpha, "alpha")) return v;
    return check_number(beta, "beta");
}

}  // namespace enpu::rules
