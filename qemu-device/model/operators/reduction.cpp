// SPDX-License-Identifier: MIT
#include "reduction.h"

#include <cstdlib>

namespace enpu::ops {
namespace {

constexpr int64_t kRowChunk = 1 << 18;
constexpr int64_t kColumnChunk = 1 << 12;

Loop loop_of_axes(const View& x, const View& y, uint32_t axes) {
    Loop loop;
    loop.streams = 2;
    for (unsigned axis = 0; axis < x.rank; ++axis) {
        if (!(axes >> axis & 1)) continue;
        loop.dims[loop.rank] = x.dims[axis];
        loop.strides[0][loop.rank] = x.strides[axis];
        loop.strides[1][loop.rank] = y.strides[axis];
        loop.count *= x.dims[axis];
        ++loop.rank;
    }
    return loop;
}

}  // namespace

ReductionShape reduction_shape(const View& x, const View& y, uint32_t axes) {
    ReductionShape shape;
    shape.kept = loop_of_axes(x, y, ~axes);
    shape.reduced = loop_of_axes(x, y, axes);
    shape.reduced.streams = 1;
    for (Loop* loop : {&shape.kept, &shape.reduced}) {
        sort_axes(*loop, 0);
        merge_axes(*loop);
    }
    const unsigned last = shape.kept.rank - 1;
    const int64_t neighbours = shape.kept.dims[last];
    const int64_t reduced_stride = std::abs(shape.reduced.strides[0][shape.reduced.rank - 1]);
    const bool closer = std::abs(shape.kept.strides[0][last]) < reduced_stride;
    shape.columns = neighbours > 1 && (closer || shape.reduced.count == 1);
    shape.width = shape.columns ? std::min(neighbours, kColumns) : 1;
    shape.blocks_per_row =
        shape.columns ? (neighbours + shape.width - 1) / shape.width : neighbours;
    shape.blocks = shape.kept.count / neighbours * shape.blocks_per_row;
    shape.chunk = shape.columns ? kColumnChunk : kRowChunk;
    shape.chunks = (shape.reduced.count + shape.chunk - 1) / shape.chunk;
    return shape;
}

OutputRow output_row(const ReductionShape& shape, int64_t block) {
    const Loop& kept = shape.kept;
    const int64_t neighbours = kept.dims[kept.rank - 1];
    const int64_t first = block % shape.blocks_per_row * shape.width;
    const int64_t position = block / shape.blocks_per_row * neighbours + first;
    const Block place = block_at(kept, position, 1);
    return {place.offset[0], place.col_stride[0], place.offset[1], place.col_stride[1],
            std::min(shape.width, neighbours - first)};
}

View scratch_view(const View& x, uint32_t axes, float* data) {
    View view = x;
    view.data = reinterpret_cast<std::byte*>(data);
    view.dtype = ENPU_DTYPE_F32;
    int64_t stride = 1;
    for (unsigned axis = x.rank; axis-- > 0;) {
        const bool reduced = axes >> axis & 1;
        view.strides[axis] = reduced ? 0 : stride;
        if (!reduced) stride *= x.dims[axis];
    }
    return view;
}

int64_t kept_count(const View& x, uint32_t axes) {
    int64_t count = 1;
    for (unsigned axis = 0; axis < x.rank; ++axis) {
        if (!(axes >> axis & 1)) count *= x.dims[axis];
    }
    return count;
}

}  // namespace enpu::ops
