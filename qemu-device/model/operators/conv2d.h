// SPDX-License-Identifier: MIT
// What float and integer convolutions share: shape, and the windows that tiles of the output look
// at.
#pragma once

#include <algorithm>
#include <optional>

#include "conv_kernel.h"
#include "families.h"
#include "strided.h"

namespace enpu::ops {

// Work of a tile in multiply-accumulates: 10 ms of one thread at 20 GFLOP/s. It does not depend on
// the number of threads, so that the same packet is cut the same way everywhere.
constexpr int64_t kTileWork = 100'000'000;
// What a call of a library costs, however little it computes: 2 us.
constexpr int64_t kCallWork = 20'000;

struct ConvShape {
    int64_t n, c, h, w, o, kh, kw, oh, ow, groups;
    int64_t stride[2], pad[4], dilation[2];

    int64_t window(int axis) const { return dilation[axis] * ((axis ? kw : kh) - 1) + 1; }
    // One product of matrices: pixels times weights.
    bool is_pointwise() const {
        return kh == 1 && kw == 1 && groups == 1 &&
               std::all_of(pad, pad + 4, [](auto p) { return p == 0; });
    }
    int64_t products_per_output_pixel() const { return o * (c / groups) * kh * kw; }
    // Memory is work too: 8 for each output, 1 for each input.
    int64_t work_per_output_pixel() const {
        return products_per_output_pixel() + 8 * o + c * stride[0] * stride[1];
    }
};

// Output indices [begin, begin + count) of one spatial axis, and the input they need: `size`
// indices from `first`, with padding around.
struct Range {
    int64_t begin, count;
    int64_t first, size;
    int64_t pad_before, pad_after;
    bool empty;  // looks at padding only: `size` is 1 and stands for a line of zeros
};
Range input_range(const ConvShape& shape, int axis, int64_t begin, int64_t count);

struct ConvTile {
    int64_t image, images;
    Range rows, cols;
};

// Calls body(tile) for all tiles, with proceed() between them; ends early when one is not kDone.
template <class Body>
Outcome for_conv_tiles(const ConvShape& s, Progress& progress, Body&& body);

ConvShape conv_shape(const enpu_operator_packet& packet);
ConvSpec conv_spec(const ConvShape& shape, const ConvTile& tile, unsigned threads);

Outcome conv2d_float(const Call& call);
// The same for convolutions whose single output pixel is more work than a tile.
Outcome conv2d_large(const Call& call);
Outcome conv2d_integer(const Call& call);
// The same by kernels for integers; nothing when there is none for this one.
std::optional<Outcome> conv2d_dot_products(const Call& call);

inline int64_t divide_up(int64_t value, int64_t by) {
    return (value + by - 1) / by;
}
// Size of equal parts of `total` that are at most `limit` each.
inline int64_t even_part(int64_t total, int64_t limit) {
    return divide_up(total, divide_up(total, std::clamp<int64_t>(limit, 1, total)));
}

template <class Body>
Outcome for_conv_tiles(const ConvShape& s, Progress& progress, Body&& body) {
    const int64_t pixels = std::max<int64_t>(kTileWork / s.work_per_output_pixel(), 1);
    const int64_t cols = even_part(s.ow, pixels);
    const int64_t rows = cols < s.ow ? 1 : even_part(s.oh, pixels / s.ow);
    const int64_t images = rows < s.oh || cols < s.ow ? 1 : even_part(s.n, pixels / (s.oh * s.ow));
    bool first = true;
    for (int64_t n = 0; n < s.n; n += images) {
        for (int64_t y = 0; y < s.oh; y += rows) {
            for (int64_t x = 0; x < s.ow; x += cols) {
                if (!first && !progress.proceed()) return Outcome::kStopped;
                first = false;
                const ConvTile tile{n, std::min(images, s.n - n),
                                    input_range(s, 0, y, std::min(rows, s.oh - y)),
                                    input_range(s, 1, x, std::min(cols, s.ow - x))};
                const Outcome outcome = body(tile);
                if (outcome != Outcome::kDone) return outcome;
            }
        }
    }
    return Outcome::kDone;
}

}  // namespace enpu::ops
