// SPDX-License-Identifier: MIT
#include "timeline.h"

using namespace enpu;

namespace {

constexpr size_t kMaxPoints = ENPU_MAX_SYNC_OPS;

int wait_result(int result, size_t count, uint64_t value, enpu_error* error) {
    if (result == 0) return 0;
    if (result != -ETIME)
        return fail(error, result, "timeline wait failed: %s", errno_text(result).c_str());
    if (count == 1)
        return fail(error, result, "the deadline passed before the timeline reached %llu",
                    (unsigned long long)value);
    return fail(error, result, "the deadline passed before the %zu timelines reached their points",
                count);
}

}  // namespace

int enpu_timeline_create(enpu_device* device, uint64_t initial, enpu_timeline** timeline,
                         enpu_error* error) {
    if (device == nullptr || timeline == nullptr)
        return fail(error, -EINVAL, "enpu_timeline_create: an argument is NULL");
    *timeline = nullptr;
    return guard(error, [&] {
        uint32_t handle = 0;
        int result = device->os->sync_create(&handle);
        if (result != 0)
            return fail(error, result, "a timeline could not be made: %s",
                        errno_text(result).c_str());
        auto made = Ref<enpu_timeline>::adopt(new enpu_timeline(device, handle, initial));
        // An initial value of 0 is signalled too where nothing is known of the timeline yet: point
        // 0 is always reached.
        if (initial != 0) result = device->os->sync_signal(handle, initial);
        if (result != 0)
            return fail(error, result, "the timeline could not be set to its initial value: %s",
                        errno_text(result).c_str());
        *timeline = made.leak();
        return 0;
    });
}

enpu_timeline* enpu_timeline_retain(enpu_timeline* timeline) {
    if (timeline != nullptr) timeline->retain();
    return timeline;
}

void enpu_timeline_release(enpu_timeline* timeline) {
    if (timeline != nullptr) timeline->release();
}

int enpu_timeline_wait(enpu_timeline* timeline, uint64_t value, int64_t deadline_ns,
                       enpu_error* error) {
    const enpu_point point = {timeline, value};
    return enpu_timelines_wait(&point, 1, false, deadline_ns, nullptr, error);
}

int enpu_timelines_wait(const enpu_point* points, size_t count, bool any, int64_t deadline_ns,
                        size_t* first, enpu_error* error) {
    if (first != nullptr) *first = 0;
    if (points == nullptr || count == 0 || count > kMaxPoints) {
        return fail(error, -EINVAL, "enpu_timelines_wait: %zu points; 1 … %zu are allowed", count,
                    kMaxPoints);
    }
    uint32_t handles[kMaxPoints];
    uint64_t values[kMaxPoints];
    size_t used = 0;
    for (size_t i = 0; i < count; ++i) {
        if (points[i].timeline == nullptr)
            return fail(error, -EINVAL, "enpu_timelines_wait: points[%zu].timeline is NULL", i);
        if (points[i].timeline->device.get() != points[0].timeline->device.get()) {
            return fail(error, -EINVAL, "enpu_timelines_wait: points[%zu] is of another device", i);
        }
        if (points[i].value == 0) {  // reached since the beginning
            if (!any) continue;
            if (first != nullptr) *first = i;
            return 0;
        }
        handles[used] = points[i].timeline->handle;
        values[used++] = points[i].value;
    }
    if (used == 0) return 0;
    os::SyncWait wait = {handles, values, static_cast<uint32_t>(used), any, deadline_ns, 0};
    os::Os& os = *points[0].timeline->device->os;
    int result;
    do result = os.sync_wait(&wait);
    while (result == -EINTR);
    if (result == 0 && first != nullptr) *first = wait.first;
    return wait_result(result, used, values[0], error);
}

int enpu_timeline_query(enpu_timeline* timeline, uint64_t* value, enpu_error* error) {
    if (timeline == nullptr || value == nullptr)
        return fail(error, -EINVAL, "enpu_timeline_query: an argument is NULL");
    *value = 0;
    const int result = timeline->device->os->sync_query(timeline->handle, value);
    if (result != 0)
        return fail(error, result, "timeline query failed: %s", errno_text(result).c_str());
    return 0;
}

int enpu_timeline_signal(enpu_timeline* timeline, uint64_t value, enpu_error* error) {
    if (timeline == nullptr) return fail(error, -EINVAL, "enpu_timeline_signal: timeline is NULL");
    const uint64_t last = timeline->last.load(std::memory_order_relaxed);
    if (value <= last) {
        return fail(error, -EINVAL,
                    "enpu_timeline_signal: %llu is not larger than %llu, which was signalled or "
                    "submitted before",
                    (unsigned long long)value, (unsigned long long)last);
    }
    const int result = timeline->device->os->sync_signal(timeline->handle, value);
    if (result != 0)
        return fail(error, result, "timeline signal failed: %s", errno_text(result).c_str());
    timeline->raise_last(value);
    return 0;
}

int enpu_timeline_export(enpu_timeline* timeline, int* fd, enpu_error* error) {
    if (timeline == nullptr || fd == nullptr)
        return fail(error, -EINVAL, "enpu_timeline_export: an argument is NULL");
    *fd = -1;
    const int result = timeline->device->os->sync_export(timeline->handle, fd);
    if (result != 0)
        return fail(error, result, "the timeline cannot be exported: %s",
                    errno_text(result).c_str());
    return 0;
}

int enpu_timeline_import(enpu_device* device, int fd, enpu_timeline** timeline, enpu_error* error) {
    if (device == nullptr || timeline == nullptr)
        return fail(error, -EINVAL, "enpu_timeline_import: an argument is NULL");
    *timeline = nullptr;
    return guard(error, [&] {
        uint32_t handle = 0;
        const int result = device->os->sync_import(fd, &handle);
        if (result != 0)
            return fail(error, result, "descriptor %d is no timeline: %s", fd,
                        errno_text(result).c_str());
        *timeline = new enpu_timeline(device, handle, 0);
        return 0;
    });
}
