// SPDX-License-Identifier: MIT
#include "operands.h"

#include <numeric>

namespace enpu::bench {
namespace {

uint64_t element_bytes(uint32_t dtype) {
    switch (dtype) {
        case ENPU_DTYPE_F32:
        case ENPU_DTYPE_I32:
            return 4;
        case ENPU_DTYPE_I64:
            return 8;
        case ENPU_DTYPE_F16:
        case ENPU_DTYPE_BF16:
            return 2;
        default:
            return 1;
    }
}

void put_channels_last(enpu_tensor& tensor) {
    int32_t stride = 1;
    const auto lay = [&](unsigned axis) {
        tensor.strides[axis] = stride;
        stride *= static_cast<int32_t>(tensor.dims[axis]);
    };
    lay(1);
    for (unsigned axis = tensor.rank; axis-- > 2;) lay(axis);
    lay(0);
}

}  // namespace

Tensor make_tensor(const Stand& stand, uint32_t dtype, const std::vector<uint32_t>& dims,
                   bool channels_last) {
    Tensor t;
    check([&](enpu_error* e) {
        return enpu_tensor_init(&t.operand.tensor, dtype, static_cast<uint32_t>(dims.size()),
                                dims.data(), e);
    });
    if (channels_last) put_channels_last(t.operand.tensor);
    const uint64_t count =
        std::accumulate(dims.begin(), dims.end(), uint64_t{1}, std::multiplies<uint64_t>());
    t.buffer = stand.buffer(count * element_bytes(dtype), ENPU_BUFFER_LOCAL);
    t.operand.buffer = t.buffer.get();
    if (dtype == ENPU_DTYPE_F32) {
        float value = 0;
        for (float& x : t.buffer.map<float>().first(count)) {
            x = value * 0.1f - 0.6f;
            value = value == 12 ? 0 : value + 1;
        }
    } else {
        uint8_t value = 0;
        for (std::byte& x : t.buffer.map())
            x = std::byte(value = static_cast<uint8_t>((value + 7) % 23));
    }
    return t;
}

Tensor with_scale(Tensor tensor, float scale, int32_t zero_point) {
    tensor.operand.tensor.scale = scale;
    tensor.operand.tensor.zero_point = zero_point;
    return tensor;
}

Tensor pack(Stand& stand, const Tensor& weights, enpu_pack_kind kind, uint32_t groups) {
    Tensor packed;
    packed.operand.tensor = weights.operand.tensor;
    enpu_tensor& t = packed.operand.tensor;
    t.format = ENPU_FORMAT_PACKED;
    t.bytes = enpu_packed_bytes(&weights.operand.tensor, kind, groups);
    std::fill(std::begin(t.strides), std::end(t.strides), 0);
    packed.buffer = stand.buffer(t.bytes, ENPU_BUFFER_LOCAL);
    packed.operand.buffer = packed.buffer.get();
    const enpu_pack_params params{static_cast<uint32_t>(kind), groups};
    Builder builder(stand.device(), ENPU_ENGINE_KIND_COMPUTE);
    check([&](enpu_error* e) {
        return enpu_build_pack(builder.get(), &params, &weights.operand, &packed.operand, e);
    });
    stand.run(0, builder.finish());
    return packed;
}

}  // namespace enpu::bench
