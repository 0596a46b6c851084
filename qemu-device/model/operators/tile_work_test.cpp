// SPDX-License-Identifier: MIT
// Dense operators ask before every piece of work that is as large as a tile. Asks are counted, not time.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "conv2d.h"
#include "families.h"
#include "matmul.h"
#include "test/packet.h"

namespace enpu::ops {
namespace {

// Runs to the end, then again with a no at some of the asks; returns how often it asked.
int64_t asks_of(Packet& packet, Outcome (*family)(const Call&)) {
    Stopper whole(1);
    REQUIRE(packet.run(family, whole) == Outcome::kDone);
    for (int64_t allowed : {int64_t{0}, whole.calls() / 2, whole.calls() - 1}) {
        Stopper stopped(1, allowed);
        REQUIRE(packet.run(family, stopped) == Outcome::kStopped);
        CHECK(stopped.calls() == allowed + 1);
    }
    return whole.calls();
}

// A convolution without padding, stride 1. Weights repeat one number (strides of 0), so that large ones take no
// memory here.
Packet conv(uint32_t dtype, size_t bytes, std::vector<uint32_t> x, std::vector<uint32_t> w) {
    Packet packet(ENPU_OPCODE_CONV2D);
    const std::vector<uint32_t> y{x[0], w[0], x[2] - w[2] + 1, x[3] - w[3] + 1};
    packet.add(dtype, std::move(x), bytes);
    packet.add(dtype, {1}, bytes);
    for (int i = 0; i < 3; ++i) packet.leave_out();
    packet.add(dtype, y, bytes);
    enpu_tensor& weights = packet.get().operands[ENPU_CONV2D_OPERAND_WEIGHTS];
    weights.rank = 4;
    std::copy(w.begin(), w.end(), weights.dims);
    std::fill(std::begin(weights.strides), std::end(weights.strides), 0);
    packet.get().params.conv2d = {{1, 1}, {0, 0, 0, 0}, {1, 1}, 1, ENPU_UNARY_IDENTITY, 0, 0};
    return packet;
}

float* floats(Packet& packet, size_t operand) {
    return reinterpret_cast<float*>(packet.memory(operand).data());
}

}  // namespace

TEST_CASE("a convolution with one huge output pixel asks within it, and is right", "[dense]") {
    constexpr uint32_t kChannels = 10'000, kKernel = 10, kOutputs = 101;
    constexpr int64_t kTerms = int64_t{kChannels} * kKernel * kKernel;
    Packet packet = conv(ENPU_DTYPE_F32, 4, {1, kChannels, kKernel, kKernel},
                         {kOutputs, kChannels, kKernel, kKernel});
    // Halves and ones: every sum is exact.
    std::fill_n(floats(packet, 0), kTerms, 0.5f);
    floats(packet, 1)[0] = 1.0f;
    CHECK(asks_of(packet, run_conv2d) >= kTerms * kOutputs / kTileWork);
    Stopper progress(1);
    REQUIRE(packet.run(run_conv2d, progress) == Outcome::kDone);
    for (uint32_t o = 0; o < kOutputs; ++o) REQUIRE(floats(packet, 5)[o] == 0.5f * kTerms);
}

TEST_CASE("a huge output pixel with groups, padding, bias, residual and activation", "[dense]") {
    // The same by the way that small ones go: conv2d_large takes any size.
    Packet packet(ENPU_OPCODE_CONV2D);
    for (const auto& dims : {std::vector<uint32_t>{2, 6, 5, 4}, {4, 3, 3, 2}, {4}, {2, 4, 3, 5}})
        packet.add(ENPU_DTYPE_F32, dims, 4);
    packet.leave_out();
    packet.add(ENPU_DTYPE_F32, {2, 4, 3, 5}, 4);
    packet.get().params.conv2d = {{2, 1}, {1, 1, 1, 1}, {1, 1}, 2, ENPU_UNARY_RELU, 0, 0};
    for (size_t operand = 0; operand < 4; ++operand) {
        for (size_t i = 0; i < packet.memory(operand).size() / 4; ++i)
            floats(packet, operand)[i] =
                static_cast<float>(static_cast<int>((i * 7 + operand) % 9) - 4);
    }
    Stopper progress(1);
    REQUIRE(packet.run(run_conv2d, progress) == Outcome::kDone);
    const std::vector<std::byte> expected = packet.memory(5);
    std::fill(packet.memory(5).begin(), packet.memory(5).end(), std::byte{0x5a});
    REQUIRE(packet.run(conv2d_large, progress) == Outcome::kDone);
    CHECK(packet.memory(5) == expected);  // small integers: exact in any order
}

TEST_CASE("an integer convolution of many channels asks between the parts of a sum", "[dense]") {
    // With f32 the sums are made in parts of some 200 channels, each a pass over all outputs.
    Packet packet = conv(ENPU_DTYPE_U8, 1, {1, 20'000, 40, 40}, {4, 20'000, 1, 1});
    packet.get().operands[ENPU_CONV2D_OPERAND_WEIGHTS].zero_point = 3;
    packet.get().operands[ENPU_CONV2D_OPERAND_X].zero_point = 7;
    // Inputs are read and converted too: as much work as the products.
    CHECK(asks_of(packet, run_conv2d) >= int64_t{20'000} * 1600 * (4 + 1) / kTileWork);
}

TEST_CASE("a product of very many small matrices asks between them", "[dense]") {
    constexpr uint32_t kBatches = 50'000;
    Packet packet(ENPU_OPCODE_MATMUL);
    packet.add(ENPU_DTYPE_F32, {kBatches, 1, 2}, 4);
    packet.add(ENPU_DTYPE_F32, {kBatches, 2, 1}, 4);
    for (int i = 0; i < 3; ++i) packet.leave_out();
    packet.add(ENPU_DTYPE_F32, {kBatches, 1, 1}, 4);
    CHECK(asks_of(packet, run_matmul) >= kBatches * kCallWork / kTileWork - 1);
}

TEST_CASE("a product whose output is large for its terms asks by what it writes", "[dense]") {
    constexpr uint32_t kSide = 6000;
    Packet packet(ENPU_OPCODE_MATMUL);
    packet.add(ENPU_DTYPE_F32, {kSide, 1}, 4);
    packet.add(ENPU_DTYPE_F32, {1, kSide}, 4);
    for (int i = 0; i < 3; ++i) packet.leave_out();
    packet.add(ENPU_DTYPE_F32, {kSide, kSide}, 4);
    CHECK(asks_of(packet, run_matmul) >= int64_t{kSide} * kSide * 8 / kTileWork);
}

}  // namespace enpu::ops
