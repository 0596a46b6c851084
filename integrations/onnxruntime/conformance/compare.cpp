// SPDX-License-Identifier: MIT
#include "compare.h"

#include <cmath>
#include <cstring>

namespace enpu::conformance {
namespace {

double element(const std::byte* data, int32_t type, size_t i) {
    auto at = [&](auto zero) {
        std::memcpy(&zero, data + i * sizeof(zero), sizeof(zero));
        return static_cast<double>(zero);
    };
    switch (type) {
        case 1:
            return at(float{});
        case 2:
        case 9:
            return at(uint8_t{});
        case 3:
            return at(int8_t{});
        case 4:
            return at(uint16_t{});
        case 5:
            return at(int16_t{});
        case 6:
            return at(int32_t{});
        case 7:
            return at(int64_t{});
        case 10: {
            Ort::Float16_t half;
            std::memcpy(&half.val, data + i * 2, 2);
            return half.ToFloat();
        }
        case 11:
            return at(double{});
        case 16: {
            Ort::BFloat16_t half;
            std::memcpy(&half.val, data + i * 2, 2);
            return half.ToFloat();
        }
        default:
            return at(uint32_t{});
    }
}

}  // namespace

std::string compare(const Ort::Value& got, const StoredTensor& want) {
    const auto info = got.GetTensorTypeAndShapeInfo();
    if (info.GetElementType() != static_cast<ONNXTensorElementDataType>(want.type))
        return "another element type";
    if (info.GetShape() != want.dims) return "other dims";
    const bool half = want.type == 10 || want.type == 16;
    const bool real = half || want.type == 1 || want.type == 11;
    const double relative = real ? (want.type == 16 ? 2e-2
                                    : half          ? 5e-3
                                                    : 1e-3)
                                 : 0,
                 absolute = real ? (half ? 1e-3 : 1e-5) : 0;
    const auto* data = static_cast<const std::byte*>(got.GetTensorRawData());
    const size_t count = info.GetElementCount();
    for (size_t i = 0; i < count; ++i) {
        const double a = element(data, want.type, i), b = element(want.bytes.data(), want.type, i);
        if (a == b || (std::isnan(a) && std::isnan(b))) continue;
        if (!(std::fabs(a - b) <= absolute + relative * std::fabs(b))) {
            return "element " + std::to_string(i) + " is " + std::to_string(a) + ", must be " +
                   std::to_string(b);
        }
    }
    return {};
}

}  // namespace enpu::conformance
