// SPDX-License-Identifier: MIT
// Buffers. Local ones come from a pool of the driver, ordered in a stream where nothing else runs:
// neither an allocation nor a free waits for kernels, as cuMemAlloc and cuMemFree may.
#include <memory>
#include <new>

#include "arguments.h"
#include "device.h"
#include "status.h"

namespace enpu::hal::cuda {
namespace {

constexpr uint64_t kPoolAlignment = 256;  // what the driver gives at least
constexpr uint64_t kPageAlignment = 4096;

uint32_t alloc_local(Gpu& gpu, uint64_t alignment, enpu_hal_buffer& buffer,
                     enpu_hal_status* status) {
    const uint64_t extra = alignment > kPoolAlignment ? alignment : 0;
    DevicePtr address = 0;
    const uint32_t code = gpu.take(buffer.bytes + extra, &address, status);
    buffer.allocated = address;
    buffer.address = extra ? (address + alignment - 1) / alignment * alignment : address;
    return code;
}

uint32_t alloc_host(Gpu& gpu, uint64_t alignment, enpu_hal_buffer& buffer,
                    enpu_hal_status* status) {
    const uint64_t extra = alignment > kPageAlignment ? alignment : 0;
    void* host = nullptr;
    DevicePtr address = 0;
    if (uint32_t code = gpu.result(
            status, ENPU_HAL_RESOURCE_EXHAUSTED,
            gpu.api.cuMemHostAlloc(&host, buffer.bytes + extra, kHostPortable | kHostDeviceMap),
            "alloc: pinned host memory"))
        return code;
    buffer.allocated = reinterpret_cast<uint64_t>(host);
    if (uint32_t code = gpu.result(status, ENPU_HAL_INTERNAL,
                                   gpu.api.cuMemHostGetDevicePointer(&address, host, 0),
                                   "alloc: address of pinned host memory"))
        return code;
    const uint64_t shift =
        extra ? (buffer.allocated + alignment - 1) / alignment * alignment - buffer.allocated : 0;
    buffer.host = static_cast<char*>(host) + shift;
    buffer.address = address + shift;
    return ENPU_HAL_OK;
}

void give_back(enpu_hal_buffer& buffer) {
    Gpu& gpu = buffer.device->gpu;
    // After a loss the driver refuses, and what the context held goes with it.
    if (buffer.allocated == 0 || gpu.is_lost()) return;
    const InContext in(gpu);
    if (buffer.wrapped)
        gpu.api.cuMemHostUnregister(buffer.host);
    else if (buffer.memory == ENPU_HAL_MEMORY_HOST)
        gpu.api.cuMemFreeHost(reinterpret_cast<void*>(buffer.allocated));
    else
        gpu.give_back(buffer.allocated);
}

uint32_t alloc(enpu_hal_device* device, const enpu_hal_buffer_desc* desc, enpu_hal_buffer** buffer,
               enpu_hal_status* status) {
    if (uint32_t code = check_buffer_desc(desc, kMaxAlignment, device->caps(), status)) return code;
    Gpu& gpu = device->gpu;
    if (uint32_t code = gpu.check(status)) return code;
    if (desc->bytes > uint64_t(INT64_MAX) / 2 ||
        (desc->memory == ENPU_HAL_MEMORY_LOCAL && desc->bytes > gpu.info.memory_bytes))
        return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED,
                    "alloc: %llu bytes are more than the GPU's memory of %llu",
                    static_cast<unsigned long long>(desc->bytes),
                    static_cast<unsigned long long>(gpu.info.memory_bytes));
    std::unique_ptr<enpu_hal_buffer> made(new (std::nothrow) enpu_hal_buffer(device));
    if (!made) return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "alloc: no host memory");
    made->bytes = desc->bytes;
    made->memory = desc->memory;
    const InContext in(gpu);
    const uint32_t code = desc->memory == ENPU_HAL_MEMORY_HOST
                              ? alloc_host(gpu, desc->alignment, *made, status)
                              : alloc_local(gpu, desc->alignment, *made, status);
    if (code != ENPU_HAL_OK) {
        give_back(*made);
        return code;
    }
    *buffer = made.release();
    return ENPU_HAL_OK;
}

void free_buffer(enpu_hal_buffer* buffer) {
    if (!buffer) return;
    give_back(*buffer);
    delete buffer;
}

uint32_t info(enpu_hal_buffer* buffer, enpu_hal_buffer_info* out, enpu_hal_status* status) {
    if (uint32_t code = check_buffer_info(out, status)) return code;
    out->bytes = buffer->bytes;
    out->address = buffer->address;
    out->host = buffer->host;
    out->memory = buffer->memory;
    out->reserved = 0;
    return ENPU_HAL_OK;
}

// Memory that the pool holds but nobody uses is free: the next allocation takes it.
uint32_t usage(enpu_hal_device* device, uint64_t* free_bytes, uint64_t* total_bytes,
               enpu_hal_status* status) {
    Gpu& gpu = device->gpu;
    if (uint32_t code = gpu.check(status)) return code;
    const InContext in(gpu);
    size_t available = 0, total = 0;
    Result error = gpu.api.cuMemGetInfo(&available, &total);
    uint64_t reserved = 0, used = 0;
    if (error == kSuccess && gpu.pool)
        error = gpu.api.cuMemPoolGetAttribute(gpu.pool, kReservedNow, &reserved);
    if (error == kSuccess && gpu.pool)
        error = gpu.api.cuMemPoolGetAttribute(gpu.pool, kUsedNow, &used);
    if (uint32_t code = gpu.result(status, ENPU_HAL_INTERNAL, error, "usage: reading the GPU"))
        return code;
    *free_bytes = available + (reserved > used ? reserved - used : 0);
    *total_bytes = gpu.info.memory_bytes;
    return ENPU_HAL_OK;
}

uint32_t wrap(enpu_hal_device* device, void* host, uint64_t bytes, enpu_hal_buffer** buffer,
              enpu_hal_status* status) {
    if (!host || bytes == 0)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "wrap: no memory given");
    Gpu& gpu = device->gpu;
    if (uint32_t code = gpu.check(status)) return code;
    if (!gpu.info.host_register)
        return fail(status, ENPU_HAL_UNSUPPORTED, "wrap: this GPU cannot register host memory");
    std::unique_ptr<enpu_hal_buffer> made(new (std::nothrow) enpu_hal_buffer(device));
    if (!made) return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "wrap: no host memory");
    const InContext in(gpu);
    const Result error = gpu.api.cuMemHostRegister(host, bytes, kHostPortable | kHostDeviceMap);
    if (error == kHostMemoryAlreadyRegistered)
        return fail_device(status, ENPU_HAL_FAILED_PRECONDITION, error,
                           "wrap: a part of this memory is registered already");
    if (uint32_t code = gpu.result(status, ENPU_HAL_INVALID_ARGUMENT, error, "wrap: registering"))
        return code;
    made->host = host;
    made->bytes = bytes;
    made->memory = ENPU_HAL_MEMORY_HOST;
    made->wrapped = true;
    made->allocated = reinterpret_cast<uint64_t>(host);
    DevicePtr address = 0;
    const uint32_t code =
        gpu.result(status, ENPU_HAL_INTERNAL, gpu.api.cuMemHostGetDevicePointer(&address, host, 0),
                   "wrap: address of registered memory");
    if (code != ENPU_HAL_OK) {
        give_back(*made);
        return code;
    }
    made->address = address;
    *buffer = made.release();
    return ENPU_HAL_OK;
}

}  // namespace

const enpu_hal_memory_table kMemory = {
    table_header(sizeof(enpu_hal_memory_table), ENPU_HAL_TYPE_MEMORY_TABLE),
    alloc,
    free_buffer,
    info,
    usage,
    wrap,
    nullptr,
    nullptr};

}  // namespace enpu::hal::cuda
