// SPDX-License-Identifier: MIT
// Buffers and fences of the cpu backend.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "device.h"
#include "status.h"

void enpu_hal_device::notify() {
    if (sleepers.load() == 0) return;
    // Taken so that a waiter is either before its look at the change, or asleep.
    { std::lock_guard lock(mutex); }
    changed.notify_all();
}

void enpu_hal_fence::signal(uint64_t point) {
    uint64_t now = value.load();
    while (now < point && !value.compare_exchange_weak(now, point)) {
    }
    device->notify();
}

void enpu_hal_fence::fail(const enpu_hal_status& why) {
    {
        std::lock_guard lock(device->mutex);
        if (failed.load()) return;  // the first failure is the one to tell
        failure = why;
        failed.store(true);
    }
    device->notify();
}

namespace enpu::hal::cpu {
namespace {

uint32_t alloc(enpu_hal_device* device, const enpu_hal_buffer_desc* desc, enpu_hal_buffer** buffer,
               enpu_hal_status* status) {
    if (!desc || desc->header.size < sizeof(*desc) || desc->bytes == 0 || desc->flags != 0 ||
        desc->memory > ENPU_HAL_MEMORY_HOST || (desc->alignment & (desc->alignment - 1)) != 0 ||
        desc->alignment > (1u << 30))
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "alloc: bytes must not be 0, alignment a power of two up to 1 GiB, flags 0");
    const uint64_t alignment = desc->alignment < 64 ? 64 : desc->alignment;
    void* memory = nullptr;
    auto* made = new (std::nothrow) enpu_hal_buffer;
    if (!made || desc->bytes > uint64_t(INT64_MAX) ||
        posix_memalign(&memory, alignment, desc->bytes) != 0) {
        delete made;
        return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "alloc: no host memory for %llu bytes",
                    static_cast<unsigned long long>(desc->bytes));
    }
    made->device = device;
    made->host = static_cast<std::byte*>(memory);
    made->bytes = desc->bytes;
    made->memory = desc->memory;
    *buffer = made;
    return ENPU_HAL_OK;
}

void free_buffer(enpu_hal_buffer* buffer) {
    if (!buffer) return;
    if (buffer->owned) std::free(buffer->host);
    delete buffer;
}

uint32_t info(enpu_hal_buffer* buffer, enpu_hal_buffer_info* out, enpu_hal_status* status) {
    if (!out || out->header.size < sizeof(*out))
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "info: structure is null or too small");
    out->bytes = buffer->bytes;
    out->address = reinterpret_cast<uint64_t>(buffer->host);
    out->host = buffer->host;
    out->memory = buffer->memory;
    out->reserved = 0;
    return ENPU_HAL_OK;
}

uint32_t usage(enpu_hal_device*, uint64_t* free_bytes, uint64_t* total_bytes, enpu_hal_status*) {
    const long page = sysconf(_SC_PAGESIZE);
    *free_bytes = uint64_t(sysconf(_SC_AVPHYS_PAGES)) * uint64_t(page);
    *total_bytes = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(page);
    return ENPU_HAL_OK;
}

uint32_t wrap(enpu_hal_device* device, void* host, uint64_t bytes, enpu_hal_buffer** buffer,
              enpu_hal_status* status) {
    if (!host || bytes == 0)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "wrap: no memory given");
    auto* made = new (std::nothrow) enpu_hal_buffer;
    if (!made) return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "wrap: no host memory");
    made->device = device;
    made->host = static_cast<std::byte*>(host);
    made->bytes = bytes;
    made->memory = ENPU_HAL_MEMORY_HOST;
    made->owned = false;
    *buffer = made;
    return ENPU_HAL_OK;
}

uint32_t fence_create(enpu_hal_device* device, uint64_t initial, enpu_hal_fence** fence,
                      enpu_hal_status* status) {
    *fence = new (std::nothrow) enpu_hal_fence(device, initial);
    return *fence ? uint32_t(ENPU_HAL_OK)
                  : fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "fence: no host memory");
}

void fence_destroy(enpu_hal_fence* fence) {
    delete fence;
}

uint32_t fence_query(enpu_hal_fence* fence, uint64_t* value, enpu_hal_status* status) {
    const bool failed = fence->failed.load();
    *value = fence->value.load();
    return failed ? fail_as(status, fence->failure) : uint32_t(ENPU_HAL_OK);
}

uint32_t fence_signal(enpu_hal_fence* fence, uint64_t value, enpu_hal_status* status) {
    if (fence->failed.load()) return fail_as(status, fence->failure);
    if (value <= fence->value.load())
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "fence: %llu is not more than %llu",
                    static_cast<unsigned long long>(value),
                    static_cast<unsigned long long>(fence->value.load()));
    fence->signal(value);
    return ENPU_HAL_OK;
}

}  // namespace

uint32_t fence_wait(enpu_hal_device* device, const enpu_hal_point* points, uint32_t count,
                    uint32_t any, uint64_t deadline_ns, enpu_hal_status* status) {
    if (count == 0) return ENPU_HAL_OK;
    const enpu_hal_point* broken = nullptr;
    const auto ready = [&] {
        uint32_t reached = 0;
        for (uint32_t i = 0; i < count; ++i) {
            const enpu_hal_point& point = points[i];
            if (point.fence->value.load() >= point.value) {
                if (any) return true;
                ++reached;
            } else if (point.fence->failed.load()) {
                broken = &point;
                return true;
            }
        }
        return reached == count;
    };
    if (!device->wait_until(deadline_ns, ready))
        return fail(status, ENPU_HAL_DEADLINE_EXCEEDED, "fence: not reached before the deadline");
    return broken ? fail_as(status, broken->fence->failure) : uint32_t(ENPU_HAL_OK);
}

const enpu_hal_memory_table kMemory = {
    table_header(sizeof(enpu_hal_memory_table), ENPU_HAL_TYPE_MEMORY_TABLE),
    alloc,
    free_buffer,
    info,
    usage,
    wrap,
    nullptr,
    nullptr};
const enpu_hal_fence_table kFence = {
    table_header(sizeof(enpu_hal_fence_table), ENPU_HAL_TYPE_FENCE_TABLE),
    fence_create,
    fence_destroy,
    fence_query,
    fence_wait,
    fence_signal,
    nullptr,
    nullptr};

}  // namespace enpu::hal::cpu
