// SPDX-License-Identifier: MIT
// libenpu's command builder with whatever a program may hand over: sound packets with changes. What
// it accepts, the device accepts, and each address in it lies in its buffer.
#include <cstdio>
#include <cstdlib>
#include <enpu/enpu.hpp>

#include "recipe.h"
#include "rules.h"
#include "typed_build.h"

using namespace enpu;
using fuzz::Bytes;
using rules::test::Packet;

namespace {

constexpr uint64_t kBufferBytes = 64 << 10;
constexpr int kMaxPackets = 16;

[[noreturn]] void broken(const char* what) {
    std::fprintf(stderr, "%s\n", what);
    std::abort();
}

struct Bench {
    Device device = Device::open("sim:cores=1,copy-engines=1,local-mem=4M");
    std::vector<Buffer> buffers;
    std::vector<std::byte> own = std::vector<std::byte>(2 * ENPU_PAGE_SIZE);

    Bench() {
        for (unsigned i = 0; i < ENPU_MAX_OPERANDS; ++i)
            buffers.push_back(
                Buffer::create(device, kBufferBytes, i % 2 ? ENPU_BUFFER_HOST : ENPU_BUFFER_LOCAL));
        buffers.push_back(Buffer::create(device, 8, ENPU_BUFFER_HOST));
        buffers.push_back(
            Buffer::create(device, ENPU_PAGE_SIZE, ENPU_BUFFER_HOST | ENPU_BUFFER_SHARED));
        const auto begin = reinterpret_cast<uintptr_t>(own.data());
        const auto page = (begin + ENPU_PAGE_SIZE - 1) / ENPU_PAGE_SIZE * ENPU_PAGE_SIZE;
        buffers.push_back(Buffer::wrap(device, reinterpret_cast<void*>(page), ENPU_PAGE_SIZE,
                                       ENPU_BUFFER_READ_ONLY));
    }
    enpu_buffer* pick(Bytes& bytes) const {
        const size_t i = bytes.byte() % (buffers.size() + 1);
        return i < buffers.size() ? buffers[i].get() : nullptr;
    }
    bool holds(uint64_t va, uint64_t bytes) const {
        for (const Buffer& buffer : buffers)
            if (va >= buffer.va() && bytes <= buffer.bytes() &&
                va - buffer.va() <= buffer.bytes() - bytes)
                return true;
        return false;
    }
};

// Mostly small: what is far outside is refused at once.
uint64_t offset_from(Bytes& bytes) {
    return bytes.byte() % 8 ? bytes.take<uint16_t>() : bytes.take<uint64_t>();
}

// Mostly a buffer to itself, from its start.
void place(const Bench& bench, uint32_t operand, Bytes& bytes, enpu_buffer*& buffer,
           uint64_t& offset) {
    const uint8_t how = bytes.byte();
    buffer = how < 240 ? bench.buffers[operand].get() : bench.pick(bytes);
    offset = how < 200 ? 0 : offset_from(bytes);
}

// A tensor of those dims in order, and what it spans; any answer but a fault or a wrong size.
void look_at(const enpu_tensor& tensor, Bytes& bytes) {
    enpu_tensor made{};
    enpu_error error{};
    const int r = enpu_tensor_init(&made, tensor.dtype, tensor.rank, tensor.dims, &error);
    if (r > 0 || (r < 0 && error.message[0] == 0)) broken("a tensor refused without a sentence");
    int64_t begin = 0;
    uint64_t span = 0;
    if (r == 0 && enpu_tensor_span(&made, &begin, &span, &error) == 0 && begin != 0)
        broken("a tensor in order begins before itself");
    const uint64_t packed = enpu_packed_bytes(&tensor, bytes.byte() % 4, bytes.byte());
    if (packed > ENPU_MAX_TENSOR_BYTES) broken("packed weights are larger than a tensor may be");
}

// The same operator without buffers.
int ask(const Bench& bench, Packet& packet) {
    const auto& info = enpu_opcodes[packet.header().opcode];
    if (!info.is_operator) return 0;
    enpu_error error{};
    const int r =
        enpu_check_operator(bench.device.get(), packet.header().opcode, &packet.op().params,
                            info.param_bytes, packet.op().operands, info.num_operands, &error);
    if (r > 0 || (r < 0 && (error.code != r || error.message[0] == 0)))
        broken("an answer without a sentence");
    return r;
}

int build_operator(const Bench& bench, enpu_builder* builder, Packet& packet, Bytes& bytes,
                   enpu_error* error) {
    const auto& info = enpu_opcodes[packet.header().opcode];
    enpu_operand operands[ENPU_MAX_OPERANDS];
    const enpu_operand* list[ENPU_MAX_OPERANDS] = {};
    for (uint32_t i = 0; i < info.num_operands; ++i) {
        operands[i].tensor = packet.operand(i);
        place(bench, i, bytes, operands[i].buffer, operands[i].offset);
        list[i] = &operands[i];
    }
    // Now and then the wrong number of operands or bytes, an opcode that does not fit, or none.
    const uint8_t wrong = bytes.byte();
    const uint32_t count = wrong < 8 ? wrong : info.num_operands;
    const size_t param_bytes = info.param_bytes + (wrong == 8 ? 8u : 0u);
    if (wrong >= 16 && wrong < 24) list[wrong - 16] = nullptr;
    const uint32_t opcode = wrong == 24 ? bytes.take<uint32_t>() : packet.header().opcode;
    const fuzz::TypedBuild typed = fuzz::typed_build(packet.header().opcode);
    if (typed == nullptr) broken("an operator without a typed function");
    const int index = wrong >= 128 ? typed(builder, &packet.op().params, list, error)
                                   : enpu_build_operator(builder, opcode,
                                                         wrong == 9 ? nullptr : &packet.op().params,
                                                         param_bytes, list, count, error);
    if (index >= 0 && wrong > 24 && ask(bench, packet) != 0)
        broken("the builder takes an operator that the device is said not to run");
    return index;
}

int build_copy(enpu_builder* builder, const enpu_copy_packet& copy, enpu_buffer* to,
               uint64_t to_offset, enpu_buffer* from, uint64_t from_offset, enpu_error* error) {
    if (copy.header.tag % 2)
        return enpu_build_copy(builder, to, to_offset, from, from_offset, copy.width, error);
    const enpu_copy_2d rows{to,          from,           to_offset,
                            from_offset, copy.dst_pitch, copy.src_pitch,
                            copy.width,  copy.height,    copy.reserved};
    return enpu_build_copy_2d(builder, &rows, error);
}

int build(const Bench& bench, enpu_builder* builder, Bytes& bytes, enpu_error* error) {
    Packet packet = fuzz::packet_from(bytes, 0, 0);
    if (enpu_opcodes[packet.header().opcode].is_operator)
        return build_operator(bench, builder, packet, bytes, error);
    enpu_buffer *a = nullptr, *b = nullptr;
    uint64_t at = 0, from = 0;
    place(bench, 0, bytes, a, at);
    place(bench, 1, bytes, b, from);
    switch (packet.header().opcode) {
        case ENPU_OPCODE_NOP:
            return enpu_build_nop(builder, error);
        case ENPU_OPCODE_BARRIER:
            return enpu_build_barrier(builder, error);
        case ENPU_OPCODE_COPY:
            return build_copy(builder, packet.as<enpu_copy_packet>(), a, at, b, from, error);
        case ENPU_OPCODE_FILL: {
            const auto& fill = packet.as<enpu_fill_packet>();
            return enpu_build_fill(builder, a, at, fill.bytes, fill.pattern, fill.pattern_bytes,
                                   error);
        }
        case ENPU_OPCODE_WAIT: {
            const auto& wait = packet.as<enpu_wait_packet>();
            return enpu_build_wait(builder, a, at, wait.value, wait.timeout_us, error);
        }
        case ENPU_OPCODE_SIGNAL:
            return enpu_build_signal(builder, a, at, 1, error);
        default:
            return enpu_build_timestamp(builder, a, at, error);
    }
}

// Spans of operands: everything that the packet lets the device touch.
void check_inside(const Bench& bench, const enpu_packet& header) {
    if (!enpu_opcodes[header.opcode].is_operator) return;
    const auto& packet = reinterpret_cast<const enpu_operator_packet&>(header);
    for (uint32_t i = 0; i < enpu_opcodes[header.opcode].num_operands; ++i) {
        const enpu_tensor& tensor = packet.operands[i];
        if (tensor.dtype == ENPU_DTYPE_NONE) continue;
        int64_t begin = 0;
        uint64_t bytes = 0;
        if (enpu_tensor_span(&tensor, &begin, &bytes, nullptr) != 0 ||
            !bench.holds(tensor.addr + static_cast<uint64_t>(begin), bytes))
            broken("an operand reaches out of its buffer");
    }
}

void check_packets(const Bench& bench, enpu_builder* builder, uint32_t kind) {
    const size_t bytes = enpu_builder_bytes(builder);
    // The device looks at a copy that is aligned.
    std::vector<uint64_t> copy((bytes + 7) / 8);
    if (bytes != 0) std::memcpy(copy.data(), enpu_builder_packets(builder), bytes);
    const auto* first = reinterpret_cast<const std::byte*>(copy.data());
    for (size_t at = 0; at < bytes;) {
        if (rules::check_packet(first + at, bytes - at, static_cast<enpu_engine_kind>(kind)))
            broken("the builder has accepted what the device refuses");
        const auto& header = *reinterpret_cast<const enpu_packet*>(first + at);
        check_inside(bench, header);
        at += header.size;
    }
}

void patch(const Bench& bench, const Command& command, Bytes& bytes) {
    const uint32_t packet = bytes.byte() % kMaxPackets, operand = bytes.byte() % 9;
    enpu_error error{};
    const int r = enpu_command_patch(command.get(), packet, operand, bench.pick(bytes),
                                     offset_from(bytes), &error);
    if (r > 0 || (r < 0 && error.message[0] == 0)) broken("a patch without a sentence");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const Bench bench;
    Bytes bytes(data, size);
    const uint32_t kind = bytes.byte() % 4 == 3 ? ENPU_ENGINE_KIND_COPY : ENPU_ENGINE_KIND_COMPUTE;
    Builder builder(bench.device, kind);
    int last = -1;
    for (int packets = 0; !bytes.empty() && packets < kMaxPackets; ++packets) {
        if (bytes.byte() % 8 == 7) {
            Packet packet = fuzz::packet_from(bytes, 0, 0);
            ask(bench, packet);
            if (enpu_opcodes[packet.header().opcode].is_operator) look_at(packet.operand(0), bytes);
            continue;
        }
        enpu_error error{};
        const size_t before = enpu_builder_bytes(builder.get());
        const int index = build(bench, builder.get(), bytes, &error);
        if (index < 0 && (error.code != index || error.message[0] == 0))
            broken("an error without a sentence");
        if (index < 0 && enpu_builder_bytes(builder.get()) != before)
            broken("a refused packet was left in the buffer");
        if (index >= 0 && index != ++last) broken("the index of a packet is wrong");
    }
    check_packets(bench, builder.get(), kind);
    const size_t whole = enpu_builder_bytes(builder.get());
    if (last < 0) return 0;
    const Command command = builder.finish();
    if (enpu_command_bytes(command.get()) != whole ||
        enpu_command_packets(command.get()) != static_cast<uint32_t>(last) + 1)
        broken("the command is not what was built");
    do patch(bench, command, bytes);
    while (!bytes.empty());
    return 0;
}
