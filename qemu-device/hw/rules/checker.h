// SPDX-License-Identifier: MIT
// What the files of the packet rules share. Internal to qemu-device/hw/rules.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "enpu_hw.h"
#include "enpu_hw_tables.h"
#include "rules.h"

namespace enpu::rules {

constexpr uint8_t kPacketItself = 0xff;
constexpr uint64_t kVaEnd = uint64_t{1} << ENPU_VA_BITS;
constexpr uint32_t kMaxWindow =
    32768;  // kernel, stride, padding and dilation of windowed operators

constexpr Violation kOk{};

// A packet is looked at on every launch: whole words first, bytes at the end.
inline bool all_zero(const void* bytes, size_t count) {
    const auto* at = static_cast<const unsigned char*>(bytes);
    uint64_t seen = 0;
    for (; count >= sizeof(uint64_t); count -= sizeof(uint64_t), at += sizeof(uint64_t)) {
        uint64_t word;
        std::memcpy(&word, at, sizeof(word));
        seen |= word;
    }
    for (; count > 0; --count) seen |= *at++;
    return seen == 0;
}

inline Violation fail(Rule rule, unsigned operand, uint64_t value, const char* field,
                      const char* must = "") {
    return {rule, static_cast<uint8_t>(operand), value, field, must, 0, false};
}
inline Violation fail_expected(Rule rule, unsigned operand, uint64_t value, const char* field,
                               const char* must, uint64_t expected) {
    return {rule, static_cast<uint8_t>(operand), value, field, must, expected, true};
}

// The value is the bits of the float; describe() prints it as one.
inline Violation fail_float(Rule rule, unsigned operand, float value, const char* field,
                            const char* must) {
    return fail(rule, operand, std::bit_cast<uint32_t>(value), field, must);
}

// "dims[3]" as static text.
const char* dim_field(unsigned axis);
const char* stride_field(unsigned axis);

constexpr uint32_t bit(uint32_t number) {
    return number < 32 ? uint32_t{1} << number : 0;
}
constexpr uint32_t kFloats = bit(ENPU_DTYPE_F32) | bit(ENPU_DTYPE_F16) | bit(ENPU_DTYPE_BF16);
constexpr uint32_t kBytes = bit(ENPU_DTYPE_I8) | bit(ENPU_DTYPE_U8);
constexpr uint32_t kIndices = bit(ENPU_DTYPE_I32) | bit(ENPU_DTYPE_I64);
constexpr uint32_t kIntegers = kBytes | kIndices;

inline bool is_float(uint32_t dtype) {
    return (bit(dtype) & kFloats) != 0;
}
inline bool is_byte(uint32_t dtype) {
    return (bit(dtype) & kBytes) != 0;
}
inline bool present(const enpu_tensor& tensor) {
    return tensor.dtype != ENPU_DTYPE_NONE;
}

// Product of the dims from axis `begin` to `end`; false when it passes 64 bits.
inline bool product(const enpu_tensor& tensor, unsigned begin, unsigned end, uint64_t& result) {
    result = 1;
    for (unsigned axis = begin; axis < end && axis < ENPU_MAX_RANK; ++axis) {
        if (__builtin_mul_overflow(result, uint64_t{tensor.dims[axis]}, &result)) return false;
    }
    return true;
}
inline bool elements(const enpu_tensor& tensor, uint64_t& result) {
    return product(tensor, 0, tensor.rank, result);
}

// Small checks that the families share. Each names the operand it speaks of.
Violation check_dtype(const enpu_operator_packet& packet, unsigned operand, uint32_t allowed,
                      const char* must);
Violation check_same_dtype(const enpu_operator_packet& packet, unsigned operand, unsigned like,
                           const char* must);
Violation check_rank(const enpu_operator_packet& packet, unsigned operand, unsigned rank,
                     const char* must);
Violation check_dim(const enpu_operator_packet& packet, unsigned operand, unsigned axis,
                    uint64_t expected, const char* must);
Violation check_same_dims(const enpu_operator_packet& packet, unsigned operand, unsigned like,
                          const char* must);
// A vector of `size` elements; `or_one` allows one element too.
Violation check_vector(const enpu_operator_packet& packet, unsigned operand, uint64_t size,
                       bool or_one, const char* must);
Violation check_below(uint64_t value, uint64_t limit, const char* field, const char* must);
Violation check_window(uint32_t value, bool zero_allowed, const char* field);
Violation check_axis(uint32_t axis, const enpu_tensor& x);
// Functions that make sense as a fused activation of a float operator, and the range of their
// parameters.
Violation check_number(float value, const char* field);
Violation check_activation(uint32_t function, float alpha, float beta);

// One a family: dtypes, ranks, dims and parameters of a packet whose descriptors are sound one by
// one.
Violation check_pack(const enpu_operator_packet& packet);
Violation check_conv2d(const enpu_operator_packet& packet);
Violation check_conv_transpose2d(const enpu_operator_packet& packet);
Violation check_matmul(const enpu_operator_packet& packet);
Violation check_pool(const enpu_operator_packet& packet);
Violation check_unary(const enpu_operator_packet& packet);
Violation check_binary(const enpu_operator_packet& packet);
Violation check_select(const enpu_operator_packet& packet);
Violation check_softmax(const enpu_operator_packet& packet);
Violation check_norm(const enpu_operator_packet& packet);
Violation check_reduce(const enpu_operator_packet& packet);
Violation check_arg(const enpu_operator_packet& packet);
Violation check_move(const enpu_operator_packet& packet);
Violation check_pad(const enpu_operator_packet& packet);
Violation check_gather(const enpu_operator_packet& packet);
Violation check_resize(const enpu_operator_packet& packet);
Violation check_cast(const enpu_operator_packet& packet);
Violation check_quantize(const enpu_operator_packet& packet);
Violation check_dequantize(const enpu_operator_packet& packet);

Violation check_control(const enpu_packet& header);
// The descriptor by itself: reserved bytes, dims, strides, span, address, quantisation. Gives the
// span of a sound one, {0, 0} for one that is left out.
Violation check_descriptor(const enpu_operator_packet& packet, const enpu_opcode_info& info,
                           unsigned operand, Span& span);
// Outputs against inputs and against themselves; `spans` of all operands.
Violation check_overlap(const enpu_operator_packet& packet, const enpu_opcode_info& info,
                        const Span* spans);
// False when it passes 64 bits.
bool compute_work(const enpu_operator_packet& packet, const enpu_opcode_info& info, uint64_t& work);

}  // namespace enpu::rules
