// SPDX-License-Identifier: MIT
// Reductions, arguments of extremes, softmax and normalisations.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;

namespace {

using Fold = double (*)(const std::vector<double>& values);

Dims reduced(const Dims& dims, uint32_t axes) {
    Dims result = dims;
    for (size_t i = 0; i < dims.size(); ++i)
        if (axes >> i & 1) result[i] = 1;
    return result;
}

// The values that go into each element of the result, in row-major order.
std::vector<std::vector<double>> groups_of(const Array& x, uint32_t axes) {
    const Dims out = reduced(x.dims, axes);
    std::vector<std::vector<double>> groups(size_t(elements(out)));
    for (int64_t i = 0; i < elements(x.dims); ++i) {
        Dims at = index_at(x.dims, i);
        for (size_t k = 0; k < at.size(); ++k)
            if (axes >> k & 1) at[k] = 0;
        groups[size_t(flat_of(out, at))].push_back(x.values[size_t(i)]);
    }
    return groups;
}

void check_reduce(Fixture& f, Runs& runs, uint32_t function, const Array& x, uint32_t dtype,
                  uint32_t axes, Layout layout, Fold fold, double tolerance) {
    INFO(dtype_name(dtype) << ", axes 0x" << std::hex << axes << ", " << layout_name(layout));
    const auto y = room(f, reduced(x.dims, axes), dtype);
    const Kernel kernel(ENPU_OP_REDUCE, enpu_op_reduce_params{function, axes},
                        {put(f, x, dtype, layout), y});
    if (!runs.run(kernel)) return;
    Array expected(reduced(x.dims, axes));
    const auto groups = groups_of(x, axes);
    for (size_t i = 0; i < groups.size(); ++i) expected.values[i] = fold(groups[i]);
    check_equal(get(f, y), expected, dtype, tolerance);
}

void check_function(uint32_t function, double low, double high, Fold fold,
                    double tolerance = 1e-6) {
    Fixture f;
    Runs runs(f);
    for (uint32_t axes : {1u, 2u, 4u, 6u, 7u})
        check_reduce(f, runs, function, numbers({3, 4, 5}, ENPU_OP_F32, low, high, 1), ENPU_OP_F32,
                     axes, Layout::kDense, fold, tolerance);
    for (Layout layout : kLayouts)
        check_reduce(f, runs, function, numbers({6, 7}, ENPU_OP_F32, low, high, 2), ENPU_OP_F32, 2,
                     layout, fold, tolerance);
    for (uint32_t dtype : {ENPU_OP_F16, ENPU_OP_BF16})
        check_reduce(f, runs, function, numbers({4, 9}, dtype, low, high, 3), dtype, 1,
                     Layout::kDense, fold, tolerance);
    runs.finish();
}

double sum(const std::vector<double>& v) {
    double total = 0;
    for (double x : v) total += x;
    return total;
}
double sum_square(const std::vector<double>& v) {
    double total = 0;
    for (double x : v) total += x * x;
    return total;
}
double sum_exp(const std::vector<double>& v) {
    double total = 0;
    for (double x : v) total += std::exp(x);
    return total;
}
double largest(const std::vector<double>& v) {
    return *std::max_element(v.begin(), v.end());
}
double smallest(const std::vector<double>& v) {
    return *std::min_element(v.begin(), v.end());
}

}  // namespace

TEST_CASE("reduce: SUM", "[kernel][reduce]") {
    check_function(ENPU_OP_REDUCE_SUM, -2, 2, sum);
}
TEST_CASE("reduce: MEAN", "[kernel][reduce]") {
    check_function(ENPU_OP_REDUCE_MEAN, -2, 2,
                   [](const std::vector<double>& v) { return sum(v) / double(v.size()); });
}
TEST_CASE("reduce: MAX", "[kernel][reduce]") {
    check_function(ENPU_OP_REDUCE_MAX, -2, 2, largest, 0);
}
TEST_CASE("reduce: MIN", "[kernel][reduce]") {
    check_function(ENPU_OP_REDUCE_MIN, -2, 2, smallest, 0);
}
TEST_CASE("reduce: PROD", "[kernel][reduce]") {
    check_function(ENPU_OP_REDUCE_PROD, 0.8, 1.2, [](const std::vector<double>& v) {
        double product = 1;
        for (double x : v) product *= x;
        return product;
    });
}
TEST_CASE("reduce: L1", "[kernel][reduce]") {
    check_function(ENPU_OP_REDUCE_L1, -2, 2, [](const std::vector<double>& v) {
        double total = 0;
        for (double x : v) total += std::fabs(x);
        return total;
    });
}
TEST_CASE("reduce: L2", "[kernel][reduce]") {
    check_function(ENPU_OP_REDUCE_L2, -2, 2,
                   [](const std::vector<double>& v) { return std::sqrt(sum_square(v)); });
}
TEST_CASE("reduce: SUM_SQUARE", "[kernel][reduce]") {
    check_function(ENPU_OP_REDUCE_SUM_SQUARE, -2, 2, sum_square);
}
TEST_CASE("reduce: LOG_SUM", "[kernel][reduce]") {
    check_function(ENPU_OP_REDUCE_LOG_SUM, 0.5, 2,
                   [](const std::vector<double>& v) { return std::log(sum(v)); });
}
TEST_CASE("reduce: LOG_SUM_EXP", "[kernel][reduce]") {
    check_function(
        ENPU_OP_REDUCE_LOG_SUM_EXP, -3, 3,
        [](const std::vector<double>& v) { return std::log(sum_exp(v)); }, 3e-6);
}

TEST_CASE("reduce: integers are exact", "[kernel][reduce]") {
    Fixture f;
    Runs runs(f);
    for (uint32_t dtype : {ENPU_OP_I32, ENPU_OP_I64}) {
        const Array x = numbers({5, 33}, dtype, -1000, 1000, 4);
        check_reduce(f, runs, ENPU_OP_REDUCE_SUM, x, dtype, 2, Layout::kDense, sum, 0);
        check_reduce(f, runs, ENPU_OP_REDUCE_MAX, x, dtype, 1, Layout::kTransposed, largest, 0);
    }
    runs.finish();
}

TEST_CASE("reduce: any and all of booleans", "[kernel][reduce]") {
    Fixture f;
    Runs runs(f);
    const Array x({3, 3}, {0, 0, 0, 0, 1, 0, 1, 1, 1});
    check_reduce(f, runs, ENPU_OP_REDUCE_MAX, x, ENPU_OP_BOOL, 2, Layout::kDense, largest, 0);
    check_reduce(f, runs, ENPU_OP_REDUCE_MIN, x, ENPU_OP_BOOL, 2, Layout::kDense, smallest, 0);
    runs.finish();
}

TEST_CASE("reduce: a long sum of like numbers does not drift", "[kernel][reduce]") {
    Fixture f;
    Runs runs(f);
    check_reduce(f, runs, ENPU_OP_REDUCE_SUM, Array({1, 300'000}, rounded(ENPU_OP_F32, 0.1)),
                 ENPU_OP_F32, 2, Layout::kDense, sum, 1e-6);
    runs.finish();
}

namespace {

void check_arg(uint32_t least, uint32_t last, const Array& x, uint32_t dtype, uint32_t axis,
               uint32_t result, Fixture& f, Runs& runs) {
    INFO(dtype_name(dtype) << " axis " << axis);
    const Dims out = reduced(x.dims, 1u << axis);
    const auto y = room(f, out, result);
    const Kernel kernel(ENPU_OP_ARG_REDUCE, enpu_op_arg_params{least, axis, last},
                        {put(f, x, dtype), y});
    if (!runs.run(kernel)) return;
    const auto groups = groups_of(x, 1u << axis);
    Array expected(out);
    for (size_t i = 0; i < groups.size(); ++i) {
        size_t best = 0;
        for (size_t k = 1; k < groups[i].size(); ++k) {
            const double a = groups[i][k], b = groups[i][best];
            const bool better = std::isnan(b) ? false : std::isnan(a) || (least ? a < b : a > b);
            if (better || (last && a == b)) best = k;
        }
        expected.values[i] = double(best);
    }
    check_equal(get(f, y), expected, result, 0);
}

}  // namespace

TEST_CASE("arg_reduce: the largest and the smallest along each axis", "[kernel][arg]") {
    Fixture f;
    Runs runs(f);
    for (uint32_t least : {0u, 1u})
        for (uint32_t axis : {0u, 1u, 2u})
            check_arg(least, 0, numbers({3, 5, 4}, ENPU_OP_F32, -9, 9, 1), ENPU_OP_F32, axis,
                      ENPU_OP_I64, f, runs);
    runs.finish();
}
TEST_CASE("arg_reduce: the first or the last of equal ones", "[kernel][arg]") {
    Fixture f;
    Runs runs(f);
    for (uint32_t last : {0u, 1u})
        check_arg(0, last, numbers({4, 40}, ENPU_OP_I32, 0, 3, 2), ENPU_OP_I32, 1, ENPU_OP_I32, f,
                  runs);
    runs.finish();
}
TEST_CASE("arg_reduce: NaN beats every number", "[kernel][arg]") {
    Fixture f;
    Runs runs(f);
    for (uint32_t least : {0u, 1u})
        check_arg(least, 0, Array({1, 4}, {3, NAN, 9, -9}), ENPU_OP_F32, 1, ENPU_OP_I64, f, runs);
    runs.finish();
}

namespace {

void check_softmax(uint32_t axis, uint32_t log, const Array& x, Layout layout, Fixture& f,
                   Runs& runs) {
    const auto y = room(f, x.dims, ENPU_OP_F32, layout);
    const Kernel kernel(ENPU_OP_SOFTMAX_FWD, enpu_op_softmax_params{axis, log},
                        {put(f, x, ENPU_OP_F32, layout), y});
    if (!runs.run(kernel)) return;
    const auto groups = groups_of(x, 1u << axis);
    const Dims out = reduced(x.dims, 1u << axis);
    Array expected(x.dims);
    for (int64_t i = 0; i < elements(x.dims); ++i) {
        Dims at = index_at(x.dims, i);
        at[axis] = 0;
        const auto& group = groups[size_t(flat_of(out, at))];
        const double top = largest(group);
        double total = 0;
        for (double v : group) total += std::exp(v - top);
        const double v = x.values[size_t(i)] - top;
        expected.values[size_t(i)] = log ? v - std::log(total) : std::exp(v) / total;
    }
    check_equal(get(f, y), expected, ENPU_OP_F32, 4e-6);
}

}  // namespace

TEST_CASE("softmax_fwd: layouts, odd sizes, an axis of one", "[kernel][softmax]") {
    Fixture f;
    Runs runs(f);
    for (Layout layout : kLayouts)
        check_softmax(1, 0, numbers({3, 37}, ENPU_OP_F32, -6, 6, 1), layout, f, runs);
    check_softmax(1, 0, numbers({5, 1, 3}, ENPU_OP_F32, -6, 6, 2), Layout::kDense, f, runs);
    runs.finish();
}
TEST_CASE("softmax_fwd: the logarithm", "[kernel][softmax]") {
    Fixture f;
    Runs runs(f);
    for (uint32_t axis : {0u, 1u})
        check_softmax(axis, 1, numbers({9, 11}, ENPU_OP_F32, -6, 6, 3), Layout::kDense, f, runs);
    runs.finish();
}
TEST_CASE("softmax_fwd: large numbers do not overflow, -inf gives 0", "[kernel][softmax]") {
    Fixture f;
    Runs runs(f);
    check_softmax(1, 0, Array({2, 3}, {1000, 1000, -INFINITY, -1e30, 5, 4}), Layout::kDense, f,
                  runs);
    runs.finish();
}

namespace {

struct Norm {
    uint32_t kind, axis, groups;
    Dims dims;
};

// Which elements are normalised together.
int64_t norm_group(const Norm& n, const Dims& at) {
    switch (n.kind) {
        case ENPU_OP_NORM_LAYER:
        case ENPU_OP_NORM_RMS: {
            int64_t group = 0;
            for (size_t i = 0; i < n.axis; ++i) group = group * n.dims[i] + at[i];
            return group;
        }
        case ENPU_OP_NORM_INSTANCE:
            return at[0] * n.dims[1] + at[1];
        case ENPU_OP_NORM_GROUP:
            return at[0] * n.groups + at[1] / (n.dims[1] / n.groups);
    }
    return at[1];  // BATCH
}

void check_norm(const Norm& n, uint32_t act) {
    Fixture f;
    Runs runs(f);
    const Array x = numbers(n.dims, ENPU_OP_F32, -2, 3, 1);
    const bool layer = n.kind == ENPU_OP_NORM_LAYER || n.kind == ENPU_OP_NORM_RMS;
    const bool batch = n.kind == ENPU_OP_NORM_BATCH, rms = n.kind == ENPU_OP_NORM_RMS;
    const Dims channel{n.dims[layer ? n.dims.size() - 1 : 1]};
    const Array scale = numbers(channel, ENPU_OP_F32, 0.5, 2, 2),
                bias = numbers(channel, ENPU_OP_F32, -1, 1, 3),
                mean = numbers(channel, ENPU_OP_F32, -1, 1, 4),
                variance = numbers(channel, ENPU_OP_F32, 0.5, 2, 5);
    const auto wide = [&](const Array& values) {
        const auto operand = put(f, values, ENPU_OP_F32);
        return layer ? broadcast(operand, n.dims) : operand;
    };
    const auto y = room(f, n.dims, ENPU_OP_F32);
    const enpu_op_norm_params params{n.kind, n.axis, n.groups, 1e-5f, act, 0, 0};
    const Kernel kernel(
        ENPU_OP_NORM_FWD, params,
        {put(f, x, ENPU_OP_F32), wide(scale), rms ? enpu_hal_operand{} : wide(bias),
         batch ? wide(mean) : enpu_hal_operand{}, batch ? wide(variance) : enpu_hal_operand{}, y});
    if (!runs.run(kernel)) return runs.finish();
    std::vector<std::vector<double>> members(size_t(elements(n.dims)));
    for (int64_t i = 0; i < elements(n.dims); ++i)
        members[size_t(norm_group(n, index_at(n.dims, i)))].push_back(x.values[size_t(i)]);
    Array expected(n.dims);
    for (int64_t i = 0; i < elements(n.dims); ++i) {
        const Dims at = index_at(n.dims, i);
        const auto& own = members[size_t(norm_group(n, at))];
        const auto c = size_t(layer ? at.back() : at[1]);
        const double count = double(own.size());
        double m = rms ? 0 : sum(own) / count, v = 0;
        for (double each : own) v += (each - m) * (each - m) / count;
        if (batch) m = mean.values[c], v = variance.values[c];
        const double result = (x.values[size_t(i)] - m) / std::sqrt(v + 1e-5) * scale.values[c] +
                              (rms ? 0 : bias.values[c]);
        expected.values[size_t(i)] = act == ENPU_OP_UNARY_RELU ? std::max(result, 0.0) : result;
    }
    check_equal(get(f, y), expected, ENPU_OP_F32, 1e-5);
}

}  // namespace

TEST_CASE("norm_fwd: LAYER over the last axis, with an activation", "[kernel][norm]") {
    check_norm({ENPU_OP_NORM_LAYER, 2, 1, {3, 4, 19}}, ENPU_OP_UNARY_RELU);
}
TEST_CASE("norm_fwd: RMS", "[kernel][norm]") {
    check_norm({ENPU_OP_NORM_RMS, 1, 1, {5, 33}}, ENPU_OP_UNARY_IDENTITY);
}
TEST_CASE("norm_fwd: BATCH with given mean and variance", "[kernel][norm]") {
    check_norm({ENPU_OP_NORM_BATCH, 0, 1, {2, 5, 3, 4}}, ENPU_OP_UNARY_IDENTITY);
}
TEST_CASE("norm_fwd: INSTANCE", "[kernel][norm]") {
    check_norm({ENPU_OP_NORM_INSTANCE, 0, 1, {2, 3, 5, 5}}, ENPU_OP_UNARY_IDENTITY);
}
TEST_CASE("norm_fwd: GROUP", "[kernel][norm]") {
    check_norm({ENPU_OP_NORM_GROUP, 0, 2, {2, 6, 3, 3}}, ENPU_OP_UNARY_IDENTITY);
}
