// SPDX-License-Identifier: MIT
// Convolutions, matrix products, pooling and packed weights.
#include <algorithm>
#include <cmath>
#include <limits>

#include "op_table.h"
#include "reference.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;

namespace {

// ------------------------------------------------------------------------------ convolution

struct Conv {
    int64_t n = 1, c = 4, h = 7, w = 6, o = 5, kh = 3, kw = 3;
    uint32_t stride[2] = {1, 1}, dilation[2] = {1, 1}, pad[4] = {0, 0, 0, 0};
    uint32_t groups = 1, act = ENPU_OP_UNARY_IDENTITY;
    int64_t out_pad[2] = {0, 0};  // transposed ones only
    bool bias = true, residual = false;

    enpu_op_conv_params params() const {
        enpu_op_conv_params p{};
        std::copy_n(stride, 2, p.stride);
        std::copy_n(dilation, 2, p.dilation);
        std::copy_n(pad, 4, p.pad);
        p.groups = groups;
        p.act = act;
        p.alpha = 0.1f;
        return p;
    }
    Dims output() const {
        return {n, o, (h + pad[0] + pad[2] - dilation[0] * (kh - 1) - 1) / stride[0] + 1,
                (w + pad[1] + pad[3] - dilation[1] * (kw - 1) - 1) / stride[1] + 1};
    }
    Dims transposed_output() const {
        return {n, o,
                (h - 1) * stride[0] - pad[0] - pad[2] + dilation[0] * (kh - 1) + 1 + out_pad[0],
                (w - 1) * stride[1] - pad[1] - pad[3] + dilation[1] * (kw - 1) + 1 + out_pad[1]};
    }
};

double activated(uint32_t act, double x) {
    if (act == ENPU_OP_UNARY_RELU) return std::max(x, 0.0);
    if (act == ENPU_OP_UNARY_LEAKY_RELU) return x < 0 ? double(0.1f) * x : x;
    if (act == ENPU_OP_UNARY_SILU) return x / (1 + std::exp(-x));
    return x;
}

Array convolve(const Conv& s, const Array& x, const Array& w) {
    Array y(s.output());
    const int64_t cg = s.c / s.groups, og = s.o / s.groups;
    for (int64_t i = 0; i < elements(y.dims); ++i) {
        const Dims at = index_at(y.dims, i);
        for (int64_t c = 0; c < cg; ++c)
            for (int64_t r = 0; r < s.kh; ++r)
                for (int64_t q = 0; q < s.kw; ++q) {
                    const int64_t h = at[2] * s.stride[0] + r * s.dilation[0] - s.pad[0];
                    const int64_t v = at[3] * s.stride[1] + q * s.dilation[1] - s.pad[1];
                    if (h < 0 || v < 0 || h >= s.h || v >= s.w) continue;
                    y.values[size_t(i)] +=
                        x[{at[0], at[1] / og * cg + c, h, v}] * w[{at[1], c, r, q}];
                }
    }
    return y;
}

Array convolve_transposed(const Conv& s, const Array& x, const Array& w) {
    Array y(s.transposed_output());
    const int64_t cg = s.c / s.groups, og = s.o / s.groups;
    for (int64_t i = 0; i < elements(x.dims); ++i) {
        const Dims at = index_at(x.dims, i);
        for (int64_t o = 0; o < og; ++o)
            for (int64_t r = 0; r < s.kh; ++r)
                for (int64_t q = 0; q < s.kw; ++q) {
                    const int64_t h = at[2] * s.stride[0] + r * s.dilation[0] - s.pad[0];
                    const int64_t v = at[3] * s.stride[1] + q * s.dilation[1] - s.pad[1];
                    if (h < 0 || v < 0 || h >= y.dims[2] || v >= y.dims[3]) continue;
                    y[{at[0], at[1] / cg * og + o, h, v}] +=
                        x.values[size_t(i)] * w[{at[1], o, r, q}];
                }
    }
    return y;
}

void check_conv(const Conv& s, uint32_t dtype = ENPU_OP_F32, Layout layout = Layout::kDense) {
    Fixture f;
    Runs runs(f);
    const Array x = numbers({s.n, s.c, s.h, s.w}, dtype, -1, 1, 1);
    const Array w = numbers({s.o, s.c / s.groups, s.kh, s.kw}, dtype, -1, 1, 2);
    const Array b = numbers({s.o}, dtype, -1, 1, 3);
    Array expected = convolve(s, x, w);
    const Array residual = numbers(expected.dims, dtype, -1, 1, 4);
    const auto y = room(f, expected.dims, dtype, layout);
    const Kernel kernel(ENPU_OP_CONV2D_FWD, s.params(),
                        {put(f, x, dtype, layout),
                         put(f, w, dtype),
                         s.bias ? put(f, b, dtype) : enpu_hal_operand{},
                         s.residual ? put(f, residual, dtype, layout) : enpu_hal_operand{},
                         {},
                         y});
    if (!runs.run(kernel)) return runs.finish();
    for (size_t i = 0; i < expected.values.size(); ++i) {
        double& v = expected.values[i];
        if (s.bias) v += b.values[size_t(index_at(expected.dims, int64_t(i))[1])];
        if (s.residual) v += residual.values[i];
        v = activated(s.act, v);
    }
    check_equal(get(f, y, true), expected, dtype, 2e-5);
}

void check_conv_transposed(const Conv& s, uint32_t dtype = ENPU_OP_F32) {
    Fixture f;
    Runs runs(f);
    const Array x = numbers({s.n, s.c, s.h, s.w}, dtype, -1, 1, 1);
    const Array w = numbers({s.c, s.o / s.groups, s.kh, s.kw}, dtype, -1, 1, 2);
    const Array b = numbers({s.o}, dtype, -1, 1, 3);
    Array expected = convolve_transposed(s, x, w);
    const auto y = room(f, expected.dims, dtype);
    const Kernel kernel(
        ENPU_OP_CONV_TRANSPOSE2D_FWD, s.params(),
        {put(f, x, dtype), put(f, w, dtype), s.bias ? put(f, b, dtype) : enpu_hal_operand{}, y});
    if (!runs.run(kernel)) return runs.finish();
    for (size_t i = 0; s.bias && i < expected.values.size(); ++i)
        expected.values[i] += b.values[size_t(index_at(expected.dims, int64_t(i))[1])];
    check_equal(get(f, y), expected, dtype, 2e-5);
}

}  // namespace

TEST_CASE("conv2d_fwd: plain, without bias", "[kernel][conv]") {
    Conv s;
    s.bias = false;
    check_conv(s);
}
TEST_CASE("conv2d_fwd: strides and uneven padding", "[kernel][conv]") {
    Conv s;
    s.stride[0] = 2, s.stride[1] = 3;
    s.pad[0] = 1, s.pad[3] = 2;
    check_conv(s);
}
TEST_CASE("conv2d_fwd: dilation", "[kernel][conv]") {
    Conv s;
    s.dilation[0] = 2, s.dilation[1] = 2;
    s.pad[0] = s.pad[1] = s.pad[2] = s.pad[3] = 2;
    check_conv(s);
}
TEST_CASE("conv2d_fwd: groups", "[kernel][conv]") {
    Conv s;
    s.c = 6, s.o = 9, s.groups = 3;
    check_conv(s);
}
TEST_CASE("conv2d_fwd: depthwise", "[kernel][conv]") {
    Conv s;
    s.c = s.o = 8, s.groups = 8;
    s.pad[0] = s.pad[1] = s.pad[2] = s.pad[3] = 1;
    check_conv(s);
}
TEST_CASE("conv2d_fwd: 1x1, and windows that are not square", "[kernel][conv]") {
    Conv s;
    s.kh = s.kw = 1, s.n = 2;
    check_conv(s);
    s.kw = 5;
    check_conv(s);
}
TEST_CASE("conv2d_fwd: a residual and a fused activation", "[kernel][conv]") {
    Conv s;
    s.residual = true;
    for (uint32_t act : {ENPU_OP_UNARY_RELU, ENPU_OP_UNARY_LEAKY_RELU, ENPU_OP_UNARY_SILU}) {
        s.act = act;
        check_conv(s);
    }
}
TEST_CASE("conv2d_fwd: half precision", "[kernel][conv]") {
    check_conv({}, ENPU_OP_F16);
    check_conv({}, ENPU_OP_BF16);
}
TEST_CASE("conv2d_fwd: any strides of its tensors", "[kernel][conv]") {
    for (Layout layout : kLayouts) check_conv({}, ENPU_OP_F32, layout);
}
TEST_CASE("conv2d_fwd: integers are exact, with zero points", "[kernel][conv][i8]") {
    Fixture f;
    Runs runs(f);
    Conv s;
    s.bias = false;
    s.pad[0] = s.pad[1] = 1;
    Array x = numbers({1, 4, 7, 6}, ENPU_OP_I8, -100, 100, 1);
    const Array w = numbers({5, 4, 3, 3}, ENPU_OP_I8, -100, 100, 2);
    auto tx = put(f, x, ENPU_OP_I8);
    tx.tensor.zero_point = 5;
    const auto y = room(f, s.output(), ENPU_OP_I32);
    const Kernel kernel(ENPU_OP_CONV2D_FWD, s.params(), {tx, put(f, w, ENPU_OP_I8), {}, {}, {}, y});
    if (runs.run(kernel)) {
        for (double& v : x.values) v -= 5;
        check_equal(get(f, y), convolve(s, x, w), ENPU_OP_I32, 0);
    }
    runs.finish();
}

TEST_CASE("conv_transpose2d_fwd: plain and with strides", "[kernel][conv]") {
    Conv s;
    check_conv_transposed(s);
    s.stride[0] = 2, s.stride[1] = 3;
    check_conv_transposed(s);
}
TEST_CASE("conv_transpose2d_fwd: padding and output padding", "[kernel][conv]") {
    Conv s;
    s.stride[0] = s.stride[1] = 2;
    s.pad[0] = s.pad[1] = s.pad[2] = s.pad[3] = 1;
    s.out_pad[0] = s.out_pad[1] = 1;
    check_conv_transposed(s);
}
TEST_CASE("conv_transpose2d_fwd: groups and dilation", "[kernel][conv]") {
    Conv s;
    s.c = 4, s.o = 6, s.groups = 2, s.bias = false;
    s.dilation[0] = 2;
    check_conv_transposed(s);
}

// --------------------------------------------------------------------------- matrix products

namespace {

struct Matmul {
    Dims batch;
    int64_t m = 5, k = 7, n = 6;
    bool bias = false, residual = false, turn_a = false, turn_b = false;
    float scale = 0;
    uint32_t act = ENPU_OP_UNARY_IDENTITY;
};

Dims with(Dims batch, int64_t rows, int64_t columns) {
    batch.insert(batch.end(), {rows, columns});
    return batch;
}

void check_matmul(const Matmul& s, uint32_t dtype = ENPU_OP_F32, uint32_t result = 0) {
    Fixture f;
    Runs runs(f);
    result = result ? result : dtype;
    const Array a = numbers(with(s.batch, s.m, s.k), dtype, -1, 1, 1);
    const Array b = numbers(with(s.batch, s.k, s.n), dtype, -1, 1, 2);
    const Dims out = with(s.batch, s.m, s.n);
    const Array bias = numbers({s.n}, result, -1, 1, 3), residual = numbers(out, result, -1, 1, 4);
    const auto y = room(f, out, result);
    const Kernel kernel(ENPU_OP_MATMUL_FWD, enpu_op_matmul_params{s.act, 0.1f, 0, s.scale},
                        {put(f, a, dtype, s.turn_a ? Layout::kTransposed : Layout::kDense),
                         put(f, b, dtype, s.turn_b ? Layout::kTransposed : Layout::kDense),
                         s.bias ? broadcast(put(f, bias, result), out) : enpu_hal_operand{},
                         s.residual ? put(f, residual, result) : enpu_hal_operand{},
                         {},
                         y});
    if (!runs.run(kernel)) return runs.finish();
    Array expected(out);
    const int64_t batches = elements(s.batch);
    for (int64_t t = 0; t < batches; ++t)
        for (int64_t i = 0; i < s.m; ++i)
            for (int64_t j = 0; j < s.n; ++j) {
                double sum = 0;
                for (int64_t k = 0; k < s.k; ++k)
                    sum += a.values[size_t((t * s.m + i) * s.k + k)] *
                           b.values[size_t((t * s.k + k) * s.n + j)];
                const auto at = size_t((t * s.m + i) * s.n + j);
                sum = sum * (s.scale == 0 ? 1 : s.scale) + (s.bias ? bias.values[size_t(j)] : 0) +
                      (s.residual ? residual.values[at] : 0);
                expected.values[at] = activated(s.act, sum);
            }
    check_equal(get(f, y), expected, result, 2e-5);
}

}  // namespace

TEST_CASE("matmul_fwd: odd sizes from one element up", "[kernel][matmul]") {
    for (int64_t m : {1, 3, 17})
        for (int64_t k : {1, 31})
            for (int64_t n : {1, 5, 64}) {
                Matmul s;
                s.m = m, s.k = k, s.n = n;
                check_matmul(s);
            }
}
TEST_CASE("matmul_fwd: batches of several dims", "[kernel][matmul]") {
    Matmul s;
    s.batch = {2, 3};
    check_matmul(s);
}
TEST_CASE("matmul_fwd: either operand transposed by strides", "[kernel][matmul]") {
    Matmul s;
    s.turn_a = true;
    check_matmul(s);
    s.turn_b = true;
    check_matmul(s);
}
TEST_CASE("matmul_fwd: bias, residual, scale and activation in this order", "[kernel][matmul]") {
    Matmul s;
    s.bias = s.residual = true;
    s.scale = 0.25f;
    s.act = ENPU_OP_UNARY_LEAKY_RELU;
    check_matmul(s);
}
TEST_CASE("matmul_fwd: half precision", "[kernel][matmul]") {
    check_matmul({}, ENPU_OP_F16);
    check_matmul({}, ENPU_OP_BF16);
}
TEST_CASE("matmul_fwd: half precision in, single out", "[kernel][matmul]") {
    check_matmul({}, ENPU_OP_F16, ENPU_OP_F32);
}
TEST_CASE("matmul_fwd: a large product", "[kernel][matmul]") {
    Matmul s;
    s.m = 65, s.k = 129, s.n = 67;
    check_matmul(s);
}

TEST_CASE("matmul_fwd: integers scaled back to i8", "[kernel][matmul][i8]") {
    Fixture f;
    Runs runs(f);
    const Array a = numbers({4, 9}, ENPU_OP_I8, -50, 50, 1),
                b = numbers({9, 3}, ENPU_OP_I8, -50, 50, 2);
    const Array scale({1}, {1.0 / 256});
    auto y = room(f, {4, 3}, ENPU_OP_I8);
    y.tensor.zero_point = -3;
    const Kernel kernel(
        ENPU_OP_MATMUL_FWD, enpu_op_matmul_params{},
        {put(f, a, ENPU_OP_I8), put(f, b, ENPU_OP_I8), {}, {}, put(f, scale, ENPU_OP_F32), y});
    if (runs.run(kernel)) {
        Array expected({4, 3});
        for (int64_t i = 0; i < 12; ++i) {
            double sum = 0;
            for (int64_t k = 0; k < 9; ++k) sum += a[{i / 3, k}] * b[{k, i % 3}];
            expected.values[size_t(i)] = std::clamp(std::nearbyint(sum / 256) - 3, -128.0, 127.0);
        }
        check_equal(get(f, y), expected, ENPU_OP_I8, 0);
    }
    runs.finish();
}

// ----------------------------------------------------------------------------------- pooling

namespace {

struct Pool {
    uint32_t function = ENPU_OP_POOL_MAX, kernel[2] = {2, 3}, stride[2] = {1, 2},
             pad[4] = {0, 0, 0, 0}, dilation[2] = {1, 1};
    int64_t extra = 0;  // more rows, as ceil mode gives
};

void check_pool(const Pool& p, uint32_t dtype = ENPU_OP_F32) {
    Fixture f;
    Runs runs(f);
    const Array x =
        numbers({2, 3, 7, 8}, dtype, is_float(dtype) ? -2 : -90, is_float(dtype) ? 2 : 90, 1);
    const auto out = [&](int axis, int64_t size) {
        return (size + p.pad[axis] + p.pad[axis + 2] - p.dilation[axis] * (p.kernel[axis] - 1) -
                1) /
                   p.stride[axis] +
               1;
    };
    const Dims dims{2, 3, out(0, 7) + p.extra, out(1, 8)};
    const auto y = room(f, dims, dtype);
    enpu_op_pool_params params{};
    params.function = p.function;
    std::copy_n(p.kernel, 2, params.kernel);
    std::copy_n(p.stride, 2, params.stride);
    std::copy_n(p.pad, 4, params.pad);
    std::copy_n(p.dilation, 2, params.dilation);
    const Kernel kernel(ENPU_OP_POOL2D_FWD, params, {put(f, x, dtype), y});
    if (!runs.run(kernel)) return runs.finish();
    Array expected(dims);
    for (int64_t i = 0; i < elements(dims); ++i) {
        const Dims at = index_at(dims, i);
        double top = -INFINITY, sum = 0, count = 0;
        for (int64_t r = 0; r < p.kernel[0]; ++r)
            for (int64_t q = 0; q < p.kernel[1]; ++q) {
                const int64_t h = at[2] * p.stride[0] + r * p.dilation[0] - p.pad[0];
                const int64_t v = at[3] * p.stride[1] + q * p.dilation[1] - p.pad[1];
                const bool inside = h >= 0 && v >= 0 && h < 7 && v < 8;
                const bool padded = h < 7 + int64_t(p.pad[2]) && v < 8 + int64_t(p.pad[3]);
                count += inside || (padded && p.function == ENPU_OP_POOL_AVERAGE_INCLUDE_PAD);
                if (!inside) continue;
                top = std::max(top, x[{at[0], at[1], h, v}]);
                sum += x[{at[0], at[1], h, v}];
            }
        expected.values[size_t(i)] = p.function == ENPU_OP_POOL_MAX ? top
                                     : count == 0                   ? 0
                                                                    : sum / count;
    }
    check_equal(get(f, y), expected, dtype, 2e-6);
}

}  // namespace

TEST_CASE("pool2d_fwd: MAX over odd windows", "[kernel][pool]") {
    check_pool({});
    check_pool({}, ENPU_OP_F16);
}
TEST_CASE("pool2d_fwd: MAX of integers", "[kernel][pool]") {
    check_pool({}, ENPU_OP_I8);
}
TEST_CASE("pool2d_fwd: AVERAGE leaves the padding out", "[kernel][pool]") {
    Pool p;
    p.function = ENPU_OP_POOL_AVERAGE;
    p.pad[0] = p.pad[1] = p.pad[2] = p.pad[3] = 1;
    check_pool(p);
}
TEST_CASE("pool2d_fwd: AVERAGE that counts the padding", "[kernel][pool]") {
    Pool p;
    p.function = ENPU_OP_POOL_AVERAGE_INCLUDE_PAD;
    p.pad[0] = p.pad[1] = p.pad[2] = p.pad[3] = 1;
    check_pool(p);
}
TEST_CASE("pool2d_fwd: dilation", "[kernel][pool]") {
    Pool p;
    p.dilation[0] = 2, p.dilation[1] = 3;
    check_pool(p);
}
TEST_CASE("pool2d_fwd: ceil mode is a larger output", "[kernel][pool]") {
    Pool p;
    p.kernel[0] = 2, p.stride[0] = 2;
    p.extra = 1;
    check_pool(p);
}

// ----------------------------------------------------------------------------- packed weights

namespace {

// Runs `kernel` once with the weights as they are and once packed; `build` makes it.
void check_packed(uint32_t kind, uint32_t groups, const Array& weights, const Dims& out,
                  const std::function<Kernel*(const enpu_hal_operand& w, const enpu_hal_operand& y,
                                              Fixture& f)>& build) {
    Fixture f;
    Runs runs(f);
    auto& status = f.status;
    const auto plain = put(f, weights, ENPU_OP_F32);
    const enpu_op_pack_params pack{kind, groups};
    uint64_t bytes = 0;
    const uint32_t code =
        f.hal->kernel->packed_size(f.device, &plain.tensor, &pack, &bytes, &status);
    if (code == ENPU_HAL_UNSUPPORTED) SKIP("unsupported: " << status.message);
    REQUIRE(code == ENPU_HAL_OK);
    auto packed = plain;
    packed.place = {f.make_buffer(bytes, ENPU_HAL_MEMORY_LOCAL), 0};
    packed.tensor.format = ENPU_OP_PACKED;
    packed.tensor.packed_bytes = bytes;
    std::fill_n(packed.tensor.strides, ENPU_OP_MAX_RANK, 0);
    const Kernel packing(ENPU_OP_PACK_WEIGHTS, pack, {plain, packed});
    REQUIRE(runs.run(packing));
    const auto a = room(f, out, ENPU_OP_F32), b = room(f, out, ENPU_OP_F32);
    const std::unique_ptr<Kernel> with_plain(build(plain, a, f)), with_packed(build(packed, b, f));
    REQUIRE(runs.run(*with_plain));
    REQUIRE(runs.run(*with_packed));
    check_equal(get(f, b), get(f, a), ENPU_OP_F32, 2e-5);
}

}  // namespace

TEST_CASE("pack_weights: a matrix", "[kernel][pack]") {
    check_packed(ENPU_OP_PACK_KIND_MATMUL, 1, numbers({37, 19}, ENPU_OP_F32, -1, 1, 1), {5, 19},
                 [](const enpu_hal_operand& w, const enpu_hal_operand& y, Fixture& f) {
                     const Array a = numbers({5, 37}, ENPU_OP_F32, -1, 1, 2);
                     return new Kernel(ENPU_OP_MATMUL_FWD, enpu_op_matmul_params{},
                                       {put(f, a, ENPU_OP_F32), w, {}, {}, {}, y});
                 });
}
TEST_CASE("pack_weights: a grouped convolution", "[kernel][pack]") {
    Conv s;
    s.c = 8, s.o = 6, s.groups = 2;
    check_packed(ENPU_OP_PACK_KIND_CONV2D, 2, numbers({6, 4, 3, 3}, ENPU_OP_F32, -1, 1, 1),
                 s.output(), [&](const enpu_hal_operand& w, const enpu_hal_operand& y, Fixture& f) {
                     const Array x = numbers({1, 8, 7, 6}, ENPU_OP_F32, -1, 1, 2);
                     return new Kernel(ENPU_OP_CONV2D_FWD, s.params(),
                                       {put(f, x, ENPU_OP_F32), w, {}, {}, {}, y});
                 });
}
TEST_CASE("pack_weights: a transposed convolution", "[kernel][pack]") {
    Conv s;
    check_packed(ENPU_OP_PACK_KIND_CONV_TRANSPOSE2D, 1,
                 numbers({4, 5, 3, 3}, ENPU_OP_F32, -1, 1, 1), s.transposed_output(),
                 [&](const enpu_hal_operand& w, const enpu_hal_operand& y, Fixture& f) {
                     const Array x = numbers({1, 4, 7, 6}, ENPU_OP_F32, -1, 1, 2);
                     return new Kernel(ENPU_OP_CONV_TRANSPOSE2D_FWD, s.params(),
                                       {put(f, x, ENPU_OP_F32), w, {}, y});
                 });
}
