// SPDX-License-Identifier: MIT
// Buffers, fences and queues of the npu backend.
#include <algorithm>
#include <exception>
#include <new>

#include "arguments.h"
#include "npu.h"
#include "status.h"

namespace enpu::hal::npu {
namespace {

// Takes over the handle.
uint32_t finish_buffer(enpu_hal_device* device, enpu_buffer* handle, uint32_t memory, void* host,
                       enpu_hal_buffer** buffer, enpu_hal_status* status) {
    auto* made =
        new (std::nothrow) enpu_hal_buffer{device, handle, enpu_buffer_bytes(handle), memory, host};
    if (!made) {
        enpu_buffer_release(handle);
        return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "alloc: no host memory");
    }
    ++device->live.buffers;
    *buffer = made;
    return ENPU_HAL_OK;
}

uint32_t alloc(enpu_hal_device* device, const enpu_hal_buffer_desc* desc, enpu_hal_buffer** buffer,
               enpu_hal_status* status) {
    if (uint32_t code = check_buffer_desc(desc, kMaxAlignment, device->caps, status)) return code;
    const bool local = desc->memory == ENPU_HAL_MEMORY_LOCAL;
    enpu_buffer* handle = nullptr;
    enpu_error error;
    const uint32_t flags = (local ? ENPU_BUFFER_LOCAL : ENPU_BUFFER_HOST) |
                           (desc->flags & ENPU_HAL_BUFFER_SHARED ? ENPU_BUFFER_SHARED : 0);
    if (enpu_buffer_create(device->handle, desc->bytes, flags, &handle, &error) != 0)
        return fail_with(status, error);
    void* host = nullptr;
    if (!local && enpu_buffer_map(handle, &host, &error) != 0) {
        enpu_buffer_release(handle);
        return fail_with(status, error);
    }
    return finish_buffer(device, handle, desc->memory, host, buffer, status);
}

void free_buffer(enpu_hal_buffer* buffer) {
    if (!buffer) return;
    enpu_buffer_release(buffer->handle);
    --buffer->device->live.buffers;
    delete buffer;
}

uint32_t info(enpu_hal_buffer* buffer, enpu_hal_buffer_info* out, enpu_hal_status* status) {
    if (uint32_t code = check_buffer_info(out, status)) return code;
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
    if (!host || bytes == 0)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "wrap: no memory given");
    enpu_buffer* handle = nullptr;
    enpu_error error;
    if (enpu_buffer_wrap(device->handle, host, bytes, 0, &handle, &error) != 0)
        return fail_with(status, error);
    return finish_buffer(device, handle, ENPU_HAL_MEMORY_HOST, host, buffer, status);
}

uint32_t export_fd(enpu_hal_buffer* buffer, int* fd, enpu_hal_status* status) {
    if (!fd) return fail(status, ENPU_HAL_INVALID_ARGUMENT, "export: nowhere to put a descriptor");
    enpu_error error;
    if (enpu_buffer_export(buffer->handle, fd, &error) != 0) return fail_with(status, error);
    return ENPU_HAL_OK;
}

uint32_t import_fd(enpu_hal_device* device, int fd, enpu_hal_buffer** buffer,
                   enpu_hal_status* status) {
    if (fd < 0) return fail(status, ENPU_HAL_INVALID_ARGUMENT, "import: no descriptor given");
    enpu_buffer* handle = nullptr;
    enpu_error error;
    if (enpu_buffer_import(device->handle, fd, 0, &handle, &error) != 0)
        return fail_with(status, error);
    void* host = nullptr;  // where the exporter lets the CPU in
    if (enpu_buffer_map(handle, &host, nullptr) != 0) host = nullptr;
    const bool local = (enpu_buffer_flags(handle) & ENPU_BUFFER_LOCAL) != 0;
    return finish_buffer(device, handle, local ? ENPU_HAL_MEMORY_LOCAL : ENPU_HAL_MEMORY_HOST,
                         local ? nullptr : host, buffer, status);
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
    made->device = device;
    ++device->live.fences;
    *fence = made;
    return ENPU_HAL_OK;
}

void fence_destroy(enpu_hal_fence* fence) {
    if (!fence) return;
    enpu_timeline_release(fence->handle);
    --fence->device->live.fences;
    delete fence;
}

uint32_t fence_export(enpu_hal_fence* fence, int* fd, enpu_hal_status* status) {
    if (!fd) return fail(status, ENPU_HAL_INVALID_ARGUMENT, "export: nowhere to put a descriptor");
    enpu_error error;
    if (enpu_timeline_export(fence->handle, fd, &error) != 0) return fail_with(status, error);
    return ENPU_HAL_OK;
}

uint32_t fence_import(enpu_hal_device* device, int fd, enpu_hal_fence** fence,
                      enpu_hal_status* status) {
    if (fd < 0) return fail(status, ENPU_HAL_INVALID_ARGUMENT, "import: no descriptor given");
    auto* made = new (std::nothrow) enpu_hal_fence;
    if (!made) return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "fence: no host memory");
    enpu_error error;
    if (enpu_timeline_import(device->handle, fd, &made->handle, &error) != 0) {
        delete made;
        return fail_with(status, error);
    }
    made->device = device;
    ++device->live.fences;
    *fence = made;
    return ENPU_HAL_OK;
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
    if (uint32_t code = check_points(points, count, kMaxPoints, status)) return code;
    enpu_point wanted[kMaxPoints];
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
    const enpu_device_info& info = *enpu_device_get_info(device->handle);
    if (uint32_t code = check_queue_desc(desc, info.copy_engines, status)) return code;
    try {
        auto made = std::make_unique<enpu_hal_queue>();
        made->device = device;
        made->channel = std::make_shared<Channel>();
        if (uint32_t code = made->channel->open(*device, *desc, status)) return code;
        ++device->live.queues;
        *queue = made.release();
    } catch (const std::exception&) {
        return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "queue: no host memory");
    }
    return ENPU_HAL_OK;
}

void queue_destroy(enpu_hal_queue* queue) {
    if (!queue) return;
    queue->channel->close();
    --queue->device->live.queues;
    delete queue;
}

uint32_t queue_submit(enpu_hal_queue* queue, const enpu_hal_submission* submission,
                      uint64_t deadline_ns, enpu_hal_status* status) {
    if (uint32_t code = check_submission(submission, kMaxCommands, kMaxPoints, status)) return code;
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
    export_fd,
    import_fd};
const enpu_hal_fence_table kFence = {
    table_header(sizeof(enpu_hal_fence_table), ENPU_HAL_TYPE_FENCE_TABLE),
    fence_create,
    fence_destroy,
    fence_query,
    fence_wait,
    fence_signal,
    fence_export,
    fence_import};
const enpu_hal_queue_table kQueue = {
    table_header(sizeof(enpu_hal_queue_table), ENPU_HAL_TYPE_QUEUE_TABLE), queue_create,
    queue_destroy, queue_submit};

}  // namespace enpu::hal::npu
