// SPDX-License-Identifier: MIT
// Broken rules as sentences.
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "checker.h"

namespace enpu::rules {
namespace {

struct RuleText {
    const char* name;
    const char* sentence;
};

// Indexed by the number of the rule.
constexpr RuleText kRules[] = {
    {"none", "no rule is broken"},
    {"truncated", "the packet passes the end of the command buffer"},
    {"packet-align", "the packet is not aligned"},
    {"packet-size", "the size is not that of the opcode"},
    {"opcode", "there is no such opcode"},
    {"engine", "this kind of engine does not run it"},
    {"flags", "a flag or reserved bytes are not 0"},
    {"missing", "a required operand is left out"},
    {"dtype", "the dtype does not fit"},
    {"rank", "the rank does not fit"},
    {"format", "the memory format does not fit"},
    {"dim-zero", "a dim in use is 0"},
    {"dims", "dims do not fit"},
    {"stride", "a stride is not allowed"},
    {"align", "the address is not aligned"},
    {"range", "the address range is not possible"},
    {"span", "the tensor is too large"},
    {"work", "the packet is too much work"},
    {"parameter", "a parameter is out of range"},
    {"overlap", "the output overlaps an input"},
    {"packed-bytes", "the packed buffer is too small"},
    {"quantisation", "scale or zero point do not fit"},
};
constexpr size_t kRuleCount = sizeof(kRules) / sizeof(kRules[0]);
static_assert(kRuleCount == static_cast<size_t>(Rule::kQuantisation) + 1);

const RuleText& text_of(Rule rule) {
    const auto number = static_cast<size_t>(rule);
    return kRules[number < kRuleCount ? number : 0];
}

std::string lower(const char* name) {
    std::string text = name;
    for (char& c : text) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return text;
}

const enpu_opcode_info* opcode_info(const void* packet, size_t available) {
    uint16_t opcode = 0;
    if (packet == nullptr || available < sizeof(opcode)) return nullptr;
    std::memcpy(&opcode, packet, sizeof(opcode));
    return opcode < ENPU_MAX_OPCODES && enpu_opcodes[opcode].exists ? &enpu_opcodes[opcode]
                                                                    : nullptr;
}

std::string operand_name(const enpu_opcode_info& info, unsigned operand) {
    if (info.is_operator && operand < info.num_operands) return info.operands[operand].name;
    if (std::strcmp(info.name, "COPY") == 0) return operand == 0 ? "dst" : "src";
    return operand == 0 && std::strcmp(info.name, "FILL") == 0 ? "dst" : "addr";
}

const char* dtype_name(uint64_t value) {
    for (const enpu_name* n = enpu_dtype_names; n->name != nullptr; ++n) {
        if (n->value == value) return n->name;
    }
    return nullptr;
}

bool is_float_field(const Violation& v) {
    if (v.rule != Rule::kParameter && v.rule != Rule::kQuantisation) return false;
    for (const char* name :
         {"alpha", "beta", "scale", "epsilon", "cubic_a", "roi_start", "roi_end"}) {
        if (std::strcmp(v.field, name) == 0) return true;
    }
    return false;
}

// Addresses in hex, dtypes by name, fields that can be negative with their sign.
std::string number(const Violation& v, uint64_t value) {
    char text[32];
    const bool address = std::strcmp(v.field, "addr") == 0;
    const bool is_signed = v.rule == Rule::kStride || std::strcmp(v.field, "zero_point") == 0 ||
                           std::strncmp(v.field, "before", 6) == 0;
    if (std::strcmp(v.field, "dtype") == 0) {
        if (const char* name = dtype_name(value)) return name;
    }
    if (is_float_field(v)) {
        std::snprintf(text, sizeof(text), "%g",
                      static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(value))));
    } else if (address && value >= 4096) {
        std::snprintf(text, sizeof(text), "0x%" PRIx64, value);
    } else if (is_signed) {
        std::snprintf(text, sizeof(text), "%" PRId64, static_cast<int64_t>(value));
    } else {
        std::snprintf(text, sizeof(text), "%" PRIu64, value);
    }
    return text;
}

}  // namespace

const char* rule_name(Rule rule) {
    return text_of(rule).name;
}

std::string describe(const void* packet, size_t available, const Violation& violation) {
    const enpu_opcode_info* info = opcode_info(packet, available);
    std::string text = info != nullptr ? lower(info->name) : "packet";
    if (info != nullptr && violation.operand != kPacketItself) {
        text += ": operand '" + operand_name(*info, violation.operand) + "'";
    }
    text += ": ";
    text += text_of(violation.rule).sentence;
    if (violation.field[0] == '\0') return text;
    text += ": ";
    text += violation.field;
    text += " is " + number(violation, violation.value);
    if (violation.must[0] == '\0' && !violation.has_expected) return text;
    text += ", must be ";
    text += violation.must;
    if (violation.has_expected) {
        if (violation.must[0] != '\0') text += ' ';
        text += number(violation, violation.expected);
    }
    return text;
}

}  // namespace enpu::rules
