// SPDX-License-Identifier: MIT
#include "reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "op_table.h"

namespace enpu::hal::cts {
namespace {

// Nearest value with `bits` of mantissa (the leading one not counted), half to even.
double round_float(double value, int bits, int least_exponent, double largest) {
    if (value == 0 || std::isnan(value) || std::isinf(value)) return value;
    const int exponent = std::max(std::ilogb(value), least_exponent);
    const double unit = std::ldexp(1.0, exponent - bits);
    const double result = std::nearbyint(value / unit) * unit;
    return std::fabs(result) > largest ? std::copysign(INFINITY, value) : result;
}

uint32_t float_bits(double value) {
    const auto single = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &single, 4);
    return bits;
}

uint16_t half_bits(double value) {
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    value = std::fabs(value);
    if (std::isnan(value)) return sign | 0x7e00;
    if (std::isinf(value)) return sign | 0x7c00;
    if (value == 0) return sign;
    const int exponent = std::max(std::ilogb(value), -14);
    const auto mantissa = static_cast<uint32_t>(value / std::ldexp(1.0, exponent - 10));
    if (mantissa < 1024) return static_cast<uint16_t>(sign | mantissa);  // subnormal
    return static_cast<uint16_t>(sign | uint32_t(exponent + 15) << 10 | (mantissa - 1024));
}

double half_value(uint16_t bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double value = exponent == 31  ? (mantissa ? NAN : INFINITY)
                   : exponent == 0 ? std::ldexp(mantissa, -24)
                                   : std::ldexp(mantissa + 1024, exponent - 25);
    return bits & 0x8000 ? -value : value;
}

template <typename T>
void store(void* at, double value) {
    const T typed = static_cast<T>(value);
    std::memcpy(at, &typed, sizeof(T));
}

template <typename T>
double load(const void* at) {
    T typed;
    std::memcpy(&typed, at, sizeof(T));
    return static_cast<double>(typed);
}

void encode(uint32_t dtype, double value, void* at) {
    value = rounded(dtype, value);
    switch (dtype) {
        case ENPU_OP_F32:
            return store<float>(at, value);
        case ENPU_OP_F16: {
            const uint16_t bits = half_bits(value);
            std::memcpy(at, &bits, 2);
            return;
        }
        case ENPU_OP_BF16: {
            const auto bits = static_cast<uint16_t>(float_bits(value) >> 16);
            std::memcpy(at, &bits, 2);
            return;
        }
        case ENPU_OP_I8:
            return store<int8_t>(at, value);
        case ENPU_OP_U8:
        case ENPU_OP_BOOL:
            return store<uint8_t>(at, value);
        case ENPU_OP_I32:
            return store<int32_t>(at, value);
        case ENPU_OP_I64:
            return store<int64_t>(at, value);
    }
}

double decode(uint32_t dtype, const void* at) {
    switch (dtype) {
        case ENPU_OP_F32:
            return load<float>(at);
        case ENPU_OP_F16: {
            uint16_t bits;
            std::memcpy(&bits, at, 2);
            return half_value(bits);
        }
        case ENPU_OP_BF16: {
            uint16_t half;
            std::memcpy(&half, at, 2);
            const uint32_t bits = uint32_t{half} << 16;
            return load<float>(&bits);
        }
        case ENPU_OP_I8:
            return load<int8_t>(at);
        case ENPU_OP_U8:
        case ENPU_OP_BOOL:
            return load<uint8_t>(at);
        case ENPU_OP_I32:
            return load<int32_t>(at);
        case ENPU_OP_I64:
            return load<int64_t>(at);
    }
    return NAN;
}

// Strides of a layout, the place of element 0 and how many elements the buffer has.
struct Placing {
    Dims strides;
    int64_t first = 0, count = 1;
};

Placing place(const Dims& dims, Layout layout) {
    Placing p;
    p.strides.resize(dims.size());
    int64_t stride = 1;
    for (size_t k = 0; k < dims.size(); ++k) {
        const size_t i = layout == Layout::kTransposed ? k : dims.size() - 1 - k;
        p.strides[i] = stride;
        stride *= dims[i];
        if (layout == Layout::kGaps && k == 0) stride += 3;
    }
    p.count = stride;
    if (layout == Layout::kGaps) p.first = 64, p.count += 64;
    if (layout == Layout::kBackwards) {
        for (size_t i = 0; i < dims.size(); ++i) p.first += p.strides[i] * (dims[i] - 1);
        for (int64_t& each : p.strides) each = -each;
    }
    return p;
}

enpu_hal_operand operand_of(Fixture& f, const std::vector<uint8_t>& bytes, const Dims& dims,
                            const Placing& p, uint32_t dtype) {
    // The buffer begins with as many bytes as bring element 0 to the device's alignment.
    const uint64_t first = uint64_t(p.first) * dtype_bytes(dtype), step = f.info.buffer_alignment;
    const uint64_t lead = (step - first % step) % step;
    std::vector<uint8_t> whole(lead, 0xee);
    whole.insert(whole.end(), bytes.begin(), bytes.end());
    auto operand = tensor(f.upload(whole), dtype, dims, first + lead);
    std::copy(p.strides.begin(), p.strides.end(), operand.tensor.strides);
    return operand;
}

}  // namespace

int64_t elements(const Dims& dims) {
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    return count;
}

Dims index_at(const Dims& dims, int64_t flat) {
    Dims index(dims.size());
    for (size_t i = dims.size(); i-- > 0; flat /= dims[i]) index[i] = flat % dims[i];
    return index;
}

int64_t flat_of(const Dims& dims, const Dims& index) {
    int64_t flat = 0;
    for (size_t i = 0; i < dims.size(); ++i) flat = flat * dims[i] + index[i];
    return flat;
}

bool is_float(uint32_t dtype) {
    return dtype == ENPU_OP_F32 || dtype == ENPU_OP_F16 || dtype == ENPU_OP_BF16;
}

const char* dtype_name(uint32_t dtype) {
    static constexpr const char* kNames[] = {"none", "f32", "f16", "bf16", "i8",
                                             "u8",   "i32", "i64", "bool"};
    return dtype < ENPU_OP_DTYPES ? kNames[dtype] : "?";
}

double precision(uint32_t dtype) {
    return dtype == ENPU_OP_F32    ? std::ldexp(1.0, -24)
           : dtype == ENPU_OP_F16  ? std::ldexp(1.0, -11)
           : dtype == ENPU_OP_BF16 ? std::ldexp(1.0, -8)
                                   : 0;
}

const char* layout_name(Layout layout) {
    static constexpr const char* kNames[] = {"dense", "transposed", "with gaps", "backwards"};
    return kNames[static_cast<int>(layout)];
}

double rounded(uint32_t dtype, double value) {
    switch (dtype) {
        case ENPU_OP_F32:
            return static_cast<double>(static_cast<float>(value));
        case ENPU_OP_F16:
            return round_float(value, 10, -14, 65504);
        case ENPU_OP_BF16:
            return round_float(value, 7, -126, 3.3895313892515355e38);
    }
    return value;
}

Array numbers(const Dims& dims, uint32_t dtype, double low, double high, uint32_t seed) {
    Array array(dims);
    uint32_t state = seed * 2654435761u + 12345;
    for (double& value : array.values) {
        state = state * 1664525u + 1013904223u;
        const double unit = static_cast<double>(state >> 8) / (1 << 24);
        value = is_float(dtype) ? rounded(dtype, low + unit * (high - low))
                                : low + std::floor(unit * (high - low + 1));
    }
    return array;
}

enpu_hal_operand put(Fixture& f, const Array& array, uint32_t dtype, Layout layout) {
    const Placing p = place(array.dims, layout);
    const int64_t size = dtype_bytes(dtype);
    std::vector<uint8_t> bytes(size_t(p.count * size), 0xee);
    for (int64_t i = 0; i < elements(array.dims); ++i) {
        const Dims index = index_at(array.dims, i);
        int64_t at = p.first;
        for (size_t k = 0; k < index.size(); ++k) at += index[k] * p.strides[k];
        encode(dtype, array.values[size_t(i)], bytes.data() + at * size);
    }
    return operand_of(f, bytes, array.dims, p, dtype);
}

enpu_hal_operand room(Fixture& f, const Dims& dims, uint32_t dtype, Layout layout) {
    const Placing p = place(dims, layout);
    return operand_of(f, std::vector<uint8_t>(size_t(p.count) * dtype_bytes(dtype), 0xee), dims, p,
                      dtype);
}

Array get(Fixture& f, const enpu_hal_operand& operand, bool gaps_kept) {
    const Dims dims(operand.tensor.dims, operand.tensor.dims + operand.tensor.rank);
    const int64_t size = dtype_bytes(operand.tensor.dtype);
    const uint64_t whole = f.bytes_of(operand.place.buffer);
    const auto bytes = f.download<uint8_t>(operand.place.buffer, whole);
    std::vector<bool> used(whole);
    Array array(dims);
    for (int64_t i = 0; i < elements(dims); ++i) {
        const Dims index = index_at(dims, i);
        auto at = static_cast<int64_t>(operand.place.offset);
        for (size_t k = 0; k < index.size(); ++k) at += index[k] * operand.tensor.strides[k] * size;
        array.values[size_t(i)] = decode(operand.tensor.dtype, bytes.data() + at);
        for (int64_t k = 0; k < size; ++k) used[size_t(at + k)] = true;
    }
    for (size_t i = 0; gaps_kept && i < whole; ++i)
        if (!used[i]) {
            INFO("byte " << i << " lies between the elements");
            REQUIRE(bytes[i] == 0xee);
        }
    return array;
}

enpu_hal_operand broadcast(enpu_hal_operand operand, const Dims& dims) {
    enpu_op_tensor& t = operand.tensor;
    const size_t missing = dims.size() - t.rank;
    for (size_t i = dims.size(); i-- > 0;) {
        const bool repeat = i < missing || t.dims[i - missing] != dims[i];
        t.strides[i] = repeat ? 0 : t.strides[i - missing];
    }
    std::copy(dims.begin(), dims.end(), t.dims);
    t.rank = static_cast<uint32_t>(dims.size());
    return operand;
}

bool Runs::run(const Kernel& kernel) {
    auto& status = f_.status;
    const uint32_t code = f_.hal->kernel->supported(f_.device, &kernel.dispatch, &status);
    if (code != ENPU_HAL_OK) {
        INFO("refused: " << status.message);
        REQUIRE((code == ENPU_HAL_UNSUPPORTED || code == ENPU_HAL_INVALID_ARGUMENT));
        REQUIRE(status.message[0] != 0);
        reason_ = status.message;
        return false;
    }
    f_.run({kernel.command()});
    ++ran_;
    return true;
}

void Runs::finish() const {
    if (ran_ == 0) SKIP("unsupported: " << reason_);
}

void check_equal(const Array& seen, const Array& expected, uint32_t dtype, double tolerance) {
    REQUIRE(seen.dims == expected.dims);
    for (size_t i = 0; i < seen.values.size(); ++i) {
        const double a = seen.values[i], b = rounded(dtype, expected.values[i]);
        const double slack = is_float(dtype) ? (tolerance + 2 * precision(dtype)) *
                                                   std::max(1.0, std::fabs(expected.values[i]))
                                             : 0;
        const bool same = (std::isnan(a) && std::isnan(b)) || a == b || std::fabs(a - b) <= slack;
        if (same) continue;
        INFO("element " << i << " of " << seen.values.size() << " (" << dtype_name(dtype)
                        << "): " << a << ", expected " << b);
        REQUIRE(same);
    }
}

}  // namespace enpu::hal::cts
