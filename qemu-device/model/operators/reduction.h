// SPDX-License-Identifier: MIT
// The engine under REDUCE, ARG, SOFTMAX and NORM. It walks x in memory order, splits long
// reductions into chunks of a size that depends on the shape alone, and merges them in order: the
// result does not depend on the number of threads.
#pragma once

#include <algorithm>
#include <memory>
#include <new>

#include "element.h"
#include "tiles.h"

namespace enpu::ops {

constexpr int64_t kColumns = 128;  // outputs accumulated side by side

// The kept axes (streams x, y) and the reduced ones (stream x) as loops of their own.
struct ReductionShape {
    Loop kept;
    Loop reduced;
    bool columns =
        false;  // neighbouring outputs lie closer in x than neighbouring inputs of one output
    int64_t width = 1;  // outputs of an item
    int64_t blocks_per_row = 1;
    int64_t blocks = 0;
    int64_t chunk = 0;  // reduced positions of an item
    int64_t chunks = 0;
};
// `y` has the rank of x; its dims on the axes of the mask are ignored.
ReductionShape reduction_shape(const View& x, const View& y, uint32_t axes);

// A row of neighbouring outputs: element i of x starts at x_offset + i * x_stride, likewise y.
struct OutputRow {
    int64_t x_offset = 0;
    int64_t x_stride = 0;
    int64_t y_offset = 0;
    int64_t y_stride = 0;
    int64_t count = 0;
};
OutputRow output_row(const ReductionShape& shape, int64_t block);

// Accumulator: State (trivially copyable; value-initialised is empty), Compute (float or int64_t)
// and
//   line(state, x, n, position)                   adds n elements
//   tile(states, x, rows, cols, position)         adds row r, column c to states[c]
//   merge(state, later)
template <class Accumulator>
void accumulate(const View& x, const ReductionShape& shape, const OutputRow& row, int64_t begin,
                int64_t end, typename Accumulator::State* states) {
    using C = typename Accumulator::Compute;
    alignas(64) C buffer[kBlockElements];
    const Loop& reduced = shape.reduced;
    if (!shape.columns) {
        for_blocks(reduced, begin, end, [&](Block block) {
            block.offset[0] += row.x_offset;
            const C* values = fetch<C>(x, block, 0, buffer);
            Accumulator::line(states[0], values, block.size(), block.index);
        });
        return;
    }
    const auto body = [&](const Block& block) {
        Block tile;
        tile.rows = block.cols;
        tile.cols = row.count;
        tile.row_stride[0] = block.col_stride[0];
        tile.col_stride[0] = row.x_stride;
        for (int64_t r = 0; r < block.rows; ++r) {
            tile.offset[0] = row.x_offset + block.offset[0] + r * block.row_stride[0];
            const C* values = fetch<C>(x, tile, 0, buffer);
            Accumulator::tile(states, values, tile.rows, tile.cols, block.index + r * block.cols);
        }
    };
    for_blocks(reduced, begin, end, body, std::max<int64_t>(kBlockElements / row.count, 1));
}

// Reduces x; sink(states, y_offset, y_stride, count) takes the results of neighbouring outputs.
template <class Accumulator, class Sink>
Outcome reduce(Progress& progress, const View& x, const View& y, uint32_t axes, Sink&& sink) {
    using State = typename Accumulator::State;
    const ReductionShape shape = reduction_shape(x, y, axes);
    const int64_t items = shape.blocks * shape.chunks;
    std::unique_ptr<State[]> partial;
    if (shape.chunks > 1) {
        partial.reset(new (std::nothrow) State[static_cast<size_t>(items * shape.width)]{});
        if (!partial) return Outcome::kOutOfMemory;
    }
    const int64_t cost =
        std::max<int64_t>(std::min(shape.chunk, shape.reduced.count) * shape.width, 64);
    const auto body = [&](int64_t begin, int64_t end) {
        State states[kColumns];
        for (int64_t item = begin; item < end; ++item) {
            const OutputRow row = output_row(shape, item / shape.chunks);
            std::fill_n(states, row.count, State{});
            const int64_t first = item % shape.chunks * shape.chunk;
            const int64_t last = std::min(first + shape.chunk, shape.reduced.count);
            accumulate<Accumulator>(x, shape, row, first, last, states);
            if (partial) {
                std::copy_n(states, row.count, partial.get() + item * shape.width);
            } else {
                sink(states, row.y_offset, row.y_stride, row.count);
            }
        }
    };
    const Outcome outcome = for_tiles(progress, items, (int64_t{1} << 18) / cost, body);
    if (outcome != Outcome::kDone || !partial) return outcome;
    for (int64_t block = 0; block < shape.blocks; ++block) {
        const OutputRow row = output_row(shape, block);
        State* states = partial.get() + block * shape.chunks * shape.width;
        for (int64_t chunk = 1; chunk < shape.chunks; ++chunk) {
            const State* later = states + chunk * shape.width;
            for (int64_t i = 0; i < row.count; ++i) Accumulator::merge(states[i], later[i]);
        }
        sink(states, row.y_offset, row.y_stride, row.count);
    }
    return Outcome::kDone;
}

// A contiguous scratch tensor of f32 with the dims of `x`, but a stride of 0 on the axes of the
// mask: one number an output.
View scratch_view(const View& x, uint32_t axes, float* data);
int64_t kept_count(const View& x, uint32_t axes);
// Most outputs for which scratch is had (128 MiB an array): more is OUT_OF_MEMORY, so that a guest
// cannot take the memory of its host.
constexpr int64_t kMaxScratchOutputs = int64_t{1} << 25;

}  // namespace enpu::ops
