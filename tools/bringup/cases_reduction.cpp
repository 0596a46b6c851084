// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "operator_case.h"

namespace enpu::bringup {
namespace {

using Fold = double (*)(const std::vector<double>&);

// The values along one axis of the middle of [4, 9, 6], for every position of the others.
template <typename Use>
void along_axis(const Operand& x, Use&& use) {
    const Dims& d = x.dims;
    for (uint32_t a = 0; a < d[0]; ++a)
        for (uint32_t c = 0; c < d[2]; ++c) {
            std::vector<double> line;
            for (uint32_t b = 0; b < d[1]; ++b) line.push_back(x.at({a, b, c}));
            use(line);
        }
}

OperatorCase reduce(const char* name, uint32_t function, Fold fold) {
    OperatorCase test{std::string("reduce ") + name, ENPU_OPCODE_REDUCE, {}, {}, {}, 1e-5, {}};
    test.operands = {numbers({4, 9, 6}, function + 200, 0.2, 1.8), output({4, 1, 6})};
    along_axis(test.operands[0], [&](const auto& line) { test.expected.push_back(fold(line)); });
    return test.with(enpu_reduce_params{function, 1u << 1});
}

double sum_of(const std::vector<double>& line) {
    double sum = 0;
    for (const double value : line) sum += value;
    return sum;
}

double squares_of(const std::vector<double>& line) {
    double sum = 0;
    for (const double value : line) sum += value * value;
    return sum;
}

// Axes 0 and 2 together: a mask, not one axis.
OperatorCase reduce_two_axes() {
    OperatorCase test{"reduce sum over two axes", ENPU_OPCODE_REDUCE, {}, {}, {}, 1e-5, {}};
    test.operands = {numbers({4, 9, 6}, 210), output({1, 9, 1})};
    test.expected.assign(9, 0);
    for_each_index({4, 9, 6},
                   [&](const Dims& i) { test.expected[i[1]] += test.operands[0].at(i); });
    return test.with(enpu_reduce_params{ENPU_REDUCE_SUM, 1u << 0 | 1u << 2});
}

OperatorCase arg(const std::string& name, bool smallest) {
    OperatorCase test{"arg " + name, ENPU_OPCODE_ARG, {}, {}, {}, 0, {}};
    // Few different values, so that equal ones are met: the first counts.
    test.operands = {numbers({4, 9, 6}, 211, 0, 4, ENPU_DTYPE_I32),
                     output({4, 1, 6}, ENPU_DTYPE_I64)};
    along_axis(test.operands[0], [&](const std::vector<double>& line) {
        const auto best = smallest ? std::min_element(line.begin(), line.end())
                                   : std::max_element(line.begin(), line.end());
        test.expected.push_back(static_cast<double>(best - line.begin()));
    });
    return test.with(enpu_arg_params{smallest, 1, 0});
}

OperatorCase softmax(bool log) {
    OperatorCase test{log ? "log softmax" : "softmax", ENPU_OPCODE_SOFTMAX, {}, {}, {}, 4e-6, {}};
    test.operands = {numbers({6, 31}, 212, -4, 4), output({6, 31})};
    test.expected = softmax_reference(test.operands[0], 1);
    if (log)
        for (double& value : test.expected) value = std::log(value);
    return test.with(enpu_softmax_params{1, log});
}

// Mean and variance of each row of [rows, columns].
void normalise(const Operand& x, uint32_t rows, bool rms, double epsilon, std::vector<double>& y) {
    const size_t columns = x.values.size() / rows;
    for (uint32_t row = 0; row < rows; ++row) {
        double mean = 0, square = 0;
        for (size_t i = 0; i < columns; ++i) mean += x.values[row * columns + i] / double(columns);
        if (rms) mean = 0;
        for (size_t i = 0; i < columns; ++i) {
            const double value = x.values[row * columns + i] - mean;
            square += value * value / double(columns);
        }
        for (size_t i = 0; i < columns; ++i)
            y.push_back((x.values[row * columns + i] - mean) / std::sqrt(square + epsilon));
    }
}

OperatorCase layer_norm(bool rms) {
    OperatorCase test{rms ? "norm rms" : "norm layer", ENPU_OPCODE_NORM, {}, {}, {}, 1e-5, {}};
    test.operands = {numbers({5, 40}, 213), numbers({40}, 214), none(), none(), none(),
                     output({5, 40})};
    if (!rms) test.operands[2] = numbers({40}, 215);
    normalise(test.operands[0], 5, rms, 1e-5, test.expected);
    for (size_t i = 0; i < test.expected.size(); ++i) {
        test.expected[i] *= test.operands[1].values[i % 40];
        if (!rms) test.expected[i] += test.operands[2].values[i % 40];
    }
    test.adjust = [rms](std::vector<enpu_tensor>& tensors) {
        for (unsigned which = 1; which <= (rms ? 1u : 2u); ++which) {
            tensors[which].rank = 2;
            tensors[which].dims[0] = 5;
            tensors[which].dims[1] = 40;
            tensors[which].strides[0] = 0;
            tensors[which].strides[1] = 1;
        }
    };
    enpu_norm_params p{};
    p.kind = rms ? ENPU_NORM_RMS : ENPU_NORM_LAYER;
    p.axis = 1;
    p.groups = 1;
    p.epsilon = 1e-5f;
    return test.with(p);
}

OperatorCase batch_norm() {
    OperatorCase test{"norm batch", ENPU_OPCODE_NORM, {}, {}, {}, 1e-5, {}};
    test.operands = {numbers({2, 5, 3, 4}, 216), numbers({5}, 217),         numbers({5}, 218),
                     numbers({5}, 219),          numbers({5}, 220, 0.5, 2), output({2, 5, 3, 4})};
    const auto& o = test.operands;
    for_each_index({2, 5, 3, 4}, [&](const Dims& i) {
        const uint32_t c = i[1];
        test.expected.push_back((o[0].at(i) - o[3].values[c]) / std::sqrt(o[4].values[c] + 1e-5) *
                                    o[1].values[c] +
                                o[2].values[c]);
    });
    enpu_norm_params p{};
    p.kind = ENPU_NORM_BATCH;
    p.epsilon = 1e-5f;
    return test.with(p);
}

}  // namespace

std::vector<double> softmax_reference(const Operand& x, uint32_t axis) {
    std::vector<double> y(x.values.size());
    Dims outer = x.dims;
    outer[axis] = 1;
    for_each_index(outer, [&](const Dims& start) {
        Dims i = start;
        double top = -INFINITY, sum = 0;
        for (i[axis] = 0; i[axis] < x.dims[axis]; ++i[axis]) top = std::max(top, x.at(i));
        for (i[axis] = 0; i[axis] < x.dims[axis]; ++i[axis]) sum += std::exp(x.at(i) - top);
        for (i[axis] = 0; i[axis] < x.dims[axis]; ++i[axis])
            y[position(x.dims, i)] = std::exp(x.at(i) - top) / sum;
    });
    return y;
}

std::vector<OperatorCase> reduction_cases() {
    return {
        reduce("sum", ENPU_REDUCE_SUM, sum_of),
        reduce("mean", ENPU_REDUCE_MEAN,
               [](const std::vector<double>& v) { return sum_of(v) / double(v.size()); }),
        reduce("max", ENPU_REDUCE_MAX,
               [](const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); }),
        reduce("min", ENPU_REDUCE_MIN,
               [](const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }),
        reduce("prod", ENPU_REDUCE_PROD,
               [](const std::vector<double>& v) {
                   double product = 1;
                   for (const double value : v) product *= value;
                   return product;
               }),
        reduce("l2", ENPU_REDUCE_L2,
               [](const std::vector<double>& v) { return std::sqrt(squares_of(v)); }),
        reduce("sum_square", ENPU_REDUCE_SUM_SQUARE, squares_of),
        reduce_two_axes(),
        arg("largest", false),
        arg("smallest", true),
        softmax(false),
        softmax(true),
        layer_norm(false),
        layer_norm(true),
        batch_norm(),
    };
}

}  // namespace enpu::bringup
