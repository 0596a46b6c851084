// SPDX-License-Identifier: MIT
#include "record.h"

#include <cstring>

#include "arguments.h"
#include "command.h"
#include "op_table.h"
#include "operators/operator.h"
#include "rules.h"
#include "status.h"

namespace enpu::hal::cpu {
namespace {

Extent extent_of(const enpu_hal_place& place) {
    if (!place.buffer) return {};
    return {reinterpret_cast<uint64_t>(place.buffer->host), place.buffer->bytes};
}

std::byte* pointer(uint64_t address) {
    return reinterpret_cast<std::byte*>(address);
}

uint32_t resolve_copy(const enpu_hal_copy& copy, ResolvedCopy& out, enpu_hal_status* status) {
    CopyAddresses at{};
    if (uint32_t code = check_copy(copy, extent_of(copy.dst), extent_of(copy.src), at, status))
        return code;
    out = {pointer(at.dst), pointer(at.src), copy.width,
           copy.height,     copy.dst_pitch,  copy.src_pitch};
    return ENPU_HAL_OK;
}

uint32_t resolve_fill(const enpu_hal_fill& fill, ResolvedFill& out, enpu_hal_status* status) {
    uint64_t address = 0;
    if (uint32_t code = check_fill(fill, extent_of(fill.dst), address, status)) return code;
    out = {pointer(address), fill.bytes, fill.pattern, fill.pattern_bytes};
    return ENPU_HAL_OK;
}

uint32_t resolve_timestamp(const enpu_hal_timestamp& timestamp, std::byte*& out,
                           enpu_hal_status* status) {
    uint64_t address = 0;
    if (uint32_t code = check_timestamp(timestamp, extent_of(timestamp.dst), address, status))
        return code;
    out = pointer(address);
    return ENPU_HAL_OK;
}

uint32_t resolve_dispatch(const enpu_hal_dispatch* dispatch, PacketStorage& out,
                          enpu_hal_status* status) {
    if (uint32_t code = check_dispatch_structure(dispatch, status)) return code;
    if (uint32_t code = translate(*dispatch, out, status)) return code;
    Extent buffers[ENPU_OP_MAX_OPERANDS];
    for (uint32_t i = 0; i < dispatch->operand_count; ++i)
        if (out.packet().operands[i].dtype != ENPU_DTYPE_NONE)
            buffers[i] = extent_of(dispatch->operands[i].place);
    return place_operands(out, *dispatch, buffers, status);
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
            return resolve_timestamp(command.u.timestamp, record.timestamp, status);
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
