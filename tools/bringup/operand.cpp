// SPDX-License-Identifier: MIT
#include "operand.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace enpu::bringup {
namespace {

// Round half to even on the bits that fall away; `low` of them.
uint32_t round_bits(uint32_t bits, unsigned low) {
    const uint32_t half = 1u << (low - 1), rest = bits & ((1u << low) - 1);
    const uint32_t kept = bits >> low;
    return kept + (rest > half || (rest == half && (kept & 1)));
}

uint16_t to_bf16(float value) {
    return static_cast<uint16_t>(round_bits(std::bit_cast<uint32_t>(value), 16));
}

uint16_t to_f16(float value) {
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const float size = std::fabs(value);
    if (!(size < 65520)) return static_cast<uint16_t>(sign | 0x7c00);
    if (size < 6.103515625e-5f)  // subnormal: units of 2^-24
        return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(size * 16777216)));
    return static_cast<uint16_t>(sign |
                                 (round_bits(std::bit_cast<uint32_t>(size) - (112u << 23), 13)));
}

float from_f16(uint16_t bits) {
    const uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 0    ? std::ldexp(fraction, -24)
                   : exponent == 31 ? (fraction ? NAN : INFINITY)
                                    : std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25);
    return static_cast<float>(bits & 0x8000 ? -value : value);
}

template <typename T>
void put(void* memory, T value) {
    std::memcpy(memory, &value, sizeof(value));
}

template <typename T>
T get(const void* memory) {
    T value;
    std::memcpy(&value, memory, sizeof(value));
    return value;
}

}  // namespace

size_t count_of(const Dims& dims) {
    size_t count = 1;
    for (const uint32_t dim : dims) count *= dim;
    return count;
}

void for_each_index(const Dims& dims, const std::function<void(const Dims&)>& f) {
    Dims index(dims.size(), 0);
    for (size_t left = count_of(dims); left > 0; --left) {
        f(index);
        for (size_t axis = dims.size(); axis-- > 0;) {
            if (++index[axis] < dims[axis]) break;
            index[axis] = 0;
        }
    }
}

size_t position(const Dims& dims, const Dims& index) {
    size_t at = 0;
    for (size_t axis = 0; axis < dims.size(); ++axis) at = at * dims[axis] + index[axis];
    return at;
}

size_t bytes_of(uint32_t dtype) {
    static constexpr size_t kBytes[] = {0, 4, 2, 2, 1, 1, 4, 8, 1};
    return dtype < std::size(kBytes) ? kBytes[dtype] : 0;
}

void store(uint32_t dtype, void* memory, double value) {
    switch (dtype) {
        case ENPU_DTYPE_F32:
            return put(memory, static_cast<float>(value));
        case ENPU_DTYPE_F16:
            return put(memory, to_f16(static_cast<float>(value)));
        case ENPU_DTYPE_BF16:
            return put(memory, to_bf16(static_cast<float>(value)));
        case ENPU_DTYPE_I8:
            return put(memory, static_cast<int8_t>(value));
        case ENPU_DTYPE_U8:
        case ENPU_DTYPE_BOOL:
            return put(memory, static_cast<uint8_t>(value));
        case ENPU_DTYPE_I32:
            return put(memory, static_cast<int32_t>(value));
        case ENPU_DTYPE_I64:
            return put(memory, static_cast<int64_t>(value));
        default:
            return;
    }
}

double load(uint32_t dtype, const void* memory) {
    switch (dtype) {
        case ENPU_DTYPE_F32:
            return get<float>(memory);
        case ENPU_DTYPE_F16:
            return from_f16(get<uint16_t>(memory));
        case ENPU_DTYPE_BF16:
            return std::bit_cast<float>(uint32_t{get<uint16_t>(memory)} << 16);
        case ENPU_DTYPE_I8:
            return get<int8_t>(memory);
        case ENPU_DTYPE_U8:
        case ENPU_DTYPE_BOOL:
            return get<uint8_t>(memory);
        case ENPU_DTYPE_I32:
            return get<int32_t>(memory);
        case ENPU_DTYPE_I64:
            return static_cast<double>(get<int64_t>(memory));
        default:
            return 0;
    }
}

Operand numbers(const Dims& dims, uint32_t seed, double low, double high, uint32_t dtype) {
    Operand operand{dims, dtype, {}, false, 0, 0};
    uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
    const bool whole = dtype >= ENPU_DTYPE_I8;
    for (size_t i = count_of(dims); i > 0; --i) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        const double unit = static_cast<double>(state >> 11) / 9007199254740992.0;
        double value = low + unit * (high - low + (whole ? 1 : 0));
        if (whole) value = std::min(std::floor(value), high);
        std::byte memory[8];
        store(dtype, memory, value);
        operand.values.push_back(load(dtype, memory));
    }
    return operand;
}

Operand output(const Dims& dims, uint32_t dtype) {
    return {dims, dtype, {}, true, 0, 0};
}

Operand none() {
    return {{}, ENPU_DTYPE_NONE, {}, false, 0, 0};
}

enpu_tensor tensor_of(const Operand& operand, uint64_t va) {
    enpu_tensor tensor{};
    if (operand.dtype == ENPU_DTYPE_NONE) return tensor;
    tensor.addr = va;
    tensor.dtype = static_cast<uint8_t>(operand.dtype);
    tensor.rank = static_cast<uint8_t>(operand.dims.size());
    tensor.scale = operand.scale;
    tensor.zero_point = operand.zero_point;
    int32_t stride = 1;
    for (size_t axis = operand.dims.size(); axis-- > 0;) {
        tensor.dims[axis] = operand.dims[axis];
        tensor.strides[axis] = stride;
        stride *= static_cast<int32_t>(operand.dims[axis]);
    }
    return tensor;
}

}  // namespace enpu::bringup
