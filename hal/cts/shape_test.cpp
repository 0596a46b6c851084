// SPDX-License-Identifier: MIT
// Kernels that move and convert elements: move, pad, gather, resize, cast, quantize, dequantize.
#include <algorithm>
#include <cmath>

#include "op_table.h"
#include "reference.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;

namespace {

constexpr uint32_t kAll[] = {ENPU_OP_F32, ENPU_OP_F16, ENPU_OP_BF16, ENPU_OP_I8,
                             ENPU_OP_U8,  ENPU_OP_I32, ENPU_OP_I64,  ENPU_OP_BOOL};

Array any(const Dims& dims, uint32_t dtype, uint32_t seed) {
    return numbers(dims, dtype, 0, dtype == ENPU_OP_BOOL ? 1 : 100, seed);
}

}  // namespace

TEST_CASE("move: every dtype between every pair of layouts", "[kernel][move]") {
    Fixture f;
    Runs runs(f);
    for (uint32_t dtype : kAll)
        for (Layout from : kLayouts)
            for (Layout to : kLayouts) {
                INFO(dtype_name(dtype) << " " << layout_name(from) << " to " << layout_name(to));
                const Array x = any({3, 5}, dtype, 1);
                const auto y = room(f, x.dims, dtype, to);
                const Kernel kernel(ENPU_OP_MOVE, {put(f, x, dtype, from), y});
                if (runs.run(kernel)) check_equal(get(f, y, true), x, dtype, 0);
            }
    runs.finish();
}

TEST_CASE("move: expands by stride 0", "[kernel][move][broadcast]") {
    Fixture f;
    Runs runs(f);
    const Array x = any({1, 4}, ENPU_OP_F32, 1);
    const auto y = room(f, {3, 4}, ENPU_OP_F32);
    const Kernel kernel(ENPU_OP_MOVE, {broadcast(put(f, x, ENPU_OP_F32), {3, 4}), y});
    if (runs.run(kernel)) {
        Array expected({3, 4});
        for (size_t i = 0; i < 12; ++i) expected.values[i] = x.values[i % 4];
        check_equal(get(f, y), expected, ENPU_OP_F32, 0);
    }
    runs.finish();
}

TEST_CASE("move: slices with a step, and joins two tensors in a third", "[kernel][move]") {
    Fixture f;
    Runs runs(f);
    if (f.info.buffer_alignment > 4) SKIP("unsupported: tensors begin at larger offsets only");
    const Array x = any({10}, ENPU_OP_I32, 1);
    auto odd = put(f, x, ENPU_OP_I32);
    odd.place.offset += 4;
    odd.tensor.dims[0] = 5, odd.tensor.strides[0] = 2;
    const auto y = room(f, {10}, ENPU_OP_I32);
    auto head = y, tail = y;
    head.tensor.dims[0] = tail.tensor.dims[0] = 5;
    tail.place.offset += 20;
    auto even = odd;
    even.place.offset -= 4;
    const Kernel first(ENPU_OP_MOVE, {odd, head}), second(ENPU_OP_MOVE, {even, tail});
    if (runs.run(first) && runs.run(second)) {
        Array expected({10});
        for (size_t i = 0; i < 5; ++i) {
            expected.values[i] = x.values[2 * i + 1];
            expected.values[i + 5] = x.values[2 * i];
        }
        check_equal(get(f, y), expected, ENPU_OP_I32, 0);
    }
    runs.finish();
}

TEST_CASE("move: a permutation of four axes", "[kernel][move]") {
    Fixture f;
    Runs runs(f);
    const Dims dims{2, 3, 4, 5};
    const size_t order[] = {0, 2, 3, 1};
    const Array x = any(dims, ENPU_OP_F32, 1);
    auto from = put(f, x, ENPU_OP_F32);
    auto turned = from;
    Array expected({2, 4, 5, 3});
    for (size_t i = 0; i < 4; ++i) {
        turned.tensor.dims[i] = from.tensor.dims[order[i]];
        turned.tensor.strides[i] = from.tensor.strides[order[i]];
    }
    for (int64_t i = 0; i < 120; ++i) {
        const Dims at = index_at(expected.dims, i);
        expected.values[size_t(i)] = x[{at[0], at[3], at[1], at[2]}];
    }
    const auto y = room(f, expected.dims, ENPU_OP_F32);
    const Kernel kernel(ENPU_OP_MOVE, {turned, y});
    if (runs.run(kernel)) check_equal(get(f, y), expected, ENPU_OP_F32, 0);
    runs.finish();
}

namespace {

int64_t mirrored(int64_t at, int64_t size) {
    if (size == 1) return 0;
    while (at < 0 || at >= size) at = at < 0 ? -at : 2 * (size - 1) - at;
    return at;
}

// One axis at a time; -1 is outside, in CONSTANT.
int64_t pad_source(uint32_t mode, int64_t at, int64_t size) {
    switch (mode) {
        case ENPU_OP_PAD_MODE_EDGE:
            return std::clamp<int64_t>(at, 0, size - 1);
        case ENPU_OP_PAD_MODE_REFLECT:
            return mirrored(at, size);
        case ENPU_OP_PAD_MODE_WRAP:
            return ((at % size) + size) % size;
    }
    return at < 0 || at >= size ? -1 : at;
}

void check_pad(uint32_t mode, const Dims& dims, const Dims& before, const Dims& out) {
    Fixture f;
    Runs runs(f);
    for (uint32_t dtype : {ENPU_OP_F32, ENPU_OP_F16, ENPU_OP_I8, ENPU_OP_I32}) {
        const Array x = any(dims, dtype, 1);
        enpu_op_pad_params params{};
        params.mode = mode;
        for (size_t i = 0; i < dims.size(); ++i) params.before[i] = int32_t(before[i]);
        params.value = dtype == ENPU_OP_F32 ? 0x40e00000 : dtype == ENPU_OP_F16 ? 0x4700 : 7;
        const auto y = room(f, out, dtype, Layout::kGaps);
        const Kernel kernel(ENPU_OP_PAD, params, {put(f, x, dtype, Layout::kTransposed), y});
        if (!runs.run(kernel)) continue;
        Array expected(out);
        for (int64_t i = 0; i < elements(out); ++i) {
            Dims at = index_at(out, i);
            bool inside = true;
            for (size_t k = 0; k < at.size(); ++k) {
                at[k] = pad_source(mode, at[k] - before[k], dims[k]);
                inside &= at[k] >= 0;
            }
            expected.values[size_t(i)] = inside ? x[at] : 7;
        }
        check_equal(get(f, y, true), expected, dtype, 0);
    }
    runs.finish();
}

}  // namespace

TEST_CASE("pad: CONSTANT", "[kernel][pad]") {
    check_pad(ENPU_OP_PAD_MODE_CONSTANT, {3, 4}, {1, 2}, {5, 9});
}
TEST_CASE("pad: EDGE", "[kernel][pad]") {
    check_pad(ENPU_OP_PAD_MODE_EDGE, {3, 4}, {2, 1}, {6, 8});
}
TEST_CASE("pad: REFLECT, further than the tensor is long", "[kernel][pad]") {
    check_pad(ENPU_OP_PAD_MODE_REFLECT, {3, 4}, {4, 2}, {9, 9});
}
TEST_CASE("pad: WRAP", "[kernel][pad]") {
    check_pad(ENPU_OP_PAD_MODE_WRAP, {3, 4}, {2, 5}, {7, 11});
}
TEST_CASE("pad: negative numbers crop", "[kernel][pad]") {
    check_pad(ENPU_OP_PAD_MODE_CONSTANT, {5, 6}, {-1, -2}, {3, 6});
}

TEST_CASE("gather: TAKE along each axis with a matrix of indices", "[kernel][gather]") {
    Fixture f;
    Runs runs(f);
    const Dims dims{4, 5, 3};
    const Array x = any(dims, ENPU_OP_F32, 1);
    for (uint32_t type : {ENPU_OP_I32, ENPU_OP_I64})
        for (uint32_t axis = 0; axis < 3; ++axis) {
            const Array indices = numbers({2, 3}, type, -dims[axis], dims[axis] - 1, axis + 2);
            Dims out(dims.begin(), dims.begin() + axis);
            out.insert(out.end(), {2, 3});
            out.insert(out.end(), dims.begin() + axis + 1, dims.end());
            const auto y = room(f, out, ENPU_OP_F32);
            const Kernel kernel(ENPU_OP_GATHER,
                                enpu_op_gather_params{ENPU_OP_GATHER_MODE_TAKE, axis},
                                {put(f, x, ENPU_OP_F32), put(f, indices, type), y});
            if (!runs.run(kernel)) continue;
            Array expected(out);
            for (int64_t i = 0; i < elements(out); ++i) {
                const Dims at = index_at(out, i);
                Dims from(at.begin(), at.begin() + axis);
                auto place = int64_t(indices[{at[axis], at[axis + 1]}]);
                from.push_back(place < 0 ? place + dims[axis] : place);
                from.insert(from.end(), at.begin() + axis + 2, at.end());
                expected.values[size_t(i)] = x[from];
            }
            check_equal(get(f, y), expected, ENPU_OP_F32, 0);
        }
    runs.finish();
}

TEST_CASE("gather: ELEMENTS", "[kernel][gather]") {
    Fixture f;
    Runs runs(f);
    const Array x = any({4, 3}, ENPU_OP_F32, 1), indices = numbers({6, 3}, ENPU_OP_I64, -4, 3, 2);
    const auto y = room(f, {6, 3}, ENPU_OP_F32);
    const Kernel kernel(ENPU_OP_GATHER, enpu_op_gather_params{ENPU_OP_GATHER_MODE_ELEMENTS, 0},
                        {put(f, x, ENPU_OP_F32), put(f, indices, ENPU_OP_I64), y});
    if (runs.run(kernel)) {
        Array expected({6, 3});
        for (int64_t i = 0; i < 18; ++i) {
            const auto place = int64_t(indices.values[size_t(i)]);
            expected.values[size_t(i)] = x[{place < 0 ? place + 4 : place, i % 3}];
        }
        check_equal(get(f, y), expected, ENPU_OP_F32, 0);
    }
    runs.finish();
}

namespace {

double source_of(uint32_t coord, double at, double scale, double in, double out) {
    switch (coord) {
        case ENPU_OP_RESIZE_COORD_ALIGN_CORNERS:
            return out == 1 ? 0 : at * (in - 1) / (out - 1);
        case ENPU_OP_RESIZE_COORD_ASYMMETRIC:
            return at / scale;
        case ENPU_OP_RESIZE_COORD_PYTORCH_HALF_PIXEL:
            if (out == 1) return 0;
            break;
    }
    return (at + 0.5) / scale - 0.5;
}

double cubic(double a, double t) {
    t = std::fabs(t);
    if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
    if (t < 2) return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
    return 0;
}

// One axis of a row: the weighted sum of the taps, whose places are held at the edges.
double interpolate(const std::vector<double>& row, double at, uint32_t mode, uint32_t round) {
    const auto size = int64_t(row.size());
    const auto value = [&](int64_t i) { return row[size_t(std::clamp<int64_t>(i, 0, size - 1))]; };
    const double low = std::floor(at), part = at - low;
    if (mode == ENPU_OP_RESIZE_MODE_NEAREST) {
        if (round == ENPU_OP_RESIZE_ROUND_FLOOR) return value(int64_t(low));
        if (round == ENPU_OP_RESIZE_ROUND_CEIL) return value(int64_t(std::ceil(at)));
        const bool up = round == ENPU_OP_RESIZE_ROUND_PREFER_CEIL ? part >= 0.5 : part > 0.5;
        return value(int64_t(low) + up);
    }
    const auto first = int64_t(low);
    if (mode == ENPU_OP_RESIZE_MODE_LINEAR)
        return value(first) * (1 - part) + value(first + 1) * part;
    double total = 0;
    for (int64_t k = -1; k <= 2; ++k) total += value(first + k) * cubic(-0.75, part - double(k));
    return total;
}

void check_resize(uint32_t mode, uint32_t coord, uint32_t round, int64_t h, int64_t w) {
    Fixture f;
    Runs runs(f);
    const Array x = numbers({1, 2, 4, 5}, ENPU_OP_F32, -2, 2, 1);
    enpu_op_resize_params params{};
    params.mode = mode;
    params.coord = coord;
    params.round = round;
    params.cubic_a = -0.75f;
    const auto y = room(f, {1, 2, h, w}, ENPU_OP_F32);
    const Kernel kernel(ENPU_OP_RESIZE, params, {put(f, x, ENPU_OP_F32), y});
    if (!runs.run(kernel)) return runs.finish();
    Array expected({1, 2, h, w});
    for (int64_t i = 0; i < 2 * h * w; ++i) {
        const Dims at = index_at(expected.dims, i);
        std::vector<double> column(4), row(5);
        for (int64_t r = 0; r < 4; ++r) {
            for (int64_t c = 0; c < 5; ++c) row[size_t(c)] = x[{0, at[1], r, c}];
            column[size_t(r)] = interpolate(
                row, source_of(coord, double(at[3]), double(w) / 5, 5, double(w)), mode, round);
        }
        expected.values[size_t(i)] = interpolate(
            column, source_of(coord, double(at[2]), double(h) / 4, 4, double(h)), mode, round);
    }
    check_equal(get(f, y), expected, ENPU_OP_F32, 5e-6);
}

}  // namespace

TEST_CASE("resize: NEAREST, each rounding", "[kernel][resize]") {
    for (uint32_t round : {ENPU_OP_RESIZE_ROUND_PREFER_FLOOR, ENPU_OP_RESIZE_ROUND_PREFER_CEIL,
                           ENPU_OP_RESIZE_ROUND_FLOOR, ENPU_OP_RESIZE_ROUND_CEIL})
        check_resize(ENPU_OP_RESIZE_MODE_NEAREST, ENPU_OP_RESIZE_COORD_ASYMMETRIC, round, 8, 10);
}
TEST_CASE("resize: LINEAR, half pixel, up and down", "[kernel][resize]") {
    check_resize(ENPU_OP_RESIZE_MODE_LINEAR, ENPU_OP_RESIZE_COORD_HALF_PIXEL, 0, 8, 10);
    check_resize(ENPU_OP_RESIZE_MODE_LINEAR, ENPU_OP_RESIZE_COORD_HALF_PIXEL, 0, 2, 3);
}
TEST_CASE("resize: LINEAR, aligned corners", "[kernel][resize]") {
    check_resize(ENPU_OP_RESIZE_MODE_LINEAR, ENPU_OP_RESIZE_COORD_ALIGN_CORNERS, 0, 7, 9);
}
TEST_CASE("resize: LINEAR, to one element as PyTorch does", "[kernel][resize]") {
    check_resize(ENPU_OP_RESIZE_MODE_LINEAR, ENPU_OP_RESIZE_COORD_PYTORCH_HALF_PIXEL, 0, 1, 7);
}
TEST_CASE("resize: CUBIC", "[kernel][resize]") {
    check_resize(ENPU_OP_RESIZE_MODE_CUBIC, ENPU_OP_RESIZE_COORD_HALF_PIXEL, 0, 7, 11);
}

namespace {

void check_cast(Fixture& f, Runs& runs, const Array& x, uint32_t from, uint32_t to,
                const std::function<double(double)>& expected) {
    INFO(dtype_name(from) << " to " << dtype_name(to));
    const auto y = room(f, x.dims, to);
    const Kernel kernel(ENPU_OP_CAST, {put(f, x, from), y});
    if (!runs.run(kernel)) return;
    Array wanted(x.dims);
    for (size_t i = 0; i < x.values.size(); ++i) wanted.values[i] = expected(x.values[i]);
    check_equal(get(f, y), wanted, to, 0);
}

}  // namespace

TEST_CASE("cast: from floats to integers goes toward zero", "[kernel][cast]") {
    Fixture f;
    Runs runs(f);
    for (uint32_t from : {ENPU_OP_F32, ENPU_OP_F16, ENPU_OP_BF16})
        for (uint32_t to : {ENPU_OP_I8, ENPU_OP_I32, ENPU_OP_I64})
            check_cast(f, runs, numbers({41}, from, -100, 100, 1), from, to,
                       [](double v) { return std::trunc(v); });
    runs.finish();
}
TEST_CASE("cast: between floats rounds once", "[kernel][cast]") {
    Fixture f;
    Runs runs(f);
    for (uint32_t from : {ENPU_OP_F32, ENPU_OP_F16, ENPU_OP_BF16})
        for (uint32_t to : {ENPU_OP_F32, ENPU_OP_F16, ENPU_OP_BF16})
            if (from != to)
                check_cast(f, runs, numbers({3, 17}, from, -300, 300, 2), from, to,
                           [](double v) { return v; });
    runs.finish();
}
TEST_CASE("cast: integers to floats and to each other", "[kernel][cast]") {
    Fixture f;
    Runs runs(f);
    for (uint32_t from : {ENPU_OP_I8, ENPU_OP_I32, ENPU_OP_I64})
        for (uint32_t to : {ENPU_OP_F32, ENPU_OP_I8, ENPU_OP_I32, ENPU_OP_I64})
            if (from != to)
                check_cast(f, runs, numbers({23}, from, -120, 120, 3), from, to,
                           [](double v) { return v; });
    runs.finish();
}
TEST_CASE("cast: to and from booleans", "[kernel][cast]") {
    Fixture f;
    Runs runs(f);
    check_cast(f, runs, Array({4}, {0, 1, -3, 0.25}), ENPU_OP_F32, ENPU_OP_BOOL,
               [](double v) { return double(v != 0); });
    check_cast(f, runs, Array({3}, {0, 1, 1}), ENPU_OP_BOOL, ENPU_OP_F32,
               [](double v) { return v; });
    runs.finish();
}
TEST_CASE("cast: NaN becomes the integer 0", "[kernel][cast]") {
    Fixture f;
    Runs runs(f);
    check_cast(f, runs, Array({2}, {NAN, 5}), ENPU_OP_F32, ENPU_OP_I32,
               [](double v) { return std::isnan(v) ? 0 : v; });
    runs.finish();
}

namespace {

// scale and zero point of each row, broadcast.
void check_quantize(bool back, uint32_t dtype, bool zero_point) {
    Fixture f;
    Runs runs(f);
    const Dims dims{4, 9};
    const Array scale = numbers({4, 1}, ENPU_OP_F32, 0.02, 0.1, 1);
    const Array zero = numbers({4, 1}, dtype, 3, 9, 2);
    const Array x = back ? numbers(dims, dtype, 0, 120, 3) : numbers(dims, ENPU_OP_F32, -20, 20, 3);
    const uint32_t from = back ? dtype : uint32_t(ENPU_OP_F32);
    const uint32_t to = back ? uint32_t(ENPU_OP_F32) : dtype;
    const auto y = room(f, dims, to);
    const Kernel kernel(
        back ? ENPU_OP_DEQUANTIZE : ENPU_OP_QUANTIZE,
        {put(f, x, from), broadcast(put(f, scale, ENPU_OP_F32), dims),
         zero_point ? broadcast(put(f, zero, dtype), dims) : enpu_hal_operand{}, y});
    if (!runs.run(kernel)) return runs.finish();
    Array expected(dims);
    const double low = dtype == ENPU_OP_U8 ? 0 : -128, high = dtype == ENPU_OP_U8 ? 255 : 127;
    for (size_t i = 0; i < 36; ++i) {
        const double s = scale.values[i / 9], z = zero_point ? zero.values[i / 9] : 0;
        const double v = x.values[i];
        const auto quotient = static_cast<float>(v) / static_cast<float>(s);
        expected.values[i] =
            back ? (v - z) * s : std::clamp(double(std::nearbyint(quotient)) + z, low, high);
    }
    check_equal(get(f, y), expected, to, 1e-6);
}

}  // namespace

TEST_CASE("quantize: rounds half to even and saturates", "[kernel][quantize]") {
    check_quantize(false, ENPU_OP_I8, true);
    check_quantize(false, ENPU_OP_U8, true);
}
TEST_CASE("quantize: without a zero point", "[kernel][quantize]") {
    check_quantize(false, ENPU_OP_I8, false);
}
TEST_CASE("dequantize: takes the zero point off and scales", "[kernel][quantize]") {
    check_quantize(true, ENPU_OP_I8, true);
    check_quantize(true, ENPU_OP_U8, true);
}
TEST_CASE("dequantize: without a zero point", "[kernel][quantize]") {
    check_quantize(true, ENPU_OP_U8, false);
}
