// SPDX-License-Identifier: MIT
// Rows of sums become what requantise_one makes of each: f32 must not show, wherever it would round otherwise.
#include "requantise_row.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "enpu_hw.h"
#include "quantise_one.h"

namespace enpu::ops {
namespace {

struct Output {
    int32_t low, zero_point;
};
constexpr Output kOutputs[] = {{-128, 0}, {-128, -128}, {-128, 127}, {0, 0}, {0, 130}, {0, 255}};

struct Act {
    uint32_t function;
    float alpha, beta;
};
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr Act kActs[] = {
    {ENPU_UNARY_IDENTITY, 0, 0},      {ENPU_UNARY_RELU, 0, 0},
    {ENPU_UNARY_LEAKY_RELU, 0.1f, 0}, {ENPU_UNARY_LEAKY_RELU, -3, 0},
    {ENPU_UNARY_LEAKY_RELU, 0, 0},    {ENPU_UNARY_LEAKY_RELU, kInfinity, 0},
    {ENPU_UNARY_LEAKY_RELU, kNaN, 0}, {ENPU_UNARY_CLIP, -20.5f, 50.5f},
    {ENPU_UNARY_CLIP, 50, -20},       {ENPU_UNARY_CLIP, -1e30f, 1e30f},
    {ENPU_UNARY_CLIP, kNaN, kNaN},
};

struct Case {
    std::vector<int32_t> sums, addends;
    std::vector<float> scale;

    void add(int32_t sum, int32_t addend, float factor) {
        sums.push_back(sum);
        addends.push_back(addend);
        scale.push_back(factor);
    }
};

// How many of the row differ from requantise_one, for every activation and output.
void compare(const Case& c) {
    const auto count = static_cast<int64_t>(c.sums.size());
    for (const Act& act : kActs) {
        const bool quick = f32_may_round(c.scale.data(), count, act.alpha);
        for (const Output& out : kOutputs) {
            std::vector<std::byte> to(c.sums.size() + 1, std::byte{0x5a});
            requantise_row({c.sums.data(), c.addends.data(), c.scale.data(), to.data(), count,
                            act.alpha, act.beta, out.low, out.low + 255, out.zero_point, quick},
                           act.function);
            int64_t different = 0;
            for (size_t i = 0; i < c.sums.size(); ++i) {
                const auto sum = static_cast<int32_t>(static_cast<uint32_t>(c.sums[i]) +
                                                      static_cast<uint32_t>(c.addends[i]));
                const int32_t expected =
                    requantise_one(sum, c.scale[i], act.function, act.alpha, act.beta,
                                   out.zero_point, out.low, out.low + 255);
                different += static_cast<uint8_t>(to[i]) != static_cast<uint8_t>(expected);
            }
            INFO("activation " << act.function << " " << act.alpha << " " << act.beta << ", low "
                               << out.low << ", zero point " << out.zero_point << ", count "
                               << count);
            CHECK(different == 0);
            CHECK(to.back() == std::byte{0x5a});
        }
    }
}

}  // namespace

TEST_CASE("rows of random sums are rounded as one by one") {
    std::mt19937 random(1);
    for (const int count : {1, 15, 63, 64, 65, 100, 128, 200, 1000}) {
        Case c;
        std::uniform_int_distribution<int32_t> sum(-200'000, 200'000), addend(-5000, 5000);
        std::uniform_real_distribution<float> scale(1e-5f, 2e-3f);
        for (int i = 0; i < count; ++i) c.add(sum(random), addend(random), scale(random));
        compare(c);
    }
}

TEST_CASE("what lies so near to a half that f32 rounds it the other way") {
    // For each half within the range the scales around half / sum: the product lands on either side of it, by less
    // than f32 can tell.
    std::mt19937 random(2);
    std::uniform_int_distribution<int32_t> sum(1 << 20, std::numeric_limits<int32_t>::max());
    Case c;
    int32_t misled = 0;
    for (int half = -260; half < 260; ++half) {
        const int32_t q = sum(random);
        const auto nearest = static_cast<float>((half + 0.5) / q);
        for (const float scale :
             {nearest, std::nextafter(nearest, 0.0f), std::nextafter(nearest, 1.0f)}) {
            c.add(q, 0, scale);
            c.add(-q, 0, scale);
            misled += std::rint(static_cast<float>(q) * scale) !=
                      std::nearbyint(static_cast<double>(q) * static_cast<double>(scale));
        }
    }
    CHECK(misled > 50);  // or this is no test
    compare(c);
}

TEST_CASE("exact halves go to the even number") {
    Case c;
    for (int32_t i = -700; i <= 700; ++i) {
        c.add(i, 0, 0.5f);
        c.add(2 * i, 1, 0.25f);
        c.add(i, 1 << 20, 0.5f);
    }
    compare(c);
}

TEST_CASE("sums and scales at the ends of their ranges") {
    constexpr int32_t kMax = std::numeric_limits<int32_t>::max(),
                      kMin = std::numeric_limits<int32_t>::min();
    for (const float scale : {0.0f, -0.0f, 1e-45f, 1e-38f, 1.0f, -1.0f, 0x1p64f, 0x1p65f, 3e38f,
                              kInfinity, -kInfinity, kNaN}) {
        Case c;
        for (int i = 0; i < 16; ++i) {
            for (const int32_t sum : {0, 1, -1, 127, 128, -129, 1 << 24, kMax, kMin, kMin + 1})
                c.add(sum, 0, scale);
            c.add(kMax, kMax, scale);  // wraps
            c.add(kMin, kMin, scale);
        }
        compare(c);
    }
}

}  // namespace enpu::ops
