// SPDX-License-Identifier: MIT
// Packets one after the other as the data sheet has them, with no check at all: for the tests and the bring-up harness, which must be able
// to write what libenpu's builder refuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "enpu_hw.h"

namespace enpu::hw {

class Commands {
  public:
    Commands& nop(uint64_t tag = 0) { return add(enpu_packet{ENPU_OPCODE_NOP, 0, 16, tag}); }
    Commands& barrier() { return add(enpu_packet{ENPU_OPCODE_BARRIER, 0, 16, 0}); }
    Commands& copy(uint64_t dst, uint64_t src, uint64_t bytes) {
        return copy_2d(dst, 0, src, 0, bytes, 1);
    }
    Commands& copy_2d(uint64_t dst, uint64_t dst_pitch, uint64_t src, uint64_t src_pitch,
                      uint64_t width, uint32_t height) {
        enpu_copy_packet packet{};
        packet.header = {ENPU_OPCODE_COPY, 0, sizeof(packet), 0};
        packet.dst = dst;
        packet.src = src;
        packet.width = width;
        packet.height = height;
        packet.dst_pitch = dst_pitch;
        packet.src_pitch = src_pitch;
        return add(packet);
    }
    Commands& fill(uint64_t dst, uint64_t bytes, uint64_t pattern, uint32_t pattern_bytes = 1) {
        enpu_fill_packet packet{};
        packet.header = {ENPU_OPCODE_FILL, 0, sizeof(packet), 0};
        packet.dst = dst;
        packet.bytes = bytes;
        packet.pattern = pattern;
        packet.pattern_bytes = pattern_bytes;
        return add(packet);
    }
    Commands& wait(uint64_t va, uint64_t value, uint32_t timeout_us = 10'000'000) {
        enpu_wait_packet packet{};
        packet.header = {ENPU_OPCODE_WAIT, 0, sizeof(packet), 0};
        packet.addr = va;
        packet.value = value;
        packet.timeout_us = timeout_us;
        return add(packet);
    }
    Commands& signal(uint64_t va, uint64_t value) {
        return add(enpu_signal_packet{{ENPU_OPCODE_SIGNAL, 0, 32, 0}, va, value});
    }
    Commands& timestamp(uint64_t va) {
        return add(enpu_timestamp_packet{{ENPU_OPCODE_TIMESTAMP, 0, 32, 0}, va, 0});
    }
    // An operator: parameters (at most 112 bytes) and its operands in order.
    Commands& operation(uint16_t opcode, const void* params, size_t params_bytes,
                        const std::vector<enpu_tensor>& operands) {
        const auto size = static_cast<uint32_t>(ENPU_OPERATOR_PACKET_BYTES(operands.size()));
        std::vector<std::byte> packet(size);
        const enpu_packet header{opcode, 0, size, 0};
        std::memcpy(packet.data(), &header, sizeof(header));
        if (params_bytes) std::memcpy(packet.data() + sizeof(header), params, params_bytes);
        if (!operands.empty())
            std::memcpy(packet.data() + sizeof(header) + ENPU_OPERATOR_PARAM_BYTES, operands.data(),
                        operands.size() * sizeof(enpu_tensor));
        return raw(packet.data(), packet.size());
    }
    Commands& raw(const void* packet, size_t bytes) {
        const size_t at = bytes_.size();
        bytes_.resize(at + bytes);
        std::memcpy(bytes_.data() + at, packet, bytes);
        return *this;
    }
    const std::vector<std::byte>& bytes() const { return bytes_; }
    uint32_t size() const { return static_cast<uint32_t>(bytes_.size()); }
    // Copies them to a place that the device can read; their size.
    uint32_t write_to(void* where) const {
        std::memcpy(where, bytes_.data(), bytes_.size());
        return size();
    }

  private:
    template <typename Packet>
    Commands& add(const Packet& packet) {
        return raw(&packet, sizeof(packet));
    }
    std::vector<std::byte> bytes_;
};

}  // namespace enpu::hw
