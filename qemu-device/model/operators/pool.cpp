// SPDX-License-Identifier: MIT
// POOL: lines of output pixels, all channels of a pixel side by side when the tensor is
// channels-last.
#include <algorithm>
#include <limits>

#include "element.h"
#include "families.h"
#include "pool_window.h"
#include "scratch.h"
#include "tiles.h"

namespace enpu::ops {
namespace {

constexpr int64_t kChannelBlock = 256;

struct PoolShape {
    int64_t n, c, size[2], out[2];
    int64_t kernel[2], stride[2], dilation[2], pad[4];
    uint32_t function;
};

PoolShape pool_shape(const enpu_operator_packet& packet) {
    const auto& p = packet.params.pool;
    const auto& x = packet.operands[ENPU_POOL_OPERAND_X].dims;
    const auto& y = packet.operands[ENPU_POOL_OPERAND_Y].dims;
    PoolShape s{x[0], x[1], {x[2], x[3]}, {y[2], y[3]}, {}, {}, {}, {}, p.function};
    for (int i = 0; i < 2; ++i) {
        s.kernel[i] = p.kernel[i];
        s.stride[i] = p.stride[i];
        s.dilation[i] = p.dilation[i];
    }
    std::copy(std::begin(p.pad), std::end(p.pad), s.pad);
    return s;
}

Reach reach_of(const PoolShape& s, int axis, int64_t output) {
    return pool_reach({s.size[axis], s.kernel[axis], s.stride[axis], s.dilation[axis], s.pad[axis],
                       s.pad[2 + axis]},
                      output);
}

// Sums of integers are exact; those of floats are f32 in the order of the window.
template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, int64_t, float>;

template <class C>
C lowest() {
    if constexpr (std::is_floating_point_v<C>) return -std::numeric_limits<C>::infinity();
    return std::numeric_limits<C>::min();
}

template <class T>
class Pooler {
    using C = Sum<T>;

  public:
    explicit Pooler(const Call& call)
        : s_(pool_shape(call.packet)),
          x_(view_of(call.operands[0])),
          y_(view_of(call.operands[1])) {}

    Outcome run(Progress& progress) const {
        const int64_t work = s_.out[1] * s_.c * s_.kernel[0] * s_.kernel[1];
        const int64_t lines = std::max<int64_t>(4'000'000 / std::max<int64_t>(work, 1), 1);
        if (work < 16'000'000) {
            return for_tiles(progress, s_.n * s_.out[0], lines, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) line(i, 0, s_.out[1]);
            });
        }
        // A line is more than a tile: go by pixels, and by groups of channels of a pixel.
        const int64_t groups = (s_.c + kChannelBlock - 1) / kChannelBlock;
        return for_tiles(
            progress, s_.n * s_.out[0] * s_.out[1] * groups, 1, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                    const int64_t place = i / groups, channel = i % groups * kChannelBlock;
                    pixel(place / s_.out[1], place % s_.out[1], channel,
                          std::min(kChannelBlock, s_.c - channel));
                }
            });
    }

  private:
    void line(int64_t index, int64_t begin, int64_t end) const {
        for (int64_t ox = begin; ox < end; ++ox) {
            for (int64_t c = 0; c < s_.c; c += kChannelBlock) {
                pixel(index, ox, c, std::min(kChannelBlock, s_.c - c));
            }
        }
    }

    // `count` channels from `channel` of output pixel ox in line `index` of all images.
    void pixel(int64_t index, int64_t ox, int64_t channel, int64_t count) const {
        const int64_t image = index / s_.out[0], oy = index % s_.out[0];
        const Reach rows = reach_of(s_, 0, oy), cols = reach_of(s_, 1, ox);
        alignas(64) C sums[kChannelBlock];
        std::fill_n(sums, count, s_.function == ENPU_POOL_MAX ? lowest<C>() : C{0});
        const T* x =
            reinterpret_cast<const T*>(x_.data) + image * x_.strides[0] + channel * x_.strides[1];
        for (int64_t i = rows.begin; i < rows.end; ++i) {
            const T* row = x + (rows.first + i * s_.dilation[0]) * x_.strides[2];
            for (int64_t j = cols.begin; j < cols.end; ++j) {
                add(row + (cols.first + j * s_.dilation[1]) * x_.strides[3], count, sums);
            }
        }
        finish(rows, cols, count, sums);
        T* y = reinterpret_cast<T*>(y_.data) + image * y_.strides[0] + channel * y_.strides[1] +
               oy * y_.strides[2] + ox * y_.strides[3];
        store_line<T, C>(sums, y, y_.strides[1], count);
    }

    void add(const T* from, int64_t count, C* sums) const {
        alignas(64) C values[kChannelBlock];
        const C* in = values;
        if constexpr (std::is_same_v<T, C>) {
            if (x_.strides[1] == 1) in = from;
        }
        if (in == values) load_line<C, T>(from, x_.strides[1], count, values);
        if (s_.function == ENPU_POOL_MAX) {
            for (int64_t i = 0; i < count; ++i) sums[i] = larger(sums[i], in[i]);
        } else {
            for (int64_t i = 0; i < count; ++i) sums[i] += in[i];
        }
    }

    void finish(const Reach& rows, const Reach& cols, int64_t count, C* sums) const {
        const int64_t valid = std::max<int64_t>(rows.end - rows.begin, 0) *
                              std::max<int64_t>(cols.end - cols.begin, 0);
        if (s_.function == ENPU_POOL_MAX) {
            if constexpr (std::is_integral_v<T>) {
                if (valid == 0) std::fill_n(sums, count, C{std::numeric_limits<T>::min()});
            }
            return;
        }
        const int64_t divisor =
            s_.function == ENPU_POOL_AVERAGE ? valid : rows.padded * cols.padded;
        if (divisor == 0) return;  // nothing was added: 0
        for (int64_t i = 0; i < count; ++i) {
            if constexpr (std::is_integral_v<T>) {
                sums[i] = divide_round_even(sums[i], divisor);
            } else {
                sums[i] /= static_cast<float>(divisor);
            }
        }
    }

    const PoolShape s_;
    const View x_, y_;
};

}  // namespace

Outcome run_pool(const Call& call) {
    return with_dtype(call.packet.operands[0].dtype, [&](auto tag) {
        return Pooler<typename decltype(tag)::Type>(call).run(call.progress);
    });
}

}  // namespace enpu::ops
