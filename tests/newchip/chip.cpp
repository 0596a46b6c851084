// SPDX-License-Identifier: MIT
// A backend for a chip that does not exist, written against the installed headers and nothing else:
// offsets are multiples of 8, a submission has at most 16 commands, there are 16 MiB of memory of its
// own which the host cannot see, and it knows plain copies and a few kernels of f32 and i32. No fill,
// no rows, no graphs, no host calls.
#include <enpu/enpu_hal.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "kernels.h"

struct enpu_hal_device {
    std::mutex mutex;  // guards what follows and all fences
    std::condition_variable changed;
    uint64_t used = 0;
};

struct enpu_hal_buffer {
    enpu_hal_device* device;
    char* bytes;
    uint64_t size;
    uint32_t memory;
};

struct enpu_hal_queue {
    enpu_hal_device* device;
    std::mutex mutex;
};

struct enpu_hal_fence {
    enpu_hal_device* device;
    uint64_t value;
};

namespace {

using chip::refuse;

constexpr uint64_t kLocalBytes = 16u << 20;
constexpr uint32_t kMaxCommands = 16, kMaxPoints = 16;
constexpr uint64_t kAlignment = 8, kMaxAlignment = 4096;

template <typename T>
bool is_a(const T* value, uint32_t type, size_t least = sizeof(T)) {
    return value && value->header.type == type && value->header.size >= least;
}

uint32_t bad(enpu_hal_status* status, const char* sentence) {
    return refuse(status, ENPU_HAL_INVALID_ARGUMENT, sentence);
}

// ------------------------------------------------------------------------------ driver, device

uint32_t info(enpu_hal_device*, enpu_hal_device_info* out, enpu_hal_status* status) {
    if (!is_a(out, ENPU_HAL_TYPE_DEVICE_INFO, ENPU_HAL_DEVICE_INFO_BYTES_1_0))
        return bad(status, "chip: no device info structure");
    enpu_hal_device_info own{};
    std::snprintf(own.spec, sizeof(own.spec), "chip");
    std::snprintf(own.name, sizeof(own.name), "fictitious chip");
    std::snprintf(own.driver, sizeof(own.driver), "chip 1");
    own.class_id = ENPU_HAL_CLASS_NPU;
    own.compute_engines = 1;
    own.local_bytes = kLocalBytes;
    own.max_tensor_bytes = kLocalBytes;
    own.buffer_alignment = kAlignment;
    own.clock_hz = 1'000'000;
    own.max_commands = kMaxCommands;
    own.max_points = kMaxPoints;
    own.dtypes = 1u << ENPU_OP_F32 | 1u << ENPU_OP_I32;
    own.max_alignment = kMaxAlignment;
    const size_t end = out->header.size < sizeof(own) ? out->header.size : sizeof(own);
    std::memcpy(reinterpret_cast<char*>(out) + sizeof(out->header),
                reinterpret_cast<char*>(&own) + sizeof(own.header), end - sizeof(own.header));
    return ENPU_HAL_OK;
}

uint32_t enumerate(uint32_t index, enpu_hal_device_info* out, enpu_hal_status* status) {
    if (index != 0) return refuse(status, ENPU_HAL_NOT_FOUND, "chip: there is one device");
    return info(nullptr, out, status);
}

uint32_t accepts(const char* spec) {
    return spec && std::strcmp(spec, "chip") == 0;
}

uint32_t open(const char* spec, enpu_hal_device** device, enpu_hal_status* status) {
    if (!device || !accepts(spec)) return bad(status, "chip: the spec is not \"chip\"");
    *device = new enpu_hal_device;
    return ENPU_HAL_OK;
}

void close(enpu_hal_device* device) {
    delete device;
}

uint32_t check(enpu_hal_device*, enpu_hal_status*) {
    return ENPU_HAL_OK;
}

// ------------------------------------------------------------------------------------- memory

uint32_t alloc(enpu_hal_device* device, const enpu_hal_buffer_desc* desc, enpu_hal_buffer** buffer,
               enpu_hal_status* status) {
    if (!is_a(desc, ENPU_HAL_TYPE_BUFFER_DESC)) return bad(status, "alloc: no description");
    if (desc->bytes == 0 || (desc->alignment & (desc->alignment - 1)) != 0 ||
        desc->memory > ENPU_HAL_MEMORY_HOST || (desc->flags & ~uint32_t{ENPU_HAL_BUFFER_SHARED}))
        return bad(status, "alloc: bytes is 0, or alignment, memory or flags are illegal");
    if (desc->alignment > kMaxAlignment || desc->flags)
        return refuse(status, ENPU_HAL_UNSUPPORTED, "alloc: pages at most, and nothing is shared");
    const bool local = desc->memory == ENPU_HAL_MEMORY_LOCAL;
    std::lock_guard<std::mutex> lock(device->mutex);
    if (local && desc->bytes > kLocalBytes - device->used)
        return refuse(status, ENPU_HAL_RESOURCE_EXHAUSTED, "alloc: local memory is full");
    const uint64_t alignment = desc->alignment < 64 ? 64 : desc->alignment;
    void* memory = nullptr;
    if (desc->bytes > uint64_t(INT64_MAX) || posix_memalign(&memory, alignment, desc->bytes) != 0)
        return refuse(status, ENPU_HAL_RESOURCE_EXHAUSTED, "alloc: the host's memory is full");
    if (local) device->used += desc->bytes;
    *buffer = new enpu_hal_buffer{device, static_cast<char*>(memory), desc->bytes, desc->memory};
    return ENPU_HAL_OK;
}

void free_buffer(enpu_hal_buffer* buffer) {
    if (!buffer) return;
    if (buffer->memory == ENPU_HAL_MEMORY_LOCAL) {
        std::lock_guard<std::mutex> lock(buffer->device->mutex);
        buffer->device->used -= buffer->size;
    }
    std::free(buffer->bytes);
    delete buffer;
}

uint32_t buffer_info(enpu_hal_buffer* buffer, enpu_hal_buffer_info* out, enpu_hal_status* status) {
    if (!is_a(out, ENPU_HAL_TYPE_BUFFER_INFO)) return bad(status, "info: no structure");
    out->bytes = buffer->size;
    out->address = reinterpret_cast<uint64_t>(buffer->bytes);
    out->host = buffer->memory == ENPU_HAL_MEMORY_HOST ? buffer->bytes : nullptr;
    out->memory = buffer->memory;
    return ENPU_HAL_OK;
}

uint32_t usage(enpu_hal_device* device, uint64_t* free_bytes, uint64_t* total, enpu_hal_status*) {
    std::lock_guard<std::mutex> lock(device->mutex);
    *free_bytes = kLocalBytes - device->used;
    *total = kLocalBytes;
    return ENPU_HAL_OK;
}

// --------------------------------------------------------------------------------------- work

bool inside(const enpu_hal_place& place, uint64_t bytes) {
    return place.buffer && place.offset % kAlignment == 0 && place.offset <= place.buffer->size &&
           bytes <= place.buffer->size - place.offset;
}

uint32_t check_dispatch(const enpu_hal_dispatch* dispatch, enpu_hal_status* status) {
    if (uint32_t code = chip::check(dispatch, status)) return code;
    for (uint32_t i = 0; i < dispatch->operand_count; ++i) {
        const enpu_hal_operand& operand = dispatch->operands[i];
        uint64_t before = 0, after = 0;
        chip::reach(operand.tensor, before, after);
        enpu_hal_place first = operand.place;
        if (!first.buffer || first.offset % kAlignment != 0 || before > first.offset ||
            first.offset > first.buffer->size || after > first.buffer->size - first.offset)
            return bad(status,
                       "dispatch: an operand is not inside its buffer, or not aligned to 8");
    }
    return ENPU_HAL_OK;
}

uint32_t check_command(const enpu_hal_command& command, enpu_hal_status* status) {
    if (command.kind == ENPU_HAL_COMMAND_DISPATCH)
        return check_dispatch(command.u.dispatch, status);
    if (command.kind != ENPU_HAL_COMMAND_COPY)
        return refuse(status, ENPU_HAL_UNSUPPORTED, "chip: copies and kernels only");
    const enpu_hal_copy& copy = command.u.copy;
    if (copy.width == 0 || copy.height != 1 || !inside(copy.dst, copy.width) ||
        !inside(copy.src, copy.width))
        return bad(status, "copy: one row, inside both buffers, at multiples of 8");
    const char* dst = copy.dst.buffer->bytes + copy.dst.offset;
    const char* src = copy.src.buffer->bytes + copy.src.offset;
    if (dst < src + copy.width && src < dst + copy.width)
        return bad(status, "copy: source and destination overlap");
    return ENPU_HAL_OK;
}

void run(const enpu_hal_command& command) {
    if (command.kind == ENPU_HAL_COMMAND_COPY) {
        const enpu_hal_copy& copy = command.u.copy;
        std::memcpy(copy.dst.buffer->bytes + copy.dst.offset,
                    copy.src.buffer->bytes + copy.src.offset, copy.width);
        return;
    }
    const enpu_hal_dispatch& dispatch = *command.u.dispatch;
    char* addresses[ENPU_OP_MAX_OPERANDS];
    for (uint32_t i = 0; i < dispatch.operand_count; ++i)
        addresses[i] = dispatch.operands[i].place.buffer->bytes + dispatch.operands[i].place.offset;
    chip::run(dispatch, addresses);
}

uint32_t check_points(const enpu_hal_point* points, uint32_t count, enpu_hal_status* status) {
    if (count > kMaxPoints || (count && !points)) return bad(status, "points: too many, or none");
    for (uint32_t i = 0; i < count; ++i)
        if (!points[i].fence) return bad(status, "points: one has no fence");
    return ENPU_HAL_OK;
}

void raise(const enpu_hal_point& point) {
    std::lock_guard<std::mutex> lock(point.fence->device->mutex);
    if (point.fence->value < point.value) point.fence->value = point.value;
    point.fence->device->changed.notify_all();
}

uint32_t queue_create(enpu_hal_device* device, const enpu_hal_queue_desc* desc,
                      enpu_hal_queue** queue, enpu_hal_status* status) {
    if (!is_a(desc, ENPU_HAL_TYPE_QUEUE_DESC) || desc->engine > ENPU_HAL_ENGINE_COPY ||
        desc->priority < -1 || desc->priority > 1)
        return bad(status, "queue: no description, or engine or priority are illegal");
    if (desc->engine == ENPU_HAL_ENGINE_COPY)
        return refuse(status, ENPU_HAL_UNSUPPORTED, "queue: there are no copy engines");
    *queue = new enpu_hal_queue{device, {}};
    return ENPU_HAL_OK;
}

void queue_destroy(enpu_hal_queue* queue) {
    delete queue;
}

uint32_t submit(enpu_hal_queue* queue, const enpu_hal_submission* s, uint64_t,
                enpu_hal_status* status) {
    if (!is_a(s, ENPU_HAL_TYPE_SUBMISSION)) return bad(status, "submit: no submission");
    if (s->command_count > kMaxCommands || (s->command_count && !s->commands))
        return bad(status, "submit: more than 16 commands, or none there");
    if (uint32_t code = check_points(s->waits, s->wait_count, status)) return code;
    if (uint32_t code = check_points(s->signals, s->signal_count, status)) return code;
    for (uint32_t i = 0; i < s->wait_count; ++i) {
        std::lock_guard<std::mutex> lock(queue->device->mutex);
        if (s->waits[i].fence->value < s->waits[i].value)
            return bad(status, "submit: it waits for a point that nobody has submitted");
    }
    for (uint32_t i = 0; i < s->command_count; ++i)
        if (uint32_t code = check_command(s->commands[i], status)) return code;
    std::lock_guard<std::mutex> lock(queue->mutex);
    for (uint32_t i = 0; i < s->command_count; ++i) run(s->commands[i]);
    for (uint32_t i = 0; i < s->signal_count; ++i) raise(s->signals[i]);
    return ENPU_HAL_OK;
}

// ------------------------------------------------------------------------------------- fences

uint32_t fence_create(enpu_hal_device* device, uint64_t initial, enpu_hal_fence** fence,
                      enpu_hal_status*) {
    *fence = new enpu_hal_fence{device, initial};
    return ENPU_HAL_OK;
}

void fence_destroy(enpu_hal_fence* fence) {
    delete fence;
}

uint32_t fence_query(enpu_hal_fence* fence, uint64_t* value, enpu_hal_status*) {
    std::lock_guard<std::mutex> lock(fence->device->mutex);
    *value = fence->value;
    return ENPU_HAL_OK;
}

uint32_t fence_wait(enpu_hal_device* device, const enpu_hal_point* points, uint32_t count,
                    uint32_t any, uint64_t deadline_ns, enpu_hal_status* status) {
    if (uint32_t code = check_points(points, count, status)) return code;
    if (count == 0) return ENPU_HAL_OK;
    const auto ready = [&] {
        uint32_t reached = 0;
        for (uint32_t i = 0; i < count; ++i) reached += points[i].fence->value >= points[i].value;
        return any ? reached != 0 : reached == count;
    };
    const int64_t limit = deadline_ns > uint64_t(INT64_MAX) ? INT64_MAX : int64_t(deadline_ns);
    std::unique_lock<std::mutex> lock(device->mutex);
    const std::chrono::steady_clock::time_point deadline{std::chrono::nanoseconds(limit)};
    if (device->changed.wait_until(lock, deadline, ready)) return ENPU_HAL_OK;
    return refuse(status, ENPU_HAL_DEADLINE_EXCEEDED, "wait: not reached before the deadline");
}

uint32_t fence_signal(enpu_hal_fence* fence, uint64_t value, enpu_hal_status* status) {
    uint64_t now = 0;
    fence_query(fence, &now, nullptr);
    if (value <= now) return bad(status, "signal: the value does not grow");
    raise({fence, value});
    return ENPU_HAL_OK;
}

// ------------------------------------------------------------------------------------ kernels

uint32_t supported(enpu_hal_device*, const enpu_hal_dispatch* dispatch, enpu_hal_status* status) {
    return chip::check(dispatch, status);
}

uint32_t packed_size(enpu_hal_device*, const enpu_op_tensor*, const enpu_op_pack_params*, uint64_t*,
                     enpu_hal_status* status) {
    return refuse(status, ENPU_HAL_UNSUPPORTED, "pack_weights: the chip takes weights as they are");
}

#define HEADER(table, type) \
    { sizeof(table), type, nullptr }
const enpu_hal_driver_table kDriver = {HEADER(kDriver, ENPU_HAL_TYPE_DRIVER_TABLE), enumerate,
                                       accepts, open};
const enpu_hal_device_table kDevice = {HEADER(kDevice, ENPU_HAL_TYPE_DEVICE_TABLE), close, info,
                                       check};
const enpu_hal_memory_table kMemory = {HEADER(kMemory, ENPU_HAL_TYPE_MEMORY_TABLE),
                                       alloc,
                                       free_buffer,
                                       buffer_info,
                                       usage,
                                       nullptr,
                                       nullptr,
                                       nullptr};
const enpu_hal_queue_table kQueue = {HEADER(kQueue, ENPU_HAL_TYPE_QUEUE_TABLE), queue_create,
                                     queue_destroy, submit};
const enpu_hal_fence_table kFence = {HEADER(kFence, ENPU_HAL_TYPE_FENCE_TABLE),
                                     fence_create,
                                     fence_destroy,
                                     fence_query,
                                     fence_wait,
                                     fence_signal,
                                     nullptr,
                                     nullptr};
const enpu_hal_kernel_table kKernel = {HEADER(kKernel, ENPU_HAL_TYPE_KERNEL_TABLE), supported,
                                       packed_size};
const enpu_hal_plugin kPlugin = {HEADER(kPlugin, ENPU_HAL_TYPE_PLUGIN),
                                 ENPU_HAL_ABI_MAJOR,
                                 ENPU_HAL_ABI_MINOR,
                                 "chip",
                                 "1",
                                 0,
                                 0,
                                 &kDriver,
                                 &kDevice,
                                 &kMemory,
                                 &kQueue,
                                 &kFence,
                                 &kKernel,
                                 nullptr,
                                 nullptr};

}  // namespace

extern "C" __attribute__((visibility("default"))) const enpu_hal_plugin* enpu_hal_query(
    const enpu_hal_host* host, enpu_hal_status* status) {
    if (host && host->abi_major == ENPU_HAL_ABI_MAJOR) return &kPlugin;
    refuse(status, ENPU_HAL_FAILED_PRECONDITION, "chip: another HAL ABI");
    return nullptr;
}
