// SPDX-License-Identifier: MIT
#include "tiles.h"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <vector>

#include "families.h"
#include "test/packet.h"

namespace enpu::ops {
namespace {

constexpr uint32_t kLong = 3'600'000;

// Operators on a tensor that takes several tiles. The output is operand `y`.
struct Case {
    const char* name;
    Outcome (*family)(const Call&);
    Packet packet;
    size_t y;
};

Packet two(uint16_t opcode, uint32_t x_type, size_t x_bytes, uint32_t y_type, size_t y_bytes,
           std::vector<uint32_t> dims, std::vector<uint32_t> y_dims) {
    Packet packet(opcode);
    packet.add(x_type, std::move(dims), x_bytes);
    packet.add(y_type, std::move(y_dims), y_bytes);
    return packet;
}

Packet f32(uint16_t opcode, std::vector<uint32_t> dims, std::vector<uint32_t> y_dims) {
    return two(opcode, ENPU_DTYPE_F32, 4, ENPU_DTYPE_F32, 4, std::move(dims), std::move(y_dims));
}

std::vector<Case> long_cases() {
    std::vector<Case> cases;
    cases.push_back({"unary", run_unary, f32(ENPU_OPCODE_UNARY, {kLong}, {kLong}), 1});
    cases.back().packet.get().params.unary.function = ENPU_UNARY_EXP;
    Packet binary = f32(ENPU_OPCODE_BINARY, {kLong}, {kLong});
    binary.add(ENPU_DTYPE_F32, {kLong}, 4);
    cases.push_back({"binary", run_binary, binary, 2});
    Packet select =
        two(ENPU_OPCODE_SELECT, ENPU_DTYPE_BOOL, 1, ENPU_DTYPE_F32, 4, {kLong}, {kLong});
    select.add(ENPU_DTYPE_F32, {kLong}, 4);
    select.add(ENPU_DTYPE_F32, {kLong}, 4);
    cases.push_back({"select", run_select, select, 3});
    cases.push_back(
        {"softmax of one row", run_softmax, f32(ENPU_OPCODE_SOFTMAX, {kLong}, {kLong}), 1});
    Packet norm(ENPU_OPCODE_NORM);
    norm.add(ENPU_DTYPE_F32, {kLong}, 4);
    for (int i = 0; i < 4; ++i) norm.leave_out();
    norm.add(ENPU_DTYPE_F32, {kLong}, 4);
    cases.push_back({"norm of one row", run_norm, norm, 5});
    cases.push_back({"reduce of one row", run_reduce, f32(ENPU_OPCODE_REDUCE, {kLong}, {1}), 1});
    cases.back().packet.get().params.reduce.axes = 1;
    cases.push_back(
        {"reduce of columns", run_reduce, f32(ENPU_OPCODE_REDUCE, {kLong / 6, 6}, {1, 6}), 1});
    cases.back().packet.get().params.reduce.axes = 1;
    cases.push_back({"arg", run_arg,
                     two(ENPU_OPCODE_ARG, ENPU_DTYPE_F32, 4, ENPU_DTYPE_I64, 8, {kLong}, {1}), 1});
    cases.push_back({"move", run_move, f32(ENPU_OPCODE_MOVE, {kLong}, {kLong}), 1});
    Packet transpose = f32(ENPU_OPCODE_MOVE, {1200, 3000}, {1200, 3000});
    transpose.get().operands[0].strides[0] = 1;
    transpose.get().operands[0].strides[1] = 1200;
    cases.push_back({"transpose", run_move, transpose, 1});
    cases.push_back({"pad", run_pad, f32(ENPU_OPCODE_PAD, {600, 3000}, {1200, 3000}), 1});
    Packet gather =
        two(ENPU_OPCODE_GATHER, ENPU_DTYPE_F32, 4, ENPU_DTYPE_I64, 8, {10, 600}, {6000});
    gather.add(ENPU_DTYPE_F32, {6000, 600}, 4);
    cases.push_back({"gather", run_gather, gather, 2});
    cases.push_back({"resize", run_resize, f32(ENPU_OPCODE_RESIZE, {600, 1500}, {1200, 3000}), 1});
    cases.back().packet.get().params.resize.mode = ENPU_RESIZE_MODE_LINEAR;
    cases.push_back({"cast", run_cast,
                     two(ENPU_OPCODE_CAST, ENPU_DTYPE_F32, 4, ENPU_DTYPE_U8, 1, {kLong}, {kLong}),
                     1});
    Packet quantize = f32(ENPU_OPCODE_QUANTIZE, {kLong}, {kLong});
    quantize.leave_out();
    quantize.add(ENPU_DTYPE_U8, {kLong}, 1);
    cases.push_back({"quantize", run_quantize, quantize, 3});
    Packet dequantize =
        two(ENPU_OPCODE_DEQUANTIZE, ENPU_DTYPE_U8, 1, ENPU_DTYPE_F32, 4, {kLong}, {kLong});
    dequantize.leave_out();
    dequantize.add(ENPU_DTYPE_F32, {kLong}, 4);
    cases.push_back({"dequantize", run_dequantize, dequantize, 3});
    return cases;
}

}  // namespace

TEST_CASE("tiles cover every item once, whatever the number of threads") {
    for (unsigned threads : {1u, 2u, 5u}) {
        for (int64_t count : {0, 1, 7, 1000, 4321}) {
            Stopper progress(threads);
            std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
            const auto body = [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
            };
            REQUIRE(for_tiles(progress, count, 100, body) == Outcome::kDone);
            for (const auto& visit : visits) REQUIRE(visit == 1);
        }
    }
}

TEST_CASE("a stop between tiles ends the loop there") {
    Stopper progress(1, 2);
    int64_t last = 0;
    const auto body = [&](int64_t, int64_t end) { last = end; };
    CHECK(for_tiles(progress, 1000, 100, body) == Outcome::kStopped);
    CHECK(last == 300);
    CHECK(progress.calls() == 3);
}

TEST_CASE("every operator asks several times and stops at the first no") {
    for (Case& test : long_cases()) {
        INFO(test.name);
        Stopper whole(1);
        REQUIRE(test.packet.run(test.family, whole) == Outcome::kDone);
        CHECK(whole.calls() >= 5);
        for (int64_t allowed : {int64_t{0}, whole.calls() / 2, whole.calls() - 1}) {
            auto& memory = test.packet.memory(test.y);
            std::memset(memory.data(), 0x5a, memory.size());
            Stopper single(1, allowed);
            REQUIRE(test.packet.run(test.family, single) == Outcome::kStopped);
            CHECK(single.calls() == allowed + 1);
        }
        // With more threads there are fewer, larger tiles; a stop still stops, and nothing is
        // written after it.
        Stopper progress(2, 1);
        REQUIRE(test.packet.run(test.family, progress) == Outcome::kStopped);
        CHECK(progress.calls() == 2);
    }
}

TEST_CASE("an operator that was told to stop at once has written at most one tile") {
    Packet packet = f32(ENPU_OPCODE_UNARY, {kLong}, {kLong});
    auto& memory = packet.memory(1);
    std::memset(memory.data(), 0x5a, memory.size());
    Stopper progress(1, 0);
    REQUIRE(packet.run(run_unary, progress) == Outcome::kStopped);
    size_t untouched = 0;
    for (std::byte byte : memory) untouched += byte == std::byte{0x5a};
    CHECK(untouched >= memory.size() - size_t{4} * (1 << 18));
    CHECK(untouched < memory.size());
}

TEST_CASE("gather names the index that is out of range and leaves its row alone") {
    Packet packet = two(ENPU_OPCODE_GATHER, ENPU_DTYPE_F32, 4, ENPU_DTYPE_I32, 4, {5, 8}, {3});
    packet.add(ENPU_DTYPE_F32, {3, 8}, 4);
    const int32_t indices[3] = {4, -6, 0};
    std::memcpy(packet.memory(1).data(), indices, sizeof(indices));
    std::memset(packet.memory(2).data(), 0x5a, packet.memory(2).size());
    Stopper progress(1);
    REQUIRE(packet.run(run_gather, progress) == Outcome::kBadOperand);
    CHECK(progress.operand() == ENPU_GATHER_OPERAND_INDICES);
    CHECK(progress.value() == -6);
    for (size_t i = 32; i < 96; ++i) REQUIRE(packet.memory(2)[i] == std::byte{0x5a});
}

}  // namespace enpu::ops
