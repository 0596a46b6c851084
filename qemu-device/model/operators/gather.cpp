// SPDX-License-Identifier: MIT
// GATHER: both modes are one loop over x (without the axis), the indices and y.
#include <array>
#include <atomic>
#include <cstring>

#include "element.h"
#include "families.h"
#include "tiles.h"

namespace enpu::ops {
namespace {

constexpr int64_t kTileElements = 1 << 18;

// The first index found out of range; work after it is skipped.
class Offender {
  public:
    bool found() const { return found_.load(std::memory_order_relaxed); }
    void report(int64_t value) {
        if (!found_.exchange(true)) value_ = value;
    }
    int64_t value() const { return value_; }

  private:
    std::atomic<bool> found_{false};
    int64_t value_ = 0;
};

struct Axis {
    int64_t size;
    int64_t stride;
};

// x and indices stretched to the dims of y.
std::array<View, 3> stretch(const Call& call, Axis& along) {
    const auto& params = call.packet.params.gather;
    const View x = view_of(call.operands[0]);
    const View indices = view_of(call.operands[1]);
    const View y = view_of(call.operands[2]);
    const unsigned axis = params.axis;
    along = {x.dims[axis], x.strides[axis]};
    View from = y;
    View index = y;
    from.data = x.data;
    from.dtype = x.dtype;
    index.data = indices.data;
    index.dtype = indices.dtype;
    if (params.mode == ENPU_GATHER_MODE_ELEMENTS) {
        from.strides = x.strides;
        from.strides[axis] = 0;
        index.strides = indices.strides;
        return {from, index, y};
    }
    for (unsigned i = 0; i < y.rank; ++i) {
        const bool inside = i >= axis && i < axis + indices.rank;
        const unsigned x_axis = i < axis ? i : i + 1 - indices.rank;
        from.strides[i] = inside ? 0 : x.strides[x_axis];
        index.strides[i] = inside ? indices.strides[i - axis] : 0;
    }
    return {from, index, y};
}

// Negative indices count from the end. False, with the offender told, when one is out of range.
bool resolve(int64_t* indices, int64_t count, const Axis& axis, Offender& offender) {
    for (int64_t i = 0; i < count; ++i) {
        const int64_t index = indices[i] < 0 ? indices[i] + axis.size : indices[i];
        if (index < 0 || index >= axis.size) {
            offender.report(indices[i]);
            return false;
        }
        indices[i] = index * axis.stride;
    }
    return true;
}

template <class T>
void gather_row(const Block& block, int64_t row, const int64_t* offsets, const T* x, T* y) {
    const T* from = x + block.offset[0] + row * block.row_stride[0];
    T* to = y + block.offset[2] + row * block.row_stride[2];
    const int64_t from_stride = block.col_stride[0];
    const int64_t to_stride = block.col_stride[2];
    if (block.col_stride[1] == 0) {  // one index for the whole row
        from += offsets[0];
        if (from_stride == 1 && to_stride == 1) {
            std::memcpy(to, from, block.cols * sizeof(T));
            return;
        }
        for (int64_t i = 0; i < block.cols; ++i) to[i * to_stride] = from[i * from_stride];
        return;
    }
    for (int64_t i = 0; i < block.cols; ++i) to[i * to_stride] = from[i * from_stride + offsets[i]];
}

template <class T>
Outcome gather(const Call& call) {
    Axis axis;
    const std::array<View, 3> views = stretch(call, axis);
    const Loop loop = make_loop(views);
    const T* x = reinterpret_cast<const T*>(views[0].data);
    T* y = reinterpret_cast<T*>(views[2].data);
    Offender offender;
    const auto body = [&](int64_t begin, int64_t end) {
        for_blocks(loop, begin, end, [&](const Block& block) {
            for (int64_t row = 0; row < block.rows && !offender.found(); ++row) {
                int64_t buffer[kBlockElements];
                Block line = block;
                line.rows = 1;
                line.cols = block.col_stride[1] == 0 ? 1 : block.cols;
                line.offset[1] += row * block.row_stride[1];
                const int64_t* indices = fetch<int64_t>(views[1], line, 1, buffer);
                if (indices != buffer) std::copy_n(indices, line.cols, buffer);
                if (!resolve(buffer, line.cols, axis, offender)) return;
                gather_row(block, row, buffer, x, y);
            }
        });
    };
    const Outcome outcome = for_tiles(call.progress, loop.count, kTileElements, body);
    if (!offender.found()) return outcome;
    call.progress.detail(ENPU_GATHER_OPERAND_INDICES, offender.value());
    return Outcome::kBadOperand;
}

}  // namespace

Outcome run_gather(const Call& call) {
    return with_element_size(call.operands[0].desc->dtype,
                             [&](auto tag) { return gather<typename decltype(tag)::Type>(call); });
}

}  // namespace enpu::ops
