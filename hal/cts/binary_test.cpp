// SPDX-License-Identifier: MIT
// Functions of two operands, broadcasting, and select.
#include <algorithm>
#include <cmath>

#include "reference.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;

namespace {

using Function = double (*)(double a, double b);

enpu_op_binary_params params_of(uint32_t function) {
    return {function, ENPU_OP_UNARY_IDENTITY, 0, 0};
}

void check_one(Fixture& f, Runs& runs, uint32_t function, const Array& a, const Array& b,
               uint32_t dtype, uint32_t result, Layout layout, Function reference,
               double tolerance = 1e-6) {
    INFO(dtype_name(dtype) << ", " << layout_name(layout));
    const auto y = room(f, a.dims, result, layout);
    const Kernel kernel(ENPU_OP_BINARY, params_of(function),
                        {put(f, a, dtype, layout), put(f, b, dtype), y});
    if (!runs.run(kernel)) return;
    Array expected(a.dims);
    for (size_t i = 0; i < a.values.size(); ++i)
        expected.values[i] = reference(a.values[i], b.values[i]);
    check_equal(get(f, y, true), expected, result, tolerance);
}

struct Case {
    double low_a = -3, high_a = 3, low_b = -3, high_b = 3;
    double tolerance = 1e-6;
};

void check_floats(uint32_t function, const Case& c, Function reference, uint32_t result = 0) {
    Fixture f;
    Runs runs(f);
    for (uint32_t dtype : {ENPU_OP_F32, ENPU_OP_F16, ENPU_OP_BF16})
        for (const Dims& dims : {Dims{}, Dims{23}, Dims{3, 4, 5}})
            check_one(f, runs, function, numbers(dims, dtype, c.low_a, c.high_a, 1),
                      numbers(dims, dtype, c.low_b, c.high_b, 2), dtype, result ? result : dtype,
                      Layout::kDense, reference, c.tolerance);
    for (Layout layout : kLayouts)
        check_one(f, runs, function, numbers({4, 7}, ENPU_OP_F32, c.low_a, c.high_a, 3),
                  numbers({4, 7}, ENPU_OP_F32, c.low_b, c.high_b, 4), ENPU_OP_F32,
                  result ? result : uint32_t(ENPU_OP_F32), layout, reference, c.tolerance);
    runs.finish();
}

void check_integers(uint32_t function, double low_b, double high_b, Function reference) {
    Fixture f;
    Runs runs(f);
    for (uint32_t dtype : {ENPU_OP_I8, ENPU_OP_U8, ENPU_OP_I32, ENPU_OP_I64}) {
        const bool sign = dtype != ENPU_OP_U8;
        check_one(f, runs, function, numbers({29}, dtype, sign ? -10 : 11, 20, 5),
                  numbers({29}, dtype, sign ? low_b : std::max(low_b, 0.0), high_b, 6), dtype,
                  dtype, Layout::kDense, reference);
    }
    runs.finish();
}

double modulo(double a, double b) {
    return a - std::floor(a / b) * b;
}

int64_t whole(double value) {
    return static_cast<int64_t>(value);
}

}  // namespace

#define FLOATS(name, domain, formula)                                       \
    TEST_CASE("binary: " #name, "[kernel][binary]") {                       \
        check_floats(ENPU_OP_BINARY_##name, Case domain,                    \
                     [](double a, double b) -> double { return formula; }); \
    }
#define COMPARISON(name, formula)                                                \
    TEST_CASE("binary: " #name " gives booleans", "[kernel][binary]") {          \
        check_floats(                                                            \
            ENPU_OP_BINARY_##name, Case{-2, 2, -2, 2, 0},                        \
            [](double a, double b) -> double { return formula; }, ENPU_OP_BOOL); \
    }
#define INTEGERS(name, low, high, formula)                                    \
    TEST_CASE("binary: " #name " of integers", "[kernel][binary]") {          \
        check_integers(ENPU_OP_BINARY_##name, low, high,                      \
                       [](double a, double b) -> double { return formula; }); \
    }

FLOATS(ADD, {}, a + b)
FLOATS(SUB, {}, a - b)
FLOATS(MUL, {}, a* b)
FLOATS(DIV, ({-3, 3, 0.5, 4}), a / b)
FLOATS(MIN, {}, std::fmin(a, b))
FLOATS(MAX, {}, std::fmax(a, b))
FLOATS(POW, ({0.25, 3, -2, 3}), std::pow(a, b))
FLOATS(PRELU, {}, a < 0 ? a * b : a)
FLOATS(FMOD, ({-3, 3, 0.5, 2}), std::fmod(a, b))
COMPARISON(EQ, a == b)
COMPARISON(NE, a != b)
COMPARISON(LT, a < b)
COMPARISON(LE, a <= b)
COMPARISON(GT, a > b)
COMPARISON(GE, a >= b)
INTEGERS(ADD, -5, 9, a + b)
INTEGERS(SUB, -5, 9, a - b)
INTEGERS(MUL, -3, 4, a* b)
INTEGERS(DIV, 1, 7, std::trunc(a / b))
INTEGERS(MIN, -5, 30, std::fmin(a, b))
INTEGERS(MAX, -5, 30, std::fmax(a, b))
INTEGERS(MOD, 1, 7, modulo(a, b))
INTEGERS(BIT_AND, 0, 31, double(whole(a) & whole(b)))
INTEGERS(BIT_OR, 0, 31, double(whole(a) | whole(b)))
INTEGERS(BIT_XOR, 0, 31, double(whole(a) ^ whole(b)))
INTEGERS(SHIFT_LEFT, 0, 2, a* double(1 << whole(b)))
INTEGERS(SHIFT_RIGHT, 0, 3, double(whole(a) >> whole(b)))

TEST_CASE("binary: AND, OR and XOR of booleans", "[kernel][binary]") {
    Fixture f;
    Runs runs(f);
    const Array a({4}, {0, 0, 1, 1}), b({4}, {0, 1, 0, 1});
    const auto check = [&](uint32_t function, Function reference) {
        check_one(f, runs, function, a, b, ENPU_OP_BOOL, ENPU_OP_BOOL, Layout::kDense, reference);
    };
    check(ENPU_OP_BINARY_AND, [](double p, double q) { return double(p != 0 && q != 0); });
    check(ENPU_OP_BINARY_OR, [](double p, double q) { return double(p != 0 || q != 0); });
    check(ENPU_OP_BINARY_XOR, [](double p, double q) { return double((p != 0) != (q != 0)); });
    runs.finish();
}

TEST_CASE("binary: an integer divided by 0 gives 0", "[kernel][binary]") {
    Fixture f;
    Runs runs(f);
    check_one(f, runs, ENPU_OP_BINARY_DIV, Array({3}, {5, -7, 0}), Array({3}, 0.0), ENPU_OP_I32,
              ENPU_OP_I32, Layout::kDense, [](double, double) { return 0.0; });
    runs.finish();
}

TEST_CASE("binary: integer sums wrap", "[kernel][binary]") {
    Fixture f;
    Runs runs(f);
    check_one(f, runs, ENPU_OP_BINARY_ADD, Array({2}, {2147483647.0, -2147483648.0}),
              Array({2}, {1, -1}), ENPU_OP_I32, ENPU_OP_I32, Layout::kDense,
              [](double a, double) { return a > 0 ? -2147483648.0 : 2147483647.0; });
    runs.finish();
}

TEST_CASE("binary: MIN and MAX give NaN when either is NaN", "[kernel][binary]") {
    Fixture f;
    Runs runs(f);
    const Array a({2}, {NAN, 1}), b({2}, {1, NAN});
    for (uint32_t function : {ENPU_OP_BINARY_MIN, ENPU_OP_BINARY_MAX})
        check_one(f, runs, function, a, b, ENPU_OP_F32, ENPU_OP_F32, Layout::kDense,
                  [](double, double) { return double(NAN); });
    runs.finish();
}

TEST_CASE("binary: broadcasts a scalar, a row, a column, and both operands",
          "[kernel][binary][broadcast]") {
    Fixture f;
    Runs runs(f);
    const Dims out{3, 4, 5};
    const std::pair<Dims, Dims> shapes[] = {{{1, 1, 1}, {3, 4, 5}},
                                            {{3, 4, 5}, {1, 1, 5}},
                                            {{3, 4, 5}, {3, 1, 1}},
                                            {{3, 1, 5}, {1, 4, 1}}};
    for (const auto& [da, db] : shapes) {
        const Array a = numbers(da, ENPU_OP_F32, -2, 2, 1), b = numbers(db, ENPU_OP_F32, -2, 2, 2);
        const auto y = room(f, out, ENPU_OP_F32);
        const Kernel kernel(
            ENPU_OP_BINARY, params_of(ENPU_OP_BINARY_SUB),
            {broadcast(put(f, a, ENPU_OP_F32), out), broadcast(put(f, b, ENPU_OP_F32), out), y});
        if (!runs.run(kernel)) continue;
        Array expected(out);
        for (int64_t i = 0; i < 60; ++i) {
            Dims at = index_at(out, i), ia = at, ib = at;
            for (size_t k = 0; k < 3; ++k) {
                if (da[k] == 1) ia[k] = 0;
                if (db[k] == 1) ib[k] = 0;
            }
            expected[at] = a[ia] - b[ib];
        }
        check_equal(get(f, y), expected, ENPU_OP_F32, 1e-7);
    }
    runs.finish();
}

TEST_CASE("binary: a fused activation sees the sum", "[kernel][binary]") {
    Fixture f;
    Runs runs(f);
    const Array a = numbers({31}, ENPU_OP_F32, -3, 3, 1), b = numbers({31}, ENPU_OP_F32, -3, 3, 2);
    const auto y = room(f, {31}, ENPU_OP_F32);
    const Kernel kernel(ENPU_OP_BINARY,
                        enpu_op_binary_params{ENPU_OP_BINARY_ADD, ENPU_OP_UNARY_CLIP, -1.0f, 1.0f},
                        {put(f, a, ENPU_OP_F32), put(f, b, ENPU_OP_F32), y});
    if (runs.run(kernel)) {
        Array expected({31});
        for (size_t i = 0; i < 31; ++i)
            expected.values[i] = std::clamp(a.values[i] + b.values[i], -1.0, 1.0);
        check_equal(get(f, y), expected, ENPU_OP_F32, 1e-6);
    }
    runs.finish();
}

TEST_CASE("binary: writes over its first operand", "[kernel][binary]") {
    Fixture f;
    Runs runs(f);
    const Array a = numbers({5, 5}, ENPU_OP_I32, -9, 9, 1),
                b = numbers({5, 5}, ENPU_OP_I32, -9, 9, 2);
    const auto ay = put(f, a, ENPU_OP_I32);
    const Kernel kernel(ENPU_OP_BINARY, params_of(ENPU_OP_BINARY_ADD),
                        {ay, put(f, b, ENPU_OP_I32), ay});
    if (runs.run(kernel)) {
        Array expected = a;
        for (size_t i = 0; i < 25; ++i) expected.values[i] += b.values[i];
        check_equal(get(f, ay), expected, ENPU_OP_I32, 0);
    }
    runs.finish();
}

TEST_CASE("select: takes a or b by a condition, also broadcast", "[kernel][select]") {
    Fixture f;
    Runs runs(f);
    const Dims out{4, 3};
    const Array condition({4, 1}, {1, 0, 0, 1});
    for (uint32_t dtype : {ENPU_OP_F32, ENPU_OP_F16, ENPU_OP_I8, ENPU_OP_I32, ENPU_OP_I64}) {
        const Array a = numbers(out, dtype, 0, 50, 1), b = numbers(out, dtype, 51, 100, 2);
        const auto y = room(f, out, dtype, Layout::kTransposed);
        const Kernel kernel(ENPU_OP_SELECT, {broadcast(put(f, condition, ENPU_OP_BOOL), out),
                                             put(f, a, dtype), put(f, b, dtype), y});
        if (!runs.run(kernel)) continue;
        Array expected(out);
        for (int64_t i = 0; i < 12; ++i)
            expected.values[size_t(i)] =
                condition.values[size_t(i / 3)] != 0 ? a.values[size_t(i)] : b.values[size_t(i)];
        check_equal(get(f, y), expected, dtype, 0);
    }
    runs.finish();
}
