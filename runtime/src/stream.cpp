// SPDX-License-Identifier: MIT
// Life of a stream, and what is waited for on it. Enqueueing: enqueue.cpp.
#include "stream.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "capture.h"
#include "common/status.h"
#include "fork.h"

using namespace enpu::rt;

namespace {

constexpr uint64_t kDefaultTimeoutNs = 60'000'000'000;

std::string stream_name(const rt_stream_options& options, uint64_t number) {
    return options.name ? std::string(options.name) : std::to_string(number);
}

}  // namespace

rt_stream_impl::rt_stream_impl(rt_device_impl* owner, const rt_stream_options& options)
    : device(owner),
      number(owner->stream_number.fetch_add(1) + 1),
      name(stream_name(options, number)),
      priority(options.priority),
      hang_ns(options.hang_ns),
      wait_policy(options.wait_policy),
      engine(static_cast<uint32_t>((number - 1) % std::max(owner->info.compute_engines, 1u)) + 1),
      flags(options.flags),
      timeout_ns(options.timeout_ns ? options.timeout_ns : kDefaultTimeoutNs) {
    waits_.reserve(kMaxWaits);
    held_.reserve(2 * kMaxWaits);
    main.copies = (flags & RT_STREAM_COPY_ENGINE) && device->info.copy_engines > 0;
}

rt_status rt_stream_impl::open_lane(Lane& lane, uint32_t engine_number, const char* origin) {
    enpu_hal_status status{};
    enpu_hal_fence* fence = nullptr;
    const enpu_hal_plugin& hal = device->hal;
    if (hal.fence->create(device->handle, 0, &fence, &status) != ENPU_HAL_OK)
        return from_hal(status, origin);
    lane.timeline = std::make_shared<Timeline>(hal, device->handle, fence);
    lane.enqueued = 0;
    return open_queue(lane, engine_number, origin);
}

rt_status rt_stream_impl::open_queue(Lane& lane, uint32_t engine_number, const char* origin) {
    enpu_hal_status status{};
    enpu_hal_queue_desc desc{};
    desc.header = {sizeof(desc), ENPU_HAL_TYPE_QUEUE_DESC, nullptr};
    desc.engine = lane.copies ? ENPU_HAL_ENGINE_COPY : ENPU_HAL_ENGINE_COMPUTE;
    desc.priority = priority;
    desc.timeout_ns = hang_ns;
    desc.engine_number = engine_number;
    if (device->hal.queue->create(device->handle, &desc, &lane.queue, &status) != ENPU_HAL_OK)
        return from_hal(status, origin);
    return RT_OK;
}

rt_status rt_stream_impl::open() {
    RT_TRY(open_lane(main, main.copies ? 0 : engine, "rt_stream_create"));
    cache.timeline = main.timeline;
    return RT_OK;
}

rt_status rt_stream_impl::make_lanes(uint32_t count, const char* origin) {
    const uint32_t compute = device->compute_lanes();
    while (sides_.size() + 1 < count) {
        auto lane = std::make_unique<Lane>();
        lane->index = static_cast<uint32_t>(sides_.size() + 1);
        lane->copies = lane->index >= compute;
        const uint32_t wanted =
            lane->copies ? lane->index - compute + 1 : (engine - 1 + lane->index) % compute + 1;
        RT_TRY(open_lane(*lane, wanted, origin));
        sides_.push_back(std::move(lane));
    }
    return RT_OK;
}

// Ends all queues: nothing of the stream runs any more.
void rt_stream_impl::end_lanes(const char* why) {
    enpu_hal_status status{};
    enpu::hal::fail(&status, ENPU_HAL_ABORTED, "dropped, because the stream was %s", why);
    drop_held(status);
    for (auto& side : sides_) {
        if (side->queue) device->hal.queue->destroy(side->queue);
        side->timeline->give_up(status);
    }
    sides_.clear();
    if (main.queue) device->hal.queue->destroy(main.queue);
    main.queue = nullptr;
    main.timeline->give_up(status);
    held_.clear();
    held_back_.clear();
    waits_.clear();
}

void rt_stream_impl::close() {
    rt_status_free(sync(deadline(), "rt_stream_destroy"));
    if (!HostThread::inside(device)) device->quiesce_host(this, deadline());
    std::scoped_lock lock(staging.mutex, mutex);
    if (closed) return;
    closed = true;
    abandon_capture();
    end_lanes("destroyed");
    peer.reset();
    device->pool->remove_stream(cache);
    if (staging.ready()) device->hal.memory->free(staging.buffer());
}

rt_status rt_stream_impl::reset() {
    RT_TRY(may_block("rt_stream_reset"));
    const uint64_t limit = deadline();
    // What hangs is ended by the driver, which then knows what to reset.
    rt_status_free(sync(limit, "rt_stream_reset"));
    if (!device->quiesce_host(this, limit))
        return make_status(RT_DEADLINE_EXCEEDED, "rt_stream_reset",
                           "a host function of stream %s has not returned", name.c_str());
    std::scoped_lock lock(staging.mutex, mutex);
    if (closed)
        return make_status(RT_FAILED_PRECONDITION, "rt_stream_reset", "stream is destroyed");
    abandon_capture();
    // Memory freed after a pending wait may be reused from now on: others must be done with it.
    for (const Point& point : waits_) point.wait(limit, nullptr);
    end_lanes("reset");
    device->pool->retire_stream(cache);
    staging.reset();
    poisoned_.store(false);
    if (rt_status status = open()) {
        poisoned_.store(true);
        poison_code_ = status->code;
        poison_message_ = status->message;
        return status;
    }
    return RT_OK;
}

// ---------------------------------------------------------------------------------------------
// under a policy, one operation at a time

void rt_stream_impl::mark_good() {
    std::lock_guard lock(mutex);
    good_ = main.enqueued;
}

// Another queue and fence; the timeline goes on from the last good point, so that events keep what
// they stand for.
rt_status rt_stream_impl::renew(const char* origin) {
    std::lock_guard lock(mutex);
    const enpu_hal_plugin& hal = device->hal;
    if (main.queue) hal.queue->destroy(main.queue);
    main.queue = nullptr;
    enpu_hal_status status{};
    enpu_hal_fence* fence = nullptr;
    if (hal.fence->create(device->handle, good_, &fence, &status) != ENPU_HAL_OK)
        return from_hal(status, origin);
    main.timeline->replace(fence, good_);
    main.enqueued = good_;
    RT_TRY(open_queue(main, main.copies ? 0 : engine, origin));
    poisoned_.store(false);
    return RT_OK;
}

rt_status rt_stream_impl::done_elsewhere(const StreamWork& work) {
    std::lock_guard lock(mutex);
    main.enqueued = good_ + 1;
    main.origin(main.enqueued) = {work.what,   work.origin,     take_call_site(),
                                  rt_now_ns(), work.first_node, work.nodes};
    // Without the device its fence stands still; what was reached is known all the same.
    device->hal.fence->signal(main.timeline->fence(), main.enqueued, nullptr);
    main.timeline->note_reached(main.enqueued);
    main.timeline->note_submitted(main.enqueued);
    good_ = main.enqueued;
    waits_.clear();
    poisoned_.store(false);
    return RT_OK;
}

// ---------------------------------------------------------------------------------------------
// failures

rt_status rt_stream_impl::poisoned_status(const char* origin) const {
    rt_status made = make_status(
        RT_STREAM_POISONED, origin,
        "stream %s needs rt_stream_reset, because earlier work failed (%s): %s (%s)", name.c_str(),
        rt_code_name(poison_code_), poison_message_.c_str(), poison_origin_.c_str());
    if (rt_status_impl* status = writable(made)) {
        status->stream = name;
        status->operation = poison_operation_;
    }
    return made;
}

// An operation that was dropped because of another lane: the reason is what failed there.
void rt_stream_impl::find_root(enpu_hal_status& status) {
    if (status.code != ENPU_HAL_ABORTED) return;
    for (uint32_t i = 0; i <= sides_.size(); ++i) {
        uint64_t value = 0;
        enpu_hal_status other{};
        const uint32_t code =
            device->hal.fence->query(lane_at(i).timeline->fence(), &value, &other);
        if (code != ENPU_HAL_OK && code != ENPU_HAL_ABORTED) {
            status = other;
            return;
        }
    }
}

// Poisons the stream with the failure of work in flight and describes it. Called with the lock
// held.
rt_status rt_stream_impl::failure(const enpu_hal_status& status, const char* origin) {
    enpu_hal_status root = status;
    find_root(root);
    rt_status made = from_hal(root, origin);
    rt_status_impl* out = writable(made);
    if (!out) return made;
    const uint64_t index = root.op_id >> 56, op = root.op_id & kOperationMask;
    out->stream = name;
    out->operation = op;
    out->origin = "stream " + name + "; found by " + origin;
    if (op != 0 && index <= sides_.size()) {
        Lane& lane = lane_at(static_cast<uint32_t>(index));
        if (op <= lane.enqueued && lane.enqueued - op < Lane::kOrigins)
            describe(*out, lane.origin(op), index, op, origin);
    }
    if (!poisoned_.load()) poison_with(*out);
    return made;
}

// Tells of an operation by what was remembered when it was enqueued.
void rt_stream_impl::describe(rt_status_impl& out, const Origin& from, uint64_t lane, uint64_t op,
                              const char* found_by) const {
    out.what = from.what;
    if (from.nodes == 1)
        out.what = "graph node " + std::to_string(from.first_node) + " (" + from.what + ")";
    out.site = to_text(from.site);
    out.elapsed_ns = rt_now_ns() - from.enqueued_ns;
    out.origin = out.what + ", operation " + std::to_string(op) +
                 (lane ? " of lane " + std::to_string(lane) : "") + " of stream " + name +
                 ", enqueued by " + from.origin + (out.site.empty() ? "" : " at " + out.site) +
                 "; found by " + found_by;
}

void rt_stream_impl::poison_with(const rt_status_impl& status) {
    poison_code_ = status.code;
    poison_operation_ = status.operation;
    poison_message_ = status.message;
    poison_origin_ = status.origin;
    poisoned_.store(true);
}

rt_status rt_stream_impl::completion_status(uint64_t value) {
    return wait_for(value, 0, "completion of work");
}

// ---------------------------------------------------------------------------------------------
// wait

rt_status rt_stream_impl::may_block(const char* origin) const {
    if (HostThread::inside(device))
        return make_status(RT_FAILED_PRECONDITION, origin,
                           "called from a host function of the device: stream %s may wait for that "
                           "function to return. Host functions may enqueue and look, not wait",
                           name.c_str());
    return RT_OK;
}

rt_status rt_stream_impl::late_status(uint64_t value, uint64_t start, const char* origin) {
    uint64_t now = 0;
    device->hal.fence->query(main.timeline->fence(), &now, nullptr);
    const uint64_t waited = rt_now_ns() - start;
    const Origin& running = main.origin(now + 1);
    rt_status made = make_status(
        RT_DEADLINE_EXCEEDED, origin,
        "stream %s: operation %llu (%s, by %s) has not ended after %llu ms of waiting for "
        "operation %llu",
        name.c_str(), static_cast<unsigned long long>(now + 1), running.what, running.origin,
        static_cast<unsigned long long>(waited / 1'000'000),
        static_cast<unsigned long long>(value));
    if (rt_status_impl* status = writable(made)) {
        status->stream = name;
        status->operation = now + 1;
        status->what = running.what;
        status->site = to_text(running.site);
        status->elapsed_ns = waited;
    }
    return made;
}

rt_status rt_stream_impl::wait_for(uint64_t value, uint64_t deadline_ns, const char* origin) {
    std::shared_ptr<Timeline> waited;
    {
        std::lock_guard lock(mutex);
        if (value > main.enqueued) RT_TRY(flush_locked(origin));
        waited = main.timeline;
    }
    if (waited->reached(value)) return RT_OK;
    if (deadline_ns != 0) RT_TRY(may_block(origin));
    const uint64_t start = rt_now_ns();
    enpu_hal_status status{};
    const uint32_t code = waited->wait(value, deadline_ns, wait_policy, &status);
    if (code == ENPU_HAL_OK) return RT_OK;
    std::lock_guard lock(mutex);
    if (code == ENPU_HAL_DEADLINE_EXCEEDED) return late_status(value, start, origin);
    return failure(status, origin);
}

rt_status rt_stream_impl::last_point(const char* origin, Point& point) {
    std::lock_guard lock(mutex);
    RT_TRY(check_usable(origin));
    if (capture) return capture_refuses(origin);
    RT_TRY(flush_locked(origin));
    if (!waits_.empty()) {
        StreamWork work;
        work.what = "wait for events";
        work.origin = origin;
        RT_TRY(enqueue_locked(work));
    }
    point = {main.timeline, main.enqueued};
    return RT_OK;
}

rt_status rt_stream_impl::sync(uint64_t deadline_ns, const char* origin) {
    RT_TRY(check_fork(*device, origin));
    Point point;
    RT_TRY(last_point(origin, point));
    return wait_for(point.value, deadline_ns, origin);
}

// -------------------------------------------------------------------------------------------
// public

rt_status rt_stream_create(rt_device device, const rt_stream_options* options, rt_stream* stream) {
    RT_NOT_NULL(device);
    RT_NOT_NULL(stream);
    *stream = nullptr;
    return guarded(__func__, [&]() -> rt_status {
        RT_TRY(check_fork(*device, "rt_stream_create"));
        rt_stream_options known{};
        // Fields after the name came later.
        constexpr size_t kLeast = offsetof(rt_stream_options, name) + sizeof(known.name);
        if (options && options->struct_size < kLeast)
            return make_status(RT_INVALID_ARGUMENT, "rt_stream_create",
                               "options: struct_size is %u, must be at least %zu",
                               options->struct_size, kLeast);
        if (options)
            std::memcpy(&known, options, std::min<size_t>(options->struct_size, sizeof(known)));
        if (known.flags & ~uint32_t{RT_STREAM_COPY_ENGINE | RT_STREAM_MERGE_COPIES})
            return make_status(RT_INVALID_ARGUMENT, "rt_stream_create",
                               "options: flags has unknown bits: 0x%x", known.flags);
        if (known.wait_policy > RT_WAIT_YIELD)
            return make_status(RT_INVALID_ARGUMENT, "rt_stream_create",
                               "options: wait_policy is %u; there are block, spin and yield",
                               known.wait_policy);
        auto* made = new rt_stream_impl(device, known);
        if (rt_status status = made->open()) {
            made->release();
            return status;
        }
        device->pool->add_stream(made->cache);
        std::lock_guard lock(device->streams_mutex);
        device->streams.push_back(made);
        *stream = made;
        return RT_OK;
    });
}

void rt_stream_destroy(rt_stream stream) {
    if (!stream) return;
    if (forked_since(*stream->device)) return;  // its threads are the parent's
    {
        std::lock_guard lock(stream->device->streams_mutex);
        std::erase(stream->device->streams, stream);
    }
    rt_status_free(guarded(__func__, [&]() -> rt_status {
        stream->close();
        return RT_OK;
    }));
    stream->release();
}

rt_status rt_stream_sync(rt_stream stream, uint64_t deadline_ns) {
    RT_NOT_NULL(stream);
    return guarded(__func__, [&] { return stream->sync(deadline_ns, "rt_stream_sync"); });
}

rt_status rt_stream_query(rt_stream stream, uint32_t* done) {
    RT_NOT_NULL(stream);
    RT_NOT_NULL(done);
    *done = 0;
    return guarded(__func__, [&]() -> rt_status {
        rt_status status = stream->sync(0, "rt_stream_query");
        if (rt_status_code(status) == RT_DEADLINE_EXCEEDED) {
            rt_status_free(status);
            return RT_OK;
        }
        *done = !status;
        return status;
    });
}

rt_status rt_stream_set_timeout(rt_stream stream, uint64_t timeout_ns) {
    RT_NOT_NULL(stream);
    stream->timeout_ns.store(timeout_ns ? timeout_ns : kDefaultTimeoutNs);
    return RT_OK;
}

rt_status rt_stream_reset(rt_stream stream) {
    RT_NOT_NULL(stream);
    return guarded(__func__, [&]() -> rt_status {
        RT_TRY(check_fork(*stream->device, "rt_stream_reset"));
        return stream->reset();
    });
}
