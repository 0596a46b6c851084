// SPDX-License-Identifier: MIT
// Buffers, fences and queues of the npu backend.
#include <algorithm>
#include <exception>
#include <new>

#include "npu.h"
#include "status.h"

namespace enpu::hal::npu {
namespace {

int64_t to_deadline(uint64_t deadline_ns) {
    return static_cast<int64_t>(std::min<uint64_t>(deadline_ns, INT64_MAX));
}

// Takes over the handle.
uint32_t finish_buffer(enpu_buffer* handle, uint64_t bytes, uint32_t memory, void* host,
                       enpu_hal_buffer** buffer, enpu_hal_status* status) {
    auto* made = new (std::nothrow) enpu_hal_buffer{handle, bytes, memory, host};
    if (!made) {
        enpu_buffer_release(handle);
        return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "alloc: no host memory");
    }
    *buffer = made;
    return ENPU_HAL_OK;
}

uint32_t alloc(enpu_hal_device* device, const enpu_hal_buffer_desc* desc, enpu_hal_buffer** buffer,
               enpu_hal_status* status) {
    if (!desc || desc->header.size < sizeof(*desc) || desc->bytes == 0 || desc->flags != 0 ||
        desc->memory > ENPU_HAL_MEMORY_HOST || (desc->alignment & (desc->alignment - 1)) != 0)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "alloc: bytes must not be 0, alignment a power of two, flags 0");
    if (desc->alignment > 4096)
        return fail(status, ENPU_HAL_UNSUPPORTED, "alloc: alignment of %llu is more than a page",
                    static_cast<unsigned long long>(desc->alignment));
    const bool local = desc->memory == ENPU_HAL_MEMORY_LOCAL;
    enpu_buffer* handle = nullptr;
    enpu_error error;
    if (enpu_buffer_create(device->handle, desc->bytes,
                           local ? ENPU_BUFFER_LOCAL : ENPU_BUFFER_HOST, &handle, &error) != 0)
        return fail_with(status, error);
    void* host = nullptr;
    if (!local && enpu_buffer_map(handle, &host, &error) != 0) {
        enpu_buffer_release(handle);
        return fail_with(status, error);
    }
    return finish_buffer(handle, desc->bytes, desc->memory, host, buffer, status);
}

void free_buffer(enpu_hal_buffer* buffer) {
    if (!buffer) return;
    enpu_buffer_release(buffer->handle);
    delete buffer;
}

uint32_t info(enpu_hal_buffer* buffer, enpu_hal_buffer_info* out, enpu_hal_status* status) {
    if (!out || out->header.size < sizeof(*out))
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "info: structure is null or too small");
    out->bytes = buffer->bytes;
    out->address = enpu_buffer_va(buffer->handle);
    out->host = buffer->host;
    out->memory = buffer->memory;
    out->reserved = 0;
    return ENPU_HAL_OK;
}

uint32_t usage(enpu_hal_device* device, uint64_t* free_bytes, uint64_t* total_bytes,
               enpu_hal_status* status) {
    enpu_memory_info memory;
    enpu_error error;
    if (enpu_device_get_memory(device->handle, &memory, &error) != 0)
        return fail_with(status, error);
    *free_bytes = memory.local_free;
    *total_bytes = memory.local_total;
    return ENPU_HAL_OK;
}

uint32_t wrap(enpu_hal_device* device, void* host, uint64_t bytes, enpu_hal_buffer** buffer,
              enpu_hal_status* status) {
    enpu_buffer* handle = nullptr;
    enpu_error error;
    if (enpu_buffer_wrap(device->handle, host, bytes, 0, &handle, &error) != 0)
        return fail_with(status, error);
    return finish_buffer(handle, bytes, ENPU_HAL_MEMORY_HOST, host, buffer, status);
}

// --------------------------------------------------------------------------------------------
// fences

uint32_t fence_create(enpu_hal_device* device, uint64_t initial, enpu_hal_fence** fence,
                      enpu_hal_status* status) {
    auto* made = new (std::nothrow) enpu_hal_fence;
    if (!made) return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "fence: no host memory");
    enpu_error error;
    if (enpu_timeline_create(device->handle, initial, &made->handle, &error) != 0) {
        delete made;
        return fail_with(status, error);
    }
    *fence = made;
    return ENPU_HAL_OK;
}

void fence_destroy(enpu_hal_fence* fence) {
    if (!fence) return;
    enpu_timeline_release(fence->handle);
    delete fence;
}

uint32_t fence_query(enpu_hal_fence* fence, uint64_t* value, enpu_hal_status* status) {
    enpu_error error;
    if (enpu_timeline_query(fence->handle, value, &error) != 0) return fail_with(status, error);
    if (!fence->failed(UINT64_MAX, status)) return ENPU_HAL_OK;
    std::lock_guard lock(fence->mutex);
    *value = std::min(*value, fence->failed_from - 1);
    return fence->failure.code;
}

uint32_t fence_wait(enpu_hal_device*, const enpu_hal_point* points, uint32_t count, uint32_t any,
                    uint64_t deadline_ns, enpu_hal_status* status) {
    constexpr uint32_t kMost = 128;
    enpu_point wanted[kMost];
    if (count > kMost)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "fence: at most %u points in one wait",
                    kMost);
    uint32_t wanted_count = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (points[i].value == 0) {
            if (any) return ENPU_HAL_OK;
            continue;
        }
        wanted[wanted_count++] = {points[i].fence->handle, points[i].value};
    }
    if (wanted_count == 0) return ENPU_HAL_OK;
    enpu_error error;
    size_t first = 0;
    if (enpu_timelines_wait(wanted, wanted_count, any != 0, to_deadline(deadline_ns), &first,
                            &error) != 0)
        return fail_with(status, error);
    // A point is reached when its job failed, too: ask the channels.
    enpu_hal_status why{};
    for (uint32_t i = 0; i < count; ++i) {
        if (any && points[i].fence->handle != wanted[first].timeline) continue;
        if (points[i].fence->failed(points[i].value, &why)) return fail_as(status, why);
    }
    return ENPU_HAL_OK;
}

uint32_t fence_signal(enpu_hal_fence* fence, uint64_t value, enpu_hal_status* status) {
    enpu_error error;
    if (enpu_timeline_signal(fence->handle, value, &error) != 0) return fail_with(status, error);
    return ENPU_HAL_OK;
}

// --------------------------------------------------------------------------------------------
// queues

uint32_t queue_create(enpu_hal_device* device, const enpu_hal_queue_desc* desc,
                      enpu_hal_queue** queue, enpu_hal_status* status) {
    if (!desc || desc->header.size < sizeof(*desc) || desc->engine > ENPU_HAL_ENGINE_COPY)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "queue: engine is unknown");
    try {
        auto made = std::make_unique<enpu_hal_queue>();
        made->device = device;
        made->channel = std::make_shared<Channel>();
        if (uint32_t code = made->channel->open(*device, *desc, status)) return code;
        *queue = made.release();
    } catch (const std::exception&) {
        return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "queue: no host memory");
    }
    return ENPU_HAL_OK;
}

void queue_destroy(enpu_hal_queue* queue) {
    if (!queue) return;
    queue->channel->close();
    delete queue;
}

uint32_t queue_submit(enpu_hal_queue* queue, const enpu_hal_submission* submission,
                      uint64_t deadline_ns, enpu_hal_status* status) {
    bind_signals(*queue, *submission);
    return queue->channel->submit(*submission, deadline_ns, status);
}

}  // namespace

void bind_signals(enpu_hal_queue& queue, const enpu_hal_submission& submission) {
    for (uint32_t i = 0; i < submission.signal_count; ++i) {
        enpu_hal_fence& fence = *submission.signals[i].fence;
        std::lock_guard lock(fence.mutex);
        if (fence.channel != queue.channel) fence.channel = queue.channel;
    }
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
const enpu_hal_queue_table kQueue = {
    table_header(sizeof(enpu_hal_queue_table), ENPU_HAL_TYPE_QUEUE_TABLE), queue_create,
    queue_destroy, queue_submit};

}  // namespace enpu::hal::npu
