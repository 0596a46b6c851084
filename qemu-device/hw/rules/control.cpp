// SPDX-License-Identifier: MIT
// Packets without tensors. The size of each has been checked.
#include "checker.h"

namespace enpu::rules {
namespace {

Violation check_word(uint64_t addr) {
    if (addr % 8 != 0) return fail(Rule::kAddressAlign, 0, addr, "addr", "a multiple of 8");
    if (addr >= kVaEnd) return fail_expected(Rule::kAddressRange, 0, addr, "addr", "below", kVaEnd);
    return kOk;
}

// Bytes from the first row to the end of the last one.
Violation check_rows(unsigned operand, uint64_t addr, uint64_t width, uint32_t height,
                     uint64_t pitch, const char* pitch_field, uint64_t& bytes) {
    if (height > 1 && pitch < width) {
        return fail_expected(Rule::kParameter, operand, pitch, pitch_field, "at least width",
                             width);
    }
    if (__builtin_mul_overflow(uint64_t{height} - 1, pitch, &bytes) ||
        __builtin_add_overflow(bytes, width, &bytes)) {
        return fail(Rule::kSpan, operand, pitch, pitch_field,
                    "small enough for the rows to fit into the VA range");
    }
    if (addr >= kVaEnd || bytes > kVaEnd - addr) {
        return fail_expected(Rule::kAddressRange, operand, addr, "addr", "with its rows below",
                             kVaEnd);
    }
    return kOk;
}

Violation check_copy(const enpu_copy_packet& p) {
    if (p.reserved != 0) return fail(Rule::kFlags, kPacketItself, p.reserved, "reserved", "0");
    if (p.width == 0) return fail(Rule::kParameter, kPacketItself, 0, "width", "at least 1");
    if (p.height == 0) return fail(Rule::kParameter, kPacketItself, 0, "height", "at least 1");
    if (p.width > ENPU_MAX_PACKET_WORK / p.height) {
        return fail_expected(Rule::kWork, kPacketItself, p.width, "width",
                             "small enough for width x height to be at most", ENPU_MAX_PACKET_WORK);
    }
    uint64_t dst_bytes = 0, src_bytes = 0;
    if (Violation v = check_rows(0, p.dst, p.width, p.height, p.dst_pitch, "dst_pitch", dst_bytes))
        return v;
    if (Violation v = check_rows(1, p.src, p.width, p.height, p.src_pitch, "src_pitch", src_bytes))
        return v;
    if (p.dst < p.src + src_bytes && p.src < p.dst + dst_bytes) {
        return fail(Rule::kOverlap, 1, p.src, "addr", "outside the destination");
    }
    return kOk;
}

Violation check_fill(const enpu_fill_packet& p) {
    if (p.reserved != 0) return fail(Rule::kFlags, kPacketItself, p.reserved, "reserved", "0");
    const uint32_t size = p.pattern_bytes;
    if (size != 1 && size != 2 && size != 4 && size != 8) {
        return fail(Rule::kParameter, kPacketItself, size, "pattern_bytes", "1, 2, 4 or 8");
    }
    if (p.bytes == 0 || p.bytes % size != 0) {
        return fail_expected(Rule::kParameter, kPacketItself, p.bytes, "bytes",
                             "a positive multiple of pattern_bytes", size);
    }
    if (p.bytes > ENPU_MAX_PACKET_WORK) {
        return fail_expected(Rule::kWork, kPacketItself, p.bytes, "bytes", "at most",
                             ENPU_MAX_PACKET_WORK);
    }
    if (p.dst % size != 0)
        return fail_expected(Rule::kAddressAlign, 0, p.dst, "addr", "a multiple of pattern_bytes",
                             size);
    if (p.dst >= kVaEnd || p.bytes > kVaEnd - p.dst) {
        return fail_expected(Rule::kAddressRange, 0, p.dst, "addr", "with its bytes below", kVaEnd);
    }
    return kOk;
}

Violation check_wait(const enpu_wait_packet& p) {
    if (p.reserved != 0) return fail(Rule::kFlags, kPacketItself, p.reserved, "reserved", "0");
    if (p.reserved1 != 0) return fail(Rule::kFlags, kPacketItself, p.reserved1, "reserved1", "0");
    if (p.timeout_us == 0 || p.timeout_us > 60000000) {
        return fail(Rule::kParameter, kPacketItself, p.timeout_us, "timeout_us", "1 to 60000000");
    }
    return check_word(p.addr);
}

}  // namespace

Violation check_control(const enpu_packet& header) {
    switch (header.opcode) {
        case ENPU_OPCODE_COPY:
            return check_copy(reinterpret_cast<const enpu_copy_packet&>(header));
        case ENPU_OPCODE_FILL:
            return check_fill(reinterpret_cast<const enpu_fill_packet&>(header));
        case ENPU_OPCODE_WAIT:
            return check_wait(reinterpret_cast<const enpu_wait_packet&>(header));
        case ENPU_OPCODE_SIGNAL:
            return check_word(reinterpret_cast<const enpu_signal_packet&>(header).addr);
        case ENPU_OPCODE_TIMESTAMP: {
            const auto& p = reinterpret_cast<const enpu_timestamp_packet&>(header);
            if (p.reserved != 0)
                return fail(Rule::kFlags, kPacketItself, p.reserved, "reserved", "0");
            return check_word(p.addr);
        }
        default:
            return kOk;  // NOP and BARRIER are their header
    }
}

}  // namespace enpu::rules
