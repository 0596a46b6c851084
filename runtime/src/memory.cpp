// SPDX-License-Identifier: MIT
// Device and pinned memory.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "layers/layers.h"
#include "poison.h"
#include "stream.h"

using namespace enpu::rt;

namespace {

rt_status add_host_range(rt_device_impl& device, enpu_hal_buffer* buffer, void* pointer,
                         uint64_t bytes, bool wrapped, const char* origin) {
    const Range range{reinterpret_cast<uint64_t>(pointer), bytes, buffer, nullptr, true, wrapped};
    if (device.host_map.insert(range)) return RT_OK;
    device.hal.memory->free(buffer);
    return make_status(RT_INVALID_ARGUMENT, origin, "%p overlaps memory that is already pinned",
                       pointer);
}

rt_status drop_host_range(rt_device_impl& device, void* pointer, bool wrapped, const char* origin) {
    const Range found = device.host_map.find(reinterpret_cast<uint64_t>(pointer));
    if (found.bytes == 0 || found.wrapped != wrapped ||
        found.begin != reinterpret_cast<uint64_t>(pointer))
        return make_status(RT_INVALID_ARGUMENT, origin, "%p is not the start of memory %s", pointer,
                           wrapped ? "that was registered" : "from rt_host_alloc");
    device.hal.memory->free(device.host_map.remove(found.begin).buffer);
    return RT_OK;
}

}  // namespace

rt_status rt_malloc(rt_stream stream, size_t bytes, void** pointer) {
    RT_NOT_NULL(stream);
    RT_NOT_NULL(pointer);
    *pointer = nullptr;
    return guarded(__func__, [&] { return allocate_block(*stream, bytes, "rt_malloc", pointer); });
}

rt_status rt_free(rt_stream stream, void* pointer) {
    RT_NOT_NULL(stream);
    if (!pointer) return RT_OK;
    return guarded(__func__, [&] { return stream->free_pointer(pointer, "rt_free"); });
}

rt_status rt_host_alloc(rt_device device, size_t bytes, void** pointer) {
    RT_NOT_NULL(device);
    RT_NOT_NULL(pointer);
    *pointer = nullptr;
    return guarded(__func__, [&]() -> rt_status {
        if (bytes == 0) return make_status(RT_INVALID_ARGUMENT, "rt_host_alloc", "bytes is 0");
        enpu_hal_buffer* buffer = nullptr;
        void* host = nullptr;
        RT_TRY(device->allocate_host(bytes, "rt_host_alloc", &buffer, &host));
        RT_TRY(add_host_range(*device, buffer, host, bytes, false, "rt_host_alloc"));
        *pointer = host;
        return RT_OK;
    });
}

rt_status rt_host_free(rt_device device, void* pointer) {
    RT_NOT_NULL(device);
    if (!pointer) return RT_OK;
    return guarded(__func__,
                   [&] { return drop_host_range(*device, pointer, false, "rt_host_free"); });
}

rt_status rt_host_register(rt_device device, void* pointer, size_t bytes) {
    RT_NOT_NULL(device);
    RT_NOT_NULL(pointer);
    return guarded(__func__, [&]() -> rt_status {
        if (!(device->info.caps & ENPU_HAL_CAP_USERPTR))
            return make_status(RT_UNSUPPORTED, "rt_host_register",
                               "the device %s cannot pin memory in place", device->info.spec);
        enpu_hal_status status{};
        enpu_hal_buffer* buffer = nullptr;
        if (device->hal.memory->wrap(device->handle, pointer, bytes, &buffer, &status) !=
            ENPU_HAL_OK)
            return from_hal(status, "rt_host_register");
        return add_host_range(*device, buffer, pointer, bytes, true, "rt_host_register");
    });
}

rt_status rt_host_unregister(rt_device device, void* pointer) {
    RT_NOT_NULL(device);
    RT_NOT_NULL(pointer);
    return guarded(__func__,
                   [&] { return drop_host_range(*device, pointer, true, "rt_host_unregister"); });
}

void rt_note_host_access(const void* pointer, size_t bytes, uint32_t writes) {
    enpu::hal::note_host_access(pointer, bytes, writes != 0);
}

rt_status rt_pool_get_stats(rt_device device, rt_pool_stats* stats) {
    RT_NOT_NULL(device);
    // Fields after `waits` came later.
    constexpr size_t kLeast = offsetof(rt_pool_stats, peak_reserved_bytes);
    if (!stats || stats->struct_size < kLeast)
        return make_status(RT_INVALID_ARGUMENT, __func__,
                           "the structure is null or its struct_size less than %zu", kLeast);
    rt_pool_stats all{};
    all.struct_size = stats->struct_size;
    device->pool->stats(all);
    std::memcpy(stats, &all, std::min<size_t>(all.struct_size, sizeof(all)));
    return RT_OK;
}

rt_status rt_pool_trim(rt_device device, uint64_t keep_bytes) {
    RT_NOT_NULL(device);
    return guarded(__func__, [&]() -> rt_status {
        device->pool->trim(keep_bytes);
        return RT_OK;
    });
}
