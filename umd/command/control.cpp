// SPDX-License-Identifier: MIT
// Packets without tensors.
#include <cstddef>

#include "command/builder.h"

using namespace enpu;

namespace {

template <typename Packet>
Packet make(uint16_t opcode) {
    Packet packet{};
    auto& header = reinterpret_cast<enpu_packet&>(packet);
    header.opcode = opcode;
    header.size = sizeof(Packet);
    return packet;
}

template <typename Packet>
int append(enpu_builder* builder, Packet& packet, std::span<const Target> targets,
           enpu_error* error) {
    if (builder == nullptr) return fail(error, -EINVAL, "builder is NULL");
    return builder->append(reinterpret_cast<enpu_packet*>(&packet), targets, error);
}

}  // namespace

int enpu_build_nop(enpu_builder* builder, enpu_error* error) {
    auto packet = make<enpu_packet>(ENPU_OPCODE_NOP);
    return append(builder, packet, {}, error);
}

int enpu_build_barrier(enpu_builder* builder, enpu_error* error) {
    auto packet = make<enpu_packet>(ENPU_OPCODE_BARRIER);
    return append(builder, packet, {}, error);
}

int enpu_build_copy(enpu_builder* builder, enpu_buffer* dst, uint64_t dst_offset, enpu_buffer* src,
                    uint64_t src_offset, uint64_t bytes, enpu_error* error) {
    const enpu_copy_2d copy = {dst, src, dst_offset, src_offset, bytes, bytes, bytes, 1, 0};
    return enpu_build_copy_2d(builder, &copy, error);
}

int enpu_build_copy_2d(enpu_builder* builder, const enpu_copy_2d* copy, enpu_error* error) {
    if (copy == nullptr || copy->reserved != 0)
        return fail(error, -EINVAL, "COPY: copy is NULL or its reserved member is not 0");
    auto packet = make<enpu_copy_packet>(ENPU_OPCODE_COPY);
    packet.width = copy->width;
    packet.height = copy->height;
    packet.dst_pitch = copy->dst_pitch;
    packet.src_pitch = copy->src_pitch;
    const Target targets[] = {{0, offsetof(enpu_copy_packet, dst), copy->dst, copy->dst_offset},
                              {1, offsetof(enpu_copy_packet, src), copy->src, copy->src_offset}};
    return append(builder, packet, targets, error);
}

int enpu_build_fill(enpu_builder* builder, enpu_buffer* dst, uint64_t offset, uint64_t bytes,
                    uint64_t pattern, uint32_t pattern_bytes, enpu_error* error) {
    auto packet = make<enpu_fill_packet>(ENPU_OPCODE_FILL);
    packet.bytes = bytes;
    packet.pattern = pattern;
    packet.pattern_bytes = pattern_bytes;
    const Target targets[] = {{0, offsetof(enpu_fill_packet, dst), dst, offset}};
    return append(builder, packet, targets, error);
}

int enpu_build_wait(enpu_builder* builder, enpu_buffer* buffer, uint64_t offset, uint64_t value,
                    uint32_t timeout_us, enpu_error* error) {
    auto packet = make<enpu_wait_packet>(ENPU_OPCODE_WAIT);
    packet.value = value;
    packet.timeout_us = timeout_us;
    const Target targets[] = {{0, offsetof(enpu_wait_packet, addr), buffer, offset}};
    return append(builder, packet, targets, error);
}

int enpu_build_signal(enpu_builder* builder, enpu_buffer* buffer, uint64_t offset, uint64_t value,
                      enpu_error* error) {
    auto packet = make<enpu_signal_packet>(ENPU_OPCODE_SIGNAL);
    packet.value = value;
    const Target targets[] = {{0, offsetof(enpu_signal_packet, addr), buffer, offset}};
    return append(builder, packet, targets, error);
}

int enpu_build_timestamp(enpu_builder* builder, enpu_buffer* buffer, uint64_t offset,
                         enpu_error* error) {
    auto packet = make<enpu_timestamp_packet>(ENPU_OPCODE_TIMESTAMP);
    const Target targets[] = {{0, offsetof(enpu_timestamp_packet, addr), buffer, offset}};
    return append(builder, packet, targets, error);
}
