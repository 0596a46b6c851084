// SPDX-License-Identifier: MIT
// From an rt_operand to an operand of the HAL.
#include "operand.h"

#include "device.h"
#include "tensor.h"

using namespace enpu::rt;

namespace enpu::rt {

bool tensor_extent(const enpu_op_tensor& tensor, uint64_t& before, uint64_t& from) {
    const uint64_t element = enpu::hal::dtype_bytes(tensor.dtype);
    if (element == 0 || tensor.rank > ENPU_OP_MAX_RANK) return false;
    before = 0;
    if (tensor.format == ENPU_OP_PACKED) {
        from = tensor.packed_bytes;
        return true;
    }
    from = element;
    for (uint32_t i = 0; i < tensor.rank; ++i) {
        if (tensor.dims[i] < 1) return false;
        const uint64_t stride = tensor.strides[i] < 0 ? -static_cast<uint64_t>(tensor.strides[i])
                                                      : static_cast<uint64_t>(tensor.strides[i]);
        uint64_t reach;
        if (__builtin_mul_overflow(static_cast<uint64_t>(tensor.dims[i] - 1), stride, &reach) ||
            __builtin_mul_overflow(reach, element, &reach))
            return false;
        uint64_t& side = tensor.strides[i] < 0 ? before : from;
        if (__builtin_add_overflow(side, reach, &side)) return false;
    }
    return true;
}

}  // namespace enpu::rt

rt_status rt_device_impl::resolve_operand(const rt_operand& operand, const enpu::hal::OpInfo& info_,
                                          uint32_t index, const char* origin,
                                          enpu_hal_operand& out) const {
    out.tensor = operand.desc;
    out.place = {};
    if (operand.desc.dtype == ENPU_OP_NONE) return RT_OK;  // left out
    const char* name = info_.operand_names[index];
    if (operand.tensor && operand.tensor->device != this)
        return make_status(RT_INVALID_ARGUMENT, origin,
                           "%s: operand '%s' is a tensor of another device", info_.name, name);
    const void* data = operand.data     ? operand.data
                       : operand.tensor ? operand.tensor->data
                                        : nullptr;
    uint64_t before = 0, from = 0;
    if (!tensor_extent(operand.desc, before, from))
        return make_status(
            RT_INVALID_ARGUMENT, origin,
            "%s: operand '%s': dtype, rank or a dim is illegal, or its size overflows", info_.name,
            name);
    const char* start = static_cast<const char*>(data) - before;
    if (rt_status status = resolve(start, before + from, origin, name, out.place)) {
        status->message = std::string(info_.name) + ": operand " + status->message;
        return status;
    }
    out.place.offset += before;
    return RT_OK;
}
