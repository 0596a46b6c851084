// SPDX-License-Identifier: MIT
// Enqueueing on a stream: to the backend at once, or held back behind a host call.
#include <algorithm>
#include <cstring>

#include "capture.h"
#include "common/status.h"
#include "fork.h"
#include "guard.h"
#include "poison.h"
#include "profile.h"
#include "stream.h"

using namespace enpu::rt;

namespace {

thread_local CallSite call_site;

}  // namespace

// What an operation waits for.
struct rt_stream_impl::Waits {
    enpu_hal_point points[kMaxWaits + kMaxLanes + 1];
    uint32_t count = 0;
    bool submitted = true;  // all of it: the backend can be told

    void add(const Timeline& timeline, uint64_t value) {
        submitted &= timeline.submitted(value);
        points[count++] = {timeline.fence(), value};
    }
};

rt_status rt_stream_impl::check_usable(const char* origin) const {
    if (closed) return make_status(RT_FAILED_PRECONDITION, origin, "stream is destroyed");
    if (poisoned_.load(std::memory_order_relaxed)) return poisoned_status(origin);
    return RT_OK;
}

void rt_stream_impl::hold(const std::shared_ptr<Timeline>& waited, uint64_t until) {
    std::erase_if(held_, [&](const Held& held) { return main.timeline->settled(held.until); });
    held_.push_back({waited, until});
}

rt_status rt_stream_impl::enqueue(const StreamWork& work, uint64_t* value,
                                  std::shared_ptr<Timeline>* on) {
    RT_TRY(check_fork(*device, work.origin));
    const bool guard = device->guarded.load(std::memory_order_relaxed) && !work.function &&
                       !HostThread::inside(device);
    {
        std::lock_guard lock(mutex);
        if (value) *value = 0;
        if (on) *on = main.timeline;
        RT_TRY(check_usable(work.origin));
        if (capture) return capture_add(work);
        if (!guard) RT_TRY(enqueue_locked(work));
        if (value) *value = main.enqueued;
    }
    if (!guard) return wait_in_sync_mode(work.origin);
    RT_TRY(device->guard->run(*this, work));
    std::lock_guard lock(mutex);
    if (value) *value = main.enqueued;
    return RT_OK;
}

rt_status rt_stream_impl::wait_in_sync_mode(const char* origin) {
    if (!device->sync_mode.load(std::memory_order_relaxed) || HostThread::inside(device)) [[likely]]
        return RT_OK;
    return sync(deadline(), origin);
}

rt_status rt_stream_impl::enqueue_copy(const enpu_hal_place& dst, const enpu_hal_place& src,
                                       uint64_t bytes, const char* origin, uint64_t* value) {
    device->counted.copies.fetch_add(1, std::memory_order_relaxed);
    CopyList alone;
    alone.add(dst, src, bytes);
    StreamWork work;
    work.commands = alone.commands();
    work.count = 1;
    work.what = "copy";
    work.origin = origin;
    if (!(flags & RT_STREAM_MERGE_COPIES) || bytes > CopyList::kSmall || device->guarded.load())
        return enqueue(work, value, nullptr);
    RT_TRY(check_fork(*device, origin));
    {
        std::lock_guard lock(mutex);
        RT_TRY(check_usable(origin));
        if (value) *value = 0;
        if (capture) return capture_add(work);
        RT_TRY(merge_copy(dst, src, bytes, origin));
        if (value) *value = main.enqueued + 1;
    }
    return wait_in_sync_mode(origin);
}

rt_status rt_stream_impl::merge_copy(const enpu_hal_place& dst, const enpu_hal_place& src,
                                     uint64_t bytes, const char* origin) {
    if (!held_back_.add(dst, src, bytes)) {
        RT_TRY(flush_locked(origin));
        held_back_.add(dst, src, bytes);
    }
    if (held_back_.copies() > 1)
        device->counted.copies_merged.fetch_add(1, std::memory_order_relaxed);
    return RT_OK;
}

rt_status rt_stream_impl::flush_locked(const char* origin) {
    if (held_back_.empty()) return RT_OK;
    StreamWork work;
    work.commands = held_back_.commands();
    work.count = held_back_.count();
    work.what = "merged copies";
    work.origin = origin;
    RT_TRY(submit_locked(work));
    held_back_.clear();
    return RT_OK;
}

rt_status rt_stream_impl::flush(const char* origin) {
    std::lock_guard lock(mutex);
    return flush_locked(origin);
}

void rt_stream_impl::gather(const StreamWork& work, Waits& waits) {
    for (const Point& point : waits_) waits.add(*point.timeline, point.value);
    for (uint32_t i = 0; i < work.lane_wait_count; ++i)
        waits.add(*lane_at(work.lane_waits[i].lane).timeline, work.lane_waits[i].value);
    if (work.wait && work.wait->timeline && work.wait->timeline != main.timeline)
        waits.add(*work.wait->timeline, work.wait->value);
}

rt_status rt_stream_impl::enqueue_locked(const StreamWork& work) {
    RT_TRY(flush_locked(work.origin));
    return submit_locked(work);
}

rt_status rt_stream_impl::submit_locked(const StreamWork& work) {
    RT_TRY(check_usable(work.origin));
    Lane& lane = lane_at(work.lane);
    Waits waits;
    gather(work, waits);
    const uint64_t now = rt_now_ns();  // once: a clock is a tenth of what this call takes
    if (work.function || !held_ops_.empty() || !waits.submitted) [[unlikely]]
        RT_TRY(hold_back(work, lane));
    else
        RT_TRY(submit(work, lane, waits, now));
    ++lane.enqueued;
    lane.origin(lane.enqueued) = {work.what, work.origin,     take_call_site(),
                                  now,       work.first_node, work.nodes};
    if (work.lane != 0) return RT_OK;  // what waits_ has is for lane 0, which comes first
    for (const Point& point : waits_) hold(point.timeline, lane.enqueued);
    if (work.wait && work.wait->timeline) hold(work.wait->timeline, lane.enqueued);
    waits_.clear();
    return RT_OK;
}

rt_status rt_stream_impl::submit(const StreamWork& work, Lane& lane, const Waits& waits,
                                 uint64_t now_ns) {
    const enpu_hal_point signal{lane.timeline->fence(), lane.enqueued + 1};
    enpu_hal_submission submission{};
    submission.header = {sizeof(submission), ENPU_HAL_TYPE_SUBMISSION, nullptr};
    submission.op_id = lane.op_id(lane.enqueued + 1);
    submission.waits = waits.points;
    submission.wait_count = waits.count;
    submission.signals = &signal;
    submission.signal_count = 1;
    submission.commands = work.commands;
    submission.command_count = work.count;
    return hand_over(work, submission, now_ns);
}

rt_status rt_stream_impl::hand_over(const StreamWork& work, enpu_hal_submission& submission,
                                    uint64_t now_ns) {
    enpu_hal_status status;
    status.code = ENPU_HAL_OK;
    uint64_t limit;
    if (__builtin_add_overflow(now_ns, timeout_ns.load(std::memory_order_relaxed), &limit))
        limit = UINT64_MAX;
    if (profile::on(RT_PROFILE_DEVICE)) [[unlikely]]
        return profile::submit(*this, work, submission, limit, status);
    return submit_now(work, submission, limit, status);
}

rt_status rt_stream_impl::submit_now(const StreamWork& work, enpu_hal_submission& submission,
                                     uint64_t limit, enpu_hal_status& status) {
    Lane& lane = lane_at(work.lane);
    const enpu_hal_plugin& hal = device->hal;
    const uint32_t code =
        work.graph ? hal.graph->launch(lane.queue, work.graph, &submission, limit, &status)
                   : hal.queue->submit(lane.queue, &submission, limit, &status);
    if (code >= ENPU_HAL_ABORTED) return failure(status, work.origin);
    if (code != ENPU_HAL_OK) return from_hal(status, work.origin);
    lane.timeline->note_submitted(submission.op_id & kOperationMask);
    device->counted.submissions.fetch_add(1, std::memory_order_relaxed);
    return RT_OK;
}

rt_status rt_stream_impl::wait_event_point(const Point& point) {
    constexpr const char* kOrigin = "rt_stream_wait_event";
    if (!point.timeline || point.timeline->reached(point.value)) return RT_OK;
    std::lock_guard lock(mutex);
    RT_TRY(check_usable(kOrigin));
    if (capture)
        return make_status(RT_FAILED_PRECONDITION, kOrigin,
                           "stream %s is captured, the event stands for work outside the capture",
                           name.c_str());
    if (point.timeline == main.timeline) return RT_OK;  // ordered anyway
    RT_TRY(flush_locked(kOrigin));                      // what came before does not wait
    for (Point& wait : waits_) {
        if (wait.timeline != point.timeline) continue;
        wait.value = std::max(wait.value, point.value);
        return RT_OK;
    }
    // Room for the lanes of a graph and its last launch.
    const uint32_t most = device->max_points() - kMaxLanes - 1;
    if (waits_.size() >= std::min(kMaxWaits, most)) {
        StreamWork work;
        work.what = "wait for events";
        work.origin = kOrigin;
        RT_TRY(enqueue_locked(work));
    }
    waits_.push_back(point);
    return RT_OK;
}

rt_status rt_stream_impl::free_block(void* pointer, const std::vector<Point>& uses,
                                     const char* origin) {
    for (const Point& use : uses) {
        if (use.settled()) continue;
        // Later work of this stream, which may get the block, comes after the use.
        rt_status status = wait_event_point(use);
        if (!status) continue;
        rt_status_free(status);
        use.wait(deadline(), nullptr);
    }
    if (device->poison.load(std::memory_order_relaxed)) [[unlikely]]
        poison_freed(*this, pointer, origin);
    std::lock_guard lock(mutex);
    return free_locked(pointer, origin);
}

rt_status rt_stream_impl::free_pointer(void* pointer, const char* origin) {
    static const std::vector<Point> kNone;
    {
        std::lock_guard lock(mutex);
        if (capture) return capture_refuses(origin);
        if (!device->poison.load(std::memory_order_relaxed)) [[likely]]
            return free_locked(pointer, origin);
    }
    return free_block(pointer, kNone, origin);
}

rt_status rt_stream_impl::free_locked(void* pointer, const char* origin) {
    // A pending wait is part of the operation that comes next.
    const uint64_t point = waits_.empty() && held_back_.empty() ? main.enqueued : main.enqueued + 1;
    RT_TRY(device->pool->free(closed ? nullptr : &cache, point, pointer, origin));
    if (profile::on(RT_PROFILE_MEMORY)) [[unlikely]]
        profile::note_memory(*device);
    return RT_OK;
}

// ------------------------------------------------------------------------------------------
// work that cannot be submitted yet

// Keeps a copy of the operation for the host thread. With the lock held.
rt_status rt_stream_impl::hold_back(const StreamWork& work, Lane& lane) {
    RT_TRY(device->start_host(work.origin));
    HeldOp& op = held_ops_.push();
    op.lane = lane.index;
    op.value = lane.enqueued + 1;
    op.commands = work.count;
    if (op.records.size() < work.count) op.records.resize(work.count);
    for (uint32_t i = 0; i < work.count; ++i) op.records[i].assign(work.commands[i]);
    op.graph = work.graph;
    op.timed = work.timed;
    op.function = work.function;
    op.context = work.context;
    op.origin = work.origin;
    op.waits.clear();
    op.waits.insert(op.waits.end(), waits_.begin(), waits_.end());
    for (uint32_t i = 0; i < work.lane_wait_count; ++i)
        op.waits.push_back({lane_at(work.lane_waits[i].lane).timeline, work.lane_waits[i].value});
    if (work.wait && work.wait->timeline) op.waits.push_back(*work.wait);
    if (!watched_) {
        watched_ = true;
        device->watch_host(this);
    }
    return RT_OK;
}

// Nothing of what was held back will run. With the lock held.
void rt_stream_impl::drop_held(const enpu_hal_status& why) {
    if (held_ops_.empty()) return;
    for (uint32_t i = 0; i <= sides_.size(); ++i) lane_at(i).timeline->give_up(why);
    held_ops_.clear();
}

rt_status rt_stream_impl::submit_held(HeldOp& op) {
    Waits waits;
    for (const Point& wait : op.waits) waits.add(*wait.timeline, wait.value);
    held_commands_.clear();
    for (uint32_t i = 0; i < op.commands; ++i) held_commands_.push_back(op.records[i].command);
    Lane& lane = lane_at(op.lane);
    const enpu_hal_point signal{lane.timeline->fence(), op.value};
    enpu_hal_submission submission{};
    submission.header = {sizeof(submission), ENPU_HAL_TYPE_SUBMISSION, nullptr};
    submission.op_id = lane.op_id(op.value);
    submission.waits = waits.points;
    submission.wait_count = waits.count;
    submission.signals = &signal;
    submission.signal_count = 1;
    submission.commands = held_commands_.data();
    submission.command_count = op.commands;
    StreamWork work;
    work.commands = submission.commands;
    work.count = op.commands;
    work.graph = op.graph;
    work.timed = op.timed;
    work.origin = op.origin;
    work.lane = op.lane;
    return hand_over(work, submission, rt_now_ns());
}

// The first of what a held-back operation needs that is not there yet; false when all is. A host
// call needs what it waits for to have been reached, other work needs it to be submitted.
bool rt_stream_impl::blocked(HeldOp& op, Point& on) {
    const auto ready = [&](const Point& point) {
        return op.function
                   ? point.timeline->settled(point.value)
                   : point.timeline->submitted(point.value) || point.timeline->settled(point.value);
    };
    for (const Point& wait : op.waits) {
        if (ready(wait)) continue;
        on = wait;
        return true;
    }
    const Point before{lane_at(op.lane).timeline, op.value - 1};
    if (!op.function || ready(before)) return false;
    on = before;
    return true;
}

Drained rt_stream_impl::drain(HostCall& call, Point& on, bool& progress) {
    std::lock_guard lock(mutex);
    while (!held_ops_.empty()) {
        HeldOp& op = held_ops_.front();
        if (closed || poisoned_.load()) {
            enpu_hal_status why{};
            enpu::hal::fail(&why, ENPU_HAL_ABORTED, "dropped, because earlier work failed: %.180s",
                            poison_message_.c_str());
            drop_held(why);
            break;
        }
        if (blocked(op, on)) return Drained::kBlocked;
        enpu_hal_status status{};
        if (op.function && !held_failed(op, status)) {
            call = {op.function, op.context, op.lane, op.value};
            return Drained::kHostCall;
        }
        progress = true;
        rt_status failed = op.function ? failure(status, op.origin) : submit_held(op);
        if (failed) {
            // Also when the backend only has no room: what comes later may not overtake it.
            if (rt_status_impl* out = writable(failed); out && !poisoned_.load()) poison_with(*out);
            enpu::hal::fail(&status, ENPU_HAL_ABORTED,
                            "dropped, because earlier work failed: %.180s",
                            rt_status_message(failed));
            rt_status_free(failed);
            drop_held(status);
            break;
        }
        held_ops_.pop();
    }
    watched_ = false;
    return Drained::kAll;
}

// Whether what a host call waits for has failed.
bool rt_stream_impl::held_failed(HeldOp& op, enpu_hal_status& status) {
    for (const Point& wait : op.waits)
        if (!wait.reached()) return wait.wait(0, &status) != ENPU_HAL_OK;
    const Point before{lane_at(op.lane).timeline, op.value - 1};
    return !before.reached() && before.wait(0, &status) != ENPU_HAL_OK;
}

void rt_stream_impl::host_call_done(const HostCall& call) {
    std::lock_guard lock(mutex);
    if (closed || held_ops_.empty()) return;
    Lane& lane = lane_at(call.lane);
    enpu_hal_status status{};
    if (device->hal.fence->signal(lane.timeline->fence(), call.value, &status) != ENPU_HAL_OK) {
        rt_status_free(failure(status, "rt_launch_host_func"));
        drop_held(status);
        return;
    }
    lane.timeline->note_reached(call.value);
    lane.timeline->note_submitted(call.value);
    held_ops_.pop();
}

// -------------------------------------------------------------------------------------------
// call sites

namespace enpu::rt {

CallSite take_call_site() {
    const CallSite site = call_site;
    call_site = {};
    return site;
}

std::string to_text(const CallSite& site) {
    if (!site.file) return {};
    const char* slash = std::strrchr(site.file, '/');
    return std::string(slash ? slash + 1 : site.file) + ":" + std::to_string(site.line);
}

}  // namespace enpu::rt

void rt_call_site(const char* file, uint32_t line) {
    call_site = {file, line};
}
