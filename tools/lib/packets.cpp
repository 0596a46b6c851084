// SPDX-License-Identifier: MIT
#include "packets.h"

#include <algorithm>
#include <cstring>

#include "enpu_hw_tables.h"
#include "output.h"
#include "registers.h"
#include "rules.h"

namespace enpu::tools {
namespace {

template <typename T>
T take(std::string_view bytes) {
    T value = {};
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof(value)));
    return value;
}

std::string lower(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

std::string tensor_text(const enpu_tensor& tensor) {
    std::string text = lower(name_of(enpu_dtype_names, tensor.dtype)) + "[";
    for (unsigned i = 0; i < std::min<unsigned>(tensor.rank, ENPU_MAX_RANK); ++i)
        text += (i ? "," : "") + std::to_string(tensor.dims[i]);
    return text + "]" + (tensor.format == ENPU_FORMAT_PACKED ? " packed" : "") + "@" +
           hex(tensor.addr);
}

std::string operator_text(std::string_view bytes, const enpu_opcode_info& info) {
    std::string text;
    for (unsigned i = 0; i < info.num_operands; ++i) {
        const size_t at = sizeof(enpu_packet) + ENPU_OPERATOR_PARAM_BYTES + i * sizeof(enpu_tensor);
        if (at + sizeof(enpu_tensor) > bytes.size()) return text + " (cut off)";
        const auto tensor = take<enpu_tensor>(bytes.substr(at));
        if (tensor.dtype != ENPU_DTYPE_NONE)
            text += std::string(" ") + info.operands[i].name + "=" + tensor_text(tensor);
    }
    return text;
}

std::string control_text(std::string_view bytes, uint16_t opcode) {
    switch (opcode) {
        case ENPU_OPCODE_COPY: {
            const auto copy = take<enpu_copy_packet>(bytes);
            return format(" %llu x %u B %s -> %s", (unsigned long long)copy.width, copy.height,
                          hex(copy.src).c_str(), hex(copy.dst).c_str());
        }
        case ENPU_OPCODE_FILL: {
            const auto fill = take<enpu_fill_packet>(bytes);
            return format(" %llu B at %s with %s", (unsigned long long)fill.bytes,
                          hex(fill.dst).c_str(), hex(fill.pattern).c_str());
        }
        case ENPU_OPCODE_WAIT: {
            const auto wait = take<enpu_wait_packet>(bytes);
            return format(" %s >= %llu within %u us", hex(wait.addr).c_str(),
                          (unsigned long long)wait.value, wait.timeout_us);
        }
        case ENPU_OPCODE_SIGNAL: {
            const auto signal = take<enpu_signal_packet>(bytes);
            return format(" %s = %llu", hex(signal.addr).c_str(), (unsigned long long)signal.value);
        }
        case ENPU_OPCODE_TIMESTAMP:
            return " " + hex(take<enpu_timestamp_packet>(bytes).addr);
        default:
            return "";
    }
}

const enpu_opcode_info* info_of(uint32_t opcode) {
    return opcode < ENPU_MAX_OPCODES && enpu_opcodes[opcode].exists ? &enpu_opcodes[opcode]
                                                                    : nullptr;
}

uint64_t rows_span(uint64_t width, uint32_t height, uint64_t pitch) {
    return height == 0 ? 0 : (height - 1) * pitch + width;
}

}  // namespace

std::string opcode_text(uint32_t opcode) {
    const enpu_opcode_info* info = info_of(opcode);
    return info ? lower(info->name) : "opcode " + std::to_string(opcode);
}

enpu_packet packet_header(std::string_view bytes, uint32_t offset) {
    return offset <= bytes.size() ? take<enpu_packet>(bytes.substr(offset)) : enpu_packet{};
}

std::vector<uint32_t> packet_offsets(std::string_view bytes) {
    std::vector<uint32_t> offsets;
    size_t at = 0;
    while (bytes.size() - at >= sizeof(enpu_packet)) {
        const auto header = take<enpu_packet>(bytes.substr(at));
        if (header.size < sizeof(header) || header.size % ENPU_PACKET_ALIGN != 0 ||
            header.size > bytes.size() - at || !info_of(header.opcode))
            break;
        offsets.push_back(static_cast<uint32_t>(at));
        at += header.size;
    }
    return offsets;
}

std::string packet_text(std::string_view bytes) {
    const auto header = take<enpu_packet>(bytes);
    const enpu_opcode_info* info = info_of(header.opcode);
    std::string text = opcode_text(header.opcode);
    if (info)
        text +=
            info->is_operator ? operator_text(bytes, *info) : control_text(bytes, header.opcode);
    return header.tag ? text + " tag " + hex(header.tag) : text;
}

std::vector<Access> packet_accesses(std::string_view bytes) {
    const auto header = take<enpu_packet>(bytes);
    const enpu_opcode_info* info = info_of(header.opcode);
    std::vector<Access> found;
    if (!info || bytes.size() < header.size) return found;
    if (header.opcode == ENPU_OPCODE_COPY) {
        const auto copy = take<enpu_copy_packet>(bytes);
        found.push_back({copy.dst, rows_span(copy.width, copy.height, copy.dst_pitch), true, 0});
        found.push_back({copy.src, rows_span(copy.width, copy.height, copy.src_pitch), false, 1});
    } else if (header.opcode == ENPU_OPCODE_FILL) {
        const auto fill = take<enpu_fill_packet>(bytes);
        found.push_back({fill.dst, fill.bytes, true, 0});
    } else if (header.opcode == ENPU_OPCODE_SIGNAL || header.opcode == ENPU_OPCODE_TIMESTAMP) {
        found.push_back({take<enpu_signal_packet>(bytes).addr, 8, true, 0});
    } else if (header.opcode == ENPU_OPCODE_WAIT) {
        found.push_back({take<enpu_wait_packet>(bytes).addr, 8, false, 0});
    }
    for (unsigned i = 0; info->is_operator && i < info->num_operands; ++i) {
        const size_t at = sizeof(enpu_packet) + ENPU_OPERATOR_PARAM_BYTES + i * sizeof(enpu_tensor);
        const auto tensor = take<enpu_tensor>(bytes.substr(at));
        rules::Span span;
        if (tensor.dtype == ENPU_DTYPE_NONE || !rules::tensor_span(tensor, span)) continue;
        found.push_back({tensor.addr + static_cast<uint64_t>(span.offset), span.bytes,
                         rules::is_output(header.opcode, i), i});
    }
    return found;
}

}  // namespace enpu::tools
