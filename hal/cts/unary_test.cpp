// SPDX-License-Identifier: MIT
// Each elementwise function against its formula in double precision, over dtypes, shapes and layouts.
#include <cmath>

#include "reference.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;

namespace {

using Function = double (*)(double x, double a, double b);

struct Domain {
    double low = -4, high = 4;
    float alpha = 0, beta = 0;
    double tolerance = 4e-6;
    uint32_t result = ENPU_OP_NONE;  // NONE: that of x
};

constexpr uint32_t kFloats[] = {ENPU_OP_F32, ENPU_OP_F16, ENPU_OP_BF16};

void check_one(Fixture& f, Runs& runs, enpu_op_unary function, const Array& x, uint32_t dtype,
               Layout layout, const Domain& domain, Function reference) {
    INFO(dtype_name(dtype) << ", rank " << x.dims.size() << ", " << layout_name(layout));
    const uint32_t result = domain.result ? domain.result : dtype;
    const auto y = room(f, x.dims, result, layout);
    const Kernel kernel(
        ENPU_OP_UNARY,
        enpu_op_unary_params{static_cast<uint32_t>(function), domain.alpha, domain.beta},
        {put(f, x, dtype, layout), y});
    if (!runs.run(kernel)) return;
    Array expected(x.dims);
    for (size_t i = 0; i < x.values.size(); ++i)
        expected.values[i] = reference(x.values[i], domain.alpha, domain.beta);
    check_equal(get(f, y, true), expected, result, domain.tolerance);
}

void check_floats(enpu_op_unary function, const Domain& domain, Function reference) {
    Fixture f;
    Runs runs(f);
    for (uint32_t dtype : kFloats)
        for (const Dims& dims : {Dims{}, Dims{1}, Dims{17}, Dims{3, 5, 7}})
            check_one(f, runs, function, numbers(dims, dtype, domain.low, domain.high, 7), dtype,
                      Layout::kDense, domain, reference);
    for (Layout layout : kLayouts)
        check_one(f, runs, function, numbers({5, 3}, ENPU_OP_F32, domain.low, domain.high, 8),
                  ENPU_OP_F32, layout, domain, reference);
    runs.finish();
}

void check_integers(enpu_op_unary function, const Domain& domain, Function reference) {
    Fixture f;
    Runs runs(f);
    for (uint32_t dtype : {ENPU_OP_I8, ENPU_OP_U8, ENPU_OP_I32, ENPU_OP_I64})
        for (const Dims& dims : {Dims{1}, Dims{19}, Dims{2, 3, 4}}) {
            const bool sign = dtype != ENPU_OP_U8;
            check_one(f, runs, function, numbers(dims, dtype, sign ? -100 : 0, 100, 9), dtype,
                      Layout::kDense, domain, reference);
        }
    runs.finish();
}

double sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}

}  // namespace

#define FLOATS(name, domain, formula)                                              \
    TEST_CASE("unary: " #name, "[kernel][unary]") {                                \
        check_floats(ENPU_OP_UNARY_##name, Domain domain,                          \
                     []([[maybe_unused]] double x, [[maybe_unused]] double a,      \
                        [[maybe_unused]] double b) -> double { return formula; }); \
    }
#define INTEGERS(name, domain, formula)                                              \
    TEST_CASE("unary: " #name " of integers", "[kernel][unary]") {                   \
        check_integers(ENPU_OP_UNARY_##name, Domain domain,                          \
                       []([[maybe_unused]] double x, [[maybe_unused]] double a,      \
                          [[maybe_unused]] double b) -> double { return formula; }); \
    }

FLOATS(IDENTITY, {}, x)
FLOATS(RELU, {}, x > 0 ? x : 0)
FLOATS(LEAKY_RELU, ({-4, 4, 0.1f}), x < 0 ? a * x : x)
FLOATS(CLIP, ({-4, 4, -1.5f, 2.25f}), std::fmin(std::fmax(x, a), b))
FLOATS(SIGMOID, ({-9, 9}), sigmoid(x))
FLOATS(TANH, ({-5, 5}), std::tanh(x))
FLOATS(GELU, {}, x* std::erfc(-x / std::sqrt(2.0)) / 2)
FLOATS(GELU_TANH, {}, x*(1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) / 2)
FLOATS(SILU, {}, x* sigmoid(x))
FLOATS(HARD_SIGMOID, ({-4, 4, 0.2f, 0.5f}), std::fmax(0, std::fmin(1, a* x + b)))
FLOATS(HARD_SWISH, {}, x* std::fmax(0, std::fmin(1, x / 6 + 0.5)))
FLOATS(ELU, ({-4, 4, 1.5f}), x < 0 ? a * std::expm1(x) : x)
FLOATS(SELU, ({-4, 4, 1.6733f, 1.0507f}), b*(x < 0 ? a * std::expm1(x) : x))
FLOATS(CELU, ({-4, 4, 0.75f}), x < 0 ? a * std::expm1(x / a) : x)
FLOATS(SOFTPLUS, ({-8, 8}), std::log1p(std::exp(x)))
FLOATS(SOFTSIGN, {}, x / (1 + std::fabs(x)))
FLOATS(MISH, {}, x* std::tanh(std::log1p(std::exp(x))))
FLOATS(THRESHOLDED_RELU, ({-4, 4, 1.0f}), x > a ? x : 0)
FLOATS(EXP, ({-5, 5}), std::exp(x))
FLOATS(LOG, ({0.01, 9}), std::log(x))
FLOATS(SQRT, ({0, 50}), std::sqrt(x))
FLOATS(RSQRT, ({0.05, 50}), 1 / std::sqrt(x))
FLOATS(RECIPROCAL, ({0.1, 8}), 1 / x)
FLOATS(ABS, {}, std::fabs(x))
FLOATS(NEG, {}, -x)
FLOATS(SIGN, {}, x > 0 ? 1 : x < 0 ? -1 : x)
FLOATS(FLOOR, {}, std::floor(x))
FLOATS(CEIL, {}, std::ceil(x))
FLOATS(ROUND, {}, std::nearbyint(x))
FLOATS(ERF, ({-3, 3}), std::erf(x))
FLOATS(SIN, {}, std::sin(x))
FLOATS(COS, {}, std::cos(x))
FLOATS(TAN, ({-1.3, 1.3}), std::tan(x))
FLOATS(ASIN, ({-1, 1}), std::asin(x))
FLOATS(ACOS, ({-1, 1}), std::acos(x))
FLOATS(ATAN, {}, std::atan(x))
FLOATS(SINH, {}, std::sinh(x))
FLOATS(COSH, {}, std::cosh(x))
FLOATS(ASINH, {}, std::asinh(x))
FLOATS(ACOSH, ({1, 9}), std::acosh(x))
FLOATS(ATANH, ({-0.9, 0.9}), std::atanh(x))
FLOATS(SQUARE, {}, x* x)
FLOATS(SCALE, ({-4, 4, 1.5f, -0.25f}), a* x + b)
FLOATS(QUICK_GELU, ({-4, 4, 1.702f}), x* sigmoid(a* x))
FLOATS(SHRINK, ({-4, 4, 1.0f, 0.5f}), x<-a ? x + b : x> a ? x - b : 0)

INTEGERS(RELU, {}, x > 0 ? x : 0)
INTEGERS(CLIP, ({-4, 4, -50.5f, 30.5f}), std::fmin(std::fmax(x, -50), 30))
INTEGERS(ABS, {}, std::fabs(x))
INTEGERS(SIGN, {}, (x > 0) - (x < 0))

TEST_CASE("unary: ISNAN", "[kernel][unary]") {
    Fixture f;
    Runs runs(f);
    Domain domain;
    domain.result = ENPU_OP_BOOL;
    const Array x({4}, {1.0, NAN, -INFINITY, 0.0});
    check_one(f, runs, ENPU_OP_UNARY_ISNAN, x, ENPU_OP_F32, Layout::kDense, domain,
              [](double v, double, double) { return double(std::isnan(v)); });
    runs.finish();
}

TEST_CASE("unary: ISINF asks for one sign or both", "[kernel][unary]") {
    Fixture f;
    Runs runs(f);
    const Array x({4}, {INFINITY, -INFINITY, NAN, 3.0});
    for (float alpha : {0.0f, 1.0f, -1.0f}) {
        Domain domain;
        domain.result = ENPU_OP_BOOL;
        domain.alpha = alpha;
        check_one(f, runs, ENPU_OP_UNARY_ISINF, x, ENPU_OP_F32, Layout::kDense, domain,
                  [](double v, double a, double) {
                      return double(std::isinf(v) && (a == 0 || (a > 0) == (v > 0)));
                  });
    }
    runs.finish();
}

TEST_CASE("unary: NOT of booleans", "[kernel][unary]") {
    Fixture f;
    Runs runs(f);
    check_one(f, runs, ENPU_OP_UNARY_NOT, Array({2, 3}, {0, 1, 1, 0, 0, 1}), ENPU_OP_BOOL,
              Layout::kTransposed, {}, [](double v, double, double) { return double(v == 0); });
    runs.finish();
}

TEST_CASE("unary: BIT_NOT of integers", "[kernel][unary]") {
    Fixture f;
    Runs runs(f);
    for (uint32_t dtype : {ENPU_OP_I32, ENPU_OP_I64})
        check_one(f, runs, ENPU_OP_UNARY_BIT_NOT, numbers({13}, dtype, -1000, 1000, 3), dtype,
                  Layout::kDense, {}, [](double v, double, double) { return -v - 1; });
    runs.finish();
}

TEST_CASE("unary: NaN goes through, infinities stay", "[kernel][unary]") {
    Fixture f;
    Runs runs(f);
    const Array x({4}, {NAN, INFINITY, -INFINITY, -0.0});
    check_one(f, runs, ENPU_OP_UNARY_NEG, x, ENPU_OP_F32, Layout::kDense, {},
              [](double v, double, double) { return -v; });
    check_one(f, runs, ENPU_OP_UNARY_ABS, x, ENPU_OP_F32, Layout::kDense, {},
              [](double v, double, double) { return std::fabs(v); });
    check_one(f, runs, ENPU_OP_UNARY_SQRT, x, ENPU_OP_F32, Layout::kDense, {},
              [](double v, double, double) { return std::sqrt(v); });
    runs.finish();
}

TEST_CASE("unary: works in place", "[kernel][unary]") {
    Fixture f;
    Runs runs(f);
    const Array x = numbers({4, 9}, ENPU_OP_F32, -2, 2, 4);
    const auto xy = put(f, x, ENPU_OP_F32, Layout::kGaps);
    const Kernel kernel(ENPU_OP_UNARY, enpu_op_unary_params{ENPU_OP_UNARY_SQUARE, 0, 0}, {xy, xy});
    if (runs.run(kernel)) {
        Array expected = x;
        for (double& v : expected.values) v *= v;
        check_equal(get(f, xy, true), expected, ENPU_OP_F32, 1e-7);
    }
    runs.finish();
}

TEST_CASE("unary: a million elements, and ranks up to eight", "[kernel][unary]") {
    Fixture f;
    Runs runs(f);
    for (const Dims& dims : {Dims{1'000'003}, Dims{2, 1, 3, 2, 1, 2, 3, 2}})
        check_one(f, runs, ENPU_OP_UNARY_SQUARE, numbers(dims, ENPU_OP_F32, -2, 2, 5), ENPU_OP_F32,
                  Layout::kDense, {}, [](double v, double, double) { return v * v; });
    runs.finish();
}
