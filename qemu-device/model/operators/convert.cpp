// SPDX-License-Identifier: MIT
#include "convert.h"

#include <array>

#include "element.h"
#include "parallel.h"

namespace enpu::ops {
namespace {

constexpr int64_t kGrain = 32768;           // elements that are worth a task
constexpr int64_t kTileElements = 1 << 20;  // about a millisecond

template <class Body>
void parallel(int64_t count, Body&& body) {
    if (count <= 2 * kGrain) return body(0, count);
    parallel_ranges(0, count, kGrain, body);
}

void convert_range(const View& from, const View& to, const Loop& loop, float zero_point,
                   int64_t begin, int64_t end) {
    alignas(64) float in[kBlockElements];
    alignas(64) float out[kBlockElements];
    for_blocks(loop, begin, end, [&](const Block& block) {
        const float* values = fetch<float>(from, block, 0, in);
        if (zero_point != 0) {
            for (int64_t i = 0; i < block.size(); ++i) out[i] = values[i] - zero_point;
            values = out;
        }
        put<float>(values, to, block, 1);
    });
}

void copy_byte_range(const View& from, const View& to, const Loop& loop, uint8_t flip,
                     int64_t begin, int64_t end) {
    alignas(64) uint8_t in[kBlockElements];
    alignas(64) uint8_t out[kBlockElements];
    const auto* source = reinterpret_cast<const uint8_t*>(from.data);
    auto* target = reinterpret_cast<uint8_t*>(to.data);
    for_blocks(loop, begin, end, [&](const Block& block) {
        const uint8_t* values = fetch_as<uint8_t, uint8_t>(source, block, 0, in);
        if (flip != 0) {
            for (int64_t i = 0; i < block.size(); ++i) out[i] = values[i] ^ flip;
            values = out;
        }
        put_as<uint8_t, uint8_t>(values, target, block, 1);
    });
}

}  // namespace

View dense_view(float* data, std::span<const int64_t> dims) {
    View view;
    view.data = reinterpret_cast<std::byte*>(data);
    view.dtype = ENPU_DTYPE_F32;
    view.rank = static_cast<unsigned>(dims.size());
    int64_t stride = 1;
    for (unsigned axis = view.rank; axis-- > 0;) {
        view.dims[axis] = dims[axis];
        view.strides[axis] = stride;
        stride *= dims[axis];
    }
    return view;
}

View channels_last_view(float* data, int64_t n, int64_t c, int64_t h, int64_t w) {
    View view = dense_view(data, std::array{n, c, h, w});
    view.strides[0] = h * w * c;
    view.strides[1] = 1;
    view.strides[2] = w * c;
    view.strides[3] = c;
    return view;
}

bool is_channels_last(const View& view) {
    const auto& d = view.dims;
    const auto& s = view.strides;
    const auto walks = [&](unsigned axis, int64_t stride) {
        return d[axis] == 1 || s[axis] == stride;
    };
    return view.dtype == ENPU_DTYPE_F32 && walks(1, 1) && walks(3, d[1]) && walks(2, d[3] * d[1]);
}

View slice(View view, unsigned axis, int64_t begin, int64_t count) {
    const auto size = static_cast<int64_t>(
        with_dtype(view.dtype, [](auto tag) { return sizeof(typename decltype(tag)::Type); }));
    view.data += begin * view.strides[axis] * size;
    view.dims[axis] = count;
    return view;
}

void convert(const View& from, const View& to, int32_t zero_point) {
    const Loop loop = make_loop(std::array{from, to});
    parallel(loop.count, [&](int64_t begin, int64_t end) {
        convert_range(from, to, loop, static_cast<float>(zero_point), begin, end);
    });
}

Outcome convert_tiled(Progress& progress, const View& from, const View& to, int32_t zero_point) {
    const Loop loop = make_loop(std::array{from, to});
    return for_tiles(progress, loop.count, kTileElements, [&](int64_t begin, int64_t end) {
        convert_range(from, to, loop, static_cast<float>(zero_point), begin, end);
    });
}

void copy_bytes(const View& from, const View& to, uint8_t flip) {
    const Loop loop = make_loop(std::array{from, to});
    parallel(loop.count, [&](int64_t begin, int64_t end) {
        copy_byte_range(from, to, loop, flip, begin, end);
    });
}

Outcome copy_bytes_tiled(Progress& progress, const View& from, const View& to, uint8_t flip) {
    const Loop loop = make_loop(std::array{from, to});
    return for_tiles(progress, loop.count, kTileElements, [&](int64_t begin, int64_t end) {
        copy_byte_range(from, to, loop, flip, begin, end);
    });
}

void accumulate(const View& from, const View& to) {
    const Loop loop = make_loop(std::array{from, to});
    parallel(loop.count, [&](int64_t begin, int64_t end) {
        alignas(64) float in[kBlockElements];
        alignas(64) float sums[kBlockElements];
        alignas(64) float out[kBlockElements];
        for_blocks(loop, begin, end, [&](const Block& block) {
            const float* a = fetch<float>(from, block, 0, in);
            const float* b = fetch<float>(to, block, 1, sums);
            for (int64_t i = 0; i < block.size(); ++i) out[i] = a[i] + b[i];
            put<float>(out, to, block, 1);
        });
    });
}

void activate(const Activation& act, float* x, int64_t count) {
    if (act.function == ENPU_UNARY_IDENTITY) return;
    parallel(count, [&](int64_t begin, int64_t end) {
        apply_unary(act, x + begin, x + begin, end - begin);
    });
}

}  // namespace enpu::ops
