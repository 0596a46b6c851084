// SPDX-License-Identifier: MIT
// Driver, device, kernel and profile tables, and the export of the npu backend.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string_view>

#include "arguments.h"
#include "npu.h"
#include "op_table.h"
#include "status.h"

namespace enpu::hal::npu {
namespace {

bool is_sim(std::string_view spec) {
    return spec == "sim" || spec.starts_with("sim:");
}

void set_text(char (&out)[64], const char* text) {
    std::snprintf(out, sizeof(out), "%.63s", text);
}

uint32_t enumerate(uint32_t index, enpu_hal_device_info* out, enpu_hal_status* status) {
    if (uint32_t code = check_device_info(out, status)) return code;
    enpu_device_entry entries[32];
    enpu_error error;
    const int count = enpu_enumerate(entries, 32, &error);
    if (count < 0) return fail_with(status, error);
    if (index >= static_cast<uint32_t>(count) || index >= 32)
        return fail(status, ENPU_HAL_NOT_FOUND, "there are %d devices", count);
    const bool sim = is_sim(entries[index].spec);
    enpu_hal_device_info info{};
    set_text(info.spec, entries[index].spec);
    set_text(info.name, entries[index].name);
    set_text(info.driver, "libenpu");
    info.class_id = sim ? ENPU_HAL_CLASS_SIMULATOR : ENPU_HAL_CLASS_NPU;
    info.caps = sim ? kSimCaps : kCaps;
    give(out, info);
    return ENPU_HAL_OK;
}

uint32_t accepts(const char* spec) {
    const std::string_view text = spec ? spec : "";
    return is_sim(text) || text == "npu" || text.starts_with("npu:") ||
           text.starts_with("/dev/accel/");
}

uint32_t open(const char* spec, enpu_hal_device** device, enpu_hal_status* status) {
    if (!device || !accepts(spec))
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "npu: spec '%s' is not for this backend",
                    spec ? spec : "");
    auto* made = new (std::nothrow) enpu_hal_device;
    if (!made) return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "npu: no host memory");
    // "npu:/dev/accel/accel0" names the node.
    const char* node = std::string_view(spec).starts_with("npu:") ? spec + 4 : spec;
    enpu_error error;
    if (const int result = enpu_device_open(node, &made->handle, &error)) {
        delete made;
        const uint32_t code = result == -ENODEV ? uint32_t(ENPU_HAL_UNAVAILABLE) : code_of(result);
        return fail_device(status, code, result, "%.250s", error.message);
    }
    made->spec = is_sim(node) ? node : enpu_device_get_info(made->handle)->spec;
    made->caps = enpu_device_get_info(made->handle)->simulator ? kSimCaps : kCaps;
    *device = made;
    return ENPU_HAL_OK;
}

void close(enpu_hal_device* device) {
    enpu_device_release(device->handle);
    delete device;
}

uint32_t info(enpu_hal_device* device, enpu_hal_device_info* out, enpu_hal_status* status) {
    if (uint32_t code = check_device_info(out, status)) return code;
    const enpu_device_info& from = *enpu_device_get_info(device->handle);
    enpu_hal_device_info info{};
    set_text(info.spec, device->spec.c_str());
    std::snprintf(info.name, sizeof(info.name), "enpu %s, %u cores",
                  from.simulator ? "simulator" : "NPU", from.compute_engines);
    set_text(info.driver, from.simulator ? "libenpu, functional model" : "libenpu, enpu.ko");
    info.class_id = from.simulator ? ENPU_HAL_CLASS_SIMULATOR : ENPU_HAL_CLASS_NPU;
    info.caps = device->caps;
    info.compute_engines = from.compute_engines;
    info.copy_engines = from.copy_engines;
    info.local_bytes = from.local_bytes;
    info.max_tensor_bytes = from.max_tensor_bytes;
    info.buffer_alignment = 1;
    info.clock_hz = 1'000'000'000;
    info.max_commands = kMaxCommands;
    info.threads = from.threads;
    info.max_points = kMaxPoints;
    for (uint32_t op = 0; op < ENPU_OPS; ++op) info.dtypes |= from.dtypes[opcode_of(op)];
    info.dtypes &= ~1u;  // NONE, of operands that may be left out
    info.max_alignment = kMaxAlignment;
    give(out, info);
    return ENPU_HAL_OK;
}

uint32_t check(enpu_hal_device* device, enpu_hal_status* status) {
    enpu_memory_info memory;
    enpu_error error;
    if (const int result = enpu_device_get_memory(device->handle, &memory, &error))
        return fail_device(status, ENPU_HAL_DEVICE_LOST, result, "%.250s", error.message);
    return ENPU_HAL_OK;
}

uint32_t supported(enpu_hal_device* device, const enpu_hal_dispatch* dispatch,
                   enpu_hal_status* status) {
    if (uint32_t code = check_dispatch_structure(dispatch, status)) return code;
    PacketStorage storage;
    if (uint32_t code = translate(*dispatch, storage, status)) return code;
    enpu_error error;
    if (enpu_check_operator(device->handle, opcode_of(dispatch->op), dispatch->params,
                            dispatch->params_bytes, storage.packet().operands,
                            dispatch->operand_count, &error) != 0)
        return fail_with(status, error);
    return ENPU_HAL_OK;
}

uint32_t packed_size(enpu_hal_device*, const enpu_op_tensor* weights,
                     const enpu_op_pack_params* params, uint64_t* bytes, enpu_hal_status* status) {
    enpu_tensor tensor;
    if (uint32_t code = translate(*weights, tensor, status)) return code;
    *bytes = enpu_packed_bytes(&tensor, params->kind, params->groups);
    if (*bytes == 0)
        return fail(status, ENPU_HAL_UNSUPPORTED, "pack_weights: these weights cannot be packed");
    return ENPU_HAL_OK;
}

uint32_t counters(enpu_hal_device* device, enpu_hal_counters* out, enpu_hal_status* status) {
    if (uint32_t code = check_counters(out, status)) return code;
    uint64_t words[128] = {};
    enpu_error error;
    if (enpu_device_get_counters(device->handle, words, 128, &error) < 0)
        return fail_with(status, error);
    enpu_hal_counters now{};
    for (uint32_t op = 0; op < ENPU_OPS; ++op) now.ops[op] = words[opcode_of(op)];
    now.jobs = words[ENPU_COUNTER_JOBS];
    now.jobs_failed = words[ENPU_COUNTER_JOBS_FAILED];
    // Words are indexed by opcode from OPCODE0 = 0 on.
    now.copies = words[ENPU_OPCODE_COPY] + words[ENPU_OPCODE_FILL];
    now.copy_bytes = words[ENPU_COUNTER_COPY_BYTES];
    now.busy_compute_ns = words[ENPU_COUNTER_BUSY_COMPUTE_NS];
    now.busy_copy_ns = words[ENPU_COUNTER_BUSY_COPY_NS];
    now.work = words[ENPU_COUNTER_WORK];
    now.faults = words[ENPU_COUNTER_FAULTS];
    now.live_buffers = device->live.buffers.load();
    now.live_queues = device->live.queues.load();
    now.live_fences = device->live.fences.load();
    now.live_graphs = device->live.graphs.load();
    give(out, now);
    return ENPU_HAL_OK;
}

uint32_t clock(enpu_hal_device* device, uint64_t* device_ticks, uint64_t* host_ns,
               enpu_hal_status* status) {
    enpu_error error;
    if (enpu_device_get_clock(device->handle, device_ticks, host_ns, &error) != 0)
        return fail_with(status, error);
    return ENPU_HAL_OK;
}

}  // namespace

uint32_t code_of(int error) {
    switch (error) {
        case -EINVAL:
            return ENPU_HAL_INVALID_ARGUMENT;
        case -EACCES:
            return ENPU_HAL_PERMISSION_DENIED;
        case -EPROTO:
        case -EBUSY:
            return ENPU_HAL_FAILED_PRECONDITION;
        case -ENOMEM:
        case -ENOSPC:
        case -EAGAIN:
            return ENPU_HAL_RESOURCE_EXHAUSTED;
        case -ETIME:
            return ENPU_HAL_DEADLINE_EXCEEDED;
        case -EOPNOTSUPP:
            return ENPU_HAL_UNSUPPORTED;
        case -ENOTRECOVERABLE:
            return ENPU_HAL_ABORTED;
        case -ENODEV:
        case -EIO:
            return ENPU_HAL_DEVICE_LOST;
        default:
            return ENPU_HAL_INTERNAL;
    }
}

uint32_t fail_with(enpu_hal_status* status, const enpu_error& error) {
    return fail_device(status, code_of(error.code), error.code, "%.250s", error.message);
}

const enpu_hal_driver_table kDriver = {
    table_header(sizeof(enpu_hal_driver_table), ENPU_HAL_TYPE_DRIVER_TABLE), enumerate, accepts,
    open};
const enpu_hal_device_table kDevice = {
    table_header(sizeof(enpu_hal_device_table), ENPU_HAL_TYPE_DEVICE_TABLE), close, info, check};
const enpu_hal_kernel_table kKernel = {
    table_header(sizeof(enpu_hal_kernel_table), ENPU_HAL_TYPE_KERNEL_TABLE), supported,
    packed_size};
const enpu_hal_profile_table kProfile = {
    table_header(sizeof(enpu_hal_profile_table), ENPU_HAL_TYPE_PROFILE_TABLE), counters, clock};

}  // namespace enpu::hal::npu

extern "C" __attribute__((visibility("default"))) const enpu_hal_plugin* enpu_hal_query(
    const enpu_hal_host* host, enpu_hal_status* status) {
    using namespace enpu::hal;
    static const enpu_hal_plugin kPlugin = {
        table_header(sizeof(enpu_hal_plugin), ENPU_HAL_TYPE_PLUGIN),
        ENPU_HAL_ABI_MAJOR,
        ENPU_HAL_ABI_MINOR,
        "npu",
        "0.1",
        npu::kCaps,
        0,
        &npu::kDriver,
        &npu::kDevice,
        &npu::kMemory,
        &npu::kQueue,
        &npu::kFence,
        &npu::kKernel,
        &npu::kGraph,
        &npu::kProfile,
    };
    if (!host || host->abi_major != ENPU_HAL_ABI_MAJOR) {
        fail(status, ENPU_HAL_FAILED_PRECONDITION,
             "npu: this backend speaks HAL ABI %u, the host %u", ENPU_HAL_ABI_MAJOR,
             host ? host->abi_major : 0);
        return nullptr;
    }
    return &kPlugin;
}
