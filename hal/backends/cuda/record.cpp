// SPDX-License-Identifier: MIT
#include "record.h"

#include "arguments.h"
#include "kernels/args.h"
#include "op_table.h"
#include "plan.h"
#include "rules.h"
#include "status.h"

namespace enpu::hal::cuda {
namespace {

Extent extent_of(const enpu_hal_place& place) {
    return place.buffer ? place.buffer->extent() : Extent{};
}

// Buffers of another opening of the same GPU are in the same address space; of another GPU not.
uint32_t check_device(const enpu_hal_device& device, const enpu_hal_place& place, const char* what,
                      enpu_hal_status* status) {
    if (!place.buffer || &place.buffer->device->gpu == &device.gpu) return ENPU_HAL_OK;
    return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%s: the buffer belongs to %s, not to %s", what,
                place.buffer->device->spec.c_str(), device.spec.c_str());
}

uint32_t resolve_copy(enpu_hal_device& device, const enpu_hal_copy& copy, Record& record,
                      enpu_hal_status* status) {
    CopyAddresses at{};
    if (uint32_t code = check_device(device, copy.dst, "copy: destination", status)) return code;
    if (uint32_t code = check_device(device, copy.src, "copy: source", status)) return code;
    if (uint32_t code = check_copy(copy, extent_of(copy.dst), extent_of(copy.src), at, status))
        return code;
    const uint64_t most = device.gpu.info.max_pitch;
    if (copy.height > 1 && (copy.dst_pitch > most || copy.src_pitch > most))
        return fail(status, ENPU_HAL_UNSUPPORTED, "copy: a pitch is more than the GPU's %llu bytes",
                    static_cast<unsigned long long>(most));
    record.kind = RecordKind::kCopy;
    record.copy = {at.dst, at.src, copy.width, copy.height, copy.dst_pitch, copy.src_pitch};
    return ENPU_HAL_OK;
}

uint32_t resolve_fill(enpu_hal_device& device, const enpu_hal_fill& fill, Record& record,
                      enpu_hal_status* status) {
    uint64_t address = 0;
    if (uint32_t code = check_device(device, fill.dst, "fill: destination", status)) return code;
    if (uint32_t code = check_fill(fill, extent_of(fill.dst), address, status)) return code;
    record.kind = RecordKind::kFill;
    // The driver promises memsets of its own memory only, and has no pattern of 8 bytes.
    const bool by_kernel = fill.dst.buffer->memory != ENPU_HAL_MEMORY_LOCAL ||
                           fill.pattern_bytes == 8 || address % fill.pattern_bytes != 0;
    record.fill = {address, fill.bytes, fill.pattern, fill.pattern_bytes, by_kernel};
    return ENPU_HAL_OK;
}

uint32_t no_kernels(const enpu_hal_device& device, const char* what, enpu_hal_status* status) {
    return fail(status, ENPU_HAL_UNSUPPORTED, "%s: the cuda backend has no kernels here: %.180s",
                what, device.gpu.kernels.reason());
}

uint32_t resolve_timestamp(enpu_hal_device& device, const enpu_hal_timestamp& timestamp,
                           Record& record, enpu_hal_status* status) {
    uint64_t address = 0;
    if (uint32_t code = check_device(device, timestamp.dst, "timestamp", status)) return code;
    if (uint32_t code = check_timestamp(timestamp, extent_of(timestamp.dst), address, status))
        return code;
    if (!device.gpu.kernels.available()) return no_kernels(device, "timestamp", status);
    record.kind = RecordKind::kKernel;
    record.op = ENPU_OPS;
    record.kernel.set<TimestampArgs>(KernelId::kTimestamp, 1, 1).address = address;
    return ENPU_HAL_OK;
}

// Who runs a packet: a library, the own kernel, or one that stands by for the other.
uint32_t place(enpu_hal_device& device, const PacketStorage& storage, uint64_t offence,
               Record& record, enpu_hal_status* status) {
    const uint32_t op = op_of(storage.packet().header.opcode);
    {
        const InContext in(device.gpu);
        record.library = device.gpu.libraries.plan(storage, record.call);
    }
    const uint32_t code = device.gpu.kernels.available()
                              ? plan_kernel(storage, offence, record.kernel, status)
                              : no_kernels(device, find_op(op)->name, status);
    if (code == ENPU_HAL_OK) return code;
    record.kernel.id = KernelId::kCount;
    record.kernel.fallible = false;
    if (record.library && !record.library->refused()) return ENPU_HAL_OK;
    if (!record.library) return code;
    return fail(status, ENPU_HAL_UNSUPPORTED, "%s: %s, and no own kernel stands by",
                find_op(op)->name, record.library->complaint());
}

uint32_t resolve_dispatch(enpu_hal_device& device, const enpu_hal_dispatch* dispatch,
                          uint64_t offence, Record& record, enpu_hal_status* status) {
    if (uint32_t code = check_dispatch_structure(dispatch, status)) return code;
    PacketStorage storage;
    if (uint32_t code = translate(*dispatch, storage, status)) return code;
    const OpInfo& info = *find_op(dispatch->op);
    Extent buffers[ENPU_OP_MAX_OPERANDS];
    for (uint32_t i = 0; i < info.operands; ++i) {
        if (storage.packet().operands[i].dtype == ENPU_DTYPE_NONE) continue;
        const enpu_hal_place& place = dispatch->operands[i].place;
        if (uint32_t code = check_device(device, place, info.operand_names[i], status)) return code;
        buffers[i] = extent_of(place);
    }
    if (uint32_t code = place_operands(storage, *dispatch, buffers, status)) return code;
    record.kind = RecordKind::kKernel;
    record.op = dispatch->op;
    record.work = rules::packet_work(storage.packet());
    return place(device, storage, offence, record, status);
}

// A pattern as one write a row: rows of `unit` bytes, `pitch` apart.
Result fill_unit(const Driver& api, uint64_t dst, uint32_t unit, uint64_t pitch, uint64_t value,
                 uint64_t rows, Stream stream) {
    if (unit == 4)
        return api.cuMemsetD2D32Async(dst, pitch, static_cast<unsigned>(value), 1, rows, stream);
    return api.cuMemsetD2D8Async(dst, pitch, static_cast<unsigned char>(value), 1, rows, stream);
}

// Contiguous where the driver has the pattern's size and the address is aligned to it. Any other
// pattern is written as columns of words, or of bytes.
Result issue_memset(const Driver& api, const FillRecord& fill, Stream stream) {
    const uint32_t size = fill.pattern_bytes;
    const auto low = static_cast<uint32_t>(fill.pattern);
    const auto high = static_cast<uint32_t>(fill.pattern >> 32);
    if (size == 1)
        return api.cuMemsetD8Async(fill.dst, static_cast<unsigned char>(low), fill.bytes, stream);
    if (size == 2 && fill.dst % 2 == 0)
        return api.cuMemsetD16Async(fill.dst, static_cast<unsigned short>(low), fill.bytes / 2,
                                    stream);
    if (fill.dst % 4 == 0 && (size == 4 || (size == 8 && low == high)))
        return api.cuMemsetD32Async(fill.dst, low, fill.bytes / 4, stream);
    const uint32_t unit = size == 8 && fill.dst % 4 == 0 ? 4 : 1;
    for (uint32_t at = 0; at < size; at += unit) {
        const Result error = fill_unit(api, fill.dst + at, unit, size, fill.pattern >> (8 * at),
                                       fill.bytes / size, stream);
        if (error != kSuccess) return error;
    }
    return kSuccess;
}

Result issue_copy(const Driver& api, const CopyRecord& copy, Stream stream) {
    if (copy.height == 1) return api.cuMemcpyAsync(copy.dst, copy.src, copy.width, stream);
    Copy2D rows{};
    rows.src_type = rows.dst_type = kMemoryTypeUnified;
    rows.src_device = copy.src;
    rows.src_pitch = copy.src_pitch;
    rows.dst_device = copy.dst;
    rows.dst_pitch = copy.dst_pitch;
    rows.width = copy.width;
    rows.height = copy.height;
    return api.cuMemcpy2DAsync(&rows, stream);
}

Result issue_kernel(const Gpu& gpu, const KernelCall& call, Stream stream) {
    void* params[] = {const_cast<unsigned char*>(call.args)};
    return gpu.api.cuLaunchKernel(gpu.kernels.function(call.id), call.grid, 1, 1, call.block, 1, 1,
                                  0, stream, params, nullptr);
}

// A library takes the work, or gives it back at once: the own kernel runs it then, and what is wrong
// with the GPU itself shows there.
Result issue_dispatch(enpu_hal_device& device, Record& record, Stream stream, uint64_t workspace) {
    record.by_library = false;
    if (record.library) {
        const bool room = workspace != 0 || record.workspace_bytes() == 0;
        record.by_library = room && record.library->give(record.call, stream, workspace);
        if (record.by_library) return kSuccess;
        device.counters.library_refusals.fetch_add(1, std::memory_order_relaxed);
    }
    if (record.kernel.id == KernelId::kCount) return kNotSupported;
    return issue_kernel(device.gpu, record.kernel, stream);
}

Result issue_fill(const Gpu& gpu, const FillRecord& fill, Stream stream) {
    if (!fill.by_kernel || !gpu.kernels.available()) return issue_memset(gpu.api, fill, stream);
    const uint64_t units = fill.bytes / fill.pattern_bytes;
    KernelCall call;
    call.set<FillArgs>(KernelId::kFill, blocks_for(units), kThreads) = {
        fill.dst, units, fill.pattern, fill.pattern_bytes};
    return issue_kernel(gpu, call, stream);
}

}  // namespace

uint32_t resolve(enpu_hal_device& device, const enpu_hal_command& command, uint64_t offence,
                 Record& record, enpu_hal_status* status) {
    record.op = ENPU_OPS;
    record.work = 0;
    record.library.reset();
    record.by_library = false;
    switch (command.kind) {
        case ENPU_HAL_COMMAND_COPY:
            return resolve_copy(device, command.u.copy, record, status);
        case ENPU_HAL_COMMAND_FILL:
            return resolve_fill(device, command.u.fill, record, status);
        case ENPU_HAL_COMMAND_DISPATCH:
            return resolve_dispatch(device, command.u.dispatch, offence, record, status);
        case ENPU_HAL_COMMAND_TIMESTAMP:
            return resolve_timestamp(device, command.u.timestamp, record, status);
        case ENPU_HAL_COMMAND_HOST_CALL:
            if (!command.u.host_call.function)
                return fail(status, ENPU_HAL_INVALID_ARGUMENT, "host call: no function given");
            record.kind = RecordKind::kHostCall;
            record.host_call = command.u.host_call;
            return ENPU_HAL_OK;
    }
    return fail(status, ENPU_HAL_UNSUPPORTED, "command kind %u is unknown", command.kind);
}

uint32_t check_supported(enpu_hal_device& device, const enpu_hal_dispatch& dispatch,
                         enpu_hal_status* status) {
    PacketStorage storage;
    if (uint32_t code = check_dispatch(dispatch, storage, status)) return code;
    if (device.gpu.kernels.available()) {
        KernelCall call;
        if (plan_kernel(storage, 0, call, status) == ENPU_HAL_OK) return ENPU_HAL_OK;
    }
    // Only without a kernel of its own is a library asked, which makes a plan the first time.
    Record record;
    return place(device, storage, 0, record, status);
}

const char* issue_what(const Record& record) {
    if (!record.kernel_missing()) return "giving work to the GPU";
    return record.library->refused() ? record.library->complaint()
                                     : "no memory for the workspace of a library";
}

Result issue(enpu_hal_device& device, Record& record, Stream stream, uint64_t workspace) {
    const Gpu& gpu = device.gpu;
    switch (record.kind) {
        case RecordKind::kCopy:
            return issue_copy(gpu.api, record.copy, stream);
        case RecordKind::kFill:
            return issue_fill(gpu, record.fill, stream);
        case RecordKind::kKernel:
            return issue_dispatch(device, record, stream, workspace);
        case RecordKind::kHostCall:
            return gpu.api.cuLaunchHostFunc(stream, record.host_call.function,
                                            record.host_call.context);
    }
    return kInvalidValue;
}

void Totals::add(const Record& record) {
    if (record.kind == RecordKind::kCopy) {
        ++copies;
        copy_bytes += record.copy.width * record.copy.height;
    } else if (record.kind == RecordKind::kFill) {
        ++copies;
    } else if (record.op < ENPU_OPS) {
        ++ops[record.op];
        library_ops[record.op] += record.by_library;
        work += record.work;
        computes = true;
    }
}

void Totals::count(Counters& counters, uint64_t busy_ns) const {
    for (uint32_t op = 0; op < ENPU_OPS; ++op) {
        if (ops[op]) counters.ops[op].fetch_add(ops[op], std::memory_order_relaxed);
        if (library_ops[op])
            counters.library_ops[op].fetch_add(library_ops[op], std::memory_order_relaxed);
    }
    counters.copies.fetch_add(copies, std::memory_order_relaxed);
    counters.copy_bytes.fetch_add(copy_bytes, std::memory_order_relaxed);
    counters.work.fetch_add(work, std::memory_order_relaxed);
    (computes ? counters.busy_compute_ns : counters.busy_copy_ns)
        .fetch_add(busy_ns, std::memory_order_relaxed);
}

uint32_t fail_offence(enpu_hal_status* status, uint32_t op, const Offence& offence) {
    const OpInfo* info = find_op(op);
    const char* name =
        info && offence.operand < info->operands ? info->operand_names[offence.operand] : "unknown";
    return fail(status, ENPU_HAL_WORK_FAILED, "%s: operand '%s' holds %lld, out of range",
                info ? info->name : "kernel", name, static_cast<long long>(offence.value));
}

}  // namespace enpu::hal::cuda
