// SPDX-License-Identifier: MIT
// QUANTIZE and DEQUANTIZE.
#include <array>

#include "element.h"
#include "families.h"
#include "quantise_one.h"
#include "tiles.h"

namespace enpu::ops {
namespace {

constexpr int64_t kTileElements = 1 << 18;

using Views = std::array<View, 4>;  // x, scale, zero point, y

Views views_of(const Call& call) {
    Views views;
    for (unsigned k = 0; k < views.size(); ++k) {
        if (call.operands[k]) views[k] = view_of(call.operands[k]);
    }
    return views;
}

void quantise(const float* x, const float* scale, const float* zero, QuantRange range, float* y,
              int64_t count) {
    for (int64_t i = 0; i < count; ++i) y[i] = quantise_one(x[i], scale[i], zero[i], range);
}

template <class T>
void store_quantised(const float* values, const View& y, const Block& block) {
    alignas(64) T bytes[kBlockElements];
    const int64_t count = block.size();
    for (int64_t i = 0; i < count; ++i) bytes[i] = static_cast<T>(static_cast<int32_t>(values[i]));
    put_as<T, T>(bytes, reinterpret_cast<T*>(y.data), block, 3);
}

// x - zero in the type that holds it exactly, as float.
template <class C>
void subtract_zero(const Views& views, const Block& block, float* y) {
    alignas(64) C in[kBlockElements];
    alignas(64) C zeros[kBlockElements];
    const int64_t count = block.size();
    const C* x = fetch<C>(views[0], block, 0, in);
    if (!views[2].data) {
        for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(x[i]);
        return;
    }
    const C* zero = fetch<C>(views[2], block, 2, zeros);
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(x[i] - zero[i]);
}

}  // namespace

Outcome run_quantize(const Call& call) {
    const Views views = views_of(call);
    const Loop loop = make_loop(views);
    const bool is_signed = views[3].dtype == ENPU_DTYPE_I8;
    const QuantRange range = quant_range(is_signed);
    return for_tiles(call.progress, loop.count, kTileElements, [&](int64_t begin, int64_t end) {
        alignas(64) float buffers[3][kBlockElements];
        alignas(64) float none[kBlockElements] = {};
        for_blocks(loop, begin, end, [&](const Block& block) {
            const float* x = fetch<float>(views[0], block, 0, buffers[0]);
            const float* scale = fetch<float>(views[1], block, 1, buffers[1]);
            const float* zero = views[2].data ? fetch<float>(views[2], block, 2, buffers[2]) : none;
            quantise(x, scale, zero, range, buffers[0], block.size());
            if (is_signed) {
                store_quantised<int8_t>(buffers[0], views[3], block);
            } else {
                store_quantised<uint8_t>(buffers[0], views[3], block);
            }
        });
    });
}

Outcome run_dequantize(const Call& call) {
    const Views views = views_of(call);
    const Loop loop = make_loop(views);
    const bool wide = views[0].dtype == ENPU_DTYPE_I32;
    return for_tiles(call.progress, loop.count, kTileElements, [&](int64_t begin, int64_t end) {
        alignas(64) float values[kBlockElements];
        alignas(64) float scales[kBlockElements];
        for_blocks(loop, begin, end, [&](const Block& block) {
            if (wide) {
                subtract_zero<int64_t>(views, block, values);
            } else {
                subtract_zero<float>(views, block, values);
            }
            const float* scale = fetch<float>(views[1], block, 1, scales);
            const int64_t count = block.size();
            for (int64_t i = 0; i < count; ++i) values[i] *= scale[i];
            put<float>(values, views[3], block, 3);
        });
    });
}

}  // namespace enpu::ops
