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

// The span of an operand (null: not known yet) lies in its buffer.
uint32_t check_extent(const enpu_tensor& tensor, const enpu_hal_dispatch& dispatch, uint32_t index,
                      const Extent& buffer, const rules::Span* known, enpu_hal_status* status) {
    const uint64_t offset = dispatch.operands[index].place.offset;
    rules::Span span;
    const bool sound = known || rules::tensor_span(tensor, span);
    if (known) span = *known;
    const uint64_t before = static_cast<uint64_t>(-span.offset);
    if (sound && before <= offset && inside(buffer, offset - before, span.bytes)) [[likely]]
        return ENPU_HAL_OK;
    const OpInfo& info = *find_op(dispatch.op);
    const char* name = info.operand_names[index];
    if (buffer.bytes == 0)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%s: operand '%s' has no buffer", info.name,
                    name);
    if (!sound)
        return fail(
            status, ENPU_HAL_INVALID_ARGUMENT,
            "%s: operand '%s' is larger than the largest tensor, or rank or dims are illegal",
            info.name, name);
    return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                "%s: operand '%s' touches %llu bytes around offset %llu, outside its buffer of "
                "%llu bytes",
                info.name, name, Long{span.bytes}, Long{offset}, Long{buffer.bytes});
}

uint32_t broken_rule(const PacketStorage& storage, const rules::Violation& broken,
                     enpu_hal_status* status) {
    return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%s",
                rules::describe(&storage, storage.packet().header.size, broken).c_str());
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

uint32_t place_operands(PacketStorage& storage, const enpu_hal_dispatch& dispatch,
                        const Extent* buffers, enpu_hal_status* status) {
    enpu_operator_packet& packet = storage.packet();
    for (uint32_t i = 0; i < dispatch.operand_count; ++i)
        if (packet.operands[i].dtype != ENPU_DTYPE_NONE)
            packet.operands[i].addr = buffers[i].address + dispatch.operands[i].place.offset;
    rules::Span spans[ENPU_MAX_OPERANDS];
    const rules::Violation broken =
        rules::check_packet(&storage, packet.header.size, ENPU_ENGINE_KIND_COMPUTE, spans);
    // Buffers first: outside of them, what addresses are says nothing.
    for (uint32_t i = 0; i < dispatch.operand_count; ++i) {
        if (packet.operands[i].dtype == ENPU_DTYPE_NONE) continue;
        if (uint32_t code = check_extent(packet.operands[i], dispatch, i, buffers[i],
                                         broken ? nullptr : &spans[i], status))
            return code;
    }
    return broken ? broken_rule(storage, broken, status) : uint32_t{ENPU_HAL_OK};
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
    return broken ? broken_rule(storage, broken, status) : uint32_t{ENPU_HAL_OK};
}

}  // namespace enpu::hal
