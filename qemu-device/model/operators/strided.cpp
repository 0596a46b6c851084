// SPDX-License-Identifier: MIT
#include "strided.h"

#include <cstdlib>

namespace enpu::ops {

View view_of(const Operand& operand) {
    View view;
    view.data = operand.data;
    view.dtype = operand.desc->dtype;
    view.rank = operand.desc->rank;
    for (unsigned axis = 0; axis < view.rank; ++axis) {
        view.dims[axis] = operand.desc->dims[axis];
        view.strides[axis] = operand.desc->strides[axis];
    }
    return view;
}

int64_t element_count(const View& view) {
    int64_t count = 1;
    for (unsigned axis = 0; axis < view.rank; ++axis) count *= view.dims[axis];
    return count;
}

namespace {

void swap_axes(Loop& loop, unsigned a, unsigned b) {
    std::swap(loop.dims[a], loop.dims[b]);
    for (unsigned k = 0; k < loop.streams; ++k) std::swap(loop.strides[k][a], loop.strides[k][b]);
}

void drop_ones(Loop& loop) {
    unsigned kept = 0;
    for (unsigned axis = 0; axis < loop.rank; ++axis) {
        if (loop.dims[axis] == 1) continue;
        if (kept != axis) swap_axes(loop, kept, axis);
        ++kept;
    }
    loop.rank = kept;
}

bool mergeable(const Loop& loop, unsigned outer, unsigned inner) {
    for (unsigned k = 0; k < loop.streams; ++k) {
        if (loop.strides[k][outer] != loop.strides[k][inner] * loop.dims[inner]) return false;
    }
    return true;
}

}  // namespace

void sort_axes(Loop& loop, unsigned by_stream) {
    const auto stride = [&](unsigned axis) { return std::abs(loop.strides[by_stream][axis]); };
    for (unsigned i = 1; i < loop.rank; ++i) {
        for (unsigned j = i; j > 0 && stride(j - 1) < stride(j); --j) swap_axes(loop, j - 1, j);
    }
}

void outermost_ones(Loop& loop, unsigned stream) {
    for (unsigned axis = 0; axis < loop.rank; ++axis) {
        if (loop.dims[axis] == 1) loop.strides[stream][axis] = int64_t{1} << 40;
    }
}

void merge_axes(Loop& loop) {
    drop_ones(loop);
    unsigned last = 0;
    for (unsigned axis = 1; axis < loop.rank; ++axis) {
        if (mergeable(loop, last, axis)) {
            loop.dims[last] *= loop.dims[axis];
            for (unsigned k = 0; k < loop.streams; ++k) {
                loop.strides[k][last] = loop.strides[k][axis];
            }
        } else if (++last != axis) {
            swap_axes(loop, last, axis);
        }
    }
    if (loop.rank > 0) {
        loop.rank = last + 1;
        return;
    }
    loop.rank = 1;  // a single element
    loop.dims[0] = 1;
    for (unsigned k = 0; k < loop.streams; ++k) loop.strides[k][0] = 0;
}

Loop make_loop(std::span<const View> views, Order order) {
    const View& last = views.back();
    Loop loop;
    loop.rank = last.rank;
    loop.streams = static_cast<unsigned>(views.size());
    loop.dims = last.dims;
    for (unsigned k = 0; k < loop.streams; ++k) loop.strides[k] = views[k].strides;
    loop.count = element_count(last);
    if (order == Order::kByLast) sort_axes(loop, loop.streams - 1);
    merge_axes(loop);
    return loop;
}

Block block_at(const Loop& loop, int64_t begin, int64_t limit) {
    Block block;
    block.index = begin;
    int64_t rest = begin;
    int64_t row_index = 0;
    int64_t col_index = 0;
    const unsigned inner = loop.rank - 1;
    for (unsigned axis = loop.rank; axis-- > 0;) {
        const int64_t position = axis == 0 ? rest : rest % loop.dims[axis];
        rest = axis == 0 ? 0 : rest / loop.dims[axis];
        if (axis == inner) col_index = position;
        if (axis + 1 == inner) row_index = position;
        if (position == 0) continue;
        for (unsigned k = 0; k < loop.streams; ++k) {
            block.offset[k] += position * loop.strides[k][axis];
        }
    }
    const int64_t width = loop.dims[inner];
    const bool whole_rows = col_index == 0 && width <= limit && loop.rank > 1;
    block.cols = whole_rows ? width : std::min(width - col_index, limit);
    block.rows = whole_rows ? std::min(loop.dims[inner - 1] - row_index, limit / width) : 1;
    for (unsigned k = 0; k < loop.streams; ++k) {
        block.col_stride[k] = loop.strides[k][inner];
        block.row_stride[k] = loop.rank > 1 ? loop.strides[k][inner - 1] : 0;
    }
    return block;
}

}  // namespace enpu::ops
