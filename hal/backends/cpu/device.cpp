// SPDX-License-Identifier: MIT
// Driver, device, profile and kernel tables, and the export of the cpu backend.
#include "device.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <thread>

#include "arguments.h"
#include "command.h"
#include "packet.h"
#include "record.h"
#include "rules.h"
#include "status.h"

namespace enpu::hal::cpu {
namespace {

uint32_t default_threads() {
    const unsigned count = std::thread::hardware_concurrency();
    return count == 0 ? 1 : count;
}

uint32_t give_info(const std::string& spec, uint32_t threads, enpu_hal_device_info* out,
                   enpu_hal_status* status) {
    if (uint32_t code = check_device_info(out, status)) return code;
    enpu_hal_device_info info{};
    std::snprintf(info.spec, sizeof(info.spec), "%s", spec.c_str());
    std::snprintf(info.name, sizeof(info.name), "host CPU, %u threads", threads);
    std::snprintf(info.driver, sizeof(info.driver), "enpu operators");
    info.class_id = ENPU_HAL_CLASS_CPU;
    info.caps = kCaps;
    info.compute_engines = 1;
    info.copy_engines = 1;
    info.max_tensor_bytes = ENPU_MAX_TENSOR_BYTES;
    info.buffer_alignment = 1;
    info.clock_hz = 1'000'000'000;
    info.max_commands = kMaxCommands;
    info.threads = threads;
    info.max_points = kMaxPoints;
    info.dtypes = (1u << ENPU_OP_DTYPES) - 2;  // all but NONE
    info.max_alignment = kMaxAlignment;
    give(out, info);
    return ENPU_HAL_OK;
}

uint32_t enumerate(uint32_t index, enpu_hal_device_info* info, enpu_hal_status* status) {
    if (index != 0) return fail(status, ENPU_HAL_NOT_FOUND, "cpu: there is one device");
    return give_info("cpu", default_threads(), info, status);
}

uint32_t accepts(const char* spec) {
    const std::string_view text = spec ? spec : "";
    return text == "cpu" || text.starts_with("cpu:");
}

uint32_t open(const char* spec, enpu_hal_device** device, enpu_hal_status* status) {
    if (!device || !accepts(spec))
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "cpu: spec '%s' is not \"cpu\"",
                    spec ? spec : "");
    uint32_t threads = default_threads();
    constexpr std::string_view kOption = "cpu:threads=";
    const std::string_view text = spec;
    if (text != "cpu") {
        char* end = nullptr;
        const long value =
            text.starts_with(kOption) ? std::strtol(spec + kOption.size(), &end, 10) : 0;
        if (!end || *end != '\0' || value < 1 || value > 64)
            return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                        "cpu: spec '%s': the one option is threads=1 … 64", spec);
        threads = static_cast<uint32_t>(value);
    }
    auto* made = new (std::nothrow) enpu_hal_device;
    if (!made) return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "cpu: no host memory");
    made->spec = spec;
    made->threads = threads;
    *device = made;
    return ENPU_HAL_OK;
}

void close(enpu_hal_device* device) {
    delete device;
}

uint32_t info(enpu_hal_device* device, enpu_hal_device_info* out, enpu_hal_status* status) {
    return give_info(device->spec, device->threads, out, status);
}

uint32_t check(enpu_hal_device*, enpu_hal_status*) {
    return ENPU_HAL_OK;
}

uint32_t counters(enpu_hal_device* device, enpu_hal_counters* out, enpu_hal_status* status) {
    if (uint32_t code = check_counters(out, status)) return code;
    give(out, device->counters.look());
    return ENPU_HAL_OK;
}

uint32_t clock(enpu_hal_device*, uint64_t* device_ticks, uint64_t* host_ns, enpu_hal_status*) {
    *device_ticks = *host_ns = now_ns();
    return ENPU_HAL_OK;
}

uint32_t supported(enpu_hal_device*, const enpu_hal_dispatch* dispatch, enpu_hal_status* status) {
    PacketStorage storage;
    if (uint32_t code = check_dispatch_structure(dispatch, status)) return code;
    return check_dispatch(*dispatch, storage, status);
}

uint32_t packed_size(enpu_hal_device*, const enpu_op_tensor* weights,
                     const enpu_op_pack_params* params, uint64_t* bytes, enpu_hal_status* status) {
    enpu_tensor tensor;
    if (uint32_t code = translate(*weights, tensor, status)) return code;
    *bytes = rules::packed_bytes(tensor, params->kind, params->groups);
    if (*bytes == 0)
        return fail(status, ENPU_HAL_UNSUPPORTED, "pack_weights: these weights cannot be packed");
    return ENPU_HAL_OK;
}

}  // namespace

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

}  // namespace enpu::hal::cpu

extern "C" __attribute__((visibility("default"))) const enpu_hal_plugin* enpu_hal_query(
    const enpu_hal_host* host, enpu_hal_status* status) {
    using namespace enpu::hal;
    static const enpu_hal_plugin kPlugin = {
        table_header(sizeof(enpu_hal_plugin), ENPU_HAL_TYPE_PLUGIN),
        ENPU_HAL_ABI_MAJOR,
        ENPU_HAL_ABI_MINOR,
        "cpu",
        "0.1",
        cpu::kCaps,
        0,
        &cpu::kDriver,
        &cpu::kDevice,
        &cpu::kMemory,
        &cpu::kQueue,
        &cpu::kFence,
        &cpu::kKernel,
        &cpu::kGraph,
        &cpu::kProfile,
    };
    if (!host || host->abi_major != ENPU_HAL_ABI_MAJOR) {
        fail(status, ENPU_HAL_FAILED_PRECONDITION,
             "cpu: this backend speaks HAL ABI %u, the host %u", ENPU_HAL_ABI_MAJOR,
             host ? host->abi_major : 0);
        return nullptr;
    }
    return &kPlugin;
}
