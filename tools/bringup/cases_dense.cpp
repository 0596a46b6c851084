// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "operator_case.h"

namespace enpu::bringup {
namespace {

double relu(double value) {
    return std::max(value, 0.0);
}

// Offset in the input of an output position and a tap, or false when it falls into the padding.
bool source(uint32_t out, uint32_t tap, uint32_t stride, uint32_t dilation, uint32_t pad,
            uint32_t size, uint32_t* in) {
    const int64_t at = int64_t{out} * stride + int64_t{tap} * dilation - pad;
    *in = static_cast<uint32_t>(at);
    return at >= 0 && at < size;
}

OperatorCase conv2d(const std::string& name, const Dims& x, const Dims& w, const Dims& y,
                    const enpu_conv2d_params& p, uint32_t dtype, double tolerance) {
    OperatorCase test{name, ENPU_OPCODE_CONV2D, {}, {}, {}, tolerance, {}};
    test.operands = {numbers(x, 1, -1, 1, dtype),
                     numbers(w, 2, -1, 1, dtype),
                     numbers({w[0]}, 3, -1, 1, dtype),
                     none(),
                     none(),
                     output(y, dtype)};
    test.expected = conv2d_reference(test.operands[0], test.operands[1], test.operands[2], y, p);
    return test.with(p);
}

// Exact sums of i8 products; the output is I32.
OperatorCase conv2d_i8() {
    enpu_conv2d_params p{{1, 1}, {1, 1, 1, 1}, {1, 1}, 1, 0, 0, 0};
    const Dims y = {1, 4, 6, 6};
    OperatorCase test{"conv2d i8", ENPU_OPCODE_CONV2D, {}, {}, {}, 0, {}};
    test.operands = {numbers({1, 8, 6, 6}, 4, -128, 127, ENPU_DTYPE_I8),
                     numbers({4, 8, 3, 3}, 5, -128, 127, ENPU_DTYPE_I8),
                     numbers({4}, 6, -1000, 1000, ENPU_DTYPE_I32),
                     none(),
                     none(),
                     output(y, ENPU_DTYPE_I32)};
    test.expected = conv2d_reference(test.operands[0], test.operands[1], test.operands[2], y, p);
    return test.with(p);
}

OperatorCase conv_transpose() {
    const enpu_conv_transpose2d_params p{{2, 2}, {1, 1, 1, 1}, {1, 1}, 1, 0, 0, 0};
    const Dims xd = {1, 3, 5, 4}, wd = {3, 2, 3, 3}, yd = {1, 2, 9, 7};
    OperatorCase test{"conv_transpose2d f32", ENPU_OPCODE_CONV_TRANSPOSE2D, {}, {}, {}, 1e-5, {}};
    test.operands = {numbers(xd, 7), numbers(wd, 8), numbers({2}, 9), output(yd)};
    std::vector<double>& y = test.expected;
    y.assign(count_of(yd), 0);
    for_each_index(yd, [&](const Dims& i) { y[position(yd, i)] = test.operands[2].values[i[1]]; });
    for_each_index(xd, [&](const Dims& i) {
        for_each_index({2, 3, 3}, [&](const Dims& k) {
            const int64_t h = int64_t{i[2]} * 2 + k[1] - 1, w = int64_t{i[3]} * 2 + k[2] - 1;
            if (h < 0 || w < 0 || h >= yd[2] || w >= yd[3]) return;
            y[position(yd, {0, k[0], uint32_t(h), uint32_t(w)})] +=
                test.operands[0].at(i) * test.operands[1].at({i[1], k[0], k[1], k[2]});
        });
    });
    return test.with(p);
}

OperatorCase matmul(const std::string& name, uint32_t m, uint32_t k, uint32_t n, uint32_t dtype,
                    double tolerance) {
    OperatorCase test{name, ENPU_OPCODE_MATMUL, {}, {}, {}, tolerance, {}};
    test.operands = {numbers({m, k}, 10, -1, 1, dtype),
                     numbers({k, n}, 11, -1, 1, dtype),
                     none(),
                     none(),
                     none(),
                     output({m, n}, dtype)};
    test.expected = matmul_reference(test.operands[0], test.operands[1], none());
    return test.with(enpu_matmul_params{0, 0, 0, 1});
}

// The same product with both operands read across.
OperatorCase matmul_transposed() {
    OperatorCase test = matmul("matmul with transposed operands", 9, 17, 5, ENPU_DTYPE_F32, 1e-5);
    for (unsigned which : {0u, 1u}) {
        Operand& operand = test.operands[which];
        const Dims dims = operand.dims;
        std::vector<double> turned(operand.values.size());
        for_each_index(dims, [&](const Dims& i) {
            turned[position({dims[1], dims[0]}, {i[1], i[0]})] = operand.at(i);
        });
        operand.values = turned;
    }
    test.adjust = [](std::vector<enpu_tensor>& tensors) {
        for (unsigned which : {0u, 1u}) {
            tensors[which].strides[0] = 1;
            tensors[which].strides[1] = static_cast<int32_t>(tensors[which].dims[0]);
        }
    };
    return test;
}

OperatorCase pool(const std::string& name, uint32_t function) {
    const enpu_pool_params p{function, {3, 2}, {2, 1}, {1, 0, 1, 1}, {1, 1}};
    const Dims yd = {2, 3, 4, 7};
    OperatorCase test{name, ENPU_OPCODE_POOL, {}, {}, {}, 1e-6, {}};
    test.operands = {numbers({2, 3, 8, 7}, 12), output(yd)};
    test.expected = pool_reference(test.operands[0], yd, p);
    return test.with(p);
}

}  // namespace

// Plain loops and offsets: a network is checked in an emulated guest, where every step counts.
std::vector<double> conv2d_reference(const Operand& x, const Operand& w, const Operand& bias,
                                     const Dims& yd, const enpu_conv2d_params& p) {
    std::vector<double> y;
    y.reserve(count_of(yd));
    const uint32_t per_group = w.dims[1], out_per_group = w.dims[0] / p.groups;
    const size_t height = x.dims[2], width = x.dims[3];
    for_each_index(yd, [&](const Dims& i) {
        double sum = bias.dtype == ENPU_DTYPE_NONE ? 0 : bias.values[i[1]];
        const size_t group = i[1] / out_per_group * per_group;
        const double* weight = &w.values[size_t{i[1]} * per_group * w.dims[2] * w.dims[3]];
        for (uint32_t channel = 0; channel < per_group; ++channel) {
            const double* plane =
                &x.values[(i[0] * size_t{x.dims[1]} + group + channel) * height * width];
            for (uint32_t kh = 0; kh < w.dims[2]; ++kh)
                for (uint32_t kw = 0; kw < w.dims[3]; ++kw, ++weight) {
                    uint32_t h = 0, v = 0;
                    if (source(i[2], kh, p.stride[0], p.dilation[0], p.pad[0], x.dims[2], &h) &&
                        source(i[3], kw, p.stride[1], p.dilation[1], p.pad[1], x.dims[3], &v))
                        sum += plane[h * width + v] * *weight;
                }
        }
        y.push_back(p.act == ENPU_UNARY_RELU ? relu(sum) : sum);
    });
    return y;
}

std::vector<double> matmul_reference(const Operand& a, const Operand& b, const Operand& bias) {
    const size_t m = a.dims[0], k = a.dims[1], n = b.dims[1];
    std::vector<double> y;
    y.reserve(m * n);
    for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < n; ++j) {
            double sum = bias.dtype == ENPU_DTYPE_NONE ? 0 : bias.values[j];
            for (size_t t = 0; t < k; ++t) sum += a.values[i * k + t] * b.values[t * n + j];
            y.push_back(sum);
        }
    return y;
}

std::vector<double> pool_reference(const Operand& x, const Dims& yd, const enpu_pool_params& p) {
    std::vector<double> y;
    for_each_index(yd, [&](const Dims& i) {
        double best = -INFINITY, sum = 0;
        unsigned valid = 0;
        for_each_index({p.kernel[0], p.kernel[1]}, [&](const Dims& k) {
            uint32_t h = 0, w = 0;
            if (!source(i[2], k[0], p.stride[0], p.dilation[0], p.pad[0], x.dims[2], &h) ||
                !source(i[3], k[1], p.stride[1], p.dilation[1], p.pad[1], x.dims[3], &w))
                return;
            const double value = x.at({i[0], i[1], h, w});
            best = std::max(best, value);
            sum += value;
            ++valid;
        });
        const unsigned all = p.kernel[0] * p.kernel[1];
        y.push_back(p.function == ENPU_POOL_MAX       ? best
                    : p.function == ENPU_POOL_AVERAGE ? sum / valid
                                                      : sum / all);
    });
    return y;
}

std::vector<OperatorCase> dense_cases() {
    const enpu_conv2d_params same{{1, 1}, {1, 1, 1, 1}, {1, 1}, 1, ENPU_UNARY_RELU, 0, 0};
    const enpu_conv2d_params odd{{2, 1}, {0, 2, 1, 0}, {1, 2}, 1, 0, 0, 0};
    const enpu_conv2d_params depthwise{{1, 1}, {1, 1, 1, 1}, {1, 1}, 6, 0, 0, 0};
    return {
        conv2d("conv2d f32 3x3", {2, 5, 9, 11}, {7, 5, 3, 3}, {2, 7, 9, 11}, same, ENPU_DTYPE_F32,
               1e-5),
        conv2d("conv2d f32, strides, pads and dilation of their own", {1, 3, 10, 9}, {4, 3, 3, 2},
               {1, 4, 5, 9}, odd, ENPU_DTYPE_F32, 1e-5),
        conv2d("conv2d f32, depthwise", {1, 6, 7, 7}, {6, 1, 3, 3}, {1, 6, 7, 7}, depthwise,
               ENPU_DTYPE_F32, 1e-5),
        conv2d("conv2d f16", {1, 4, 6, 6}, {5, 4, 3, 3}, {1, 5, 6, 6}, same, ENPU_DTYPE_F16, 2e-3),
        conv2d("conv2d bf16", {1, 4, 6, 6}, {5, 4, 3, 3}, {1, 5, 6, 6}, same, ENPU_DTYPE_BF16,
               1e-2),
        conv2d_i8(),
        conv_transpose(),
        matmul("matmul f32", 33, 70, 19, ENPU_DTYPE_F32, 1e-5),
        matmul("matmul f16", 8, 24, 10, ENPU_DTYPE_F16, 2e-3),
        matmul("matmul bf16", 8, 24, 10, ENPU_DTYPE_BF16, 1e-2),
        matmul_transposed(),
        pool("pool max", ENPU_POOL_MAX),
        pool("pool average", ENPU_POOL_AVERAGE),
        pool("pool average with padding", ENPU_POOL_AVERAGE_INCLUDE_PAD),
    };
}

}  // namespace enpu::bringup
