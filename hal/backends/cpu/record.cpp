// SPDX-License-Identifier: MIT
#include "record.h"

#include <cstring>

#include "arguments.h"
#include "op_table.h"
#include "operators/operator.h"
#include "rules.h"
#include "status.h"

namespace enpu::hal::cpu {
namespace {

// The bytes [place, place + bytes) as a host pointer, or null when they do not lie in the buffer.
std::byte* bytes_at(const enpu_hal_place& place, uint64_t bytes) {
    const enpu_hal_buffer* buffer = place.buffer;
    if (!buffer || place.offset > buffer->bytes || bytes > buffer->bytes - place.offset)
        return nullptr;
    return buffer->host + place.offset;
}

uint32_t outside(enpu_hal_status* status, const char* what, const enpu_hal_place& place,
                 uint64_t bytes) {
    if (!place.buffer) return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%s: no buffer given", what);
    return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                "%s: %llu bytes at offset %llu pass the end of the buffer of %llu bytes", what,
                static_cast<unsigned long long>(bytes),
                static_cast<unsigned long long>(place.offset),
                static_cast<unsigned long long>(place.buffer->bytes));
}

// Bytes from the first to the last one of a 2D region; false when that overflows.
bool region_bytes(uint64_t width, uint64_t height, uint64_t pitch, uint64_t& bytes) {
    return !__builtin_mul_overflow(height - 1, pitch, &bytes) &&
           !__builtin_add_overflow(bytes, width, &bytes);
}

uint32_t resolve_copy(const enpu_hal_copy& copy, ResolvedCopy& out, enpu_hal_status* status) {
    uint64_t dst_bytes = 0, src_bytes = 0;
    if (copy.width == 0 || copy.height == 0)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "copy: width or height is 0");
    if (copy.height > 1 && (copy.dst_pitch < copy.width || copy.src_pitch < copy.width))
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "copy: a pitch is smaller than the width");
    if (!region_bytes(copy.width, copy.height, copy.dst_pitch, dst_bytes) ||
        !region_bytes(copy.width, copy.height, copy.src_pitch, src_bytes))
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "copy: pitch times height overflows");
    out.dst = bytes_at(copy.dst, dst_bytes);
    out.src = bytes_at(copy.src, src_bytes);
    if (!out.dst) return outside(status, "copy: destination", copy.dst, dst_bytes);
    if (!out.src) return outside(status, "copy: source", copy.src, src_bytes);
    if (out.dst < out.src + src_bytes && out.src < out.dst + dst_bytes)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "copy: source and destination overlap");
    out.width = copy.width;
    out.height = copy.height;
    out.dst_pitch = copy.dst_pitch;
    out.src_pitch = copy.src_pitch;
    return ENPU_HAL_OK;
}

uint32_t resolve_fill(const enpu_hal_fill& fill, ResolvedFill& out, enpu_hal_status* status) {
    const uint32_t size = fill.pattern_bytes;
    if (size != 1 && size != 2 && size != 4 && size != 8)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "fill: a pattern has 1, 2, 4 or 8 bytes");
    if (fill.bytes == 0 || fill.bytes % size != 0)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "fill: %llu bytes is not a multiple of the pattern's %u",
                    static_cast<unsigned long long>(fill.bytes), size);
    out.dst = bytes_at(fill.dst, fill.bytes);
    if (!out.dst) return outside(status, "fill: destination", fill.dst, fill.bytes);
    out.bytes = fill.bytes;
    out.pattern = fill.pattern;
    out.pattern_bytes = size;
    return ENPU_HAL_OK;
}

// Sets the address of an operand after its whole span was found inside the buffer.
uint32_t place_operand(const OpInfo& info, uint32_t index, const enpu_hal_operand& operand,
                       enpu_tensor& tensor, enpu_hal_status* status) {
    rules::Span span;
    const char* name = info.operand_names[index];
    if (!operand.place.buffer)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%s: operand '%s' has no buffer", info.name,
                    name);
    if (!rules::tensor_span(tensor, span))
        return fail(
            status, ENPU_HAL_INVALID_ARGUMENT,
            "%s: operand '%s' is larger than the largest tensor, or rank or dims are illegal",
            info.name, name);
    const uint64_t before = static_cast<uint64_t>(-span.offset);
    const uint64_t offset = operand.place.offset;
    if (before > offset || !bytes_at({operand.place.buffer, offset - before}, span.bytes))
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "%s: operand '%s' touches %llu bytes around offset %llu, outside its buffer of "
                    "%llu bytes",
                    info.name, name, static_cast<unsigned long long>(span.bytes),
                    static_cast<unsigned long long>(offset),
                    static_cast<unsigned long long>(operand.place.buffer->bytes));
    tensor.addr = reinterpret_cast<uint64_t>(operand.place.buffer->host + offset);
    return ENPU_HAL_OK;
}

uint32_t resolve_dispatch(const enpu_hal_dispatch* dispatch, PacketStorage& out,
                          enpu_hal_status* status) {
    if (uint32_t code = check_dispatch_structure(dispatch, status)) return code;
    if (uint32_t code = translate(*dispatch, out, status)) return code;
    const OpInfo& info = *find_op(dispatch->op);
    for (uint32_t i = 0; i < info.operands; ++i) {
        enpu_tensor& tensor = out.packet().operands[i];
        if (tensor.dtype == ENPU_DTYPE_NONE) continue;
        if (uint32_t code = place_operand(info, i, dispatch->operands[i], tensor, status))
            return code;
    }
    return check_rules(out, status);
}

class TileWatch final : public ops::Progress {
  public:
    TileWatch(const std::atomic<bool>& stop, uint32_t threads) : stop_(stop), threads_(threads) {}
    bool proceed() override { return !stop_.load(std::memory_order_relaxed); }
    void detail(unsigned operand, int64_t value) override {
        operand_ = operand;
        value_ = value;
    }
    unsigned threads() const override { return threads_; }
    unsigned operand() const { return operand_; }
    int64_t value() const { return value_; }

  private:
    const std::atomic<bool>& stop_;
    const uint32_t threads_;
    unsigned operand_ = 0;
    int64_t value_ = 0;
};

uint32_t run_dispatch(enpu_hal_device& device, const PacketStorage& storage,
                      const std::atomic<bool>& stop, enpu_hal_status* status) {
    const enpu_operator_packet& packet = storage.packet();
    const uint32_t op = op_of(packet.header.opcode);
    const OpInfo& info = *find_op(op);
    ops::Operand operands[ENPU_OP_MAX_OPERANDS];
    for (uint32_t i = 0; i < info.operands; ++i)
        operands[i] = {&packet.operands[i], reinterpret_cast<std::byte*>(packet.operands[i].addr)};
    TileWatch watch(stop, device.threads);
    switch (ops::run(packet, {operands, info.operands}, watch)) {
        case ops::Outcome::kDone:
            device.counters.ops[op].fetch_add(1, std::memory_order_relaxed);
            device.counters.work.fetch_add(rules::packet_work(packet), std::memory_order_relaxed);
            return ENPU_HAL_OK;
        case ops::Outcome::kStopped:
            return fail(status, ENPU_HAL_DATA_LOSS, "%s: stopped while it ran", info.name);
        case ops::Outcome::kOutOfMemory:
            return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "%s: no memory for scratch",
                        info.name);
        case ops::Outcome::kBadOperand:
            break;
    }
    const unsigned operand = watch.operand() < info.operands ? watch.operand() : 0;
    return fail(status, ENPU_HAL_WORK_FAILED, "%s: operand '%s' holds %lld, out of range",
                info.name, info.operand_names[operand], static_cast<long long>(watch.value()));
}

void run_fill(const ResolvedFill& fill) {
    if (fill.pattern_bytes == 1) {
        std::memset(fill.dst, static_cast<int>(fill.pattern & 0xff), fill.bytes);
        return;
    }
    for (uint64_t at = 0; at < fill.bytes; at += fill.pattern_bytes)
        std::memcpy(fill.dst + at, &fill.pattern, fill.pattern_bytes);
}

}  // namespace

uint32_t check_rules(const PacketStorage& storage, enpu_hal_status* status) {
    const size_t size = storage.packet().header.size;
    const rules::Violation broken = rules::check_packet(&storage, size, ENPU_ENGINE_KIND_COMPUTE);
    if (!broken) return ENPU_HAL_OK;
    return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%s",
                rules::describe(&storage, size, broken).c_str());
}

uint32_t resolve(const enpu_hal_command& command, Record& record, enpu_hal_status* status) {
    switch (command.kind) {
        case ENPU_HAL_COMMAND_COPY:
            record.kind = RecordKind::kCopy;
            return resolve_copy(command.u.copy, record.copy, status);
        case ENPU_HAL_COMMAND_FILL:
            record.kind = RecordKind::kFill;
            return resolve_fill(command.u.fill, record.fill, status);
        case ENPU_HAL_COMMAND_DISPATCH:
            record.kind = RecordKind::kDispatch;
            return resolve_dispatch(command.u.dispatch, record.dispatch, status);
        case ENPU_HAL_COMMAND_TIMESTAMP:
            record.kind = RecordKind::kTimestamp;
            record.timestamp = bytes_at(command.u.timestamp.dst, 8);
            if (!record.timestamp || command.u.timestamp.dst.offset % 8 != 0)
                return outside(status, "timestamp", command.u.timestamp.dst, 8);
            return ENPU_HAL_OK;
        case ENPU_HAL_COMMAND_HOST_CALL:
            record.kind = RecordKind::kHostCall;
            record.host_call = command.u.host_call;
            if (!record.host_call.function)
                return fail(status, ENPU_HAL_INVALID_ARGUMENT, "host call: no function given");
            return ENPU_HAL_OK;
    }
    return fail(status, ENPU_HAL_UNSUPPORTED, "command kind %u is unknown", command.kind);
}

uint32_t run(enpu_hal_device& device, const Record& record, const std::atomic<bool>& stop,
             enpu_hal_status* status) {
    switch (record.kind) {
        case RecordKind::kCopy: {
            const ResolvedCopy& copy = record.copy;
            for (uint64_t row = 0; row < copy.height; ++row)
                std::memcpy(copy.dst + row * copy.dst_pitch, copy.src + row * copy.src_pitch,
                            copy.width);
            device.counters.copies.fetch_add(1, std::memory_order_relaxed);
            device.counters.copy_bytes.fetch_add(copy.width * copy.height,
                                                 std::memory_order_relaxed);
            return ENPU_HAL_OK;
        }
        case RecordKind::kFill:
            run_fill(record.fill);
            device.counters.copies.fetch_add(1, std::memory_order_relaxed);
            return ENPU_HAL_OK;
        case RecordKind::kDispatch:
            return run_dispatch(device, record.dispatch, stop, status);
        case RecordKind::kTimestamp: {
            const uint64_t now = now_ns();
            std::memcpy(record.timestamp, &now, sizeof(now));
            return ENPU_HAL_OK;
        }
        case RecordKind::kHostCall:
            record.host_call.function(record.host_call.context);
            return ENPU_HAL_OK;
    }
    return fail(status, ENPU_HAL_INTERNAL, "record of unknown kind");
}

}  // namespace enpu::hal::cpu
