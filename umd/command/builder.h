// SPDX-License-Identifier: MIT
// Collects packets. Each is checked here as the device will check it, and each operand against the
// buffer that it is to lie in.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "buffer.h"
#include "rules/rules.h"

namespace enpu {

// An address in a packet and the buffer behind it.
struct Reference {
    uint32_t packet = 0;   // index
    uint32_t operand = 0;  // number, as enpu_command_patch takes it
    uint32_t field = 0;    // byte offset of the 64-bit address in the command buffer
    bool output = false;
    Ref<enpu_buffer> buffer;
};

// One operand of a packet that is being built: where its address stands, and what it points to.
struct Target {
    uint32_t operand = 0;
    uint32_t field = 0;  // byte offset in the packet
    enpu_buffer* buffer = nullptr;
    uint64_t offset = 0;
};

// Bytes that an operand touches, from the byte its address names.
struct Extent {
    int64_t begin = 0;
    uint64_t bytes = 0;
};

constexpr size_t kMaxPacketBytes = ENPU_OPERATOR_PACKET_BYTES(ENPU_MAX_OPERANDS);

bool operand_is_output(uint16_t opcode, uint32_t operand);

// Puts va + offset of each target into the packet. Refuses an offset that does not lie in its
// buffer.
int resolve(enpu_device* device, std::byte* packet, std::span<const Target> targets,
            enpu_error* error);
// Opcode and dtypes are among the device's capabilities.
int check_capability(const enpu_device* device, const std::byte* packet, enpu_error* error);
// The rules of the hardware, then each operand lies inside its buffer, and outputs not in read-only
// ones.
int check_resolved(const std::byte* packet, size_t bytes, uint32_t engine_kind,
                   std::span<const Target> targets, enpu_error* error);

}  // namespace enpu

struct enpu_builder {
    enpu_builder(enpu_device* device_in, uint32_t kind_in) : device(device_in), kind(kind_in) {}

    // Appends one packet, header filled in but for its tag. Index of the packet or a negative
    // errno.
    int append(enpu_packet* packet, std::span<const enpu::Target> targets, enpu_error* error);
    void reset();

    const enpu::Ref<enpu_device> device;
    const uint32_t kind;
    uint64_t tag = 0;
    std::vector<std::byte> bytes;
    std::vector<uint32_t> packets;  // byte offsets
    std::vector<enpu::Reference> references;
};
