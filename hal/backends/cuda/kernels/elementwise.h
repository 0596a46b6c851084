// SPDX-License-Identifier: MIT
// UNARY, BINARY, CAST, QUANTIZE and DEQUANTIZE.
#pragma once

#include "functions.h"
#include "quantise_one.h"

namespace enpu::hal::cuda {

ENPU_DEVICE void fill_one(uint64_t address, uint64_t pattern, uint32_t bytes) {
    if (address % bytes != 0 || bytes == 1) {
        for (uint32_t i = 0; i < bytes; ++i)
            reinterpret_cast<uint8_t*>(address)[i] = static_cast<uint8_t>(pattern >> (8 * i));
    } else if (bytes == 2) {
        *reinterpret_cast<uint16_t*>(address) = static_cast<uint16_t>(pattern);
    } else if (bytes == 4) {
        *reinterpret_cast<uint32_t*>(address) = static_cast<uint32_t>(pattern);
    } else {
        *reinterpret_cast<uint64_t*>(address) = pattern;
    }
}

ENPU_DEVICE void run_fill(const FillArgs& args, Lane lane) {
    for (uint64_t i = lane.first; i < args.units; i += lane.step)
        fill_one(args.address + i * args.unit_bytes, args.pattern, args.unit_bytes);
}

ENPU_DEVICE void run_unary(const UnaryArgs& args, Lane lane) {
    const bool floats = is_float(args.x.dtype);
    for (uint32_t i = lane.first; i < args.walk.count; i += lane.step) {
        int32_t at[2];
        locate(args.walk, i, at);
        if (floats)
            store(args.y, at[1], apply_unary(args.function, load<float>(args.x, at[0])));
        else
            store(args.y, at[1], apply_unary(args.function, load<int64_t>(args.x, at[0])));
    }
}

ENPU_DEVICE void run_binary(const BinaryArgs& args, Lane lane) {
    const bool floats = is_float(args.a.dtype);
    for (uint32_t i = lane.first; i < args.walk.count; i += lane.step) {
        int32_t at[3];
        locate(args.walk, i, at);
        if (floats) {
            const float value =
                apply_binary(args.function, load<float>(args.a, at[0]), load<float>(args.b, at[1]));
            store(args.y, at[2], apply_unary(args.act, value));
        } else {  // the rules allow no activation here
            store(args.y, at[2],
                  apply_binary(args.function, args.a.dtype, load<int64_t>(args.a, at[0]),
                               load<int64_t>(args.b, at[1])));
        }
    }
}

ENPU_DEVICE void run_cast(const CastArgs& args, Lane lane) {
    for (uint32_t i = lane.first; i < args.walk.count; i += lane.step) {
        int32_t at[2];
        locate(args.walk, i, at);
        if (args.through_float) {
            store(args.y, at[1], load<float>(args.x, at[0]));
            continue;
        }
        const auto value = load<int64_t>(args.x, at[0]);
        if (args.y.dtype == ENPU_DTYPE_BF16)
            store(args.y, at[1], ops::round_to_odd(value));
        else
            store(args.y, at[1], value);
    }
}

ENPU_DEVICE void run_quantize(const QuantizeArgs& args, Lane lane) {
    const ops::QuantRange range = ops::quant_range(args.y.dtype == ENPU_DTYPE_I8);
    for (uint32_t i = lane.first; i < args.walk.count; i += lane.step) {
        int32_t at[4];
        locate(args.walk, i, at);
        const float zero = args.zero.address ? load<float>(args.zero, at[2]) : 0.0f;
        const float value = ops::quantise_one(load<float>(args.x, at[0]),
                                              load<float>(args.scale, at[1]), zero, range);
        store(args.y, at[3], static_cast<int64_t>(value));
    }
}

ENPU_DEVICE void run_dequantize(const QuantizeArgs& args, Lane lane) {
    for (uint32_t i = lane.first; i < args.walk.count; i += lane.step) {
        int32_t at[4];
        locate(args.walk, i, at);
        int64_t value = load<int64_t>(args.x, at[0]);
        if (args.zero.address) value -= load<int64_t>(args.zero, at[2]);
        store(args.y, at[3], static_cast<float>(value) * load<float>(args.scale, at[1]));
    }
}

}  // namespace enpu::hal::cuda
