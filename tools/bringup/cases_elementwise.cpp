// SPDX-License-Identifier: MIT
#include <cmath>

#include "operator_case.h"

namespace enpu::bringup {
namespace {

struct UnaryFormula {
    const char* name;
    uint32_t function;
    double low, high;
    double (*formula)(double x);
};

constexpr double kAlpha = 0.25, kBeta = 0.75;

double sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}

const UnaryFormula kUnary[] = {
    {"identity", ENPU_UNARY_IDENTITY, -9, 9, [](double x) { return x; }},
    {"relu", ENPU_UNARY_RELU, -9, 9, [](double x) { return x > 0 ? x : 0; }},
    {"leaky_relu", ENPU_UNARY_LEAKY_RELU, -9, 9, [](double x) { return x < 0 ? kAlpha * x : x; }},
    {"clip", ENPU_UNARY_CLIP, -2, 2, [](double x) { return std::max(kAlpha, std::min(x, kBeta)); }},
    {"sigmoid", ENPU_UNARY_SIGMOID, -9, 9, sigmoid},
    {"tanh", ENPU_UNARY_TANH, -4, 4, [](double x) { return std::tanh(x); }},
    {"gelu", ENPU_UNARY_GELU, -4, 4,
     [](double x) { return x * (1 + std::erf(x / std::sqrt(2.0))) / 2; }},
    {"silu", ENPU_UNARY_SILU, -9, 9, [](double x) { return x * sigmoid(x); }},
    {"hard_sigmoid", ENPU_UNARY_HARD_SIGMOID, -9, 9,
     [](double x) { return std::max(0.0, std::min(1.0, kAlpha * x + kBeta)); }},
    {"hard_swish", ENPU_UNARY_HARD_SWISH, -9, 9,
     [](double x) { return x * std::max(0.0, std::min(1.0, x / 6 + 0.5)); }},
    {"elu", ENPU_UNARY_ELU, -4, 4, [](double x) { return x < 0 ? kAlpha * std::expm1(x) : x; }},
    {"softplus", ENPU_UNARY_SOFTPLUS, -9, 9, [](double x) { return std::log1p(std::exp(x)); }},
    {"exp", ENPU_UNARY_EXP, -4, 4, [](double x) { return std::exp(x); }},
    {"log", ENPU_UNARY_LOG, 0.1, 9, [](double x) { return std::log(x); }},
    {"sqrt", ENPU_UNARY_SQRT, 0, 9, [](double x) { return std::sqrt(x); }},
    {"rsqrt", ENPU_UNARY_RSQRT, 0.1, 9, [](double x) { return 1 / std::sqrt(x); }},
    {"reciprocal", ENPU_UNARY_RECIPROCAL, 0.1, 9, [](double x) { return 1 / x; }},
    {"abs", ENPU_UNARY_ABS, -9, 9, [](double x) { return std::fabs(x); }},
    {"neg", ENPU_UNARY_NEG, -9, 9, [](double x) { return -x; }},
    {"floor", ENPU_UNARY_FLOOR, -9, 9, [](double x) { return std::floor(x); }},
    {"ceil", ENPU_UNARY_CEIL, -9, 9, [](double x) { return std::ceil(x); }},
    {"round", ENPU_UNARY_ROUND, -9, 9, [](double x) { return std::nearbyint(x); }},
    {"erf", ENPU_UNARY_ERF, -3, 3, [](double x) { return std::erf(x); }},
    {"sin", ENPU_UNARY_SIN, -3, 3, [](double x) { return std::sin(x); }},
    {"cos", ENPU_UNARY_COS, -3, 3, [](double x) { return std::cos(x); }},
    {"square", ENPU_UNARY_SQUARE, -9, 9, [](double x) { return x * x; }},
    {"scale", ENPU_UNARY_SCALE, -9, 9, [](double x) { return kAlpha * x + kBeta; }},
};

OperatorCase unary(const UnaryFormula& f) {
    OperatorCase test{std::string("unary ") + f.name, ENPU_OPCODE_UNARY, {}, {}, {}, 3e-6, {}};
    test.operands = {numbers({5, 41}, f.function + 20, f.low, f.high), output({5, 41})};
    for (const double x : test.operands[0].values) test.expected.push_back(f.formula(x));
    return test.with(
        enpu_unary_params{f.function, static_cast<float>(kAlpha), static_cast<float>(kBeta)});
}

struct BinaryFormula {
    const char* name;
    uint32_t function;
    bool gives_bool;
    double (*formula)(double a, double b);
};

const BinaryFormula kBinary[] = {
    {"add", ENPU_BINARY_ADD, false, [](double a, double b) { return a + b; }},
    {"sub", ENPU_BINARY_SUB, false, [](double a, double b) { return a - b; }},
    {"mul", ENPU_BINARY_MUL, false, [](double a, double b) { return a * b; }},
    {"div", ENPU_BINARY_DIV, false, [](double a, double b) { return a / b; }},
    {"min", ENPU_BINARY_MIN, false, [](double a, double b) { return std::min(a, b); }},
    {"max", ENPU_BINARY_MAX, false, [](double a, double b) { return std::max(a, b); }},
    {"pow", ENPU_BINARY_POW, false, [](double a, double b) { return std::pow(a, b); }},
    {"lt", ENPU_BINARY_LT, true, [](double a, double b) { return double(a < b); }},
    {"ge", ENPU_BINARY_GE, true, [](double a, double b) { return double(a >= b); }},
    {"eq", ENPU_BINARY_EQ, true, [](double a, double b) { return double(a == b); }},
};

// b has one row that is broadcast by stride 0.
OperatorCase binary(const BinaryFormula& f) {
    const Dims dims = {6, 23};
    OperatorCase test{std::string("binary ") + f.name, ENPU_OPCODE_BINARY, {}, {}, {}, 3e-6, {}};
    test.operands = {numbers(dims, f.function + 90, 0.1, 3),
                     numbers({23}, f.function + 120, 0.1, 3),
                     output(dims, f.gives_bool ? ENPU_DTYPE_BOOL : ENPU_DTYPE_F32)};
    for_each_index(dims, [&](const Dims& i) {
        test.expected.push_back(f.formula(test.operands[0].at(i), test.operands[1].values[i[1]]));
    });
    test.adjust = [](std::vector<enpu_tensor>& tensors) {
        enpu_tensor& b = tensors[1];
        b.rank = 2;
        b.dims[1] = b.dims[0];
        b.dims[0] = tensors[0].dims[0];
        b.strides[1] = 1;
        b.strides[0] = 0;
    };
    return test.with(enpu_binary_params{f.function, 0, 0, 0});
}

OperatorCase integer_add() {
    OperatorCase test{"binary add i32", ENPU_OPCODE_BINARY, {}, {}, {}, 0, {}};
    test.operands = {numbers({77}, 150, -100000, 100000, ENPU_DTYPE_I32),
                     numbers({77}, 151, -100000, 100000, ENPU_DTYPE_I32),
                     output({77}, ENPU_DTYPE_I32)};
    for (size_t i = 0; i < 77; ++i)
        test.expected.push_back(test.operands[0].values[i] + test.operands[1].values[i]);
    return test.with(enpu_binary_params{ENPU_BINARY_ADD, 0, 0, 0});
}

OperatorCase select() {
    OperatorCase test{"select", ENPU_OPCODE_SELECT, {}, {}, {}, 0, {}};
    test.operands = {numbers({8, 9}, 152, 0, 1, ENPU_DTYPE_BOOL), numbers({8, 9}, 153),
                     numbers({8, 9}, 154), output({8, 9})};
    for (size_t i = 0; i < 72; ++i)
        test.expected.push_back(test.operands[test.operands[0].values[i] != 0 ? 1 : 2].values[i]);
    return test;
}

OperatorCase cast(const std::string& name, uint32_t from, uint32_t to, double low, double high) {
    OperatorCase test{"cast " + name, ENPU_OPCODE_CAST, {}, {}, {}, 0, {}};
    test.operands = {numbers({50}, 155, low, high, from), output({50}, to)};
    for (const double x : test.operands[0].values) {
        std::byte memory[8];
        store(to, memory, to >= ENPU_DTYPE_I8 ? std::trunc(x) : x);
        test.expected.push_back(load(to, memory));
    }
    return test;
}

OperatorCase quantize() {
    OperatorCase test{"quantize", ENPU_OPCODE_QUANTIZE, {}, {}, {}, 0, {}};
    test.operands = {numbers({64}, 156, -12, 12), numbers({1}, 157, 0.05, 0.05), none(),
                     output({64}, ENPU_DTYPE_I8)};
    const double scale = test.operands[1].values[0];
    for (const double x : test.operands[0].values) {
        const double q = std::nearbyint(static_cast<float>(x) / static_cast<float>(scale));
        test.expected.push_back(std::max(-128.0, std::min(127.0, q)));
    }
    test.adjust = [](std::vector<enpu_tensor>& tensors) {
        tensors[1].dims[0] = 64;
        tensors[1].strides[0] = 0;
    };
    return test;
}

OperatorCase dequantize() {
    OperatorCase test{"dequantize", ENPU_OPCODE_DEQUANTIZE, {}, {}, {}, 1e-6, {}};
    test.operands = {numbers({64}, 158, -128, 127, ENPU_DTYPE_I8), numbers({1}, 159, 0.3, 0.3),
                     none(), output({64})};
    for (const double x : test.operands[0].values)
        test.expected.push_back(x * test.operands[1].values[0]);
    test.adjust = [](std::vector<enpu_tensor>& tensors) {
        tensors[1].dims[0] = 64;
        tensors[1].strides[0] = 0;
    };
    return test;
}

}  // namespace

std::vector<OperatorCase> elementwise_cases() {
    std::vector<OperatorCase> cases;
    for (const UnaryFormula& formula : kUnary) cases.push_back(unary(formula));
    for (const BinaryFormula& formula : kBinary) cases.push_back(binary(formula));
    cases.push_back(integer_add());
    cases.push_back(select());
    cases.push_back(cast("f32 to i32", ENPU_DTYPE_F32, ENPU_DTYPE_I32, -900, 900));
    cases.push_back(cast("i32 to f32", ENPU_DTYPE_I32, ENPU_DTYPE_F32, -900, 900));
    cases.push_back(cast("f32 to f16", ENPU_DTYPE_F32, ENPU_DTYPE_F16, -900, 900));
    cases.push_back(cast("f32 to bf16", ENPU_DTYPE_F32, ENPU_DTYPE_BF16, -900, 900));
    cases.push_back(cast("u8 to f32", ENPU_DTYPE_U8, ENPU_DTYPE_F32, 0, 255));
    cases.push_back(quantize());
    cases.push_back(dequantize());
    return cases;
}

}  // namespace enpu::bringup
