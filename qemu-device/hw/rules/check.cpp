// SPDX-License-Identifier: MIT
// The way of a packet through the rules: header, parameters, each descriptor, the operator, work,
// overlap.
#include <cstring>

#include "checker.h"

namespace enpu::rules {
namespace {

Violation check_header(const void* packet, size_t available, enpu_engine_kind kind) {
    if (reinterpret_cast<uintptr_t>(packet) % 8 != 0) {
        return fail(Rule::kPacketAlign, kPacketItself, reinterpret_cast<uintptr_t>(packet) % 8,
                    "address", "a multiple of 8");
    }
    if (available < sizeof(enpu_packet)) {
        return fail_expected(Rule::kPacketTruncated, kPacketItself, available, "available bytes",
                             "at least", sizeof(enpu_packet));
    }
    const auto& header = *static_cast<const enpu_packet*>(packet);
    if (header.opcode >= ENPU_MAX_OPCODES || !enpu_opcodes[header.opcode].exists) {
        return fail(Rule::kOpcodeUnknown, kPacketItself, header.opcode, "opcode", "a known one");
    }
    const enpu_opcode_info& info = enpu_opcodes[header.opcode];
    if (header.size % ENPU_PACKET_ALIGN != 0) {
        return fail_expected(Rule::kPacketAlign, kPacketItself, header.size, "size",
                             "a multiple of", ENPU_PACKET_ALIGN);
    }
    if (header.size != info.packet_bytes) {
        return fail_expected(Rule::kPacketSize, kPacketItself, header.size, "size",
                             "that of the opcode", info.packet_bytes);
    }
    if (header.size > available) {
        return fail_expected(Rule::kPacketTruncated, kPacketItself, header.size, "size",
                             "at most the bytes left", available);
    }
    if (header.flags != 0) return fail(Rule::kFlags, kPacketItself, header.flags, "flags", "0");
    if (kind == ENPU_ENGINE_KIND_COPY && info.is_operator) {
        return fail(Rule::kOpcodeEngine, kPacketItself, header.opcode, "opcode",
                    "a control packet on a copy engine");
    }
    return kOk;
}

Violation check_unused_parameters(const enpu_operator_packet& packet,
                                  const enpu_opcode_info& info) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&packet.params);
    if (all_zero(bytes + info.param_bytes, ENPU_OPERATOR_PARAM_BYTES - info.param_bytes))
        return kOk;
    for (unsigned i = info.param_bytes; i < ENPU_OPERATOR_PARAM_BYTES; ++i) {
        if (bytes[i] != 0) {
            return fail(Rule::kFlags, kPacketItself, bytes[i], "unused parameter bytes", "0");
        }
    }
    return kOk;
}

Violation check_operator(const enpu_operator_packet& p) {
    switch (p.header.opcode) {
        case ENPU_OPCODE_PACK:
            return check_pack(p);
        case ENPU_OPCODE_CONV2D:
            return check_conv2d(p);
        case ENPU_OPCODE_CONV_TRANSPOSE2D:
            return check_conv_transpose2d(p);
        case ENPU_OPCODE_MATMUL:
            return check_matmul(p);
        case ENPU_OPCODE_POOL:
            return check_pool(p);
        case ENPU_OPCODE_UNARY:
            return check_unary(p);
        case ENPU_OPCODE_BINARY:
            return check_binary(p);
        case ENPU_OPCODE_SELECT:
            return check_select(p);
        case ENPU_OPCODE_SOFTMAX:
            return check_softmax(p);
        case ENPU_OPCODE_NORM:
            return check_norm(p);
        case ENPU_OPCODE_REDUCE:
            return check_reduce(p);
        case ENPU_OPCODE_ARG:
            return check_arg(p);
        case ENPU_OPCODE_MOVE:
            return check_move(p);
        case ENPU_OPCODE_PAD:
            return check_pad(p);
        case ENPU_OPCODE_GATHER:
            return check_gather(p);
        case ENPU_OPCODE_RESIZE:
            return check_resize(p);
        case ENPU_OPCODE_CAST:
            return check_cast(p);
        case ENPU_OPCODE_QUANTIZE:
            return check_quantize(p);
        case ENPU_OPCODE_DEQUANTIZE:
            return check_dequantize(p);
        default:
            return fail(Rule::kOpcodeUnknown, kPacketItself, p.header.opcode, "opcode",
                        "a known one");
    }
}

}  // namespace

Violation check_packet(const void* packet, size_t available, enpu_engine_kind kind, Span* spans) {
    if (Violation v = check_header(packet, available, kind)) return v;
    const auto& header = *static_cast<const enpu_packet*>(packet);
    const enpu_opcode_info& info = enpu_opcodes[header.opcode];
    if (!info.is_operator) return check_control(header);

    const auto& p = *static_cast<const enpu_operator_packet*>(packet);
    if (Violation v = check_unused_parameters(p, info)) return v;
    Span own[ENPU_MAX_OPERANDS];
    if (!spans) spans = own;
    for (unsigned i = 0; i < info.num_operands; ++i) {
        if (Violation v = check_descriptor(p, info, i, spans[i])) return v;
    }
    if (Violation v = check_operator(p)) return v;
    uint64_t work = 0;
    if (!compute_work(p, info, work)) work = UINT64_MAX;
    if (work > ENPU_MAX_PACKET_WORK) {
        return fail_expected(Rule::kWork, kPacketItself, work, "work", "at most",
                             ENPU_MAX_PACKET_WORK);
    }
    return check_overlap(p, info, spans);
}

}  // namespace enpu::rules
