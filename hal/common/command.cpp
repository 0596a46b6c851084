// SPDX-License-Identifier: MIT
#include "command.h"

#include "op_table.h"
#include "rules.h"
#include "status.h"

namespace enpu::hal {
namespace {

using Long = unsigned long long;

uint32_t outside(enpu_hal_status* status, const char* what, const Extent& buffer, uint64_t offset,
                 uint64_t bytes) {
    if (buffer.bytes == 0)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%s: no buffer given", what);
    return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                "%s: %llu bytes at offset %llu pass the end of the buffer of %llu bytes", what,
                Long{bytes}, Long{offset}, Long{buffer.bytes});
}

// Bytes from the first to the last one of a 2D region; false when that overflows.
bool region_bytes(uint64_t width, uint64_t height, uint64_t pitch, uint64_t& bytes) {
    return !__builtin_mul_overflow(height - 1, pitch, &bytes) &&
           !__builtin_add_overflow(bytes, width, &bytes);
}

}  // namespace

bool inside(const Extent& buffer, uint64_t offset, uint64_t bytes) {
    return buffer.bytes != 0 && offset <= buffer.bytes && bytes <= buffer.bytes - offset;
}

uint32_t check_copy(const enpu_hal_copy& copy, const Extent& dst, const Extent& src,
                    CopyAddresses& out, enpu_hal_status* status) {
    uint64_t dst_bytes = 0, src_bytes = 0;
    if (copy.width == 0 || copy.height == 0)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "copy: width or height is 0");
    if (copy.height > 1 && (copy.dst_pitch < copy.width || copy.src_pitch < copy.width))
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "copy: a pitch is smaller than the width");
    if (!region_bytes(copy.width, copy.height, copy.dst_pitch, dst_bytes) ||
        !region_bytes(copy.width, copy.height, copy.src_pitch, src_bytes))
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "copy: pitch times height overflows");
    if (!inside(dst, copy.dst.offset, dst_bytes))
        return outside(status, "copy: destination", dst, copy.dst.offset, dst_bytes);
    if (!inside(src, copy.src.offset, src_bytes))
        return outside(status, "copy: source", src, copy.src.offset, src_bytes);
    out = {dst.address + copy.dst.offset, src.address + copy.src.offset};
    if (out.dst < out.src + src_bytes && out.src < out.dst + dst_bytes)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "copy: source and destination overlap");
    return ENPU_HAL_OK;
}

uint32_t check_fill(const enpu_hal_fill& fill, const Extent& dst, uint64_t& address,
                    enpu_hal_status* status) {
    const uint32_t size = fill.pattern_bytes;
    if (size != 1 && size != 2 && size != 4 && size != 8)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "fill: a pattern has 1, 2, 4 or 8 bytes");
    if (fill.bytes == 0 || fill.bytes % size != 0)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "fill: %llu bytes is not a multiple of the pattern's %u", Long{fill.bytes},
                    size);
    if (!inside(dst, fill.dst.offset, fill.bytes))
        return outside(status, "fill: destination", dst, fill.dst.offset, fill.bytes);
    address = dst.address + fill.dst.offset;
    return ENPU_HAL_OK;
}

uint32_t check_timestamp(const enpu_hal_timestamp& timestamp, const Extent& dst, uint64_t& address,
                         enpu_hal_status* status) {
    if (timestamp.dst.offset % 8 != 0)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "timestamp: offset %llu is not a multiple of 8", Long{timestamp.dst.offset});
    if (!inside(dst, timestamp.dst.offset, 8))
        return outside(status, "timestamp", dst, timestamp.dst.offset, 8);
    address = dst.address + timestamp.dst.offset;
    return ENPU_HAL_OK;
}

uint32_t place_operand(PacketStorage& storage, uint32_t index, const enpu_hal_operand& operand,
                       const Extent& buffer, enpu_hal_status* status) {
    const OpInfo& info = *find_op(op_of(storage.packet().header.opcode));
    enpu_tensor& tensor = storage.packet().operands[index];
    const char* name = info.operand_names[index];
    rules::Span span;
    if (buffer.bytes == 0)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%s: operand '%s' has no buffer", info.name,
                    name);
    if (!rules::tensor_span(tensor, span))
        return fail(
            status, ENPU_HAL_INVALID_ARGUMENT,
            "%s: operand '%s' is larger than the largest tensor, or rank or dims are illegal",
            info.name, name);
    const uint64_t before = static_cast<uint64_t>(-span.offset);
    const uint64_t offset = operand.place.offset;
    if (before > offset || !inside(buffer, offset - before, span.bytes))
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "%s: operand '%s' touches %llu bytes around offset %llu, outside its buffer of "
                    "%llu bytes",
                    info.name, name, Long{span.bytes}, Long{offset}, Long{buffer.bytes});
    tensor.addr = buffer.address + offset;
    return ENPU_HAL_OK;
}

uint32_t check_dispatch(const enpu_hal_dispatch& dispatch, PacketStorage& storage,
                        enpu_hal_status* status) {
    if (uint32_t code = translate(dispatch, storage, status)) return code;
    for (uint32_t i = 0; i < dispatch.operand_count; ++i)
        if (storage.packet().operands[i].dtype != ENPU_DTYPE_NONE)
            storage.packet().operands[i].addr = uint64_t{i + 1} << 44;
    return check_rules(storage, status);
}

uint32_t check_rules(const PacketStorage& storage, enpu_hal_status* status) {
    const size_t size = storage.packet().header.size;
    const rules::Violation broken = rules::check_packet(&storage, size, ENPU_ENGINE_KIND_COMPUTE);
    if (!broken) return ENPU_HAL_OK;
    return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%s",
                rules::describe(&storage, size, broken).c_str());
}

}  // namespace enpu::hal
