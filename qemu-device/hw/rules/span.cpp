// SPDX-License-Identifier: MIT
// Sizes: of elements, spans, packed weights and work. Everything here is safe for any bytes in a
// descriptor.
#include <algorithm>

#include "checker.h"

namespace enpu::rules {

bool tensor_span(const enpu_tensor& tensor, Span& span) {
    if (tensor.format == ENPU_FORMAT_PACKED) {
        span = {0, tensor.bytes};
        return tensor.bytes <= ENPU_MAX_TENSOR_BYTES;
    }
    const uint64_t size = dtype_bytes(tensor.dtype);
    if (size == 0 || tensor.rank > ENPU_MAX_RANK) return false;
    // |dim - 1| * |stride| < 2^63, and a sum is refused before it can wrap.
    constexpr uint64_t kLimit = ENPU_MAX_TENSOR_BYTES;
    uint64_t below = 0, above = 0;
    for (unsigned axis = 0; axis < tensor.rank; ++axis) {
        if (tensor.dims[axis] == 0) return false;
        const int64_t stride = tensor.strides[axis];
        const uint64_t step =
            stride < 0 ? -static_cast<uint64_t>(stride) : static_cast<uint64_t>(stride);
        const uint64_t reach = (uint64_t{tensor.dims[axis]} - 1) * step;
        if (reach > kLimit) return false;
        (stride < 0 ? below : above) += reach;
    }
    const uint64_t bytes = (below + above + 1) * size;
    if (bytes > kLimit) return false;
    span = {-static_cast<int64_t>(below * size), bytes};
    return true;
}

namespace {

uint64_t round_up(uint64_t value, uint64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

// Elements of a preferred layout: channels are padded to blocks of 32, depthwise groups too.
bool padded_elements(const enpu_tensor& weights, uint32_t kind, uint32_t groups, uint64_t& count) {
    if (kind == ENPU_PACK_KIND_MATMUL) {
        if (weights.rank != 2) return false;
        return !__builtin_mul_overflow(round_up(weights.dims[0], 32), round_up(weights.dims[1], 64),
                                       &count);
    }
    if (kind > ENPU_PACK_KIND_CONV_TRANSPOSE2D || weights.rank != 4 || groups == 0) return false;
    if (weights.dims[0] % groups != 0) return false;
    const uint64_t first = weights.dims[0] / groups, second = weights.dims[1];
    const bool depthwise = first == 1 && second == 1;
    const uint64_t g = depthwise ? round_up(groups, 32) : groups;
    const uint64_t channels = depthwise ? 1 : round_up(first, 32) * round_up(second, 32);
    return !__builtin_mul_overflow(g, channels, &count) &&
           !__builtin_mul_overflow(count, uint64_t{weights.dims[2]}, &count) &&
           !__builtin_mul_overflow(count, uint64_t{weights.dims[3]}, &count);
}

}  // namespace

uint64_t packed_minimum(const enpu_tensor& weights) {
    uint64_t bytes = 0;
    if (!elements(weights, bytes) ||
        __builtin_mul_overflow(bytes, dtype_bytes(weights.dtype), &bytes))
        return 0;
    if (bytes == 0 || bytes > ENPU_MAX_TENSOR_BYTES - ENPU_PACKED_HEADER_BYTES) return 0;
    return ENPU_PACKED_HEADER_BYTES + bytes;
}

uint64_t packed_bytes(const enpu_tensor& weights, uint32_t kind, uint32_t groups) {
    const uint64_t minimum = packed_minimum(weights);
    if (minimum == 0 || (bit(weights.dtype) & enpu_opcodes[ENPU_OPCODE_PACK].dtypes) == 0) return 0;
    uint64_t count = 0, bytes = 0;
    if (!padded_elements(weights, kind, groups, count)) return 0;
    if (__builtin_mul_overflow(count, uint64_t{4}, &bytes) ||
        __builtin_add_overflow(bytes, uint64_t{ENPU_PACKED_HEADER_BYTES}, &bytes)) {
        return minimum;
    }
    return bytes > ENPU_MAX_TENSOR_BYTES ? minimum : std::max(bytes, minimum);
}

bool is_output(uint16_t opcode, unsigned operand) {
    if (opcode >= ENPU_MAX_OPCODES) return false;
    const enpu_opcode_info& info = enpu_opcodes[opcode];
    if (info.is_operator) return operand + 1u == info.num_operands;
    switch (opcode) {
        case ENPU_OPCODE_COPY:
        case ENPU_OPCODE_FILL:
        case ENPU_OPCODE_SIGNAL:
        case ENPU_OPCODE_TIMESTAMP:
            return operand == 0;
        default:
            return false;
    }
}

bool compute_work(const enpu_operator_packet& packet, const enpu_opcode_info& info,
                  uint64_t& work) {
    const enpu_tensor* t = packet.operands;
    const enpu_tensor& y = t[info.num_operands - 1];
    uint64_t factor = 1;
    switch (packet.header.opcode) {
        case ENPU_OPCODE_CONV2D:
            return elements(y, work) && product(t[ENPU_CONV2D_OPERAND_WEIGHTS], 1, 4, factor) &&
                   !__builtin_mul_overflow(work, factor, &work);
        case ENPU_OPCODE_CONV_TRANSPOSE2D:
            return elements(t[0], work) &&
                   product(t[ENPU_CONV_TRANSPOSE2D_OPERAND_WEIGHTS], 1, 4, factor) &&
                   !__builtin_mul_overflow(work, factor, &work);
        case ENPU_OPCODE_MATMUL:
            return elements(y, work) &&
                   !__builtin_mul_overflow(work, uint64_t{t[0].dims[t[0].rank - 1]}, &work);
        case ENPU_OPCODE_POOL:
            return elements(y, work) &&
                   !__builtin_mul_overflow(work, uint64_t{packet.params.pool.kernel[0]}, &work) &&
                   !__builtin_mul_overflow(work, uint64_t{packet.params.pool.kernel[1]}, &work);
        default:
            break;
    }
    work = 0;
    for (unsigned i = 0; i < info.num_operands; ++i) {
        uint64_t count = 0;
        if (!present(t[i])) continue;
        if (!elements(t[i], count)) return false;
        work = std::max(work, count);
    }
    return true;
}

uint64_t packet_work(const enpu_operator_packet& packet) {
    const uint16_t opcode = packet.header.opcode;
    uint64_t work = 0;
    if (opcode >= ENPU_MAX_OPCODES || !enpu_opcodes[opcode].is_operator) return 0;
    return compute_work(packet, enpu_opcodes[opcode], work) ? work : UINT64_MAX;
}

}  // namespace enpu::rules
