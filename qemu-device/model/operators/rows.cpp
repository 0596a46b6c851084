// SPDX-License-Identifier: MIT
#include "rows.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "accumulators.h"
#include "onednn.h"
#include "tiles.h"
#include "wide.h"

namespace enpu::ops {
namespace {

constexpr int64_t kTileElements = 1 << 18;
// Longer rows are cut into tiles, which the general way does.
constexpr int64_t kLongestRow = 1 << 16;

#define ENPU_INLINE [[gnu::always_inline]] inline

template <class W, class Add>
ENPU_INLINE void fold_lanes(W (&lanes)[kLanes], const float* x, int64_t count, Add add) {
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
        for (int j = 0; j < kLanes; ++j) lanes[j] = add(lanes[j], x[i + j]);
    }
    for (int j = 0; i < count; ++i, ++j) lanes[j] = add(lanes[j], x[i]);
}

ENPU_INLINE double sum_of(const double (&lanes)[kLanes]) {
    double sum = 0;
    for (const double lane : lanes) sum += lane;
    return sum;
}

ENPU_INLINE void softmax_row_body(const float* x, float* y, int64_t count) {
    float largest[kLanes];
    std::fill_n(largest, kLanes, -std::numeric_limits<float>::infinity());
    fold_lanes(largest, x, count, [](float a, float b) {
        const float larger = b > a ? b : a;
        return b != b ? b : larger;
    });
    float max = largest[0];
    for (const float lane : largest) max = Larger<float>::of(max, lane);
    const float origin = std::isfinite(max) ? max : 0.0f;
    for (int64_t i = 0; i < count; ++i) y[i] = math::exp(x[i] - origin);
    double lanes[kLanes] = {};
    fold_lanes(lanes, y, count, [](double a, float b) { return a + b; });
    const auto factor = static_cast<float>(1.0 / sum_of(lanes));
    for (int64_t i = 0; i < count; ++i) y[i] *= factor;
}

ENPU_INLINE void norm_row_body(const float* x, float* y, int64_t count, const NormRow& row) {
    double sums[kLanes] = {}, squares[kLanes] = {};
    fold_lanes(sums, x, count, [](double a, float b) { return a + b; });
    fold_lanes(squares, x, count, [](double a, float b) { return a + double(b) * double(b); });
    const double n = static_cast<double>(count);
    const double middle = row.centred ? sum_of(sums) / n : 0.0;
    const double variance = sum_of(squares) / n - middle * middle;
    const double exact = 1.0 / std::sqrt(std::max(variance, 0.0) + double(row.epsilon));
    // The mean in two floats: with one, its rounding would show in y as |mean| / deviation ulps.
    const auto mean = static_cast<float>(middle), low = static_cast<float>(middle - mean);
    const auto factor = static_cast<float>(variance == variance ? exact : variance);
    const float *scale = row.scale, *bias = row.bias;
    if (scale != nullptr && bias != nullptr) {
        for (int64_t i = 0; i < count; ++i)
            y[i] = ((x[i] - mean) - low) * factor * scale[i] + bias[i];
        return;
    }
    for (int64_t i = 0; i < count; ++i) y[i] = ((x[i] - mean) - low) * factor;
    if (scale != nullptr) {
        for (int64_t i = 0; i < count; ++i) y[i] *= scale[i];
    }
    if (bias != nullptr) {
        for (int64_t i = 0; i < count; ++i) y[i] += bias[i];
    }
}

ENPU_WIDE void softmax_row_wide(const float* x, float* y, int64_t count) {
    softmax_row_body(x, y, count);
}
void softmax_row(const float* x, float* y, int64_t count) {
    if (has_wide_vectors()) return softmax_row_wide(x, y, count);
    softmax_row_body(x, y, count);
}
ENPU_WIDE void norm_row_wide(const float* x, float* y, int64_t count, const NormRow& row) {
    norm_row_body(x, y, count, row);
}
void norm_row(const float* x, float* y, int64_t count, const NormRow& row) {
    if (has_wide_vectors()) return norm_row_wide(x, y, count, row);
    norm_row_body(x, y, count, row);
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
