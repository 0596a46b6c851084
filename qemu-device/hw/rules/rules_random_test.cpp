// SPDX-License-Identifier: MIT
// Packets of random and extreme bytes: nothing may wrap, and what passes must be as bounded as the
// device relies on.
#include <catch2/catch_test_macros.hpp>
#include <random>

#include "rules.h"
#include "sample_packets.h"

namespace enpu::rules::test {
namespace {

using Wide = __int128;

constexpr uint32_t kExtremes[] = {0,          1,          2,          3,          7,
                                  8,          255,        4096,       32768,      65535,
                                  65536,      0x10000000, 0x3fffffff, 0x40000000, 0x7fffffff,
                                  0x80000000, 0x80000001, 0xfffffffe, 0xffffffff};

struct Extent {
    Wide low = 0, high = 0, elements = 1;  // of elements
};
Extent extent_of(const enpu_tensor& t) {
    Extent e;
    for (unsigned axis = 0; axis < t.rank; ++axis) {
        const Wide reach = (Wide{t.dims[axis]} - 1) * t.strides[axis];
        (reach < 0 ? e.low : e.high) += reach;
        if (e.elements <= Wide{1} << 64) e.elements *= t.dims[axis];
    }
    return e;
}

void check_bounds(Packet& packet) {
    const enpu_opcode_info& info = enpu_opcodes[packet.header().opcode];
    if (!info.is_operator) return;
    CHECK(packet_work(packet.op()) <= ENPU_MAX_PACKET_WORK);
    for (unsigned i = 0; i < info.num_operands; ++i) {
        const enpu_tensor& t = packet.operand(i);
        if (t.dtype == ENPU_DTYPE_NONE) continue;
        Span span;
        REQUIRE(tensor_span(t, span));
        REQUIRE(span.bytes <= ENPU_MAX_TENSOR_BYTES);
        const Wide begin = Wide{t.addr} + span.offset;
        REQUIRE(begin >= 0);
        REQUIRE(begin + span.bytes <= Wide{1} << ENPU_VA_BITS);
        const Extent e = extent_of(t);
        const Wide size = static_cast<Wide>(dtype_bytes(t.dtype));
        REQUIRE(e.elements * size <= ENPU_MAX_TENSOR_BYTES);
        if (t.format == ENPU_FORMAT_PACKED) continue;
        REQUIRE(Wide{span.offset} == e.low * size);
        REQUIRE(Wide{span.bytes} == (e.high - e.low + 1) * size);
        if (is_output(packet.header().opcode, i)) REQUIRE(e.elements <= e.high - e.low + 1);
    }
}

}  // namespace

TEST_CASE("random changes of sound packets", "[rules]") {
    std::mt19937 random(20240601);
    const auto extreme = [&] { return kExtremes[random() % std::size(kExtremes)]; };
    unsigned passed = 0, refused = 0;
    for (int round = 0; round < 4000; ++round) {
        for (uint16_t opcode = 0; opcode < ENPU_MAX_OPCODES; ++opcode) {
            if (!enpu_opcodes[opcode].exists) continue;
            Packet packet = sound_packet(opcode);
            auto* words = static_cast<uint32_t*>(packet.data());
            // Header words stay: a wrong size or opcode would hide everything else.
            for (unsigned change = random() % 3; change-- > 0 && packet.bytes() > 16;) {
                words[4 + random() % (packet.bytes() / 4 - 4)] = extreme();
            }
            const Violation v =
                check_packet(packet.data(), packet.bytes(), ENPU_ENGINE_KIND_COMPUTE);
            if (v) {
                ++refused;
                REQUIRE(describe(packet.data(), packet.bytes(), v).size() > 10);
            } else {
                ++passed;
                check_bounds(packet);
            }
        }
    }
    CHECK(passed > 10000);
    CHECK(refused > 10000);
}

TEST_CASE("spans of extreme tensors agree with wide arithmetic", "[rules]") {
    std::mt19937 random(7);
    for (int round = 0; round < 300000; ++round) {
        enpu_tensor t{};
        t.dtype = static_cast<uint8_t>(random() % 10);
        t.rank = static_cast<uint8_t>(random() % 9);
        for (unsigned axis = 0; axis < t.rank; ++axis) {
            t.dims[axis] = kExtremes[random() % std::size(kExtremes)];
            t.strides[axis] = static_cast<int32_t>(kExtremes[random() % std::size(kExtremes)]);
        }
        Span span;
        const bool fits = tensor_span(t, span);
        bool sound = dtype_bytes(t.dtype) != 0;
        for (unsigned axis = 0; axis < t.rank; ++axis) sound = sound && t.dims[axis] != 0;
        if (!sound) {
            REQUIRE_FALSE(fits);
            continue;
        }
        const Extent e = extent_of(t);
        const Wide bytes = (e.high - e.low + 1) * static_cast<Wide>(dtype_bytes(t.dtype));
        REQUIRE(fits == (bytes <= Wide{ENPU_MAX_TENSOR_BYTES}));
        if (fits) REQUIRE(Wide{span.bytes} == bytes);
        // Sizes of packed weights never wrap either.
        const uint64_t packed =
            packed_bytes(t, random() % 4, kExtremes[random() % std::size(kExtremes)]);
        REQUIRE(packed <= ENPU_MAX_TENSOR_BYTES);
        if (packed != 0) REQUIRE(packed >= packed_minimum(t));
    }
}

TEST_CASE("bytes that are no packet", "[rules]") {
    std::mt19937 random(11);
    for (int round = 0; round < 100000; ++round) {
        alignas(8) uint32_t words[224];
        for (uint32_t& word : words) word = random();
        words[0] = random() % 70;
        words[1] = round % 2 ? random() % 900 : words[1];
        const size_t bytes = random() % sizeof(words);
        const Violation v = check_packet(words, bytes, ENPU_ENGINE_KIND_COMPUTE);
        if (v) REQUIRE(!describe(words, bytes, v).empty());
    }
    CHECK(describe(nullptr, 0, {}) == "packet: no rule is broken");
}

TEST_CASE("packed sizes", "[rules]") {
    Packet packet = sound_packet(ENPU_OPCODE_PACK);
    const enpu_tensor& weights = packet.operand(0);  // 16 x 8 x 3 x 3
    CHECK(packed_minimum(weights) == 256 + 16 * 8 * 9 * 4);
    CHECK(packed_bytes(weights, ENPU_PACK_KIND_CONV2D, 1) == 256 + 32 * 32 * 9 * 4);
    CHECK(packed_bytes(weights, ENPU_PACK_KIND_CONV2D, 3) == 0);
    CHECK(packed_bytes(weights, ENPU_PACK_KIND_MATMUL, 1) == 0);
    set(packet, 0, ENPU_DTYPE_F16, {40, 1, 5, 5});
    CHECK(packed_bytes(weights, ENPU_PACK_KIND_CONV2D, 40) == 256 + 64 * 25 * 4);
    set(packet, 0, ENPU_DTYPE_I8, {100, 70});
    CHECK(packed_bytes(weights, ENPU_PACK_KIND_MATMUL, 0) == 256 + 128 * 128 * 4);
    set(packet, 0, ENPU_DTYPE_BOOL, {100, 70});
    CHECK(packed_bytes(weights, ENPU_PACK_KIND_MATMUL, 0) == 0);
}

}  // namespace enpu::rules::test
