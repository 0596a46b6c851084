// SPDX-License-Identifier: MIT
#include "stream.h"

using namespace enpu::rt;

struct rt_event_impl {
    rt_device_impl* device = nullptr;
    bool timing = false;
    TimestampSlots::Slot slot;
    std::mutex mutex;
    Point point;  // what it stands for; no timeline: never recorded

    Point get() {
        std::lock_guard lock(mutex);
        return point;
    }
};

rt_status rt_event_create(rt_device device, uint32_t flags, rt_event* event) {
    RT_NOT_NULL(device);
    RT_NOT_NULL(event);
    *event = nullptr;
    return guarded(__func__, [&]() -> rt_status {
        if (flags & ~uint32_t{RT_EVENT_TIMING})
            return make_status(RT_INVALID_ARGUMENT, "rt_event_create",
                               "flags has unknown bits: 0x%x", flags);
        auto made = std::make_unique<rt_event_impl>();
        made->device = device;
        made->timing = flags & RT_EVENT_TIMING;
        if (made->timing) {
            if (!(device->info.caps & ENPU_HAL_CAP_TIMESTAMP))
                return make_status(RT_UNSUPPORTED, "rt_event_create",
                                   "the device %s has no timestamps", device->info.spec);
            RT_TRY(device->timestamps.take(*device, made->slot));
        }
        device->retain();
        *event = made.release();
        return RT_OK;
    });
}

void rt_event_destroy(rt_event event) {
    if (!event) return;
    if (event->timing) event->device->timestamps.give_back(event->slot, event->point);
    rt_device_impl* device = event->device;
    delete event;
    device->release();
}

rt_status rt_event_record(rt_event event, rt_stream stream) {
    RT_NOT_NULL(event);
    RT_NOT_NULL(stream);
    return guarded(__func__, [&]() -> rt_status {
        if (event->device != stream->device)
            return make_status(RT_INVALID_ARGUMENT, "rt_event_record",
                               "event and stream are of different devices");
        if (event->timing) {
            enpu_hal_command command{};
            command.kind = ENPU_HAL_COMMAND_TIMESTAMP;
            command.u.timestamp.dst = {event->slot.buffer, event->slot.offset};
            RT_TRY(
                stream->enqueue({&command, 1, nullptr, "timestamp", "rt_event_record"}, nullptr));
        }
        Point point;
        RT_TRY(stream->last_point("rt_event_record", point));
        std::lock_guard lock(event->mutex);
        event->point = std::move(point);
        return RT_OK;
    });
}

rt_status rt_event_query(rt_event event, uint32_t* done) {
    RT_NOT_NULL(event);
    RT_NOT_NULL(done);
    rt_status status = rt_event_wait(event, 0);
    *done = !status;
    if (rt_status_code(status) != RT_DEADLINE_EXCEEDED) return status;
    rt_status_free(status);
    return RT_OK;
}

rt_status rt_event_wait(rt_event event, uint64_t deadline_ns) {
    RT_NOT_NULL(event);
    return guarded(__func__, [&]() -> rt_status {
        const Point point = event->get();
        if (!point.timeline || point.timeline->reached(point.value)) return RT_OK;
        const enpu_hal_point wanted{point.timeline->fence(), point.value};
        enpu_hal_status status{};
        rt_device_impl* device = event->device;
        const uint32_t code =
            device->hal.fence->wait(device->handle, &wanted, 1, 0, deadline_ns, &status);
        if (code == ENPU_HAL_OK) point.timeline->note_reached(point.value);
        return code == ENPU_HAL_OK ? RT_OK : from_hal(status, "rt_event_wait");
    });
}

rt_status rt_stream_wait_event(rt_stream stream, rt_event event) {
    RT_NOT_NULL(stream);
    RT_NOT_NULL(event);
    return guarded(__func__, [&]() -> rt_status {
        if (event->device != stream->device)
            return make_status(RT_UNSUPPORTED, "rt_stream_wait_event",
                               "event and stream are of different devices: wait on the host");
        return stream->wait_event_point(event->get());
    });
}

rt_status rt_event_elapsed_ns(rt_event start, rt_event end, int64_t* ns) {
    RT_NOT_NULL(start);
    RT_NOT_NULL(end);
    RT_NOT_NULL(ns);
    return guarded(__func__, [&]() -> rt_status {
        if (start->device != end->device || !start->timing || !end->timing)
            return make_status(RT_FAILED_PRECONDITION, "rt_event_elapsed_ns",
                               "both events must be of one device and have RT_EVENT_TIMING");
        for (rt_event event : {start, end}) {
            const Point point = event->get();
            if (!point.timeline || !point.timeline->reached(point.value))
                return make_status(RT_FAILED_PRECONDITION, "rt_event_elapsed_ns", "the %s event %s",
                                   event == start ? "start" : "end",
                                   point.timeline ? "has not been reached" : "was never recorded");
        }
        const double ticks =
            static_cast<double>(static_cast<int64_t>(*end->slot.word - *start->slot.word));
        const uint64_t hz = start->device->info.clock_hz;
        *ns = hz == 1'000'000'000 ? static_cast<int64_t>(*end->slot.word - *start->slot.word)
                                  : static_cast<int64_t>(ticks * 1e9 / static_cast<double>(hz));
        return RT_OK;
    });
}
