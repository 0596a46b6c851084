// SPDX-License-Identifier: MIT
#include "ranges.h"

#include "arguments.h"
#include "op_table.h"
#include "status.h"
#include "structure.h"

namespace enpu::hal {
namespace {

using Long = unsigned long long;

uint32_t invalid(enpu_hal_status* status, const char* sentence) {
    return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%s", sentence);
}

uint32_t copy_accesses(const enpu_hal_copy& copy, Access (&out)[kMostAccesses], uint32_t& count,
                       enpu_hal_status* status) {
    uint64_t dst = 0, src = 0;
    if (copy.width == 0 || copy.height == 0) return invalid(status, "copy: width or height is 0");
    if (copy.height > 1 && (copy.dst_pitch < copy.width || copy.src_pitch < copy.width))
        return invalid(status, "copy: a pitch is smaller than the width");
    if (!region_bytes(copy.width, copy.height, copy.dst_pitch, dst) ||
        !region_bytes(copy.width, copy.height, copy.src_pitch, src))
        return invalid(status, "copy: pitch times height overflows");
    out[0] = {copy.dst, dst, true, "copy: destination"};
    out[1] = {copy.src, src, false, "copy: source"};
    count = 2;
    return ENPU_HAL_OK;
}

uint32_t fill_accesses(const enpu_hal_fill& fill, Access (&out)[kMostAccesses], uint32_t& count,
                       enpu_hal_status* status) {
    const uint32_t size = fill.pattern_bytes;
    if (size != 1 && size != 2 && size != 4 && size != 8)
        return invalid(status, "fill: a pattern has 1, 2, 4 or 8 bytes");
    if (fill.bytes == 0 || fill.bytes % size != 0)
        return invalid(status, "fill: bytes is 0 or no multiple of the pattern's");
    out[0] = {fill.dst, fill.bytes, true, "fill: destination"};
    count = 1;
    return ENPU_HAL_OK;
}

uint32_t dispatch_accesses(const enpu_hal_dispatch* dispatch, Access (&out)[kMostAccesses],
                           uint32_t& count, enpu_hal_status* status) {
    if (uint32_t code = check_dispatch_structure(dispatch, status)) return code;
    const OpInfo* info = find_op(dispatch->op);
    if (!info)
        return fail(status, ENPU_HAL_UNSUPPORTED, "dispatch: kernel number %u is unknown",
                    dispatch->op);
    if (dispatch->operand_count != info->operands || !dispatch->operands)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%s: takes %u operands", info->name,
                    info->operands);
    count = 0;
    for (uint32_t i = 0; i < info->operands; ++i) {
        const enpu_hal_operand& operand = dispatch->operands[i];
        if (operand.tensor.dtype == ENPU_OP_NONE) continue;
        uint64_t before = 0, after = 0;
        if (!tensor_reach(operand.tensor, before, after) || before > operand.place.offset)
            return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                        "%s: operand '%s' is illegal or begins before its buffer", info->name,
                        info->operand_names[i]);
        out[count++] = {{operand.place.buffer, operand.place.offset - before},
                        before + after,
                        i + 1 == info->operands,
                        info->operand_names[i]};
    }
    return ENPU_HAL_OK;
}

}  // namespace

bool region_bytes(uint64_t width, uint64_t height, uint64_t pitch, uint64_t& bytes) {
    return !__builtin_mul_overflow(height - 1, pitch, &bytes) &&
           !__builtin_add_overflow(bytes, width, &bytes);
}

bool tensor_reach(const enpu_op_tensor& tensor, uint64_t& before, uint64_t& after) {
    const uint64_t element = dtype_bytes(tensor.dtype);
    if (element == 0 || tensor.rank > ENPU_OP_MAX_RANK) return false;
    before = 0;
    after = tensor.format == ENPU_OP_PACKED ? tensor.packed_bytes : element;
    if (tensor.format == ENPU_OP_PACKED) return after != 0;
    for (uint32_t i = 0; i < tensor.rank; ++i) {
        if (tensor.dims[i] < 1) return false;
        const bool back = tensor.strides[i] < 0;
        const auto stride =
            static_cast<uint64_t>(back ? -(tensor.strides[i] + 1) : tensor.strides[i]);
        uint64_t reach = 0;
        if (__builtin_mul_overflow(stride + back, uint64_t(tensor.dims[i] - 1), &reach) ||
            __builtin_mul_overflow(reach, element, &reach))
            return false;
        uint64_t& side = back ? before : after;
        if (__builtin_add_overflow(side, reach, &side) || side > uint64_t(INT64_MAX)) return false;
    }
    return true;
}

uint32_t accesses_of(const enpu_hal_command& command, Access (&out)[kMostAccesses], uint32_t& count,
                     enpu_hal_status* status) {
    count = 0;
    switch (command.kind) {
        case ENPU_HAL_COMMAND_COPY:
            return copy_accesses(command.u.copy, out, count, status);
        case ENPU_HAL_COMMAND_FILL:
            return fill_accesses(command.u.fill, out, count, status);
        case ENPU_HAL_COMMAND_DISPATCH:
            return dispatch_accesses(command.u.dispatch, out, count, status);
        case ENPU_HAL_COMMAND_TIMESTAMP:
            if (command.u.timestamp.dst.offset % 8 != 0)
                return invalid(status, "timestamp: offset is no multiple of 8");
            out[count++] = {command.u.timestamp.dst, 8, true, "timestamp"};
            return ENPU_HAL_OK;
        case ENPU_HAL_COMMAND_HOST_CALL:
            if (!command.u.host_call.function)
                return invalid(status, "host call: no function given");
            return ENPU_HAL_OK;
    }
    return fail(status, ENPU_HAL_UNSUPPORTED, "command kind %u is unknown", command.kind);
}

uint32_t check_command(const enpu_hal_plugin& hal, enpu_hal_device* device,
                       const enpu_hal_command& command, enpu_hal_status* status) {
    Access touched[kMostAccesses];
    uint32_t count = 0;
    if (uint32_t code = accesses_of(command, touched, count, status)) return code;
    for (uint32_t i = 0; i < count; ++i) {
        const Access& access = touched[i];
        if (!access.place.buffer)
            return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%s: no buffer given", access.what);
        enpu_hal_buffer_info info{
            table_header(sizeof(info), ENPU_HAL_TYPE_BUFFER_INFO), 0, 0, nullptr, 0, 0};
        if (uint32_t code = hal.memory->info(access.place.buffer, &info, status)) return code;
        if (access.place.offset > info.bytes || access.bytes > info.bytes - access.place.offset)
            return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                        "%s: %llu bytes at offset %llu pass the end of the buffer of %llu bytes",
                        access.what, Long{access.bytes}, Long{access.place.offset},
                        Long{info.bytes});
    }
    if (command.kind == ENPU_HAL_COMMAND_COPY &&
        touched[0].place.buffer == touched[1].place.buffer &&
        touched[0].place.offset < touched[1].place.offset + touched[1].bytes &&
        touched[1].place.offset < touched[0].place.offset + touched[0].bytes)
        return invalid(status, "copy: source and destination overlap");
    if (command.kind == ENPU_HAL_COMMAND_DISPATCH)
        return hal.kernel->supported(device, command.u.dispatch, status);
    return ENPU_HAL_OK;
}

}  // namespace enpu::hal
