// SPDX-License-Identifier: MIT
// The smallest backend that passes the conformance suite: host memory, work done inside submit, no
// kernels. Copy it to begin a new one.
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string_view>

#include "arguments.h"
#include "enpu_hal.h"
#include "status.h"
#include "structure.h"

struct enpu_hal_device {
    std::mutex mutex;  // guards the values of all fences
    std::condition_variable changed;
};

struct enpu_hal_buffer {
    char* host;
    uint64_t bytes;
    uint32_t memory;
};

struct enpu_hal_queue {
    enpu_hal_device* device;
    std::mutex mutex;  // submissions one after the other
};

struct enpu_hal_fence {
    enpu_hal_device* device;
    uint64_t value;
};

namespace {

using namespace enpu::hal;

constexpr uint32_t kMaxCommands = 256;
constexpr uint32_t kMaxPoints = 64;
constexpr uint64_t kMaxAlignment = 1u << 20;
constexpr uint32_t kCaps = ENPU_HAL_CAP_FILL;

template <typename T>
uint32_t allocated(T* made, T** out, enpu_hal_status* status) {
    *out = made;
    return made ? uint32_t(ENPU_HAL_OK)
                : fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "null: no host memory");
}

// ---------------------------------------------------------------------------------- driver, device

uint32_t info(enpu_hal_device*, enpu_hal_device_info* out, enpu_hal_status* status) {
    if (uint32_t code = check_device_info(out, status)) return code;
    enpu_hal_device_info info{};
    std::snprintf(info.spec, sizeof(info.spec), "null");
    std::snprintf(info.name, sizeof(info.name), "null device");
    std::snprintf(info.driver, sizeof(info.driver), "none");
    info.class_id = ENPU_HAL_CLASS_NULL;
    info.caps = kCaps;
    info.compute_engines = 1;
    info.buffer_alignment = 1;
    info.clock_hz = 1'000'000'000;
    info.max_commands = kMaxCommands;
    info.max_points = kMaxPoints;
    info.max_alignment = kMaxAlignment;
    give(out, info);
    return ENPU_HAL_OK;
}

uint32_t enumerate(uint32_t index, enpu_hal_device_info* out, enpu_hal_status* status) {
    if (index != 0) return fail(status, ENPU_HAL_NOT_FOUND, "null: there is one device");
    return info(nullptr, out, status);
}

uint32_t accepts(const char* spec) {
    return spec && std::string_view(spec) == "null";
}

uint32_t open(const char* spec, enpu_hal_device** device, enpu_hal_status* status) {
    if (!accepts(spec))
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "null: spec is not \"null\"");
    return allocated(new (std::nothrow) enpu_hal_device, device, status);
}

void close(enpu_hal_device* device) {
    delete device;
}

uint32_t check(enpu_hal_device*, enpu_hal_status*) {
    return ENPU_HAL_OK;
}

// -------------------------------------------------------------------------------------------
// memory

uint32_t alloc(enpu_hal_device*, const enpu_hal_buffer_desc* desc, enpu_hal_buffer** buffer,
               enpu_hal_status* status) {
    if (uint32_t code = check_buffer_desc(desc, kMaxAlignment, kCaps, status)) return code;
    void* memory = nullptr;
    const uint64_t alignment = desc->alignment < 64 ? 64 : desc->alignment;
    if (desc->bytes > uint64_t(INT64_MAX) || posix_memalign(&memory, alignment, desc->bytes) != 0)
        return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "alloc: no host memory for %llu bytes",
                    static_cast<unsigned long long>(desc->bytes));
    auto* made =
        new (std::nothrow) enpu_hal_buffer{static_cast<char*>(memory), desc->bytes, desc->memory};
    if (!made) std::free(memory);
    return allocated(made, buffer, status);
}

void free_buffer(enpu_hal_buffer* buffer) {
    if (!buffer) return;
    std::free(buffer->host);
    delete buffer;
}

uint32_t buffer_info(enpu_hal_buffer* buffer, enpu_hal_buffer_info* out, enpu_hal_status* status) {
    if (uint32_t code = check_buffer_info(out, status)) return code;
    out->bytes = buffer->bytes;
    out->address = reinterpret_cast<uint64_t>(buffer->host);
    out->host = buffer->memory == ENPU_HAL_MEMORY_HOST ? buffer->host : nullptr;
    out->memory = buffer->memory;
    return ENPU_HAL_OK;
}

uint32_t usage(enpu_hal_device*, uint64_t* free_bytes, uint64_t* total_bytes, enpu_hal_status*) {
    *free_bytes = *total_bytes = 0;
    return ENPU_HAL_OK;
}

// ---------------------------------------------------------------------------------------------
// work

bool inside(const enpu_hal_place& place, uint64_t bytes) {
    return place.buffer && place.offset <= place.buffer->bytes &&
           bytes <= place.buffer->bytes - place.offset;
}

uint32_t check_command(const enpu_hal_command& command, enpu_hal_status* status) {
    switch (command.kind) {
        case ENPU_HAL_COMMAND_COPY: {
            const enpu_hal_copy& copy = command.u.copy;
            if (copy.width == 0 || copy.height != 1 || !inside(copy.dst, copy.width) ||
                !inside(copy.src, copy.width))
                return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                            "copy: one row of at least one byte, inside both buffers");
            const char* dst = copy.dst.buffer->host + copy.dst.offset;
            const char* src = copy.src.buffer->host + copy.src.offset;
            if (dst < src + copy.width && src < dst + copy.width)
                return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                            "copy: source and destination overlap");
            return ENPU_HAL_OK;
        }
        case ENPU_HAL_COMMAND_FILL: {
            const enpu_hal_fill& fill = command.u.fill;
            const uint32_t size = fill.pattern_bytes;
            if ((size != 1 && size != 2 && size != 4 && size != 8) || fill.bytes == 0 ||
                fill.bytes % size != 0 || !inside(fill.dst, fill.bytes))
                return fail(
                    status, ENPU_HAL_INVALID_ARGUMENT,
                    "fill: a multiple of a pattern of 1, 2, 4 or 8 bytes, inside the buffer");
            return ENPU_HAL_OK;
        }
    }
    return fail(status, ENPU_HAL_UNSUPPORTED, "the null device runs copies and fills only");
}

void run(const enpu_hal_command& command) {
    if (command.kind == ENPU_HAL_COMMAND_COPY) {
        const enpu_hal_copy& copy = command.u.copy;
        std::memcpy(copy.dst.buffer->host + copy.dst.offset,
                    copy.src.buffer->host + copy.src.offset, copy.width);
        return;
    }
    const enpu_hal_fill& fill = command.u.fill;
    for (uint64_t at = 0; at < fill.bytes; at += fill.pattern_bytes)
        std::memcpy(fill.dst.buffer->host + fill.dst.offset + at, &fill.pattern,
                    fill.pattern_bytes);
}

void signal_point(const enpu_hal_point& point) {
    enpu_hal_device& device = *point.fence->device;
    std::lock_guard lock(device.mutex);
    if (point.fence->value < point.value) point.fence->value = point.value;
    device.changed.notify_all();
}

uint32_t queue_create(enpu_hal_device* device, const enpu_hal_queue_desc* desc,
                      enpu_hal_queue** queue, enpu_hal_status* status) {
    if (uint32_t code = check_queue_desc(desc, 0, status)) return code;
    auto* made = new (std::nothrow) enpu_hal_queue;
    if (made) made->device = device;
    return allocated(made, queue, status);
}

void queue_destroy(enpu_hal_queue* queue) {
    delete queue;
}

uint32_t submit(enpu_hal_queue* queue, const enpu_hal_submission* submission, uint64_t,
                enpu_hal_status* status) {
    if (uint32_t code = check_submission(submission, kMaxCommands, kMaxPoints, status)) return code;
    for (uint32_t i = 0; i < submission->wait_count; ++i) {
        // What was submitted has run, so a point that is not reached was never submitted.
        std::lock_guard lock(queue->device->mutex);
        if (submission->waits[i].fence->value < submission->waits[i].value)
            return fail(status, ENPU_HAL_INVALID_ARGUMENT, "submit: wait %u is for a later point",
                        i);
    }
    for (uint32_t i = 0; i < submission->command_count; ++i)
        if (uint32_t code = check_command(submission->commands[i], status)) return code;
    std::lock_guard lock(queue->mutex);
    for (uint32_t i = 0; i < submission->command_count; ++i) run(submission->commands[i]);
    for (uint32_t i = 0; i < submission->signal_count; ++i) signal_point(submission->signals[i]);
    return ENPU_HAL_OK;
}

// -------------------------------------------------------------------------------------------
// fences

uint32_t fence_create(enpu_hal_device* device, uint64_t initial, enpu_hal_fence** fence,
                      enpu_hal_status* status) {
    return allocated(new (std::nothrow) enpu_hal_fence{device, initial}, fence, status);
}

void fence_destroy(enpu_hal_fence* fence) {
    delete fence;
}

uint32_t fence_query(enpu_hal_fence* fence, uint64_t* value, enpu_hal_status*) {
    std::lock_guard lock(fence->device->mutex);
    *value = fence->value;
    return ENPU_HAL_OK;
}

uint32_t fence_wait(enpu_hal_device* device, const enpu_hal_point* points, uint32_t count,
                    uint32_t any, uint64_t deadline_ns, enpu_hal_status* status) {
    if (uint32_t code = check_points(points, count, kMaxPoints, status)) return code;
    if (count == 0) return ENPU_HAL_OK;
    const std::chrono::steady_clock::time_point deadline{std::chrono::nanoseconds(
        deadline_ns > uint64_t(INT64_MAX) ? INT64_MAX : int64_t(deadline_ns))};
    std::unique_lock lock(device->mutex);
    const bool reached = device->changed.wait_until(lock, deadline, [&] {
        uint32_t done = 0;
        for (uint32_t i = 0; i < count; ++i) done += points[i].fence->value >= points[i].value;
        return any ? done != 0 : done == count;
    });
    return reached
               ? uint32_t(ENPU_HAL_OK)
               : fail(status, ENPU_HAL_DEADLINE_EXCEEDED, "fence: not reached before the deadline");
}

uint32_t fence_signal(enpu_hal_fence* fence, uint64_t value, enpu_hal_status* status) {
    {
        std::lock_guard lock(fence->device->mutex);
        if (value <= fence->value)
            return fail(status, ENPU_HAL_INVALID_ARGUMENT, "fence: the value does not grow");
    }
    signal_point({fence, value});
    return ENPU_HAL_OK;
}

// ------------------------------------------------------------------------------------------
// kernels

uint32_t supported(enpu_hal_device*, const enpu_hal_dispatch*, enpu_hal_status* status) {
    return fail(status, ENPU_HAL_UNSUPPORTED, "the null device has no kernels");
}

uint32_t packed_size(enpu_hal_device*, const enpu_op_tensor*, const enpu_op_pack_params*, uint64_t*,
                     enpu_hal_status* status) {
    return fail(status, ENPU_HAL_UNSUPPORTED, "the null device has no kernels");
}

const enpu_hal_driver_table kDriver = {table_header(sizeof(kDriver), ENPU_HAL_TYPE_DRIVER_TABLE),
                                       enumerate, accepts, open};
const enpu_hal_device_table kDevice = {table_header(sizeof(kDevice), ENPU_HAL_TYPE_DEVICE_TABLE),
                                       close, info, check};
const enpu_hal_memory_table kMemory = {table_header(sizeof(kMemory), ENPU_HAL_TYPE_MEMORY_TABLE),
                                       alloc,
                                       free_buffer,
                                       buffer_info,
                                       usage,
                                       nullptr,
                                       nullptr,
                                       nullptr};
const enpu_hal_queue_table kQueue = {table_header(sizeof(kQueue), ENPU_HAL_TYPE_QUEUE_TABLE),
                                     queue_create, queue_destroy, submit};
const enpu_hal_fence_table kFence = {table_header(sizeof(kFence), ENPU_HAL_TYPE_FENCE_TABLE),
                                     fence_create,
                                     fence_destroy,
                                     fence_query,
                                     fence_wait,
                                     fence_signal,
                                     nullptr,
                                     nullptr};
const enpu_hal_kernel_table kKernel = {table_header(sizeof(kKernel), ENPU_HAL_TYPE_KERNEL_TABLE),
                                       supported, packed_size};

}  // namespace

extern "C" __attribute__((visibility("default"))) const enpu_hal_plugin* enpu_hal_query(
    const enpu_hal_host* host, enpu_hal_status* status) {
    static const enpu_hal_plugin kPlugin = {table_header(sizeof(kPlugin), ENPU_HAL_TYPE_PLUGIN),
                                            ENPU_HAL_ABI_MAJOR,
                                            ENPU_HAL_ABI_MINOR,
                                            "null",
                                            "0.1",
                                            kCaps,
                                            0,
                                            &kDriver,
                                            &kDevice,
                                            &kMemory,
                                            &kQueue,
                                            &kFence,
                                            &kKernel,
                                            nullptr,
                                            nullptr};
    if (!host || host->abi_major != ENPU_HAL_ABI_MAJOR) {
        fail(status, ENPU_HAL_FAILED_PRECONDITION, "null: speaks HAL ABI %u", ENPU_HAL_ABI_MAJOR);
        return nullptr;
    }
    return &kPlugin;
}
