// SPDX-License-Identifier: MIT
#include "host_tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace enpu::lowering {

void fail(const std::string& what) {
    throw Error(what);
}

size_t dtype_bytes(uint32_t dtype) {
    switch (dtype) {
        case ENPU_OP_I8:
        case ENPU_OP_U8:
        case ENPU_OP_BOOL:
            return 1;
        case ENPU_OP_F16:
        case ENPU_OP_BF16:
            return 2;
        case ENPU_OP_F32:
        case ENPU_OP_I32:
            return 4;
        case ENPU_OP_I64:
            return 8;
        default:
            return 0;
    }
}

const char* dtype_name(uint32_t dtype) {
    static constexpr const char* kNames[ENPU_OP_DTYPES] = {"none", "f32", "f16", "bf16", "i8",
                                                           "u8",   "i32", "i64", "bool"};
    return dtype < ENPU_OP_DTYPES ? kNames[dtype] : "unknown";
}

bool is_float(uint32_t dtype) {
    return dtype == ENPU_OP_F32 || dtype == ENPU_OP_F16 || dtype == ENPU_OP_BF16;
}

std::string to_string(const Dims& dims) {
    std::string text = "[";
    for (size_t i = 0; i < dims.size(); ++i) {
        text += (i ? "," : "") + std::to_string(dims[i]);
    }
    return text + "]";
}

int64_t element_count(const Dims& dims) {
    int64_t count = 1;
    int64_t reach = 1;  // a tensor without elements has strides all the same
    for (int64_t dim : dims) {
        if (dim < 0 || __builtin_mul_overflow(reach, std::max<int64_t>(dim, 1), &reach) ||
            reach > (int64_t{1} << 40)) {
            fail("the dims " + to_string(dims) + " are negative or too large");
        }
        count *= dim;
    }
    return count;
}

int64_t normalise_axis(int64_t axis, size_t rank) {
    const auto n = static_cast<int64_t>(rank);
    if (axis < -n || axis >= n) {
        fail("axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank));
    }
    return axis < 0 ? axis + n : axis;
}

HostTensor make_host_tensor(uint32_t dtype, const Dims& dims) {
    HostTensor tensor{dtype, dims, {}};
    const size_t size = dtype_bytes(dtype);
    if (size == 0) fail("a constant has an element type that is not supported");
    tensor.bytes.resize(static_cast<size_t>(element_count(dims)) * size);
    return tensor;
}

HostTensor make_table(uint32_t dtype, const Dims& dims) {
    constexpr int64_t kMostElements = int64_t{1} << 26;
    if (element_count(dims) > kMostElements)
        fail("a table of " + to_string(dims) + " is needed, which is too large");
    return make_host_tensor(dtype, dims);
}

HostTensorPtr host_i64(const Dims& dims, const std::vector<int64_t>& values) {
    HostTensor tensor = make_host_tensor(ENPU_OP_I64, dims);
    if (values.size() * 8 != tensor.bytes.size()) fail("internal: values do not fill the dims");
    if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    return std::make_shared<const HostTensor>(std::move(tensor));
}

HostTensorPtr host_f32(const Dims& dims, const std::vector<float>& values) {
    HostTensor tensor = make_host_tensor(ENPU_OP_F32, dims);
    if (values.size() * 4 != tensor.bytes.size()) fail("internal: values do not fill the dims");
    if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    return std::make_shared<const HostTensor>(std::move(tensor));
}

float half_to_float(uint16_t bits) {
    const uint32_t sign = uint32_t{bits} >> 15 << 31;
    const uint32_t exponent = bits >> 10 & 31;
    const uint32_t fraction = bits & 1023u;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) {
        const float value = std::ldexp(static_cast<float>(fraction), -24);
        return sign ? -value : value;
    }
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t float_to_half(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
    if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00u);
    const float magnitude = std::fabs(value);
    if (magnitude >= 65520.0f) return static_cast<uint16_t>(sign | 0x7c00u);
    if (magnitude < 0x1p-14f) {  // subnormal: a count of 2^-24
        return static_cast<uint16_t>(sign |
                                     static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24f)));
    }
    const uint32_t rest = bits & 0x1fffu;
    uint32_t half = (bits >> 13 & 0x3ffffu) - (112u << 10);
    if (rest > 0x1000u || (rest == 0x1000u && (half & 1u))) ++half;
    return static_cast<uint16_t>(sign | half);
}

namespace {

float load_float(const HostTensor& t, size_t i) {
    switch (t.dtype) {
        case ENPU_OP_F32:
            return t.data<float>()[i];
        case ENPU_OP_F16:
            return half_to_float(t.data<uint16_t>()[i]);
        default:
            return std::bit_cast<float>(uint32_t{t.data<uint16_t>()[i]} << 16);
    }
}

int64_t load_integer(const HostTensor& t, size_t i) {
    switch (t.dtype) {
        case ENPU_OP_I8:
            return t.data<int8_t>()[i];
        case ENPU_OP_U8:
        case ENPU_OP_BOOL:
            return t.data<uint8_t>()[i];
        case ENPU_OP_I32:
            return t.data<int32_t>()[i];
        default:
            return t.data<int64_t>()[i];
    }
}

}  // namespace

int64_t saturate(double value) {
    if (std::isnan(value)) return 0;
    if (value >= 0x1p63) return INT64_MAX;
    if (value < -0x1p63) return INT64_MIN;
    return static_cast<int64_t>(value);
}

std::vector<int64_t> as_i64(const HostTensor& tensor) {
    std::vector<int64_t> values(static_cast<size_t>(tensor.size()));
    const bool real = is_float(tensor.dtype);
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = real ? saturate(load_float(tensor, i)) : load_integer(tensor, i);
    }
    return values;
}

std::vector<double> as_f64(const HostTensor& tensor) {
    std::vector<double> values(static_cast<size_t>(tensor.size()));
    const bool real = is_float(tensor.dtype);
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = real ? load_float(tensor, i) : static_cast<double>(load_integer(tensor, i));
    }
    return values;
}

void store(HostTensor& t, int64_t index, double value) {
    const auto i = static_cast<size_t>(index);
    const auto single = static_cast<float>(value);
    switch (t.dtype) {
        case ENPU_OP_F32:
            t.data<float>()[i] = single;
            return;
        case ENPU_OP_F16:
            t.data<uint16_t>()[i] = float_to_half(single);
            return;
        case ENPU_OP_BF16: {
            const uint32_t bits = std::bit_cast<uint32_t>(single);
            const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
            t.data<uint16_t>()[i] =
                static_cast<uint16_t>((std::isnan(single) ? bits | 0x400000u : rounded) >> 16);
            return;
        }
        case ENPU_OP_BOOL:
            t.data<uint8_t>()[i] = value != 0;
            return;
        default:
            store(t, index, saturate(value));
    }
}

void store(HostTensor& t, int64_t index, int64_t value) {
    const auto i = static_cast<size_t>(index);
    switch (t.dtype) {
        case ENPU_OP_I8:
        case ENPU_OP_U8:
            t.data<uint8_t>()[i] = static_cast<uint8_t>(value);
            return;
        case ENPU_OP_BOOL:
            t.data<uint8_t>()[i] = value != 0;
            return;
        case ENPU_OP_I32:
            t.data<int32_t>()[i] = static_cast<int32_t>(value);
            return;
        case ENPU_OP_I64:
            t.data<int64_t>()[i] = value;
            return;
        default:
            store(t, index, static_cast<double>(value));
    }
}

}  // namespace enpu::lowering
