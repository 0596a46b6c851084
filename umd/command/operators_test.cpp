// SPDX-License-Identifier: MIT
// Jobs whose results are known: each against a plain loop written here.
#include "tests/device_fixture.h"

#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
#include <random>

using namespace enpu;
using namespace enpu::test;

namespace {

std::vector<float> random_floats(size_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> values(-1, 1);
    std::vector<float> made(count);
    for (float& value : made) value = values(random);
    return made;
}

void require_close(const std::vector<float>& got, const std::vector<double>& expected,
                   double tolerance) {
    REQUIRE(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        REQUIRE_THAT(got[i], Catch::Matchers::WithinAbs(expected[i], tolerance));
    }
}

struct Operators : Fixture {
    // A buffer with values, in local memory as a model's operands are.
    Buffer with(const std::vector<float>& values) {
        const auto staging = host(values.size() * 4);
        const auto buffer = local(values.size() * 4);
        put(staging, values);
        copy(buffer, 0, staging, 0, values.size() * 4, copy_engine());
        return buffer;
    }
    std::vector<float> read(const Buffer& buffer, size_t count) {
        const auto staging = host(count * 4);
        copy(staging, 0, buffer, 0, count * 4, copy_engine());
        return take<float>(staging, count);
    }
    template <typename Build>
    void compute(Build&& build) {
        Builder builder(device, ENPU_ENGINE_KIND_COMPUTE);
        check([&](enpu_error* e) { return build(builder.get(), e); });
        run(0, builder.finish());
    }
};

struct Conv {
    static constexpr int kIn = 4, kOut = 6, kSize = 9, kKernel = 3;

    static double at(const std::vector<float>& x, const std::vector<float>& w,
                     const std::vector<float>& bias, int o, int oy, int ox) {
        double sum = bias[o];
        for (int c = 0; c < kIn; ++c) {
            for (int ky = 0; ky < kKernel; ++ky) {
                for (int kx = 0; kx < kKernel; ++kx) {
                    const int iy = oy + ky - 1, ix = ox + kx - 1;
                    if (iy < 0 || ix < 0 || iy >= kSize || ix >= kSize) continue;
                    sum += double{x[(c * kSize + iy) * kSize + ix]} *
                           w[((o * kIn + c) * kKernel + ky) * kKernel + kx];
                }
            }
        }
        return sum > 0 ? sum : 0;
    }
};

}  // namespace

TEST_CASE_METHOD(Operators, "conv2d with bias and relu, plain and packed weights") {
    const uint32_t in = Conv::kIn, out = Conv::kOut, size = Conv::kSize, kernel = Conv::kKernel;
    const auto x = random_floats(in * size * size, 1),
               w = random_floats(out * in * kernel * kernel, 2), bias = random_floats(out, 3);
    std::vector<double> expected;
    for (uint32_t o = 0; o < out; ++o) {
        for (uint32_t i = 0; i < size * size; ++i)
            expected.push_back(Conv::at(x, w, bias, o, i / size, i % size));
    }
    const auto bx = with(x), bw = with(w), bb = with(bias), by = local(expected.size() * 4);
    const auto ox = operand(bx, ENPU_DTYPE_F32, {1, in, size, size}),
               ow = operand(bw, ENPU_DTYPE_F32, {out, in, kernel, kernel});
    const auto ob = operand(bb, ENPU_DTYPE_F32, {out}),
               oy = operand(by, ENPU_DTYPE_F32, {1, out, size, size});
    const enpu_conv2d_params params = {{1, 1}, {1, 1, 1, 1}, {1, 1}, 1, ENPU_UNARY_RELU, 0, 0};
    compute([&](enpu_builder* b, enpu_error* e) {
        return enpu_build_conv2d(b, &params, &ox, &ow, &ob, nullptr, nullptr, &oy, e);
    });
    require_close(read(by, expected.size()), expected, 1e-5);

    auto packed = ow;
    packed.tensor.format = ENPU_FORMAT_PACKED;
    packed.tensor.bytes = enpu_packed_bytes(&ow.tensor, ENPU_PACK_KIND_CONV2D, 1);
    std::fill_n(packed.tensor.strides, ENPU_MAX_RANK, 0);
    const auto bp = local(packed.tensor.bytes);
    packed.buffer = bp.get();
    const enpu_pack_params pack = {ENPU_PACK_KIND_CONV2D, 1};
    compute(
        [&](enpu_builder* b, enpu_error* e) { return enpu_build_pack(b, &pack, &ow, &packed, e); });
    compute([&](enpu_builder* b, enpu_error* e) {
        return enpu_build_fill(b, by.get(), 0, by.bytes(), 0, 4, e);
    });
    compute([&](enpu_builder* b, enpu_error* e) {
        return enpu_build_conv2d(b, &params, &ox, &packed, &ob, nullptr, nullptr, &oy, e);
    });
    require_close(read(by, expected.size()), expected, 1e-5);
}

TEST_CASE_METHOD(Operators, "matmul in f32 and i8 with exact sums") {
    constexpr uint32_t m = 5, k = 70, n = 3;
    const auto a = random_floats(m * k, 4), b = random_floats(k * n, 5);
    std::vector<double> expected(m * n);
    for (uint32_t i = 0; i < m * n; ++i) {
        for (uint32_t j = 0; j < k; ++j) expected[i] += double{a[i / n * k + j]} * b[j * n + i % n];
    }
    const auto ba = with(a), bb = with(b), by = local(m * n * 4);
    const auto oa = operand(ba, ENPU_DTYPE_F32, {m, k}), ob = operand(bb, ENPU_DTYPE_F32, {k, n}),
               oy = operand(by, ENPU_DTYPE_F32, {m, n});
    const enpu_matmul_params params = {ENPU_UNARY_IDENTITY, 0, 0, 0};
    compute([&](enpu_builder* to, enpu_error* e) {
        return enpu_build_matmul(to, &params, &oa, &ob, nullptr, nullptr, nullptr, &oy, e);
    });
    require_close(read(by, m * n), expected, 1e-5);

    // The extremes, where saturating hardware would be wrong: sum of k products of -128 * -128.
    const auto ia = host(m * k), ib = host(k * n), iy = host(m * n * 4);
    put(ia, std::vector<int8_t>(m * k, -128));
    put(ib, std::vector<int8_t>(k * n, -128));
    const auto qa = operand(ia, ENPU_DTYPE_I8, {m, k}), qb = operand(ib, ENPU_DTYPE_I8, {k, n}),
               qy = operand(iy, ENPU_DTYPE_I32, {m, n});
    compute([&](enpu_builder* to, enpu_error* e) {
        return enpu_build_matmul(to, &params, &qa, &qb, nullptr, nullptr, nullptr, &qy, e);
    });
    REQUIRE(take<int32_t>(iy, m * n) ==
            std::vector<int32_t>(m * n, 128 * 128 * static_cast<int32_t>(k)));
}

TEST_CASE_METHOD(Operators, "softmax, then arg max and reduction of its result, in one command") {
    constexpr uint32_t rows = 7, columns = 33;
    const auto x = random_floats(rows * columns, 6);
    std::vector<double> expected;
    std::vector<int32_t> largest;
    for (uint32_t r = 0; r < rows; ++r) {
        double sum = 0;
        uint32_t best = 0;
        for (uint32_t c = 0; c < columns; ++c) {
            sum += std::exp(double{x[r * columns + c]});
            if (x[r * columns + c] > x[r * columns + best]) best = c;
        }
        for (uint32_t c = 0; c < columns; ++c)
            expected.push_back(std::exp(double{x[r * columns + c]}) / sum);
        largest.push_back(static_cast<int32_t>(best));
    }
    const auto bx = with(x), by = local(x.size() * 4), bi = host(rows * 4), bs = host(rows * 4);
    const auto ox = operand(bx, ENPU_DTYPE_F32, {rows, columns}),
               oy = operand(by, ENPU_DTYPE_F32, {rows, columns});
    const auto oi = operand(bi, ENPU_DTYPE_I32, {rows, 1}),
               os = operand(bs, ENPU_DTYPE_F32, {rows, 1});
    Builder builder(device, ENPU_ENGINE_KIND_COMPUTE);
    const enpu_softmax_params softmax = {1, 0};
    const enpu_arg_params arg = {0, 1, 0};
    const enpu_reduce_params reduce = {ENPU_REDUCE_SUM, 1u << 1};
    check([&](enpu_error* e) { return enpu_build_softmax(builder.get(), &softmax, &ox, &oy, e); });
    check([&](enpu_error* e) { return enpu_build_arg(builder.get(), &arg, &oy, &oi, e); });
    check([&](enpu_error* e) { return enpu_build_reduce(builder.get(), &reduce, &oy, &os, e); });
    run(0, builder.finish());
    require_close(read(by, expected.size()), expected, 1e-6);
    REQUIRE(take<int32_t>(bi, rows) == largest);
    require_close(take<float>(bs, rows), std::vector<double>(rows, 1.0), 1e-6);
}

TEST_CASE_METHOD(Operators, "elementwise with broadcast, and a transposing move") {
    constexpr uint32_t rows = 4, columns = 5;
    const auto a = random_floats(rows * columns, 7), b = random_floats(columns, 8);
    const auto ba = with(a), bb = with(b), by = local(a.size() * 4), bt = local(a.size() * 4);
    auto ob = operand(bb, ENPU_DTYPE_F32, {rows, columns});
    ob.tensor.strides[0] = 0;
    const auto oa = operand(ba, ENPU_DTYPE_F32, {rows, columns}),
               oy = operand(by, ENPU_DTYPE_F32, {rows, columns});
    const enpu_binary_params params = {ENPU_BINARY_MUL, ENPU_UNARY_RELU, 0, 0};
    auto from = operand(by, ENPU_DTYPE_F32, {columns, rows});
    from.tensor.strides[0] = 1;
    from.tensor.strides[1] = columns;
    const auto to = operand(bt, ENPU_DTYPE_F32, {columns, rows});
    Builder builder(device, ENPU_ENGINE_KIND_COMPUTE);
    check(
        [&](enpu_error* e) { return enpu_build_binary(builder.get(), &params, &oa, &ob, &oy, e); });
    check([&](enpu_error* e) { return enpu_build_move(builder.get(), &from, &to, e); });
    run(0, builder.finish());
    std::vector<double> expected(rows * columns);
    for (uint32_t r = 0; r < rows; ++r) {
        for (uint32_t c = 0; c < columns; ++c)
            expected[c * rows + r] = std::max(0.0, double{a[r * columns + c]} * b[c]);
    }
    require_close(read(bt, expected.size()), expected, 1e-6);
}

TEST_CASE_METHOD(Operators, "an index out of range fails its job, by name") {
    const auto x = with({1, 2, 3, 4}), indices = host(4), y = local(4);
    put(indices, std::vector<int32_t>{9});
    const auto ox = operand(x, ENPU_DTYPE_F32, {4}), oi = operand(indices, ENPU_DTYPE_I32, {1}),
               oy = operand(y, ENPU_DTYPE_F32, {1});
    const enpu_gather_params params = {ENPU_GATHER_MODE_TAKE, 0};
    Builder builder(device, ENPU_ENGINE_KIND_COMPUTE);
    check(
        [&](enpu_error* e) { return enpu_build_gather(builder.get(), &params, &ox, &oi, &oy, e); });
    const auto command = builder.finish();
    context.submit(0, command, {}, {timeline.at(++point)});
    expect_failure(
        [&](enpu_error* e) {
            return enpu_context_wait(context.get(), timeline.get(), point, soon(), e);
        },
        -EBADMSG, {"gather", "'indices'"});
}
