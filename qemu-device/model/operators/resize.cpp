// SPDX-License-Identifier: MIT
// RESIZE: y is walked in memory order, row by row along its innermost axis. The taps of the outer
// axes are multiplied out once a row; the innermost axis is either copied (channels-last: whole
// runs are combined) or sampled as well.
#include <array>
#include <cstring>

#include "element.h"
#include "families.h"
#include "resize_taps.h"
#include "tiles.h"

namespace enpu::ops {
namespace {

constexpr int64_t kTileWork = 1 << 19;  // elements times taps

struct Resizing {
    Loop loop;  // streams x, y; dims of y, y's innermost axis last
    std::array<AxisTaps, kMaxLoopRank> axes;
    bool nearest = false;
    float extrapolation = 0;
    int64_t work_per_element = 1;
};

// One product of outer taps: where the row starts in x, and its weight.
struct Corner {
    int64_t offset;
    float weight;
};

// Merges neighbours that are both only copied.
void merge_copied(Resizing& r) {
    Loop& loop = r.loop;
    unsigned last = 0;
    for (unsigned axis = 1; axis < loop.rank; ++axis) {
        const bool even = loop.strides[0][last] == loop.strides[0][axis] * loop.dims[axis] &&
                          loop.strides[1][last] == loop.strides[1][axis] * loop.dims[axis];
        const bool copied = r.axes[last].copies() && r.axes[axis].copies();
        if (!even || !copied) ++last;
        loop.dims[last] = even && copied ? loop.dims[last] * loop.dims[axis] : loop.dims[axis];
        for (unsigned k = 0; k < 2; ++k) loop.strides[k][last] = loop.strides[k][axis];
        if (last != axis && !(even && copied)) r.axes[last] = std::move(r.axes[axis]);
    }
    loop.rank = last + 1;
}

Outcome arrange(const Call& call, const View& x, const View& y, Resizing& r) {
    const auto& params = call.packet.params.resize;
    Loop& loop = r.loop;
    loop.rank = std::max(y.rank, 1u);
    loop.streams = 3;  // the third carries the number of the axis through the sort
    loop.dims = y.dims;
    loop.strides[0] = x.strides;
    loop.strides[1] = y.strides;
    loop.count = element_count(y);
    for (unsigned axis = 0; axis < loop.rank; ++axis) loop.strides[2][axis] = axis;
    if (y.rank == 0) loop.dims[0] = 1;
    outermost_ones(loop, 1);
    sort_axes(loop, 1);
    for (unsigned axis = 0; axis < y.rank; ++axis) {
        const auto number = static_cast<unsigned>(loop.strides[2][axis]);
        const Outcome outcome = make_taps(call.progress, params, number, y.rank, x.dims[number],
                                          y.dims[number], r.axes[axis]);
        if (outcome != Outcome::kDone) return outcome;
        if (!r.axes[axis].copies()) r.work_per_element *= r.axes[axis].per_output;
    }
    r.nearest = params.mode == ENPU_RESIZE_MODE_NEAREST;
    r.extrapolation = params.extrapolation;
    merge_copied(r);
    return Outcome::kDone;
}

// A row of y and what it is made from.
struct Row {
    int64_t first = 0;  // position on the innermost axis
    int64_t count = 0;
    int64_t y_offset = 0;
    bool outside = false;  // an outer axis asks for the extrapolation value
    std::array<int64_t, kMaxLoopRank> position{};
};

Row row_at(const Resizing& r, int64_t begin, int64_t limit) {
    const Loop& loop = r.loop;
    const unsigned inner = loop.rank - 1;
    Row row;
    row.first = begin % loop.dims[inner];
    row.count = std::min(limit, loop.dims[inner] - row.first);
    row.y_offset = row.first * loop.strides[1][inner];
    int64_t rest = begin / loop.dims[inner];
    for (unsigned axis = inner; axis-- > 0;) {
        row.position[axis] = rest % loop.dims[axis];
        rest /= loop.dims[axis];
        row.y_offset += row.position[axis] * loop.strides[1][axis];
        const AxisTaps& taps = r.axes[axis];
        if (taps.outside && taps.outside[row.position[axis]]) row.outside = true;
    }
    return row;
}

// Calls body(corner) for each product of the outer taps, in a fixed order.
template <class Body>
void for_corners(const Resizing& r, const Row& row, Body&& body) {
    const Loop& loop = r.loop;
    const unsigned outer = loop.rank - 1;
    std::array<unsigned, kMaxLoopRank> tap{};
    for (;;) {
        Corner corner{0, 1.0f};
        for (unsigned axis = 0; axis < outer; ++axis) {
            if (r.axes[axis].copies()) {
                corner.offset += row.position[axis] * loop.strides[0][axis];
                continue;
            }
            const Tap& chosen = r.axes[axis].at(row.position[axis])[tap[axis]];
            corner.offset += chosen.index * loop.strides[0][axis];
            corner.weight *= chosen.weight;
        }
        if (corner.weight != 0) body(corner);
        unsigned axis = outer;
        for (; axis-- > 0;) {
            if (!r.axes[axis].copies() && ++tap[axis] < r.axes[axis].per_output) break;
            tap[axis] = 0;
            if (axis == 0) return;
        }
        if (outer == 0) return;
    }
}

// Integers are rounded to the nearest, half to even, and saturate.
template <class T>
T store_rounded(float value) {
    if constexpr (std::is_integral_v<T>) {
        const float low = std::numeric_limits<T>::min();
        const float high = std::numeric_limits<T>::max();
        const float rounded = __builtin_rintf(value);
        return static_cast<T>(rounded > low ? std::min(rounded, high) : low);
    } else {
        return store<T>(value);
    }
}

template <class T>
void add_corner(const Resizing& r, const Row& row, const Corner& corner, const T* x, float* sums) {
    const unsigned inner = r.loop.rank - 1;
    const int64_t stride = r.loop.strides[0][inner];
    const AxisTaps& taps = r.axes[inner];
    const T* from = x + corner.offset;
    if (taps.copies()) {
        from += row.first * stride;
        if (stride == 1) {
            for (int64_t i = 0; i < row.count; ++i) sums[i] += corner.weight * load<float>(from[i]);
        } else {
            for (int64_t i = 0; i < row.count; ++i) {
                sums[i] += corner.weight * load<float>(from[i * stride]);
            }
        }
        return;
    }
    for (int64_t i = 0; i < row.count; ++i) {
        const Tap* tap = taps.at(row.first + i);
        float value = 0;
        for (unsigned k = 0; k < taps.per_output; ++k) {
            if (tap[k].weight != 0)
                value += tap[k].weight * load<float>(from[tap[k].index * stride]);
        }
        sums[i] += corner.weight * value;
    }
}

template <class T>
void interpolate_row(const Resizing& r, const Row& row, const T* x, T* y) {
    alignas(64) float sums[kBlockElements] = {};
    for_corners(r, row, [&](const Corner& corner) { add_corner(r, row, corner, x, sums); });
    const int64_t stride = r.loop.strides[1][r.loop.rank - 1];
    T* to = y + row.y_offset;
    for (int64_t i = 0; i < row.count; ++i) to[i * stride] = store_rounded<T>(sums[i]);
}

template <class T>
void copy_nearest(const Resizing& r, const Row& row, const T* x, T* y) {
    const unsigned inner = r.loop.rank - 1;
    const int64_t from_stride = r.loop.strides[0][inner];
    const int64_t to_stride = r.loop.strides[1][inner];
    const AxisTaps& taps = r.axes[inner];
    T* to = y + row.y_offset;
    for_corners(r, row, [&](const Corner& corner) {
        const T* from = x + corner.offset;
        if (!taps.copies()) {
            for (int64_t i = 0; i < row.count; ++i) {
                to[i * to_stride] = from[taps.at(row.first + i)->index * from_stride];
            }
        } else if (from_stride == 1 && to_stride == 1) {
            std::memcpy(to, from + row.first, row.count * sizeof(T));
        } else {
            from += row.first * from_stride;
            for (int64_t i = 0; i < row.count; ++i) to[i * to_stride] = from[i * from_stride];
        }
    });
}

template <class T>
void extrapolate(const Resizing& r, const Row& row, T* y) {
    const unsigned inner = r.loop.rank - 1;
    const AxisTaps& taps = r.axes[inner];
    const T value = store_rounded<T>(r.extrapolation);
    for (int64_t i = 0; i < row.count; ++i) {
        if (row.outside || (taps.outside && taps.outside[row.first + i])) {
            y[row.y_offset + i * r.loop.strides[1][inner]] = value;
        }
    }
}

template <class T>
Outcome resize(const Call& call) {
    const View x = view_of(call.operands[0]);
    const View y = view_of(call.operands[1]);
    Resizing r;
    const Outcome outcome = arrange(call, x, y, r);
    if (outcome != Outcome::kDone) return outcome;
    const T* from = reinterpret_cast<const T*>(x.data);
    T* to = reinterpret_cast<T*>(y.data);
    const int64_t tile = std::max<int64_t>(kTileWork / r.work_per_element, 1);
    return for_tiles(call.progress, r.loop.count, tile, [&](int64_t begin, int64_t end) {
        while (begin < end) {
            const Row row = row_at(r, begin, std::min(end - begin, kBlockElements));
            if (!row.outside) {
                r.nearest ? copy_nearest(r, row, from, to) : interpolate_row(r, row, from, to);
            }
            extrapolate(r, row, to);
            begin += row.count;
        }
    });
}

}  // namespace

Outcome run_resize(const Call& call) {
    switch (call.operands[0].desc->dtype) {
        case ENPU_DTYPE_F16:
            return resize<Half>(call);
        case ENPU_DTYPE_BF16:
            return resize<Bfloat>(call);
        case ENPU_DTYPE_I8:
            return resize<int8_t>(call);
        case ENPU_DTYPE_U8:
            return resize<uint8_t>(call);
        default:
            return resize<float>(call);
    }
}

}  // namespace enpu::ops
