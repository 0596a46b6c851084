// SPDX-License-Identifier: MIT
#include "stream.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "common/status.h"
#include "poison.h"
#include "profile.h"

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
      timeout_ns(options.timeout_ns ? options.timeout_ns : kDefaultTimeoutNs),
      flags(options.flags) {
    device->retain();
}

rt_stream_impl::~rt_stream_impl() {
    device->release();
}

rt_status rt_stream_impl::open() {
    enpu_hal_status status{};
    enpu_hal_fence* fence = nullptr;
    const enpu_hal_plugin& hal = device->hal;
    if (hal.fence->create(device->handle, 0, &fence, &status) != ENPU_HAL_OK)
        return from_hal(status, "rt_stream_create");
    timeline = std::make_shared<Timeline>(hal, fence);
    enpu_hal_queue_desc desc{};
    desc.header = {sizeof(desc), ENPU_HAL_TYPE_QUEUE_DESC, nullptr};
    const bool copies = (flags & RT_STREAM_COPY_ENGINE) && device->info.copy_engines > 0;
    desc.engine = copies ? ENPU_HAL_ENGINE_COPY : ENPU_HAL_ENGINE_COMPUTE;
    desc.priority = priority;
    if (hal.queue->create(device->handle, &desc, &queue, &status) != ENPU_HAL_OK)
        return from_hal(status, "rt_stream_create");
    enqueued = 0;
    cache.timeline = timeline;
    return RT_OK;
}

void rt_stream_impl::close() {
    rt_status_free(sync(deadline(), "rt_stream_destroy"));
    std::scoped_lock lock(staging.mutex, mutex);
    if (closed) return;
    closed = true;
    device->hal.queue->destroy(queue);  // drops what has not ended
    queue = nullptr;
    device->pool->remove_stream(cache);
    if (staging.ready()) device->hal.memory->free(staging.buffer());
    peer.reset();
    held_.clear();
    waits_.clear();
}

rt_status rt_stream_impl::reset() {
    rt_status_free(sync(deadline(), "rt_stream_reset"));
    std::scoped_lock lock(staging.mutex, mutex);
    if (closed)
        return make_status(RT_FAILED_PRECONDITION, "rt_stream_reset", "stream is destroyed");
    for (const Point& point : waits_) {
        const enpu_hal_point wanted{point.timeline->fence(), point.value};
        device->hal.fence->wait(device->handle, &wanted, 1, 0, deadline(), nullptr);
    }
    waits_.clear();
    device->hal.queue->destroy(queue);
    queue = nullptr;
    device->pool->retire_stream(cache);
    held_.clear();
    held_back_.clear();
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

// ------------------------------------------------------------------------------------------
// enqueue

rt_status rt_stream_impl::poisoned_status(const char* origin) const {
    return make_status(RT_STREAM_POISONED, origin,
                       "stream %s needs rt_stream_reset, because earlier work failed (%s): %s (%s)",
                       name.c_str(), rt_code_name(poison_code_), poison_message_.c_str(),
                       poison_origin_.c_str());
}

void rt_stream_impl::hold(const std::shared_ptr<Timeline>& waited, uint64_t until) {
    std::erase_if(held_, [&](const Held& held) { return timeline->settled(held.until); });
    held_.push_back({waited, until});
}

rt_status rt_stream_impl::enqueue(const StreamWork& work, uint64_t* value,
                                  std::shared_ptr<Timeline>* on) {
    std::lock_guard lock(mutex);
    RT_TRY(enqueue_locked(work));
    if (value) *value = enqueued;
    if (on) *on = timeline;
    return RT_OK;
}

rt_status rt_stream_impl::enqueue_copy(const enpu_hal_place& dst, const enpu_hal_place& src,
                                       uint64_t bytes, const char* origin, uint64_t* value) {
    std::lock_guard lock(mutex);
    device->counted.copies.fetch_add(1, std::memory_order_relaxed);
    if (!(flags & RT_STREAM_MERGE_COPIES) || bytes > CopyList::kSmall) {
        CopyList alone;
        alone.add(dst, src, bytes);
        RT_TRY(enqueue_locked({alone.commands(), 1, nullptr, "copy", origin, nullptr}));
        if (value) *value = enqueued;
        return RT_OK;
    }
    if (closed) return make_status(RT_FAILED_PRECONDITION, origin, "stream is destroyed");
    if (poisoned_.load(std::memory_order_relaxed)) return poisoned_status(origin);
    if (!held_back_.add(dst, src, bytes)) {
        RT_TRY(flush_locked(origin));
        held_back_.add(dst, src, bytes);
    }
    if (held_back_.copies() > 1)
        device->counted.copies_merged.fetch_add(1, std::memory_order_relaxed);
    if (value) *value = enqueued + 1;
    return RT_OK;
}

rt_status rt_stream_impl::flush_locked(const char* origin) {
    if (held_back_.empty()) return RT_OK;
    RT_TRY(submit_locked(
        {held_back_.commands(), held_back_.count(), nullptr, "merged copies", origin, nullptr}));
    held_back_.clear();
    return RT_OK;
}

rt_status rt_stream_impl::flush(const char* origin) {
    std::lock_guard lock(mutex);
    return flush_locked(origin);
}

rt_status rt_stream_impl::enqueue_locked(const StreamWork& work) {
    RT_TRY(flush_locked(work.origin));
    return submit_locked(work);
}

rt_status rt_stream_impl::submit_locked(const StreamWork& work) {
    if (closed) return make_status(RT_FAILED_PRECONDITION, work.origin, "stream is destroyed");
    if (poisoned_.load(std::memory_order_relaxed)) return poisoned_status(work.origin);
    enpu_hal_point waits[kMaxWaits + 1];
    uint32_t wait_count = 0;
    for (const Point& point : waits_) waits[wait_count++] = {point.timeline->fence(), point.value};
    if (work.wait && work.wait->timeline && work.wait->timeline != timeline)
        waits[wait_count++] = {work.wait->timeline->fence(), work.wait->value};
    const enpu_hal_point signal{timeline->fence(), enqueued + 1};
    enpu_hal_submission submission{};
    submission.header = {sizeof(submission), ENPU_HAL_TYPE_SUBMISSION, nullptr};
    submission.op_id = enqueued + 1;
    submission.waits = waits;
    submission.wait_count = wait_count;
    submission.signals = &signal;
    submission.signal_count = 1;
    submission.commands = work.commands;
    submission.command_count = work.count;
    enpu_hal_status status;
    status.code = ENPU_HAL_OK;
    if (profile::on(RT_PROFILE_DEVICE)) [[unlikely]]
        RT_TRY(profile::submit(*this, work, submission, status));
    else
        RT_TRY(submit_now(work, submission, status));
    ++enqueued;
    origins_[enqueued % kOrigins] = {work.what, work.origin};
    if (wait_count) {
        for (const Point& point : waits_) hold(point.timeline, enqueued);
        if (work.wait && work.wait->timeline) hold(work.wait->timeline, enqueued);
        waits_.clear();
    }
    return RT_OK;
}

rt_status rt_stream_impl::submit_now(const StreamWork& work, enpu_hal_submission& submission,
                                     enpu_hal_status& status) {
    const uint64_t limit = deadline();
    const enpu_hal_plugin& hal = device->hal;
    const uint32_t code = work.graph
                              ? hal.graph->launch(queue, work.graph, &submission, limit, &status)
                              : hal.queue->submit(queue, &submission, limit, &status);
    if (code == ENPU_HAL_OK) {
        device->counted.submissions.fetch_add(1, std::memory_order_relaxed);
        return RT_OK;
    }
    if (code >= ENPU_HAL_ABORTED) return failure(status, work.origin);
    return from_hal(status, work.origin);
}

// ---------------------------------------------------------------------------------------------
// wait

// Poisons the stream with the failure of work in flight and describes it. Called with the lock
// held.
rt_status rt_stream_impl::failure(const enpu_hal_status& status, const char* origin) {
    rt_status made = from_hal(status, origin);
    const uint64_t op = status.op_id;
    if (op != 0 && op <= enqueued && enqueued - op < kOrigins) {
        const Origin& from = origins_[op % kOrigins];
        made->origin = std::string(from.what) + ", operation " + std::to_string(op) +
                       " of stream " + name + ", enqueued by " + from.origin + "; found by " +
                       origin;
    } else {
        made->origin = "stream " + name + "; found by " + origin;
    }
    if (!poisoned_.load()) {
        poison_code_ = made->code;
        poison_operation_ = op;
        poison_message_ = made->message;
        poison_origin_ = made->origin;
        poisoned_.store(true);
    }
    return made;
}

rt_status rt_stream_impl::wait_for(uint64_t value, uint64_t deadline_ns, const char* origin) {
    std::shared_ptr<Timeline> waited;
    {
        std::lock_guard lock(mutex);
        if (value > enqueued) RT_TRY(flush_locked(origin));
        waited = timeline;
    }
    if (waited->reached(value)) return RT_OK;
    const uint64_t start = rt_now_ns();
    const enpu_hal_point point{waited->fence(), value};
    enpu_hal_status status{};
    const uint32_t code =
        device->hal.fence->wait(device->handle, &point, 1, 0, deadline_ns, &status);
    if (code == ENPU_HAL_OK) {
        waited->note_reached(value);
        return RT_OK;
    }
    std::lock_guard lock(mutex);
    if (code != ENPU_HAL_DEADLINE_EXCEEDED) return failure(status, origin);
    uint64_t now = 0;
    device->hal.fence->query(waited->fence(), &now, nullptr);
    const Origin& running = origins_[(now + 1) % kOrigins];
    return make_status(RT_DEADLINE_EXCEEDED, origin,
                       "stream %s: operation %llu (%s, by %s) has not ended after %llu ms of "
                       "waiting for operation %llu",
                       name.c_str(), static_cast<unsigned long long>(now + 1), running.what,
                       running.origin,
                       static_cast<unsigned long long>((rt_now_ns() - start) / 1'000'000),
                       static_cast<unsigned long long>(value));
}

rt_status rt_stream_impl::last_point(const char* origin, Point& point) {
    std::lock_guard lock(mutex);
    if (closed) return make_status(RT_FAILED_PRECONDITION, origin, "stream is destroyed");
    if (poisoned_.load()) return poisoned_status(origin);
    RT_TRY(flush_locked(origin));
    if (!waits_.empty()) RT_TRY(enqueue_locked({.what = "wait for events", .origin = origin}));
    point = {timeline, enqueued};
    return RT_OK;
}

rt_status rt_stream_impl::sync(uint64_t deadline_ns, const char* origin) {
    Point point;
    RT_TRY(last_point(origin, point));
    return wait_for(point.value, deadline_ns, origin);
}

rt_status rt_stream_impl::wait_event_point(const Point& point) {
    if (!point.timeline || point.timeline->reached(point.value)) return RT_OK;
    std::lock_guard lock(mutex);
    if (closed)
        return make_status(RT_FAILED_PRECONDITION, "rt_stream_wait_event", "stream is destroyed");
    if (poisoned_.load()) return poisoned_status("rt_stream_wait_event");
    if (point.timeline == timeline) return RT_OK;  // ordered anyway
    RT_TRY(flush_locked("rt_stream_wait_event"));  // what came before does not wait
    for (Point& wait : waits_) {
        if (wait.timeline != point.timeline) continue;
        wait.value = std::max(wait.value, point.value);
        return RT_OK;
    }
    if (waits_.size() == kMaxWaits)
        RT_TRY(enqueue_locked({.what = "wait for events", .origin = "rt_stream_wait_event"}));
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
        const enpu_hal_point wanted{use.timeline->fence(), use.value};
        device->hal.fence->wait(device->handle, &wanted, 1, 0, deadline(), nullptr);
    }
    if (device->poison.load(std::memory_order_relaxed)) [[unlikely]]
        poison_freed(*this, pointer, origin);
    std::lock_guard lock(mutex);
    // A pending wait is part of the operation that comes next.
    const uint64_t point = waits_.empty() && held_back_.empty() ? enqueued : enqueued + 1;
    RT_TRY(device->pool->free(closed ? nullptr : &cache, point, pointer, origin));
    if (profile::on(RT_PROFILE_MEMORY)) [[unlikely]]
        profile::note_memory(*device);
    return RT_OK;
}

// -------------------------------------------------------------------------------------------
// public

rt_status rt_stream_create(rt_device device, const rt_stream_options* options, rt_stream* stream) {
    RT_NOT_NULL(device);
    RT_NOT_NULL(stream);
    *stream = nullptr;
    return guarded(__func__, [&]() -> rt_status {
        rt_stream_options known{};
        // Fields after the name came later.
        constexpr size_t kLeast = offsetof(rt_stream_options, flags);
        if (options && options->struct_size < kLeast)
            return make_status(RT_INVALID_ARGUMENT, "rt_stream_create",
                               "options: struct_size is %u, must be at least %zu",
                               options->struct_size, kLeast);
        if (options)
            std::memcpy(&known, options, std::min<size_t>(options->struct_size, sizeof(known)));
        if (known.flags & ~uint32_t{RT_STREAM_COPY_ENGINE | RT_STREAM_MERGE_COPIES})
            return make_status(RT_INVALID_ARGUMENT, "rt_stream_create",
                               "options: flags has unknown bits: 0x%x", known.flags);
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

rt_status rt_stream_reset(rt_stream stream) {
    RT_NOT_NULL(stream);
    return guarded(__func__, [&] { return stream->reset(); });
}
