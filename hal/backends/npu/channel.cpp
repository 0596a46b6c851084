// SPDX-License-Identifier: MIT
#include "channel.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "npu.h"
#include "status.h"

namespace enpu::hal::npu {
namespace {

uint32_t failure_code(int code) {
    switch (code) {
        case -ETIMEDOUT:
            return ENPU_HAL_WORK_TIMEOUT;
        case -ESTALE:
            return ENPU_HAL_DATA_LOSS;
        case -ECANCELED:
        case -ENOTRECOVERABLE:
            return ENPU_HAL_ABORTED;
        case -ENODEV:
        case -EIO:
            return ENPU_HAL_DEVICE_LOST;
        case -ENOMEM:
            return ENPU_HAL_RESOURCE_EXHAUSTED;
        default:
            return ENPU_HAL_WORK_FAILED;
    }
}

}  // namespace

uint32_t Channel::open(enpu_hal_device& device, const enpu_hal_queue_desc& desc,
                       enpu_hal_status* status) {
    const enpu_device_info& info = *enpu_device_get_info(device.handle);
    copy_ = desc.engine == ENPU_HAL_ENGINE_COPY;
    const uint32_t engines = copy_ ? info.copy_engines : info.compute_engines;
    const uint32_t wanted = desc.header.size >= sizeof(desc) ? desc.engine_number : 0;
    const uint32_t number =
        wanted != 0 ? wanted - 1 : (copy_ ? device.next_copy : device.next_compute).fetch_add(1);
    engine_ = (copy_ ? info.compute_engines : 0) + number % engines;
    enpu_context_config config{};
    config.priority = desc.priority < 0   ? ENPU_PRIORITY_LOW
                      : desc.priority > 0 ? ENPU_PRIORITY_HIGH
                                          : ENPU_PRIORITY_NORMAL;
    config.timeout_ms =
        static_cast<uint32_t>(std::min<uint64_t>(desc.timeout_ns / 1'000'000, 600'000));
    config.max_jobs = kRecords;
    enpu_error error;
    int result = enpu_context_create(device.handle, &config, &context_, &error);
    if (result == -EACCES) {  // a hint, which this user may not take
        config.priority = ENPU_PRIORITY_NORMAL;
        result = enpu_context_create(device.handle, &config, &context_, &error);
    }
    void* host = nullptr;
    if (result ||
        enpu_builder_create(device.handle, copy_ ? ENPU_ENGINE_KIND_COPY : ENPU_ENGINE_KIND_COMPUTE,
                            &builder_, &error) ||
        enpu_timeline_create(device.handle, 0, &own_, &error) ||
        enpu_buffer_create(device.handle, kRingBytes, ENPU_BUFFER_HOST | ENPU_BUFFER_READ_ONLY,
                           &ring_, &error) ||
        enpu_buffer_map(ring_, &host, &error))
        return fail_with(status, error);
    ring_host_ = static_cast<std::byte*>(host);
    ring_va_ = enpu_buffer_va(ring_);
    return ENPU_HAL_OK;
}

Channel::~Channel() {
    close();
    while (first_ != last_) enpu_timeline_release(records_[first_++ % kRecords].timeline);
    enpu_builder_release(builder_);
    enpu_buffer_release(ring_);
    enpu_timeline_release(own_);
}

// ----------------------------------------------------------------------------------------
// submission

uint32_t Channel::check(Points& points, enpu_hal_status* status) {
    if (!context_)
        return fail(status, ENPU_HAL_FAILED_PRECONDITION, "submit: the queue was destroyed");
    if (failed_) return fail_as(status, failure_);
    if (points.signal_count == 0) points.signals[points.signal_count++] = {own_, own_value_ + 1};
    return ENPU_HAL_OK;
}

// Without the lock: asking for a failure takes that of the other channel.
uint32_t Channel::collect(const enpu_hal_submission& submission, Points& points,
                          enpu_hal_status* status) {
    for (uint32_t i = 0; i < submission.wait_count; ++i) {
        const enpu_hal_point& wait = submission.waits[i];
        if (wait.value == 0) continue;  // where every timeline begins
        enpu_hal_status why{};
        if (wait.fence->failed(wait.value, &why))
            return fail(status, ENPU_HAL_ABORTED, "a point it waits for failed: %.200s",
                        why.message);
        points.waits[points.wait_count++] = {wait.fence->handle, wait.value};
    }
    for (uint32_t i = 0; i < submission.signal_count; ++i)
        points.signals[points.signal_count++] = {submission.signals[i].fence->handle,
                                                 submission.signals[i].value};
    return ENPU_HAL_OK;
}

uint64_t Channel::ring_start(uint64_t bytes) const {
    const uint64_t at = head_ % kRingBytes;
    return at + bytes <= kRingBytes ? head_ : head_ + (kRingBytes - at);
}

void Channel::retire_reached() {
    while (first_ != last_) {
        Record& record = records_[first_ % kRecords];
        uint64_t value = 0;
        if (enpu_timeline_query(record.timeline, &value, nullptr) != 0 || value < record.value)
            return;
        enpu_timeline_release(record.timeline);
        tail_ = record.ring_end;
        ++first_;
    }
}

uint32_t Channel::retire_one(uint64_t deadline_ns, enpu_hal_status* status) {
    if (first_ == last_) {
        tail_ = head_;
        return ENPU_HAL_OK;
    }
    const Record& record = records_[first_ % kRecords];
    enpu_error error;
    if (enpu_timeline_wait(record.timeline, record.value, to_deadline(deadline_ns), &error) != 0)
        return fail_with(status, error);
    // What failed must be known before its record goes.
    refresh_locked();
    retire_reached();
    return failed_ ? fail_as(status, failure_) : uint32_t(ENPU_HAL_OK);
}

uint32_t Channel::make_room(uint64_t bytes, uint64_t deadline_ns, enpu_hal_status* status) {
    if (bytes > kRingBytes)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "submit: %llu bytes of packets, at most %llu in one submission",
                    static_cast<unsigned long long>(bytes),
                    static_cast<unsigned long long>(kRingBytes));
    while (last_ - first_ == kRecords || ring_start(bytes) + bytes - tail_ > kRingBytes)
        if (uint32_t code = retire_one(deadline_ns, status)) return code;
    return ENPU_HAL_OK;
}

// Accounts for a job that was submitted, or turns the refusal into a status.
uint32_t Channel::submitted(int result, const enpu_error& error,
                            const enpu_hal_submission& submission, const Points& points,
                            uint64_t seqno, uint64_t ring_end, enpu_hal_status* status) {
    if (result == -ENOTRECOVERABLE) {
        refresh_locked();
        if (failed_) return fail_as(status, failure_);
    }
    if (result != 0) return fail_with(status, error);
    Record& record = records_[last_++ % kRecords];
    enpu_timeline* timeline = points.signals[0].timeline;
    record = {enpu_timeline_retain(timeline),
              submission.signal_count ? submission.signals[0].fence : nullptr,
              points.signals[0].value, seqno, ring_end};
    head_ = ring_end;
    if (timeline == own_) own_value_ = points.signals[0].value;
    return ENPU_HAL_OK;
}

uint32_t Channel::submit(const enpu_hal_submission& submission, uint64_t deadline_ns,
                         enpu_hal_status* status) {
    Points points;
    if (uint32_t code = collect(submission, points, status)) return code;
    std::lock_guard lock(mutex_);
    if (uint32_t code = check(points, status)) return code;
    enpu_builder_reset(builder_);
    enpu_error error;
    for (uint32_t i = 0; i < submission.command_count; ++i)
        if (uint32_t code = append(builder_, submission.commands[i], status)) return code;
    if (submission.command_count == 0 && enpu_build_nop(builder_, &error) < 0)
        return fail_with(status, error);
    const uint64_t bytes = enpu_builder_bytes(builder_);
    if (uint32_t code = make_room(bytes, deadline_ns, status)) return code;
    const uint64_t start = ring_start(bytes);
    std::memcpy(ring_host_ + start % kRingBytes, enpu_builder_packets(builder_), bytes);
    // The packets were checked as they were built, and the HAL's rules keep buffers alive.
    uint64_t seqno = 0;
    int result;
    do {
        result =
            enpu_submit_raw(context_, engine_, ring_va_ + start % kRingBytes,
                            static_cast<uint32_t>(bytes), points.waits, points.wait_count,
                            points.signals, points.signal_count, submission.op_id, &seqno, &error);
    } while (result == -EAGAIN && retire_one(deadline_ns, nullptr) == ENPU_HAL_OK);
    return submitted(result, error, submission, points, seqno, start + bytes, status);
}

uint32_t Channel::launch(const enpu_hal_graph& graph, const enpu_hal_submission& submission,
                         uint64_t deadline_ns, enpu_hal_status* status) {
    Points points;
    if (uint32_t code = collect(submission, points, status)) return code;
    std::lock_guard lock(mutex_);
    if (uint32_t code = check(points, status)) return code;
    if (copy_ || submission.command_count)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "launch: takes no commands, and a compute queue");
    for (size_t i = 0; i < graph.chunks.size(); ++i) {
        // Jobs of one context and engine run in order: only the ends of the chain meet the outside.
        const bool first = i == 0, last = i + 1 == graph.chunks.size();
        Points inner;
        if (!last) inner.signals[inner.signal_count++] = {own_, own_value_ + 1};
        const Points& signals = last ? points : inner;
        if (uint32_t code = make_room(0, deadline_ns, status)) return code;
        uint64_t seqno = 0;
        enpu_error error;
        int result;
        do {
            result = enpu_submit(context_, engine_, graph.chunks[i].command, points.waits,
                                 first ? points.wait_count : 0, signals.signals,
                                 signals.signal_count, submission.op_id, &seqno, &error);
        } while (result == -EAGAIN && retire_one(deadline_ns, nullptr) == ENPU_HAL_OK);
        enpu_hal_submission part = submission;
        if (!last) part.signal_count = 0;
        if (uint32_t code = submitted(result, error, part, signals, seqno, head_, status))
            return code;
        if (!last) points.signals[0].value += points.signals[0].timeline == own_;
    }
    return ENPU_HAL_OK;
}

// ------------------------------------------------------------------------------------------
// failures

// Fails the fences of the jobs from `seqno` on; the caller holds the lock.
void Channel::fail_from(uint64_t seqno, const enpu_hal_status& why, bool unfinished_only) {
    for (uint64_t i = first_; i != last_; ++i) {
        const Record& record = records_[i % kRecords];
        if (!record.fence || record.seqno < seqno) continue;
        uint64_t value = 0;
        if (unfinished_only && enpu_timeline_query(record.timeline, &value, nullptr) == 0 &&
            value >= record.value)
            continue;
        record.fence->fail(record.value, why);
    }
}

void Channel::refresh_locked() {
    if (failed_ || !context_) return;
    enpu_context_status record;
    enpu_error error;
    if (const int result = enpu_context_get_status(context_, &record, &error)) {
        fail_with(&failure_, error);
        failure_.code = failure_code(result);
        record.failed_seqno = 0;
    } else if (record.code == 0) {
        return;
    } else {
        fail_device(&failure_, failure_code(record.code), record.code, "%.250s", record.message);
        failure_.op_id = record.failed_job_id;
    }
    failed_ = true;
    fail_from(record.failed_seqno, failure_, false);
}

void Channel::refresh() {
    std::lock_guard lock(mutex_);
    refresh_locked();
}

void Channel::close() {
    std::lock_guard lock(mutex_);
    if (!context_) return;
    refresh_locked();
    enpu_hal_status why{};
    fail(&why, ENPU_HAL_ABORTED, "dropped, because the queue was destroyed");
    if (!failed_) fail_from(0, why, true);
    enpu_context_release(context_);
    context_ = nullptr;
    // The engines read the ring until then.
    const int64_t deadline = enpu_deadline_after(10'000'000'000);
    for (uint64_t i = first_; i != last_; ++i)
        enpu_timeline_wait(records_[i % kRecords].timeline, records_[i % kRecords].value, deadline,
                           nullptr);
}

}  // namespace enpu::hal::npu

using enpu::hal::npu::Channel;

void enpu_hal_fence::fail(uint64_t from, const enpu_hal_status& why) {
    std::lock_guard lock(mutex);
    if (failed_from == UINT64_MAX) failure = why;
    failed_from = std::min(failed_from, from);
}

bool enpu_hal_fence::failed(uint64_t point, enpu_hal_status* status) {
    std::shared_ptr<Channel> from;
    {
        std::lock_guard lock(mutex);
        from = channel;
    }
    if (from) from->refresh();
    std::lock_guard lock(mutex);
    if (failed_from == UINT64_MAX || point < failed_from) return false;
    enpu::hal::fail_as(status, failure);
    return true;
}
