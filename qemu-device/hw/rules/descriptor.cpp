// SPDX-License-Identifier: MIT
// Rules of a tensor descriptor by itself, and of outputs against the other operands.
#include <bit>
#include <cstring>

#include "checker.h"

namespace enpu::rules {
namespace {

Violation check_shape(const enpu_tensor& t, unsigned i) {
    if (t.rank > ENPU_MAX_RANK)
        return fail_expected(Rule::kRank, i, t.rank, "rank", "at most", ENPU_MAX_RANK);
    for (unsigned axis = 0; axis < t.rank; ++axis)
        if (t.dims[axis] == 0) return fail(Rule::kDimZero, i, 0, dim_field(axis), "at least 1");
    uint32_t past = 0;
    for (unsigned axis = t.rank; axis < ENPU_MAX_RANK; ++axis)
        past |= t.dims[axis] | static_cast<uint32_t>(t.strides[axis]);
    if (past == 0) return kOk;
    for (unsigned axis = t.rank; axis < ENPU_MAX_RANK; ++axis) {
        if (t.dims[axis] != 0)
            return fail(Rule::kDims, i, t.dims[axis], dim_field(axis), "0, it is past the rank");
        if (t.strides[axis] != 0) {
            return fail(Rule::kStride, i, static_cast<uint64_t>(int64_t{t.strides[axis]}),
                        stride_field(axis), "0, it is past the rank");
        }
    }
    return kOk;
}

Violation check_quantisation(const enpu_tensor& t, unsigned i) {
    const auto zero_point = static_cast<uint64_t>(int64_t{t.zero_point});
    const auto scale_bits = std::bit_cast<uint32_t>(t.scale);
    if (!is_byte(t.dtype)) {
        if (t.zero_point != 0)
            return fail(Rule::kQuantisation, i, zero_point, "zero_point",
                        "0 unless the dtype is I8 or U8");
        if (scale_bits != 0)
            return fail(Rule::kQuantisation, i, scale_bits, "scale",
                        "0 unless the dtype is I8 or U8");
        return kOk;
    }
    const int low = t.dtype == ENPU_DTYPE_I8 ? -128 : 0;
    if (t.zero_point < low || t.zero_point > low + 255) {
        return fail(Rule::kQuantisation, i, zero_point, "zero_point", "in the range of the dtype");
    }
    if (!std::isfinite(t.scale) || t.scale < 0) {
        return fail(Rule::kQuantisation, i, scale_bits, "scale", "finite and not negative");
    }
    return kOk;
}

// Where PACKED goes; everything else is PLAIN only.
bool takes_packed(uint16_t opcode, unsigned operand) {
    switch (opcode) {
        case ENPU_OPCODE_PACK:
            return operand == ENPU_PACK_OPERAND_PACKED;
        case ENPU_OPCODE_CONV2D:
            return operand == ENPU_CONV2D_OPERAND_WEIGHTS;
        case ENPU_OPCODE_CONV_TRANSPOSE2D:
            return operand == ENPU_CONV_TRANSPOSE2D_OPERAND_WEIGHTS;
        case ENPU_OPCODE_MATMUL:
            return operand == ENPU_MATMUL_OPERAND_B;
        default:
            return false;
    }
}

Violation check_packed(const enpu_tensor& t, unsigned i) {
    for (unsigned axis = 0; axis < t.rank; ++axis) {
        if (t.strides[axis] != 0) {
            return fail(Rule::kStride, i, static_cast<uint64_t>(int64_t{t.strides[axis]}),
                        stride_field(axis), "0, a packed tensor has no strides");
        }
    }
    const uint64_t minimum = packed_minimum(t);
    if (minimum == 0 || t.bytes > ENPU_MAX_TENSOR_BYTES) {
        return fail_expected(Rule::kSpan, i, t.bytes, "bytes", "at most", ENPU_MAX_TENSOR_BYTES);
    }
    if (t.bytes < minimum) {
        return fail_expected(Rule::kPackedBytes, i, t.bytes, "bytes",
                             "at least header + plain layout", minimum);
    }
    return kOk;
}

Violation check_size(const enpu_tensor& t, unsigned i, size_t element, Span& span) {
    uint64_t bytes = 0;
    if (!elements(t, bytes) || __builtin_mul_overflow(bytes, element, &bytes)) bytes = UINT64_MAX;
    if (bytes > ENPU_MAX_TENSOR_BYTES) {
        return fail_expected(Rule::kSpan, i, bytes, "size",
                             "(all elements, repeated ones too) at most", ENPU_MAX_TENSOR_BYTES);
    }
    if (t.format == ENPU_FORMAT_PACKED) {
        span = {0, t.bytes};
        return check_packed(t, i);
    }
    if (t.bytes != 0) return fail(Rule::kFlags, i, t.bytes, "bytes", "0 for a plain tensor");
    if (!tensor_span(t, span)) {
        return fail_expected(Rule::kSpan, i, bytes, "strides", "a span of at most",
                             ENPU_MAX_TENSOR_BYTES);
    }
    return kOk;
}

Violation check_address(const enpu_tensor& t, unsigned i, size_t element, const Span& span) {
    if ((t.addr & (element - 1)) != 0) {  // sizes of elements are powers of two
        return fail_expected(Rule::kAddressAlign, i, t.addr, "addr",
                             "a multiple of the element size", element);
    }
    const auto below = static_cast<uint64_t>(-span.offset);
    if (t.addr >= kVaEnd || t.addr < below || span.bytes > kVaEnd - (t.addr - below)) {
        return fail_expected(Rule::kAddressRange, i, t.addr, "addr", "with its span inside 0 to",
                             kVaEnd);
    }
    return kOk;
}

// Each element of an output has its own place. Sorted by stride, every axis must step over all that
// the smaller ones reach: that holds for slices and permutations of one dense array, which is all
// the device writes.
Violation check_distinct(const enpu_tensor& t, unsigned i) {
    struct Axis {
        uint64_t step;
        uint64_t dim;
        unsigned number;
    };
    Axis axes[ENPU_MAX_RANK];
    unsigned count = 0;
    for (unsigned n = 0; n < t.rank; ++n) {
        const int64_t stride = t.strides[n];
        if (t.dims[n] == 1) continue;
        const Axis axis = {static_cast<uint64_t>(stride < 0 ? -stride : stride), t.dims[n], n};
        unsigned place = count++;
        for (; place > 0 && axes[place - 1].step > axis.step; --place)
            axes[place] = axes[place - 1];
        axes[place] = axis;
    }
    uint64_t reach = 0;  // within the span, which is bounded
    for (unsigned n = 0; n < count; ++n) {
        if (axes[n].step <= reach) {
            return fail_expected(
                Rule::kStride, i, static_cast<uint64_t>(int64_t{t.strides[axes[n].number]}),
                stride_field(axes[n].number),
                "so that no two elements of an output share a place: at least", reach + 1);
        }
        reach += (axes[n].dim - 1) * axes[n].step;
    }
    return kOk;
}

bool same_layout(const enpu_tensor& a, const enpu_tensor& b) {
    return a.addr == b.addr && a.dtype == b.dtype && a.rank == b.rank &&
           std::memcmp(a.dims, b.dims, sizeof(a.dims)) == 0 &&
           std::memcmp(a.strides, b.strides, sizeof(a.strides)) == 0;
}

// Operators that read an element of this operand only to write the same element of the output.
bool works_in_place(uint16_t opcode, unsigned operand) {
    switch (opcode) {
        case ENPU_OPCODE_UNARY:
        case ENPU_OPCODE_BINARY:
            return true;
        case ENPU_OPCODE_CONV2D:
            return operand == ENPU_CONV2D_OPERAND_RESIDUAL;
        case ENPU_OPCODE_MATMUL:
            return operand == ENPU_MATMUL_OPERAND_RESIDUAL;
        default:
            return false;
    }
}

}  // namespace

Violation check_descriptor(const enpu_operator_packet& packet, const enpu_opcode_info& info,
                           unsigned i, Span& span) {
    const enpu_tensor& t = packet.operands[i];
    span = {};
    if (!present(t)) {
        if (!info.operands[i].optional) return fail(Rule::kOperandMissing, i, 0, "dtype", "given");
        if (!all_zero(&t, sizeof(t)))
            return fail(Rule::kFlags, i, 0, "descriptor", "all 0 when the operand is left out");
        return kOk;
    }
    const size_t element = dtype_bytes(t.dtype);
    if (element == 0) return fail(Rule::kDtype, i, t.dtype, "dtype", "a known dtype");
    if (t.reserved0 != 0) return fail(Rule::kFlags, i, t.reserved0, "reserved0", "0");
    if (t.reserved1 != 0) return fail(Rule::kFlags, i, t.reserved1, "reserved1", "0");
    if (t.format > ENPU_FORMAT_PACKED)
        return fail(Rule::kFormat, i, t.format, "format", "PLAIN or PACKED");
    if (t.format == ENPU_FORMAT_PACKED && !takes_packed(packet.header.opcode, i)) {
        return fail(Rule::kFormat, i, t.format, "format", "PLAIN");
    }
    if (Violation v = check_shape(t, i)) return v;
    if (Violation v = check_quantisation(t, i)) return v;
    if (Violation v = check_size(t, i, element, span)) return v;
    return check_address(t, i, element, span);
}

Violation check_overlap(const enpu_operator_packet& packet, const enpu_opcode_info& info,
                        const Span* spans) {
    const unsigned output = info.num_operands - 1u;
    const enpu_tensor& y = packet.operands[output];
    if (y.format == ENPU_FORMAT_PLAIN) {
        if (Violation v = check_distinct(y, output)) return v;
    }
    const Span& out = spans[output];
    const uint64_t out_begin = y.addr + static_cast<uint64_t>(out.offset);
    for (unsigned i = 0; i < output; ++i) {
        const enpu_tensor& x = packet.operands[i];
        const Span& in = spans[i];
        if (!present(x)) continue;
        const uint64_t in_begin = x.addr + static_cast<uint64_t>(in.offset);
        if (in_begin >= out_begin + out.bytes || out_begin >= in_begin + in.bytes) continue;
        if (works_in_place(packet.header.opcode, i) && same_layout(x, y)) continue;
        return fail_expected(Rule::kOverlap, i, x.addr, "addr",
                             "with its span outside that of the output, which begins at",
                             out_begin);
    }
    return kOk;
}

}  // namespace enpu::rules
