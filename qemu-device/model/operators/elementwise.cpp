// SPDX-License-Identifier: MIT
// UNARY, BINARY, SELECT and CAST.
#include <array>

#include "element.h"
#include "families.h"
#include "formulas.h"
#include "functions.h"
#include "tiles.h"

namespace enpu::ops {
namespace {

// A thread's share of a tile: 7 ms of the slowest function.
constexpr int64_t kTileElements = 1 << 17;

template <class C>
Outcome unary(const Call& call, const Activation& f) {
    const std::array views{view_of(call.operands[0]), view_of(call.operands[1])};
    const Loop loop = make_loop(views);
    return for_tiles(call.progress, loop.count, kTileElements, [&](int64_t begin, int64_t end) {
        alignas(64) C in[kBlockElements];
        alignas(64) C out[kBlockElements];
        for_blocks(loop, begin, end, [&](const Block& block) {
            const C* x = fetch<C>(views[0], block, 0, in);
            C* y = target<C>(views[1], block, 1, out);
            apply_unary(f, x, y, block.size());
            put<C>(y, views[1], block, 1);
        });
    });
}

template <class C>
Outcome binary(const Call& call, uint32_t function, const Activation& act) {
    const std::array views{view_of(call.operands[0]), view_of(call.operands[1]),
                           view_of(call.operands[2])};
    const Loop loop = make_loop(views);
    return for_tiles(call.progress, loop.count, kTileElements, [&](int64_t begin, int64_t end) {
        alignas(64) C buffers[3][kBlockElements];
        for_blocks(loop, begin, end, [&](const Block& block) {
            const C* a = fetch<C>(views[0], block, 0, buffers[0]);
            const C* b = fetch<C>(views[1], block, 1, buffers[1]);
            C* y = target<C>(views[2], block, 2, buffers[2]);
            if constexpr (std::is_same_v<C, float>) {
                apply_binary(function, a, b, y, block.size());
                apply_unary(act, y, y, block.size());
            } else {  // the rules allow no activation here
                apply_binary(function, views[0].dtype, a, b, y, block.size());
            }
            put<C>(y, views[2], block, 2);
        });
    });
}

template <class T>
Outcome select(const Call& call) {
    const std::array views{view_of(call.operands[0]), view_of(call.operands[1]),
                           view_of(call.operands[2]), view_of(call.operands[3])};
    const Loop loop = make_loop(views);
    const auto data = [&](unsigned k) { return reinterpret_cast<T*>(views[k].data); };
    return for_tiles(call.progress, loop.count, kTileElements, [&](int64_t begin, int64_t end) {
        alignas(64) uint8_t conditions[kBlockElements];
        alignas(64) T buffers[3][kBlockElements];
        for_blocks(loop, begin, end, [&](const Block& block) {
            const auto* bytes = reinterpret_cast<const uint8_t*>(views[0].data);
            const uint8_t* condition = fetch_as<uint8_t, uint8_t>(bytes, block, 0, conditions);
            const T* a = fetch_as<T, T>(data(1), block, 1, buffers[0]);
            const T* b = fetch_as<T, T>(data(2), block, 2, buffers[1]);
            T* y = target_as<T, T>(data(3), block, 3, buffers[2]);
            const int64_t count = block.size();
            for (int64_t i = 0; i < count; ++i) y[i] = condition[i] ? a[i] : b[i];
            put_as<T, T>(y, data(3), block, 3);
        });
    });
}

template <class C>
Outcome cast(const Call& call) {
    const std::array views{view_of(call.operands[0]), view_of(call.operands[1])};
    const Loop loop = make_loop(views);
    const bool to_bfloat = std::is_same_v<C, int64_t> && views[1].dtype == ENPU_DTYPE_BF16;
    return for_tiles(call.progress, loop.count, kTileElements, [&](int64_t begin, int64_t end) {
        alignas(64) C values[kBlockElements];
        alignas(64) float rounded[kBlockElements];
        for_blocks(loop, begin, end, [&](const Block& block) {
            const C* x = fetch<C>(views[0], block, 0, values);
            if constexpr (std::is_same_v<C, int64_t>) {
                if (to_bfloat) {
                    for (int64_t i = 0; i < block.size(); ++i) rounded[i] = round_to_odd(x[i]);
                    return put<float>(rounded, views[1], block, 1);
                }
            }
            put<C>(x, views[1], block, 1);
        });
    });
}

}  // namespace

Outcome run_unary(const Call& call) {
    const auto& params = call.packet.params.unary;
    const Activation f{params.function, params.alpha, params.beta};
    return is_float(call.operands[0].desc->dtype) ? unary<float>(call, f) : unary<int64_t>(call, f);
}

Outcome run_binary(const Call& call) {
    const auto& params = call.packet.params.binary;
    const Activation act{params.act, params.alpha, params.beta};
    return is_float(call.operands[0].desc->dtype) ? binary<float>(call, params.function, act)
                                                  : binary<int64_t>(call, params.function, act);
}

Outcome run_select(const Call& call) {
    return with_element_size(call.operands[ENPU_SELECT_OPERAND_Y].desc->dtype,
                             [&](auto tag) { return select<typename decltype(tag)::Type>(call); });
}

Outcome run_cast(const Call& call) {
    const uint32_t from = call.operands[0].desc->dtype;
    const uint32_t to = call.operands[1].desc->dtype;
    // Integers below 2^24 are exact in float, and f16 overflows before they are not; for bf16 a
    // float would be a second rounding.
    const bool to_float = to == ENPU_DTYPE_F32 || to == ENPU_DTYPE_F16;
    const bool through_float =
        is_float(from) || to_float || from == ENPU_DTYPE_I8 || from == ENPU_DTYPE_U8;
    return through_float ? cast<float>(call) : cast<int64_t>(call);
}

}  // namespace enpu::ops
