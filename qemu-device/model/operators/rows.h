// SPDX-License-Identifier: MIT
// Rows of f32 that lie without gaps: what SOFTMAX and NORM are in most networks. One visit of a row does all that
// the general way does in several passes over memory.
#pragma once

#include <cstdint>
#include <optional>

#include "operator.h"
#include "strided.h"

namespace enpu::ops {

struct NormRow {
    const float *scale, *bias;  // as long as the row; may be null
    float epsilon;
    bool centred;  // layer norm, not RMS
};

// y = exp(x - max) / sum, row by row. Nothing where x or y is not such rows along `axis`.
std::optional<Outcome> softmax_rows(Progress& progress, const View& x, const View& y,
                                    unsigned axis);
// Rows over the axes from `axis` on. Likewise.
std::optional<Outcome> norm_rows(Progress& progress, const View& x, const View& y, unsigned axis,
                                 const NormRow& row);

// The axes from `axis` on are one line of f32 in row-major order.
bool is_row(const View& view, unsigned axis);

}  // namespace enpu::ops
