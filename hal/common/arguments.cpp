// SPDX-License-Identifier: MIT
#include "arguments.h"

#include "status.h"
#include "structure.h"

namespace enpu::hal {
namespace {

using Long = unsigned long long;

template <typename T>
uint32_t check_structure(const T* value, enpu_hal_type type, size_t least, const char* name,
                         enpu_hal_status* status) {
    if (is_a(value, type, least)) return ENPU_HAL_OK;
    if (!value) return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%s: structure is null", name);
    return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                "%s: header has type %u and size %u, must be type %u and at least %zu", name,
                value->header.type, value->header.size, static_cast<uint32_t>(type), least);
}

}  // namespace

uint32_t check_device_info(const enpu_hal_device_info* info, enpu_hal_status* status) {
    return check_structure(info, ENPU_HAL_TYPE_DEVICE_INFO, ENPU_HAL_DEVICE_INFO_BYTES_1_0,
                           "device info", status);
}

uint32_t check_buffer_info(const enpu_hal_buffer_info* info, enpu_hal_status* status) {
    return check_structure(info, ENPU_HAL_TYPE_BUFFER_INFO, sizeof(*info), "buffer info", status);
}

uint32_t check_counters(const enpu_hal_counters* counters, enpu_hal_status* status) {
    return check_structure(counters, ENPU_HAL_TYPE_COUNTERS, ENPU_HAL_COUNTERS_BYTES_1_0,
                           "counters", status);
}

uint32_t check_buffer_desc(const enpu_hal_buffer_desc* desc, uint64_t max_alignment,
                           uint32_t device_caps, enpu_hal_status* status) {
    if (uint32_t code = check_structure(desc, ENPU_HAL_TYPE_BUFFER_DESC, sizeof(*desc),
                                        "alloc: description", status))
        return code;
    if (desc->bytes == 0) return fail(status, ENPU_HAL_INVALID_ARGUMENT, "alloc: bytes is 0");
    if ((desc->alignment & (desc->alignment - 1)) != 0)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "alloc: alignment %llu is no power of two",
                    Long{desc->alignment});
    if (desc->memory > ENPU_HAL_MEMORY_HOST)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "alloc: kind of memory %u is unknown",
                    desc->memory);
    if (desc->flags & ~uint32_t{ENPU_HAL_BUFFER_SHARED})
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "alloc: flags 0x%x are unknown",
                    desc->flags);
    if (desc->alignment > max_alignment)
        return fail(status, ENPU_HAL_UNSUPPORTED,
                    "alloc: alignment %llu is more than the device's %llu", Long{desc->alignment},
                    Long{max_alignment});
    if ((desc->flags & ENPU_HAL_BUFFER_SHARED) && !(device_caps & ENPU_HAL_CAP_SHARE))
        return fail(status, ENPU_HAL_UNSUPPORTED, "alloc: the device shares no memory");
    return ENPU_HAL_OK;
}

uint32_t check_queue_desc(const enpu_hal_queue_desc* desc, uint32_t copy_engines,
                          enpu_hal_status* status) {
    if (uint32_t code =
            check_structure(desc, ENPU_HAL_TYPE_QUEUE_DESC, ENPU_HAL_QUEUE_DESC_BYTES_1_0,
                            "queue: description", status))
        return code;
    if (desc->engine > ENPU_HAL_ENGINE_COPY)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "queue: engine %u is unknown", desc->engine);
    if (desc->priority < -1 || desc->priority > 1)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "queue: priority %d is not -1, 0 or 1",
                    desc->priority);
    if (desc->engine == ENPU_HAL_ENGINE_COPY && copy_engines == 0)
        return fail(status, ENPU_HAL_UNSUPPORTED, "queue: the device has no copy engines");
    return ENPU_HAL_OK;
}

uint32_t check_submission(const enpu_hal_submission* submission, uint32_t max_commands,
                          uint32_t max_points, enpu_hal_status* status) {
    if (uint32_t code = check_structure(submission, ENPU_HAL_TYPE_SUBMISSION, sizeof(*submission),
                                        "submission", status))
        return code;
    if (submission->command_count > max_commands)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "submission: %u commands are more than the device's %u",
                    submission->command_count, max_commands);
    if (submission->command_count && !submission->commands)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "submission: commands is null");
    if (uint32_t code = check_points(submission->waits, submission->wait_count, max_points, status))
        return code;
    return check_points(submission->signals, submission->signal_count, max_points, status);
}

uint32_t check_dispatch_structure(const enpu_hal_dispatch* dispatch, enpu_hal_status* status) {
    return check_structure(dispatch, ENPU_HAL_TYPE_DISPATCH, sizeof(*dispatch), "dispatch", status);
}

uint32_t check_points(const enpu_hal_point* points, uint32_t count, uint32_t most,
                      enpu_hal_status* status) {
    if (count > most)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%u points are more than the device's %u",
                    count, most);
    if (count && !points)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "the list of %u points is null", count);
    for (uint32_t i = 0; i < count; ++i)
        if (!points[i].fence)
            return fail(status, ENPU_HAL_INVALID_ARGUMENT, "point %u has no fence", i);
    return ENPU_HAL_OK;
}

}  // namespace enpu::hal
