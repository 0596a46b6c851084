// SPDX-License-Identifier: MIT
// Timelines.
#include <algorithm>
#include <new>

#include "arguments.h"
#include "device.h"
#include "status.h"

using enpu::hal::fail_as;

enpu_hal_fence::Look enpu_hal_fence::look_locked(uint64_t point, enpu::hal::cuda::Event* event) {
    if (value.load() >= point) return Look::kReached;
    if (failed.load()) return Look::kFailed;
    const Announced* best = nullptr;
    for (const Announced& each : announced_)
        if (each.point >= point && (!best || each.point < best->point)) best = &each;
    if (!best) return Look::kUnknown;
    if (event) *event = best->event;
    return Look::kOnGpu;
}

enpu_hal_fence::Look enpu_hal_fence::look(uint64_t point) {
    if (value.load() >= point) return Look::kReached;
    std::lock_guard lock(mutex_);
    return look_locked(point, nullptr);
}

enpu_hal_fence::Look enpu_hal_fence::chain(uint64_t point, const enpu::hal::cuda::Driver& api,
                                           enpu::hal::cuda::Stream stream,
                                           enpu::hal::cuda::Result* error) {
    // Under the lock: the event is not reused before its point was signalled, which takes it too.
    std::lock_guard lock(mutex_);
    enpu::hal::cuda::Event event = nullptr;
    const Look seen = look_locked(point, &event);
    *error =
        seen == Look::kOnGpu ? api.cuStreamWaitEvent(stream, event, 0) : enpu::hal::cuda::kSuccess;
    return seen;
}

void enpu_hal_fence::announce(uint64_t point, enpu::hal::cuda::Event event) {
    {
        std::lock_guard lock(mutex_);
        announced_.push_back({point, event});
    }
    device->kick();  // work that waited to hear of this point
}

void enpu_hal_fence::forget_until(uint64_t point) {
    std::erase_if(announced_, [&](const Announced& each) { return each.point <= point; });
}

// Who sees the value may destroy the fence at once: nothing of it is touched after the lock, which
// the destructor takes.
void enpu_hal_fence::signal(uint64_t point) {
    enpu_hal_device* const owner = device;
    {
        std::lock_guard lock(mutex_);
        forget_until(point);
        if (value.load() < point) value.store(point);
    }
    owner->sleepers.notify();
    owner->kick();
}

void enpu_hal_fence::fail(const enpu_hal_status& why) {
    enpu_hal_device* const owner = device;
    {
        std::lock_guard lock(mutex_);
        announced_.clear();
        if (failed.load()) return;  // the first failure is the one to tell
        failure_ = why;
        failed.store(true);
    }
    owner->sleepers.notify();
    owner->kick();
}

enpu_hal_status enpu_hal_fence::failure() {
    std::lock_guard lock(mutex_);
    return failure_;
}

namespace enpu::hal::cuda {
namespace {

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
    return failed ? fail_as(status, fence->failure()) : uint32_t(ENPU_HAL_OK);
}

uint32_t fence_signal(enpu_hal_fence* fence, uint64_t value, enpu_hal_status* status) {
    if (fence->failed.load()) return fail_as(status, fence->failure());
    const uint64_t now = fence->value.load();
    if (value <= now)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "fence: %llu is not more than %llu",
                    static_cast<unsigned long long>(value), static_cast<unsigned long long>(now));
    fence->signal(value);
    return ENPU_HAL_OK;
}

// Sleeps until ready() or the deadline. A fence of another device wakes only its own sleepers, so
// with one of those we look again every millisecond.
template <typename Ready>
bool sleep_until(enpu_hal_device* device, bool foreign, uint64_t deadline_ns, Ready ready) {
    if (!foreign) return device->sleepers.wait_until(deadline_ns, ready);
    for (;;) {
        const uint64_t next = std::min(deadline_ns, now_ns() + 1'000'000);
        if (device->sleepers.wait_until(next, ready)) return true;
        if (next == deadline_ns) return false;
    }
}

}  // namespace

uint32_t fence_wait(enpu_hal_device* device, const enpu_hal_point* points, uint32_t count,
                    uint32_t any, uint64_t deadline_ns, enpu_hal_status* status) {
    if (uint32_t code = check_points(points, count, kMaxPoints, status)) return code;
    if (count == 0) return ENPU_HAL_OK;
    const enpu_hal_point* broken = nullptr;
    const auto ready = [&] { return points_settled(points, count, any != 0, &broken); };
    const bool foreign = std::any_of(points, points + count, [&](const enpu_hal_point& point) {
        return point.fence->device != device;
    });
    if (!sleep_until(device, foreign, deadline_ns, ready))
        return fail(status, ENPU_HAL_DEADLINE_EXCEEDED, "fence: not reached before the deadline");
    return broken ? fail_as(status, broken->fence->failure()) : uint32_t(ENPU_HAL_OK);
}

const enpu_hal_fence_table kFence = {
    table_header(sizeof(enpu_hal_fence_table), ENPU_HAL_TYPE_FENCE_TABLE),
    fence_create,
    fence_destroy,
    fence_query,
    fence_wait,
    fence_signal,
    nullptr,
    nullptr};

}  // namespace enpu::hal::cuda
