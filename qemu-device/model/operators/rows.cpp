// SPDX-License-Identifier: MIT
#include "rows.h"

#include <algorithm>
#include <array>
#include <limits>

#include "accumulators.h"
#include "onednn.h"
#include "row_kernels.h"
#include "tiles.h"

namespace enpu::ops {
namespace {

constexpr int64_t kTileElements = 1 << 18;
// Longer rows are cut into tiles, which the general way does.
constexpr int64_t kLongestRow = 1 << 16;

// Lane j takes the elements j, j + kRowLanes, …; rows_wide.cpp adds up in the same order.
template <class W, class Add>
void fold_lanes(W (&lanes)[kRowLanes], const float* x, int64_t count, Add add) {
    int64_t i = 0;
    for (; i + kRowLanes <= count; i += kRowLanes) {
        for (int j = 0; j < kRowLanes; ++j) lanes[j] = add(lanes[j], x[i + j]);
    }
    for (int j = 0; i < count; ++i, ++j) lanes[j] = add(lanes[j], x[i]);
}

void softmax_row(const float* x, float* y, int64_t count) {
    if (has_wide_vectors()) return softmax_row_wide(x, y, count);
    softmax_row_narrow(x, y, count);
}
void norm_row(const float* x, float* y, int64_t count, const NormRow& row) {
    if (has_wide_vectors()) return norm_row_wide(x, y, count, row);
    norm_row_narrow(x, y, count, row);
}

// Calls body(x, y) for each row of the axes from `axis` on.
template <class Body>
Outcome for_rows(Progress& progress, View x, View y, unsigned axis, int64_t length, Body&& body) {
    for (View* view : {&x, &y}) {
        for (unsigned i = axis; i < view->rank; ++i) view->dims[i] = 1;
    }
    const Loop loop = make_loop(std::array{x, y});
    const auto* from = reinterpret_cast<const float*>(x.data);
    auto* to = reinterpret_cast<float*>(y.data);
    const int64_t rows = std::max<int64_t>(kTileElements / length, 1);
    return for_tiles(progress, loop.count, rows, [&](int64_t begin, int64_t end) {
        for_blocks(loop, begin, end, [&](const Block& block) {
            for (int64_t r = 0; r < block.rows; ++r) {
                for (int64_t c = 0; c < block.cols; ++c) {
                    body(from + block.offset[0] + r * block.row_stride[0] + c * block.col_stride[0],
                         to + block.offset[1] + r * block.row_stride[1] + c * block.col_stride[1]);
                }
            }
        });
    });
}

int64_t row_length(const View& view, unsigned axis) {
    int64_t length = 1;
    for (unsigned i = axis; i < view.rank; ++i) length *= view.dims[i];
    return length;
}

}  // namespace

void softmax_row_narrow(const float* x, float* y, int64_t count) {
    float largest[kRowLanes];
    std::fill_n(largest, kRowLanes, -std::numeric_limits<float>::infinity());
    fold_lanes(largest, x, count, [](float a, float b) {
        const float larger = b > a ? b : a;
        return b != b ? b : larger;
    });
    float max = largest[0];
    for (const float lane : largest) max = Larger<float>::of(max, lane);
    const float origin = softmax_origin(max);
    for (int64_t i = 0; i < count; ++i) y[i] = math::exp(x[i] - origin);
    double lanes[kRowLanes] = {};
    fold_lanes(lanes, y, count, [](double a, float b) { return a + b; });
    const auto factor = static_cast<float>(1.0 / sum_of_lanes(lanes));
    for (int64_t i = 0; i < count; ++i) y[i] *= factor;
}

void norm_row_narrow(const float* x, float* y, int64_t count, const NormRow& row) {
    double sums[kRowLanes] = {}, squares[kRowLanes] = {};
    fold_lanes(sums, x, count, [](double a, float b) { return a + b; });
    // The square of an f32 is exact in f64.
    fold_lanes(squares, x, count, [](double a, float b) { return a + double(b) * double(b); });
    const RowMoments m =
        row_moments(row, sum_of_lanes(sums), sum_of_lanes(squares), static_cast<double>(count));
    const float *scale = row.scale, *bias = row.bias;
    if (scale != nullptr && bias != nullptr) {
        for (int64_t i = 0; i < count; ++i)
            y[i] = ((x[i] - m.mean) - m.mean_low) * m.factor * scale[i] + bias[i];
        return;
    }
    for (int64_t i = 0; i < count; ++i) y[i] = ((x[i] - m.mean) - m.mean_low) * m.factor;
    if (scale != nullptr) {
        for (int64_t i = 0; i < count; ++i) y[i] *= scale[i];
    }
    if (bias != nullptr) {
        for (int64_t i = 0; i < count; ++i) y[i] += bias[i];
    }
}

bool is_row(const View& view, unsigned axis) {
    if (view.dtype != ENPU_DTYPE_F32) return false;
    int64_t stride = 1;
    for (unsigned i = view.rank; i-- > axis; stride *= view.dims[i])
        if (view.dims[i] != 1 && view.strides[i] != stride) return false;
    return true;
}

std::optional<Outcome> softmax_rows(Progress& progress, const View& x, const View& y,
                                    unsigned axis) {
    const int64_t length = x.dims[axis];
    View in = x, out = y;
    // The axis goes last; the order of the others is free.
    for (View* view : {&in, &out}) {
        std::swap(view->dims[axis], view->dims[view->rank - 1]);
        std::swap(view->strides[axis], view->strides[view->rank - 1]);
    }
    const unsigned last = in.rank - 1;
    if (length > kLongestRow || !is_row(in, last) || !is_row(out, last)) return std::nullopt;
    return for_rows(progress, in, out, last, length,
                    [&](const float* from, float* to) { softmax_row(from, to, length); });
}

std::optional<Outcome> norm_rows(Progress& progress, const View& x, const View& y, unsigned axis,
                                 const NormRow& row) {
    const int64_t length = row_length(x, axis);
    if (length > kLongestRow || !is_row(x, axis) || !is_row(y, axis)) return std::nullopt;
    return for_rows(progress, x, y, axis, length,
                    [&](const float* from, float* to) { norm_row(from, to, length, row); });
}

}  // namespace enpu::ops
