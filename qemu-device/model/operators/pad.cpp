// SPDX-License-Identifier: MIT
// PAD: rows of y along its innermost axis; the part that lies inside x is a run, the rest is mapped
// element by element.
#include <array>
#include <cstring>

#include "element.h"
#include "families.h"
#include "pad_source.h"
#include "tiles.h"

namespace enpu::ops {
namespace {

constexpr int64_t kTileElements = 1 << 18;

struct Padding {
    Loop loop;  // streams x, y; dims of y
    std::array<PadAxis, kMaxLoopRank> axes;
    uint32_t mode;
};

Padding arrange(const Call& call, const View& x, const View& y) {
    const auto& params = call.packet.params.pad;
    Padding padding;
    padding.mode = params.mode;
    Loop& loop = padding.loop;
    loop.rank = y.rank;
    loop.streams = 3;  // the third carries the number of the axis through the sort
    loop.dims = y.dims;
    loop.strides[0] = x.strides;
    loop.strides[1] = y.strides;
    loop.count = element_count(y);
    for (unsigned axis = 0; axis < y.rank; ++axis) loop.strides[2][axis] = axis;
    if (loop.rank == 0) {
        loop.rank = 1;
        loop.dims[0] = 1;
        padding.axes[0] = {0, 1};
        return padding;
    }
    outermost_ones(loop, 1);
    sort_axes(loop, 1);
    for (unsigned axis = 0; axis < y.rank; ++axis) {
        const auto number = static_cast<unsigned>(loop.strides[2][axis]);
        padding.axes[axis] = {params.before[number], x.dims[number]};
    }
    return padding;
}

template <class T>
struct Row {
    const T* from;  // null when an outer axis is outside x
    T* to;
    int64_t first;  // position of its first element on the innermost axis
    int64_t count;
};

// Finds the row that starts at position `begin` of y.
template <class T>
Row<T> row_at(const Padding& padding, int64_t begin, int64_t limit, const T* x, T* y) {
    const Loop& loop = padding.loop;
    const unsigned inner = loop.rank - 1;
    const int64_t first = begin % loop.dims[inner];
    Row<T> row{x, y, first, std::min(limit, loop.dims[inner] - first)};
    int64_t rest = begin / loop.dims[inner];
    for (unsigned axis = inner; axis-- > 0;) {
        const int64_t position = rest % loop.dims[axis];
        rest /= loop.dims[axis];
        row.to += position * loop.strides[1][axis];
        const int64_t at = pad_source(position, padding.axes[axis], padding.mode);
        if (at < 0) row.from = nullptr;
        if (row.from) row.from += at * loop.strides[0][axis];
    }
    return row;
}

template <class T>
void write_row(const Padding& padding, const Row<T>& row, T constant) {
    const unsigned inner = padding.loop.rank - 1;
    const PadAxis& axis = padding.axes[inner];
    const int64_t from_stride = padding.loop.strides[0][inner];
    const int64_t to_stride = padding.loop.strides[1][inner];
    const auto mapped = [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t at = row.from ? pad_source(i, axis, padding.mode) : -1;
            row.to[i * to_stride] = at < 0 ? constant : row.from[at * from_stride];
        }
    };
    const int64_t last = row.first + row.count;
    if (!row.from) return mapped(row.first, last);
    const int64_t inside = std::clamp(axis.before, row.first, last);
    const int64_t outside = std::clamp(axis.before + axis.size, inside, last);
    mapped(row.first, inside);
    const T* from = row.from + (inside - axis.before) * from_stride;
    if (from_stride == 1 && to_stride == 1) {
        if (outside > inside) std::memcpy(row.to + inside, from, (outside - inside) * sizeof(T));
    } else {
        T* to = row.to + inside * to_stride;
        for (int64_t i = 0; i < outside - inside; ++i) to[i * to_stride] = from[i * from_stride];
    }
    mapped(outside, last);
}

template <class T>
Outcome pad(const Call& call) {
    const View x = view_of(call.operands[0]);
    const View y = view_of(call.operands[1]);
    const Padding padding = arrange(call, x, y);
    const T* from = reinterpret_cast<const T*>(x.data);
    T* to = reinterpret_cast<T*>(y.data);
    const T constant = static_cast<T>(call.packet.params.pad.value);
    const int64_t count = padding.loop.count;
    return for_tiles(call.progress, count, kTileElements, [&](int64_t begin, int64_t end) {
        while (begin < end) {
            const Row<T> row = row_at(padding, begin, end - begin, from, to);
            write_row(padding, row, constant);
            begin += row.count;
        }
    });
}

}  // namespace

Outcome run_pad(const Call& call) {
    return with_element_size(call.operands[0].desc->dtype,
                             [&](auto tag) { return pad<typename decltype(tag)::Type>(call); });
}

}  // namespace enpu::ops
