// SPDX-License-Identifier: MIT
#include "recipe.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

#include "rules.h"

namespace enpu::fuzz {
namespace {

using rules::test::Packet;

constexpr uint32_t kExtremes[] = {0,          1,          2,          3,          7,
                                  8,          15,         16,         255,        256,
                                  4095,       4096,       32767,      65535,      65536,
                                  0x10000000, 0x20000000, 0x3fffffff, 0x40000000, 0x7fffffff,
                                  0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0x7fc00000};
constexpr uint32_t kMostChanges = 5;

const std::array<uint16_t, ENPU_MAX_OPCODES>& opcodes() {
    static const auto list = [] {
        std::array<uint16_t, ENPU_MAX_OPCODES> found{};
        uint16_t count = 0;
        for (uint16_t opcode = 0; opcode < ENPU_MAX_OPCODES; ++opcode)
            if (enpu_opcodes[opcode].exists) found[count++] = opcode;
        return found;
    }();
    return list;
}

// Into memory that is there: the samples of control packets have addresses of their own.
void place(Packet& packet, uint64_t va, uint64_t stride) {
    switch (packet.header().opcode) {
        case ENPU_OPCODE_COPY:
            packet.as<enpu_copy_packet>().dst = va;
            packet.as<enpu_copy_packet>().src = va + stride + 100;
            break;
        case ENPU_OPCODE_FILL:
            packet.as<enpu_fill_packet>().dst = va + stride;
            break;
        case ENPU_OPCODE_WAIT:
            packet.as<enpu_wait_packet>().addr = va + 8;
            break;
        case ENPU_OPCODE_SIGNAL:
            packet.as<enpu_signal_packet>().addr = va + stride + 8;
            break;
        case ENPU_OPCODE_TIMESTAMP:
            packet.as<enpu_timestamp_packet>().addr = va + 16;
            break;
        default:
            break;
    }
}

void make_row_major(enpu_tensor& tensor) {
    uint32_t stride = 1;
    for (unsigned axis = std::min<unsigned>(tensor.rank, ENPU_MAX_RANK); axis-- > 0;) {
        tensor.strides[axis] = static_cast<int32_t>(stride);
        stride *= tensor.dims[axis];
    }
}

// Where the bytes of a change lie: aligned, behind the opcode and the size.
template <class T>
T* pick(Packet& packet, Bytes& bytes) {
    const size_t first = offsetof(enpu_packet, tag), slots = (packet.bytes() - first) / sizeof(T);
    auto* begin = static_cast<std::byte*>(packet.data()) + first;
    return reinterpret_cast<T*>(begin) + bytes.take<uint16_t>() % slots;
}

void change_operand(Packet& packet, Change change, Bytes& bytes) {
    const uint32_t count = enpu_opcodes[packet.header().opcode].num_operands;
    if (count == 0) return;
    enpu_tensor& tensor = packet.operand(bytes.byte() % count);
    const uint8_t argument = bytes.byte();
    const unsigned axis = argument % ENPU_MAX_RANK;
    switch (change) {
        case kLeftOut:
            tensor = {};
            break;
        case kBroadcast:
            tensor.strides[axis] = 0;
            break;
        case kReverse:
            tensor.addr += uint64_t{tensor.strides[axis] * (tensor.dims[axis] - 1)} *
                           rules::dtype_bytes(tensor.dtype);
            tensor.strides[axis] =
                static_cast<int32_t>(0u - static_cast<uint32_t>(tensor.strides[axis]));
            break;
        default:
            tensor.dtype = argument % 10;
            break;
    }
}

void resize(Packet& packet, Bytes& bytes) {
    const unsigned axis = bytes.byte() % ENPU_MAX_RANK;
    const uint32_t size = bytes.byte();
    for (unsigned i = 0; i < enpu_opcodes[packet.header().opcode].num_operands; ++i) {
        enpu_tensor& tensor = packet.operand(i);
        if (axis >= tensor.rank) continue;
        tensor.dims[axis] = size;
        make_row_major(tensor);
    }
}

void change(Packet& packet, Bytes& bytes) {
    const auto kind = static_cast<Change>(bytes.byte() % kChanges);
    switch (kind) {
        case kByte:
            *pick<uint8_t>(packet, bytes) = bytes.byte();
            break;
        case kWord:
            *pick<uint32_t>(packet, bytes) = bytes.take<uint32_t>();
            break;
        case kExtreme:
            *pick<uint32_t>(packet, bytes) = kExtremes[bytes.byte() % std::size(kExtremes)];
            break;
        case kLarger:
            *pick<uint32_t>(packet, bytes) += static_cast<uint32_t>(bytes.take<int8_t>());
            break;
        case kSized:
            resize(packet, bytes);
            break;
        default:
            change_operand(packet, kind, bytes);
            break;
    }
}

}  // namespace

uint32_t opcode_count() {
    uint32_t count = 0;
    for (const auto& info : enpu_opcodes) count += info.exists;
    return count;
}

uint16_t opcode_at(uint32_t index) {
    return opcodes()[index];
}

Packet packet_from(Bytes& bytes, uint64_t va, uint64_t stride) {
    Packet packet = rules::test::sound_packet(opcode_at(bytes.byte() % opcode_count()));
    place(packet, va, stride);
    const uint8_t dtype = bytes.byte() % 10;
    for (unsigned i = 0; i < enpu_opcodes[packet.header().opcode].num_operands; ++i) {
        enpu_tensor& tensor = packet.operand(i);
        if (dtype != ENPU_DTYPE_NONE && tensor.dtype == ENPU_DTYPE_F32) tensor.dtype = dtype;
    }
    for (uint32_t left = bytes.byte() % (kMostChanges + 1); left > 0; --left) change(packet, bytes);
    return packet;
}

}  // namespace enpu::fuzz
