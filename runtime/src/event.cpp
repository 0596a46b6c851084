// SPDX-License-Identifier: MIT
#include "capture.h"
#include "fork.h"
#include "stream.h"

using namespace enpu::rt;

struct rt_event_impl {
    rt_device_impl* device = nullptr;
    bool timing = false;
    TimestampSlots::Slot slot;
    std::mutex mutex;
    Point point;             // what it stands for; no timeline: never recorded
    CapturedPoint captured;  // or this, when it was recorded in a capture

    Point get() {
        std::lock_guard lock(mutex);
        return point;
    }
    bool in_capture() {
        std::lock_guard lock(mutex);
        return !captured.capture.expired();
    }
    CapturedPoint get_captured() {
        std::lock_guard lock(mutex);
        return captured;
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
        CapturedPoint captured;
        if (stream->captured_point(captured)) {
            if (event->timing)
                return make_status(RT_UNSUPPORTED, "rt_event_record",
                                   "stream %s is captured: a timing event cannot be part of a "
                                   "graph, RT_GRAPH_TIMING tells when its nodes ran",
                                   stream->name.c_str());
            std::lock_guard lock(event->mutex);
            event->captured = std::move(captured);
            event->point = {};
            return RT_OK;
        }
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
        event->captured = {};
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
        constexpr const char* kOrigin = "rt_event_wait";
        RT_TRY(check_fork(*event->device, kOrigin));
        if (event->in_capture())
            return make_status(RT_FAILED_PRECONDITION, kOrigin,
                               "the event was recorded in a capture: it is never reached");
        const Point point = event->get();
        if (point.reached()) return RT_OK;
        if (deadline_ns != 0 && HostThread::inside(event->device))
            return make_status(RT_FAILED_PRECONDITION, kOrigin,
                               "called from a host function of the device, which the event may "
                               "depend on. Host functions may enqueue and look, not wait");
        const uint64_t start = rt_now_ns();
        enpu_hal_status status{};
        if (point.wait(deadline_ns, &status) == ENPU_HAL_OK) return RT_OK;
        rt_status made = from_hal(status, kOrigin);
        if (rt_status_impl* out = writable(made)) out->elapsed_ns = rt_now_ns() - start;
        return made;
    });
}

rt_status rt_stream_wait_event(rt_stream stream, rt_event event) {
    RT_NOT_NULL(stream);
    RT_NOT_NULL(event);
    return guarded(__func__, [&]() -> rt_status {
        if (event->device != stream->device)
            return make_status(RT_UNSUPPORTED, "rt_stream_wait_event",
                               "event and stream are of different devices: wait on the host");
        const CapturedPoint captured = event->get_captured();
        if (auto capture = captured.capture.lock())
            return stream->join_capture(capture, captured.nodes);
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
        *ns = static_cast<int64_t>(start->device->ticks_to_ns(*end->slot.word) -
                                   start->device->ticks_to_ns(*start->slot.word));
        return RT_OK;
    });
}
