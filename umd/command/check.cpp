// SPDX-License-Identifier: MIT
#include <cstring>

#include "command/builder.h"
#include "command/names.h"
#include "enpu_hw_tables.h"

namespace enpu {
namespace {

template <typename Packet>
const Packet& as(const std::byte* packet) {
    return *reinterpret_cast<const Packet*>(packet);
}

uint16_t opcode_of(const std::byte* packet) {
    return as<enpu_packet>(packet).opcode;
}

// Extent of one operand of a packet that check_packet has passed: no product here can overflow any
// more.
Extent extent(const std::byte* packet, uint32_t operand) {
    switch (opcode_of(packet)) {
        case ENPU_OPCODE_COPY: {
            const auto& copy = as<enpu_copy_packet>(packet);
            const uint64_t pitch = operand == 0 ? copy.dst_pitch : copy.src_pitch;
            return {
                0, copy.height > 1 ? (copy.height - uint64_t{1}) * pitch + copy.width : copy.width};
        }
        case ENPU_OPCODE_FILL:
            return {0, as<enpu_fill_packet>(packet).bytes};
        case ENPU_OPCODE_WAIT:
        case ENPU_OPCODE_SIGNAL:
        case ENPU_OPCODE_TIMESTAMP:
            return {0, 8};
        default: {
            rules::Span span;
            rules::tensor_span(as<enpu_operator_packet>(packet).operands[operand], span);
            return {span.offset, span.bytes};
        }
    }
}

int check_target(const std::byte* packet, const Target& target, enpu_error* error) {
    const uint16_t opcode = opcode_of(packet);
    const Extent range = extent(packet, target.operand);
    // Offset and size of a buffer are below 2^63, the range of a checked packet lies in the VA
    // space: the sums fit.
    const int64_t begin = static_cast<int64_t>(target.offset) + range.begin;
    if (begin < 0 || range.bytes > target.buffer->bytes ||
        static_cast<uint64_t>(begin) > target.buffer->bytes - range.bytes) {
        return fail(error, -EINVAL,
                    "%s: operand '%s' reaches outside of its buffer: bytes [%lld, %lld) of %llu",
                    opcode_name(opcode).c_str(), operand_name(opcode, target.operand).c_str(),
                    (long long)begin, (long long)(begin + static_cast<int64_t>(range.bytes)),
                    (unsigned long long)target.buffer->bytes);
    }
    if (operand_is_output(opcode, target.operand) &&
        (target.buffer->flags & ENPU_BUFFER_READ_ONLY) != 0) {
        return fail(error, -EACCES, "%s: operand '%s' is written but lies in a READ_ONLY buffer",
                    opcode_name(opcode).c_str(), operand_name(opcode, target.operand).c_str());
    }
    return 0;
}

}  // namespace

bool operand_is_output(uint16_t opcode, uint32_t operand) {
    switch (opcode) {
        case ENPU_OPCODE_COPY:
        case ENPU_OPCODE_FILL:
        case ENPU_OPCODE_SIGNAL:
        case ENPU_OPCODE_TIMESTAMP:
            return operand == 0;
        case ENPU_OPCODE_WAIT:
            return false;
        default:
            return rules::is_output(opcode, operand);
    }
}

int resolve(enpu_device* device, std::byte* packet, std::span<const Target> targets,
            enpu_error* error) {
    const uint16_t opcode = opcode_of(packet);
    for (const Target& target : targets) {
        if (target.buffer == nullptr) {
            return fail(error, -EINVAL, "%s: operand '%s' has no buffer",
                        opcode_name(opcode).c_str(), operand_name(opcode, target.operand).c_str());
        }
        if (target.buffer->device.get() != device) {
            return fail(error, -EINVAL, "%s: operand '%s' lies in a buffer of another device",
                        opcode_name(opcode).c_str(), operand_name(opcode, target.operand).c_str());
        }
        if (target.offset >= target.buffer->bytes) {
            return fail(error, -EINVAL,
                        "%s: operand '%s': offset %llu is not inside its buffer of %llu bytes",
                        opcode_name(opcode).c_str(), operand_name(opcode, target.operand).c_str(),
                        (unsigned long long)target.offset,
                        (unsigned long long)target.buffer->bytes);
        }
        const uint64_t address = target.buffer->va + target.offset;
        std::memcpy(packet + target.field, &address, sizeof(address));
    }
    return 0;
}

int check_capability(const enpu_device* device, const std::byte* packet, enpu_error* error) {
    const uint16_t opcode = opcode_of(packet);
    if (opcode >= ENPU_MAX_OPCODES || (device->info.opcodes >> opcode & 1) == 0) {
        return fail(error, -EOPNOTSUPP, "unsupported: the device has no opcode %u (%s)", opcode,
                    opcode_name(opcode).c_str());
    }
    if (!enpu_opcodes[opcode].is_operator) return 0;
    const auto& operation = as<enpu_operator_packet>(packet);
    const uint32_t supported = device->info.dtypes[opcode];
    for (uint32_t i = 0; i < enpu_opcodes[opcode].num_operands; ++i) {
        const uint32_t dtype = operation.operands[i].dtype;
        // Only what the rules allow for the opcode can be missing here; indices, scales and the
        // like are theirs to judge.
        const bool general = dtype != ENPU_DTYPE_NONE && dtype < 32 &&
                             (enpu_opcodes[opcode].dtypes >> dtype & 1) != 0;
        if (general && (supported >> dtype & 1) == 0) {
            return fail(error, -EOPNOTSUPP,
                        "unsupported: %s: operand '%s': the device does not take dtype %s",
                        opcode_name(opcode).c_str(), operand_name(opcode, i).c_str(),
                        enpu_dtype_names[dtype].name);
        }
    }
    return 0;
}

int check_resolved(const std::byte* packet, size_t bytes, uint32_t engine_kind,
                   std::span<const Target> targets, enpu_error* error) {
    const auto violation =
        rules::check_packet(packet, bytes, static_cast<enpu_engine_kind>(engine_kind));
    if (violation)
        return fail(error, -EINVAL, "%s", rules::describe(packet, bytes, violation).c_str());
    for (const Target& target : targets) {
        if (int r = check_target(packet, target, error)) return r;
    }
    return 0;
}

}  // namespace enpu
