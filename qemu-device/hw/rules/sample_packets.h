// SPDX-License-Identifier: MIT
// One sound packet of every opcode, for tests that break it.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "enpu_hw.h"
#include "enpu_hw_tables.h"

namespace enpu::rules::test {

// A packet in 8-byte aligned memory of its own.
class Packet {
  public:
    explicit Packet(uint16_t opcode) : words_(enpu_opcodes[opcode].packet_bytes / 8) {
        header().opcode = opcode;
        header().size = enpu_opcodes[opcode].packet_bytes;
    }
    enpu_packet& header() { return as<enpu_packet>(); }
    enpu_operator_packet& op() { return as<enpu_operator_packet>(); }
    enpu_tensor& operand(unsigned i) { return op().operands[i]; }
    template <class T>
    T& as() {
        return *reinterpret_cast<T*>(words_.data());
    }
    void* data() { return words_.data(); }
    size_t bytes() const { return words_.size() * 8; }

  private:
    std::vector<uint64_t> words_;
};

// A row-major tensor; each operand has 16 MiB of the address space to itself.
inline void set(Packet& packet, unsigned operand, uint8_t dtype,
                std::initializer_list<uint32_t> dims) {
    enpu_tensor& t = packet.operand(operand);
    t = {};
    t.addr = 0x100000000ull + operand * 0x1000000ull;
    t.dtype = dtype;
    t.rank = static_cast<uint8_t>(dims.size());
    std::copy(dims.begin(), dims.end(), t.dims);
    int32_t stride = 1;
    for (unsigned axis = t.rank; axis-- > 0;) {
        t.strides[axis] = stride;
        stride *= static_cast<int32_t>(t.dims[axis]);
    }
}

// The broadcast of a vector along the last axis.
inline void set_row(Packet& packet, unsigned operand, uint8_t dtype,
                    std::initializer_list<uint32_t> dims) {
    set(packet, operand, dtype, dims);
    enpu_tensor& t = packet.operand(operand);
    for (unsigned axis = 0; axis + 1u < t.rank; ++axis) t.strides[axis] = 0;
}

Packet sound_packet(uint16_t opcode);

}  // namespace enpu::rules::test
