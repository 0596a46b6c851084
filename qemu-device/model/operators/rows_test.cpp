// SPDX-License-Identifier: MIT
// Rows in wide vectors have the very numbers of rows in narrow ones, and nothing behind a row is touched.
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <random>
#include <vector>

#include "onednn.h"
#include "row_kernels.h"

namespace enpu::ops {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kGuard = 12345;
constexpr int64_t kCounts[] = {1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 100, 1000, 1024};

// Numbers around `middle`, some of them replaced.
std::vector<float> numbers(int64_t count, float middle, float deviation, float special = 0) {
    std::mt19937 random(static_cast<uint32_t>(count));
    std::normal_distribution<float> normal(middle, deviation);
    std::vector<float> x(static_cast<size_t>(count));
    for (float& v : x) v = normal(random);
    if (special != 0) x[static_cast<size_t>(count) / 2] = special;
    return x;
}

// Result of a row, with guards in front and behind.
template <class Run>
std::vector<float> guarded(const std::vector<float>& x, Run&& run) {
    std::vector<float> y(x.size() + 64, kGuard);
    run(x.data(), y.data() + 32, static_cast<int64_t>(x.size()));
    return y;
}

// Any two that are no number are alike.
bool same(const std::vector<float>& a, const std::vector<float>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
        if (std::isnan(a[i]) && std::isnan(b[i])) continue;
        if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) return false;
    }
    return a.size() == b.size();
}

}  // namespace

TEST_CASE("A row of softmax does not depend on the width of vectors") {
    if (!has_wide_vectors()) SKIP("the processor has no AVX-512, or may not use it");
    for (const int64_t count : kCounts) {
        for (const float special : {0.0f, kInfinity, -kInfinity, kNaN, 200.0f, -200.0f, -103.5f}) {
            for (const float deviation : {0.0f, 1.0f, 30.0f}) {
                INFO(count << " elements, one is " << special << ", deviation " << deviation);
                const auto x = numbers(count, 3, deviation, special);
                CHECK(same(guarded(x, softmax_row_wide), guarded(x, softmax_row_narrow)));
            }
        }
        const std::vector<float> masked(static_cast<size_t>(count), -kInfinity);
        CHECK(same(guarded(masked, softmax_row_wide), guarded(masked, softmax_row_narrow)));
    }
}

TEST_CASE("A row of norm does not depend on the width of vectors") {
    if (!has_wide_vectors()) SKIP("the processor has no AVX-512, or may not use it");
    for (const int64_t count : kCounts) {
        const auto scale = numbers(count, 1, 0.3f), bias = numbers(count, 0, 2);
        for (const float special : {0.0f, kInfinity, kNaN, 3e38f}) {
            for (const float middle : {0.0f, 10000.0f}) {
                for (int kind = 0; kind < 8; ++kind) {
                    INFO(count << " elements, one is " << special << ", kind " << kind);
                    const NormRow row{kind & 1 ? scale.data() : nullptr,
                                      kind & 2 ? bias.data() : nullptr, 1e-5f, (kind & 4) != 0};
                    const auto x = numbers(count, middle, 1, special);
                    const auto with = [&](auto function) {
                        return guarded(x, [&](const float* from, float* to, int64_t n) {
                            function(from, to, n, row);
                        });
                    };
                    CHECK(same(with(norm_row_wide), with(norm_row_narrow)));
                }
            }
        }
    }
}

TEST_CASE("A row of norm takes its mean out whatever its size") {
    const auto x = numbers(1000, 1e6f, 1);
    std::vector<float> y(x.size());
    const NormRow row{nullptr, nullptr, 0, true};
    double sum = 0, squares = 0;
    norm_row_narrow(x.data(), y.data(), 1000, row);
    for (const float v : y) {
        sum += v;
        squares += double(v) * v;
    }
    CHECK(std::abs(sum / 1000) < 1e-6);
    CHECK(std::abs(squares / 1000 - 1) < 1e-3);
}

}  // namespace enpu::ops
