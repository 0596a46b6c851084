// SPDX-License-Identifier: MIT
// The rules of every packet, written once: libenpu checks a packet before it is submitted and turns
// a broken rule into a sentence, the device checks it again and turns it into an error record. Pure
// functions of bytes: no state, no allocation, no memory of the guest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "enpu_hw.h"

namespace enpu::rules {

// Numbers are part of the error record (error_record.rule) and append-only.
enum class Rule : uint16_t {
    kNone = 0,
    kPacketTruncated,  // header or packet passes the end of the command buffer
    kPacketAlign,      // size is not a multiple of 16
    kPacketSize,       // size is not that of the opcode
    kOpcodeUnknown,
    kOpcodeEngine,    // this kind of engine does not run it
    kFlags,           // flags or reserved bytes are not 0
    kOperandMissing,  // required operand with dtype NONE
    kDtype,           // not a dtype of this opcode, or not the one that the other operands ask for
    kRank,
    kFormat,   // PACKED where only PLAIN goes, unknown format
    kDimZero,  // an output of no elements, or a dim of 0 in use
    kDims,     // dims do not fit the operator or the other operands
    kStride,   // unused stride not 0, or an output that overlaps itself
    kAddressAlign,
    kAddressRange,  // address or span passes the VA range
    kSpan,          // larger than MAX_TENSOR_BYTES
    kWork,          // larger than MAX_PACKET_WORK
    kParameter,     // a parameter is out of its range
    kOverlap,       // output overlaps an input in a way the operator does not allow
    kPackedBytes,   // packed buffer too small for its header and the plain layout
    kQuantisation,  // scale or zero point of an integer operand
};

struct Violation {
    Rule rule = Rule::kNone;
    uint8_t operand = 0xff;  // index in the packet, 0xff: the packet itself
    uint64_t value = 0;      // the value that broke the rule
    const char* field = "";  // name of the header field or parameter, static storage
    const char* must = "";   // what it has to be, static storage; may be empty
    uint64_t expected = 0;   // the number that `must` stands for, when has_expected
    bool has_expected = false;

    explicit operator bool() const { return rule != Rule::kNone; }
};

// Bytes that a PLAIN tensor can touch, as an offset from its address (0 or negative) and a length.
// For PACKED it is {0, desc.bytes}.
struct Span {
    int64_t offset = 0;
    uint64_t bytes = 0;
};

// Checks one packet at `packet`, of which `available` bytes can be read (the caller's private copy:
// it is read more than once). On success header.size bytes belong to it. `kind` is the kind of
// engine that is to run it: copy engines run the control packets only. `packet` is 8-byte aligned,
// anything else is kPacketAlign.
// `spans` (null, or room for ENPU_MAX_OPERANDS): of an operator packet that breaks no rule, what each
// operand can touch.
Violation check_packet(const void* packet, size_t available, enpu_engine_kind kind,
                       Span* spans = nullptr);

// "conv2d: operand 'weights': dims do not fit: dims[1] is 3, must be C/groups = 4" — names opcode,
// operand and rule.
std::string describe(const void* packet, size_t available, const Violation& violation);
// Short name of a rule for tables and logs ("dims", "span" …).
const char* rule_name(Rule rule);

// 0 for NONE and unknown ones.
constexpr size_t dtype_bytes(uint32_t dtype) {
    switch (dtype) {
        case ENPU_DTYPE_I8:
        case ENPU_DTYPE_U8:
        case ENPU_DTYPE_BOOL:
            return 1;
        case ENPU_DTYPE_F16:
        case ENPU_DTYPE_BF16:
            return 2;
        case ENPU_DTYPE_F32:
        case ENPU_DTYPE_I32:
            return 4;
        case ENPU_DTYPE_I64:
            return 8;
        default:
            return 0;
    }
}

// False when the product overflows or passes MAX_TENSOR_BYTES.
bool tensor_span(const enpu_tensor& tensor, Span& span);

// True for operands the packet writes.
bool is_output(uint16_t opcode, unsigned operand);
// Work of a checked packet: multiply-accumulates, or elements of the output.
uint64_t packet_work(const enpu_operator_packet& packet);

// Buffer that PACK needs to hold weights in the preferred layout of the device (bytes, header
// included; the formula is in docs/hardware.md); 0 for a tensor that cannot be packed. A packed
// buffer must have at least packed_minimum bytes.
uint64_t packed_bytes(const enpu_tensor& weights, uint32_t kind, uint32_t groups);
uint64_t packed_minimum(const enpu_tensor& weights);

}  // namespace enpu::rules
