// SPDX-License-Identifier: MIT
// Kernels against naive references written here, their checks, and what happens when they fail.
#include <algorithm>
#include <cmath>

#include "fixture.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;

namespace {

std::vector<float> floats(size_t count, int seed) {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i)
        values[i] = static_cast<float>((static_cast<int>(i) * 29 + seed * 17) % 97 - 48) / 16;
    return values;
}

void close_to(const std::vector<float>& seen, const std::vector<double>& expected,
              double tolerance = 1e-4) {
    REQUIRE(seen.size() == expected.size());
    double largest = 1;
    for (double value : expected) largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < seen.size(); ++i) {
        INFO("element " << i << ": " << seen[i] << ", expected " << expected[i]);
        REQUIRE(std::fabs(seen[i] - expected[i]) <= tolerance * largest);
    }
}

}  // namespace

TEST_CASE("kernel: conv2d_fwd over groups, strides, dilation, padding and layouts", "[kernel]") {
    struct Shape {
        int64_t n, c, h, w, o, k, stride, dilation, groups;
        uint32_t pad[4];
        bool nhwc;
    };
    const Shape shapes[] = {{1, 3, 8, 8, 4, 3, 1, 1, 1, {1, 1, 1, 1}, false},
                            {2, 4, 7, 5, 6, 3, 2, 1, 2, {1, 0, 2, 1}, false},
                            {1, 8, 9, 9, 8, 3, 1, 2, 8, {2, 2, 2, 2}, true},
                            {1, 5, 6, 11, 7, 1, 1, 1, 1, {0, 0, 0, 0}, true},
                            {1, 1, 1, 1, 1, 1, 1, 1, 1, {0, 0, 0, 0}, false}};
    Fixture f;
    for (const Shape& s : shapes) {
        INFO(s.c << "x" << s.h << "x" << s.w << " -> " << s.o << ", groups " << s.groups);
        const int64_t reach = s.dilation * (s.k - 1) + 1, cg = s.c / s.groups;
        const int64_t oh = (s.h + s.pad[0] + s.pad[2] - reach) / s.stride + 1;
        const int64_t ow = (s.w + s.pad[1] + s.pad[3] - reach) / s.stride + 1;
        const auto x = floats(size_t(s.n * s.c * s.h * s.w), 1);
        const auto w = floats(size_t(s.o * cg * s.k * s.k), 2), b = floats(size_t(s.o), 3);
        auto tx = tensor(f.upload(x), ENPU_OP_F32, {s.n, s.c, s.h, s.w});
        auto ty = tensor(f.make_buffer(uint64_t(s.n * s.o * oh * ow) * 4, ENPU_HAL_MEMORY_LOCAL),
                         ENPU_OP_F32, {s.n, s.o, oh, ow});
        if (s.nhwc) {
            const int64_t xs[] = {s.h * s.w * s.c, 1, s.w * s.c, s.c},
                          ys[] = {oh * ow * s.o, 1, ow * s.o, s.o};
            std::copy_n(xs, 4, tx.tensor.strides);
            std::copy_n(ys, 4, ty.tensor.strides);
        }
        const auto& xs = tx.tensor.strides;
        const auto& ys = ty.tensor.strides;
        std::vector<double> expected(size_t(s.n * s.o * oh * ow));
        for (int64_t n = 0; n < s.n; ++n)
            for (int64_t o = 0; o < s.o; ++o)
                for (int64_t i = 0; i < oh; ++i)
                    for (int64_t j = 0; j < ow; ++j) {
                        double sum = b[size_t(o)];
                        for (int64_t c = 0; c < cg; ++c)
                            for (int64_t r = 0; r < s.k; ++r)
                                for (int64_t q = 0; q < s.k; ++q) {
                                    const int64_t h = i * s.stride + r * s.dilation - s.pad[0];
                                    const int64_t v = j * s.stride + q * s.dilation - s.pad[1];
                                    if (h < 0 || v < 0 || h >= s.h || v >= s.w) continue;
                                    const int64_t channel = o / (s.o / s.groups) * cg + c;
                                    sum += double(x[size_t(n * xs[0] + channel * xs[1] + h * xs[2] +
                                                           v * xs[3])]) *
                                           w[size_t(((o * cg + c) * s.k + r) * s.k + q)];
                                }
                        expected[size_t(n * ys[0] + o * ys[1] + i * ys[2] + j * ys[3])] =
                            std::max(sum, 0.0);
                    }
        enpu_op_conv_params params{};
        params.stride[0] = params.stride[1] = uint32_t(s.stride);
        params.dilation[0] = params.dilation[1] = uint32_t(s.dilation);
        std::copy_n(s.pad, 4, params.pad);
        params.groups = uint32_t(s.groups);
        params.act = ENPU_OP_UNARY_RELU;
        const Kernel kernel(ENPU_OP_CONV2D_FWD, params,
                            {tx,
                             tensor(f.upload(w), ENPU_OP_F32, {s.o, cg, s.k, s.k}),
                             tensor(f.upload(b), ENPU_OP_F32, {s.o}),
                             {},
                             {},
                             ty});
        f.run({kernel.command()});
        close_to(f.download<float>(ty.place.buffer, expected.size()), expected);
    }
}

TEST_CASE("kernel: matmul_fwd, batched, with a transposed operand by strides", "[kernel]") {
    Fixture f;
    constexpr int64_t kB = 2, kM = 5, kK = 33, kN = 7;
    const auto a = floats(kB * kM * kK, 4), b = floats(kN * kK, 5);
    auto tb = tensor(f.upload(b), ENPU_OP_F32, {kB, kK, kN});
    tb.tensor.strides[0] = 0;  // one matrix for all batches, stored [N,K]
    tb.tensor.strides[1] = 1;
    tb.tensor.strides[2] = kK;
    enpu_hal_buffer* y = f.make_buffer(kB * kM * kN * 4, ENPU_HAL_MEMORY_LOCAL);
    enpu_op_matmul_params params{};
    params.scale = 0.5f;
    const Kernel kernel(ENPU_OP_MATMUL_FWD, params,
                        {tensor(f.upload(a), ENPU_OP_F32, {kB, kM, kK}),
                         tb,
                         {},
                         {},
                         {},
                         tensor(y, ENPU_OP_F32, {kB, kM, kN})});
    f.run({kernel.command()});
    std::vector<double> expected(kB * kM * kN);
    for (int64_t batch = 0; batch < kB; ++batch)
        for (int64_t m = 0; m < kM; ++m)
            for (int64_t n = 0; n < kN; ++n)
                for (int64_t k = 0; k < kK; ++k)
                    expected[size_t((batch * kM + m) * kN + n)] +=
                        0.5 * double(a[size_t((batch * kM + m) * kK + k)]) * b[size_t(n * kK + k)];
    close_to(f.download<float>(y, expected.size()), expected);
}

TEST_CASE("kernel: matmul_fwd sums i8 exactly", "[kernel][i8]") {
    Fixture f;
    constexpr int64_t kK = 1000;
    enpu_hal_buffer* y = f.make_buffer(4 * 4, ENPU_HAL_MEMORY_LOCAL);
    const Kernel kernel(ENPU_OP_MATMUL_FWD, enpu_op_matmul_params{},
                        {tensor(f.upload(std::vector<int8_t>(2 * kK, -128)), ENPU_OP_I8, {2, kK}),
                         tensor(f.upload(std::vector<int8_t>(2 * kK, 127)), ENPU_OP_I8, {kK, 2}),
                         {},
                         {},
                         {},
                         tensor(y, ENPU_OP_I32, {2, 2})});
    f.run({kernel.command()});
    CHECK(f.download<int32_t>(y, 4) == std::vector<int32_t>(4, -128 * 127 * 1000));
}

TEST_CASE("kernel: packed weights give what plain ones give", "[kernel]") {
    Fixture f;
    auto& status = f.status;
    const auto w = floats(16 * 8 * 9, 6), x = floats(8 * 10 * 10, 7);
    auto tw = tensor(f.upload(w), ENPU_OP_F32, {16, 8, 3, 3});
    const enpu_op_pack_params pack{ENPU_OP_PACK_KIND_CONV2D, 1};
    uint64_t bytes = 0;
    const uint32_t code = f.hal->kernel->packed_size(f.device, &tw.tensor, &pack, &bytes, &status);
    if (code == ENPU_HAL_UNSUPPORTED) SKIP("unsupported: " << status.message);
    REQUIRE(code == ENPU_HAL_OK);
    REQUIRE(bytes > 0);
    enpu_hal_operand packed{};
    packed.place.buffer = f.make_buffer(bytes, ENPU_HAL_MEMORY_LOCAL);
    packed.tensor = tw.tensor;
    packed.tensor.format = ENPU_OP_PACKED;
    packed.tensor.packed_bytes = bytes;
    std::fill_n(packed.tensor.strides, ENPU_OP_MAX_RANK, 0);
    enpu_op_conv_params params{};
    params.stride[0] = params.stride[1] = params.dilation[0] = params.dilation[1] = params.groups =
        1;
    const auto tx = tensor(f.upload(x), ENPU_OP_F32, {1, 8, 10, 10});
    auto* plain = f.make_buffer(16 * 64 * 4, ENPU_HAL_MEMORY_LOCAL);
    auto* with = f.make_buffer(16 * 64 * 4, ENPU_HAL_MEMORY_LOCAL);
    const Kernel packing(ENPU_OP_PACK_WEIGHTS, pack, {tw, packed});
    const Kernel a(ENPU_OP_CONV2D_FWD, params,
                   {tx, tw, {}, {}, {}, tensor(plain, ENPU_OP_F32, {1, 16, 8, 8})});
    const Kernel b(ENPU_OP_CONV2D_FWD, params,
                   {tx, packed, {}, {}, {}, tensor(with, ENPU_OP_F32, {1, 16, 8, 8})});
    f.run({packing.command(), a.command(), b.command()});
    const auto expected = f.download<float>(plain, 16 * 64);
    close_to(f.download<float>(with, 16 * 64),
             std::vector<double>(expected.begin(), expected.end()));
}

TEST_CASE("kernel: binary broadcasts by stride 0, compares, and fuses an activation", "[kernel]") {
    Fixture f;
    const auto a = floats(12, 8), b = floats(4, 9);
    auto ta = tensor(f.upload(a), ENPU_OP_F32, {3, 4});
    auto tb = tensor(f.upload(b), ENPU_OP_F32, {3, 4});
    tb.tensor.strides[0] = 0;
    auto* y = f.make_buffer(48, ENPU_HAL_MEMORY_LOCAL);
    auto* flags = f.make_buffer(12, ENPU_HAL_MEMORY_LOCAL);
    const Kernel sub(ENPU_OP_BINARY,
                     enpu_op_binary_params{ENPU_OP_BINARY_SUB, ENPU_OP_UNARY_RELU, 0, 0},
                     {ta, tb, tensor(y, ENPU_OP_F32, {3, 4})});
    const Kernel less(ENPU_OP_BINARY,
                      enpu_op_binary_params{ENPU_OP_BINARY_LT, ENPU_OP_UNARY_IDENTITY, 0, 0},
                      {ta, tb, tensor(flags, ENPU_OP_BOOL, {3, 4})});
    f.run({sub.command(), less.command()});
    const auto difference = f.download<float>(y, 12);
    const auto smaller = f.download<uint8_t>(flags, 12);
    for (size_t i = 0; i < 12; ++i) {
        CHECK(difference[i] == std::max(a[i] - b[i % 4], 0.0f));
        CHECK(smaller[i] == (a[i] < b[i % 4]));
    }
}

TEST_CASE("kernel: softmax_fwd along each axis", "[kernel]") {
    Fixture f;
    const auto x = floats(2 * 3 * 5, 10);
    const auto tx = tensor(f.upload(x), ENPU_OP_F32, {2, 3, 5});
    const int64_t dims[] = {2, 3, 5}, strides[] = {15, 5, 1};
    for (uint32_t axis = 0; axis < 3; ++axis) {
        auto* y = f.make_buffer(30 * 4, ENPU_HAL_MEMORY_LOCAL);
        const Kernel kernel(ENPU_OP_SOFTMAX_FWD, enpu_op_softmax_params{axis, 0},
                            {tx, tensor(y, ENPU_OP_F32, {2, 3, 5})});
        f.run({kernel.command()});
        std::vector<double> expected(30);
        for (int64_t i = 0; i < 30; ++i) {
            const int64_t at = i / strides[axis] % dims[axis], first = i - at * strides[axis];
            double sum = 0;
            for (int64_t k = 0; k < dims[axis]; ++k)
                sum += std::exp(double(x[size_t(first + k * strides[axis])]));
            expected[size_t(i)] = std::exp(double(x[size_t(i)])) / sum;
        }
        close_to(f.download<float>(y, 30), expected);
    }
}

TEST_CASE("kernel: norm_fwd LAYER", "[kernel]") {
    Fixture f;
    const auto x = floats(4 * 9, 11), scale = floats(9, 12), bias = floats(9, 13);
    auto ts = tensor(f.upload(scale), ENPU_OP_F32, {4, 9}),
         tb = tensor(f.upload(bias), ENPU_OP_F32, {4, 9});
    ts.tensor.strides[0] = tb.tensor.strides[0] = 0;
    auto* y = f.make_buffer(4 * 9 * 4, ENPU_HAL_MEMORY_LOCAL);
    enpu_op_norm_params params{};
    params.kind = ENPU_OP_NORM_LAYER;
    params.axis = 1;
    params.epsilon = 1e-5f;
    const Kernel kernel(
        ENPU_OP_NORM_FWD, params,
        {tensor(f.upload(x), ENPU_OP_F32, {4, 9}), ts, tb, {}, {}, tensor(y, ENPU_OP_F32, {4, 9})});
    f.run({kernel.command()});
    std::vector<double> expected(36);
    for (size_t row = 0; row < 4; ++row) {
        double mean = 0, variance = 0;
        for (size_t i = 0; i < 9; ++i) mean += x[row * 9 + i] / 9.0;
        for (size_t i = 0; i < 9; ++i) variance += std::pow(x[row * 9 + i] - mean, 2) / 9.0;
        for (size_t i = 0; i < 9; ++i)
            expected[row * 9 + i] =
                (x[row * 9 + i] - mean) / std::sqrt(variance + 1e-5) * scale[i] + bias[i];
    }
    close_to(f.download<float>(y, 36), expected);
}

TEST_CASE("kernel: pool2d_fwd maximum and average", "[kernel]") {
    Fixture f;
    const auto x = floats(2 * 6 * 6, 14);
    const auto tx = tensor(f.upload(x), ENPU_OP_F32, {1, 2, 6, 6});
    for (uint32_t function : {ENPU_OP_POOL_MAX, ENPU_OP_POOL_AVERAGE}) {
        auto* y = f.make_buffer(2 * 9 * 4, ENPU_HAL_MEMORY_LOCAL);
        const Kernel kernel(ENPU_OP_POOL2D_FWD,
                            enpu_op_pool_params{function, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}},
                            {tx, tensor(y, ENPU_OP_F32, {1, 2, 3, 3})});
        f.run({kernel.command()});
        std::vector<double> expected;
        for (size_t c = 0; c < 2; ++c)
            for (size_t i = 0; i < 3; ++i)
                for (size_t j = 0; j < 3; ++j) {
                    const size_t at = c * 36 + i * 12 + j * 2;
                    const double window[] = {x[at], x[at + 1], x[at + 6], x[at + 7]};
                    expected.push_back(function == ENPU_OP_POOL_MAX
                                           ? *std::max_element(window, window + 4)
                                           : (window[0] + window[1] + window[2] + window[3]) / 4);
                }
        close_to(f.download<float>(y, 18), expected);
    }
}

TEST_CASE("kernel: reduce and arg_reduce", "[kernel]") {
    Fixture f;
    const auto x = floats(3 * 8, 15);
    const auto tx = tensor(f.upload(x), ENPU_OP_F32, {3, 8});
    auto* sums = f.make_buffer(12, ENPU_HAL_MEMORY_LOCAL);
    auto* places = f.make_buffer(24, ENPU_HAL_MEMORY_LOCAL);
    const Kernel sum(ENPU_OP_REDUCE, enpu_op_reduce_params{ENPU_OP_REDUCE_SUM, 2},
                     {tx, tensor(sums, ENPU_OP_F32, {3, 1})});
    const Kernel arg(ENPU_OP_ARG_REDUCE, enpu_op_arg_params{0, 1, 0},
                     {tx, tensor(places, ENPU_OP_I64, {3, 1})});
    f.run({sum.command(), arg.command()});
    std::vector<double> expected;
    std::vector<int64_t> largest;
    for (size_t row = 0; row < 3; ++row) {
        const auto begin = x.begin() + ptrdiff_t(row * 8);
        double total = 0;
        for (size_t i = 0; i < 8; ++i) total += x[row * 8 + i];
        expected.push_back(total);
        largest.push_back(std::max_element(begin, begin + 8) - begin);
    }
    close_to(f.download<float>(sums, 3), expected);
    CHECK(f.download<int64_t>(places, 3) == largest);
}

TEST_CASE("kernel: move transposes, reverses and writes into a part", "[kernel]") {
    Fixture f;
    std::vector<uint16_t> x(12);
    for (size_t i = 0; i < 12; ++i) x[i] = static_cast<uint16_t>(i + 1);
    auto tx = tensor(f.upload(x), ENPU_OP_F16, {4, 3}, 2 * 11);
    tx.tensor.strides[0] = -1, tx.tensor.strides[1] = -4;  // transposed and backwards
    auto* y = f.make_buffer(2 * 20, ENPU_HAL_MEMORY_LOCAL);
    auto ty = tensor(y, ENPU_OP_F16, {4, 3}, 2);
    ty.tensor.strides[0] = 5;
    const Kernel kernel(ENPU_OP_MOVE, {tx, ty});
    f.run({f.fill(y, 0, 40, 0, 1), kernel.command()});
    const auto seen = f.download<uint16_t>(y, 20);
    for (size_t i = 0; i < 4; ++i) {
        CHECK(seen[i * 5] == 0);
        for (size_t j = 0; j < 3; ++j) CHECK(seen[i * 5 + 1 + j] == x[11 - i - 4 * j]);
    }
}

TEST_CASE("kernel: gather takes rows, negative indices from the end", "[kernel]") {
    Fixture f;
    const auto x = floats(5 * 3, 16);
    auto* y = f.make_buffer(3 * 3 * 4, ENPU_HAL_MEMORY_LOCAL);
    const Kernel kernel(ENPU_OP_GATHER, enpu_op_gather_params{ENPU_OP_GATHER_MODE_TAKE, 0},
                        {tensor(f.upload(x), ENPU_OP_F32, {5, 3}),
                         tensor(f.upload(std::vector<int64_t>{4, 0, -2}), ENPU_OP_I64, {3}),
                         tensor(y, ENPU_OP_F32, {3, 3})});
    f.run({kernel.command()});
    const auto seen = f.download<float>(y, 9);
    for (size_t i = 0; i < 3; ++i) {
        CHECK(seen[i] == x[12 + i]);
        CHECK(seen[3 + i] == x[i]);
        CHECK(seen[6 + i] == x[9 + i]);
    }
}

TEST_CASE("kernel: cast, and unary in place", "[kernel]") {
    Fixture f;
    const std::vector<float> x{-2.75f, -0.5f, 0.0f, 1.5f, 300.25f};
    auto* data = f.upload(x);
    auto* integers = f.make_buffer(20, ENPU_HAL_MEMORY_LOCAL);
    const auto tx = tensor(data, ENPU_OP_F32, {5});
    const Kernel cast(ENPU_OP_CAST, {tx, tensor(integers, ENPU_OP_I32, {5})});
    const Kernel negate(ENPU_OP_UNARY, enpu_op_unary_params{ENPU_OP_UNARY_NEG, 0, 0}, {tx, tx});
    f.run({cast.command(), negate.command()});
    CHECK(f.download<int32_t>(integers, 5) == std::vector<int32_t>{-2, 0, 0, 1, 300});
    CHECK(f.download<float>(data, 5) == std::vector<float>{2.75f, 0.5f, -0.0f, -1.5f, -300.25f});
}

TEST_CASE("kernel: the device counts what it ran", "[kernel][profile]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_PROFILE);
    auto* x = f.upload(floats(64, 1));
    const auto before = f.counters();
    const auto tx = tensor(x, ENPU_OP_F32, {64});
    const Kernel square(ENPU_OP_UNARY, enpu_op_unary_params{ENPU_OP_UNARY_SQUARE, 0, 0}, {tx, tx});
    f.run({square.command(), square.command(), f.fill(x, 0, 8, 0, 1)});
    const auto after = f.counters();
    CHECK(after.ops[ENPU_OP_UNARY] == before.ops[ENPU_OP_UNARY] + 2);
    CHECK(after.ops[ENPU_OP_BINARY] == before.ops[ENPU_OP_BINARY]);
    CHECK(after.jobs == before.jobs + 1);
    CHECK(after.copies == before.copies + 1);
    CHECK(after.work >= before.work + 128);
    CHECK(after.busy_compute_ns > before.busy_compute_ns);
}

TEST_CASE("kernel: supported agrees with submit and gives the reason", "[kernel][errors]") {
    Fixture f;
    auto& status = f.status;
    auto* buffer = f.make_buffer(4096);
    const enpu_op_matmul_params params{};
    const auto check = [&](std::vector<enpu_hal_operand> operands, const char* names) {
        operands.resize(6);
        std::swap(operands[2], operands[5]);  // given as a, b, y
        const Kernel kernel(ENPU_OP_MATMUL_FWD, params, operands);
        const uint32_t code = f.hal->kernel->supported(f.device, &kernel.dispatch, &status);
        INFO(names << ": " << status.message);
        CHECK((code == ENPU_HAL_INVALID_ARGUMENT || code == ENPU_HAL_UNSUPPORTED));
        CHECK(std::string(status.message).find(names) != std::string::npos);
        CHECK(f.submit({kernel.command()}) != ENPU_HAL_OK);
        --f.value;
    };
    const auto a = tensor(buffer, ENPU_OP_F32, {4, 5}),
               b = tensor(buffer, ENPU_OP_F32, {5, 6}, 1024),
               y = tensor(buffer, ENPU_OP_F32, {4, 6}, 2048);
    auto wrong = b;
    wrong.tensor.dims[0] = 6;
    check({a, wrong, y}, "'b'");
    wrong = b;
    wrong.tensor.dtype = ENPU_OP_I64;
    check({a, wrong, y}, "'b'");
    wrong = y;
    wrong.tensor.dims[1] = 7;
    check({a, b, wrong}, "'y'");
    wrong = a;
    wrong.tensor.rank = 9;
    check({wrong, b, y}, "'a'");
    wrong = a;
    wrong.tensor.dims[0] = int64_t{1} << 40;
    check({wrong, b, y}, "'a'");
    check({a, {}, y}, "'b'");
}

TEST_CASE("kernel: operands must lie in their buffers", "[kernel][errors]") {
    Fixture f;
    auto& status = f.status;
    auto* small = f.make_buffer(64);
    auto* y = f.make_buffer(4096);
    // Buffers may be larger than asked for, but never by this much.
    const Kernel past(ENPU_OP_MOVE,
                      {tensor(small, ENPU_OP_F32, {1 << 20}), tensor(y, ENPU_OP_F32, {1 << 20})});
    HAL_FAILS(f.submit({past.command()}), ENPU_HAL_INVALID_ARGUMENT);
    auto before = tensor(y, ENPU_OP_F32, {16});
    before.tensor.strides[0] = -1;  // begins at offset 0 and runs backwards
    const Kernel under(ENPU_OP_MOVE, {before, tensor(small, ENPU_OP_F32, {16})});
    HAL_FAILS(f.submit({under.command()}), ENPU_HAL_INVALID_ARGUMENT);
    const Kernel wrap(ENPU_OP_MOVE, {tensor(small, ENPU_OP_F32, {16}, UINT64_MAX - 15),
                                     tensor(y, ENPU_OP_F32, {16})});
    HAL_FAILS(f.submit({wrap.command()}), ENPU_HAL_INVALID_ARGUMENT);
    const Kernel none(ENPU_OP_MOVE,
                      {tensor(nullptr, ENPU_OP_F32, {16}), tensor(y, ENPU_OP_F32, {16})});
    HAL_FAILS(f.submit({none.command()}), ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("kernel: a failure in flight names the operation and stays with its queue",
          "[kernel][errors]") {
    Fixture f;
    auto& status = f.status;
    enpu_hal_queue* other = f.make_queue();
    enpu_hal_fence* fence = f.make_fence(0);
    auto* y = f.make_buffer(64);
    const Kernel gather(ENPU_OP_GATHER, enpu_op_gather_params{ENPU_OP_GATHER_MODE_TAKE, 0},
                        {tensor(f.upload(floats(4, 1)), ENPU_OP_F32, {4}),
                         tensor(f.upload(std::vector<int32_t>{0, 77}), ENPU_OP_I32, {2}),
                         tensor(y, ENPU_OP_F32, {2})});
    HAL_OK(f.submit_to(other, {{fence, 1}}, {f.fill(y, 0, 64, 1, 1)}, {}, 101));
    HAL_SUPPORTED(f.submit_to(other, {{fence, 2}}, {gather.command()}, {}, 102));
    HAL_FAILS(f.wait(fence, 2), ENPU_HAL_WORK_FAILED);
    CHECK(status.op_id == 102);
    HAL_OK(f.wait(fence, 1, 0));  // what came before has succeeded
    uint64_t value = 0;
    HAL_FAILS(f.hal->fence->query(fence, &value, &status), ENPU_HAL_WORK_FAILED);
    CHECK(value == 1);
    // Work that follows on this queue fails; who waits for it is aborted; the others go on.
    const uint32_t code = f.submit_to(other, {{fence, 3}}, {f.fill(y, 0, 64, 9, 1)}, {}, 103);
    if (code == ENPU_HAL_OK) CHECK(f.wait(fence, 3) != ENPU_HAL_OK);
    f.run({f.fill(y, 0, 64, 4, 1)});
    CHECK(f.host<uint8_t>(y)[63] == 4);
}
