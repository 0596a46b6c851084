// SPDX-License-Identifier: MIT
#include "profile_device.h"

#include <algorithm>

#include "kernel.h"
#include "profile_graph.h"
#include "stream.h"

namespace enpu::rt::profile {

const char* command_name(const enpu_hal_command& command) {
    switch (command.kind) {
        case ENPU_HAL_COMMAND_COPY:
            return "copy";
        case ENPU_HAL_COMMAND_FILL:
            return "fill";
        case ENPU_HAL_COMMAND_DISPATCH:
            return describe_op(command.u.dispatch->op);
        case ENPU_HAL_COMMAND_TIMESTAMP:
            return "timestamp";
        default:
            return "host call";
    }
}

enpu_hal_command timestamp_command(enpu_hal_buffer* buffer, uint64_t offset) {
    enpu_hal_command command{};
    command.kind = ENPU_HAL_COMMAND_TIMESTAMP;
    command.u.timestamp.dst = {buffer, offset};
    return command;
}

std::vector<enpu_hal_command> with_timestamps(const enpu_hal_command* commands, uint32_t count,
                                              enpu_hal_buffer* buffer, uint64_t first) {
    std::vector<enpu_hal_command> timed;
    timed.reserve(2 * size_t{count} + 1);
    timed.push_back(timestamp_command(buffer, first * sizeof(uint64_t)));
    for (uint64_t i = 0; i < count; ++i) {
        timed.push_back(commands[i]);
        timed.push_back(timestamp_command(buffer, (first + i + 1) * sizeof(uint64_t)));
    }
    return timed;
}

DeviceRecorder::DeviceRecorder(rt_device_impl& device, uint64_t max_events)
    : name(device.info.name), max_events_(max_events), device_(&device) {
    if (!open()) device_ = nullptr;
}

DeviceRecorder::~DeviceRecorder() {
    finish(0);
}

bool DeviceRecorder::open() {
    constexpr uint32_t kNeeded = ENPU_HAL_CAP_TIMESTAMP | ENPU_HAL_CAP_PROFILE;
    if ((device_->info.caps & kNeeded) != kNeeded) return false;
    void* host = nullptr;
    rt_status status =
        device_->allocate_host(kWords * sizeof(uint64_t), "rt_profile_start", &buffer_, &host);
    if (status) {
        rt_status_free(status);
        buffer_ = nullptr;
        return false;
    }
    words_ = static_cast<volatile uint64_t*>(host);
    begin_ = now();
    return true;
}

// The read that took the least time is the most exact.
DeviceRecorder::Moment DeviceRecorder::now() const {
    Moment best;
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 8; ++i) {
        Moment moment;
        const uint64_t before = rt_now_ns();
        if (device_->hal.profile->clock(device_->handle, &moment.ticks, &moment.ns, nullptr) !=
            ENPU_HAL_OK)
            continue;
        const uint64_t took = rt_now_ns() - before;
        if (took >= least) continue;
        least = took;
        best = moment;
    }
    return best;
}

// Words first … first + count - 1 do not wrap. False: all are in use.
bool DeviceRecorder::take_words(uint64_t count, uint64_t& first) {
    for (int attempt = 0; attempt < 2; ++attempt) {
        uint64_t at = head_;
        if (at % kWords + count > kWords) at = (at / kWords + 1) * kWords;
        const auto oldest = std::find_if(pending_.begin(), pending_.end(),
                                         [](const Pending& p) { return p.first != kOfGraph; });
        if (oldest == pending_.end() || at + count - oldest->first <= kWords) {
            first = at;
            head_ = at + count;
            for (uint64_t i = 0; i < count; ++i) words_[(at + i) % kWords] = 0;
            return true;
        }
        collect();
    }
    return false;
}

rt_status DeviceRecorder::submit_timed(rt_stream_impl& stream, const StreamWork& work,
                                       enpu_hal_submission& submission, uint64_t limit,
                                       enpu_hal_status& status, Pending pending) {
    pending.stream = stream.number;
    pending.operation = submission.op_id & kOperationMask;
    pending.origin = work.origin;
    pending.point = {stream.timeline_of(work.lane), pending.operation};
    pending.call_ns = rt_now_ns();
    rt_status result = stream.submit_now(work, submission, limit, status);
    pending.returned_ns = rt_now_ns();
    if (!result) pending_.push_back(std::move(pending));
    return result;
}

rt_status DeviceRecorder::submit(rt_stream_impl& stream, const StreamWork& work,
                                 enpu_hal_submission& submission, uint64_t limit,
                                 enpu_hal_status& status) {
    std::unique_lock lock(mutex_);
    Pending pending;
    if (device_ && work.timed) {
        pending.words = work.timed->clear_words();
        pending.names = work.timed->names;
        return submit_timed(stream, work, submission, limit, status, std::move(pending));
    }
    const uint32_t count = submission.command_count;
    if (!device_ || work.graph || count == 0 ||
        2 * uint64_t{count} + 1 > device_->info.max_commands ||
        !take_words(uint64_t{count} + 1, pending.first)) {
        dropped += count != 0 || work.graph;
        lock.unlock();
        return stream.submit_now(work, submission, limit, status);
    }
    const uint64_t word = pending.first % kWords;
    pending.words = words_ + word;
    auto names = std::make_shared<Names>();
    for (uint32_t i = 0; i < count; ++i) names->push_back(command_name(submission.commands[i]));
    pending.names = std::move(names);
    const auto commands = with_timestamps(submission.commands, count, buffer_, word);
    submission.commands = commands.data();
    submission.command_count = static_cast<uint32_t>(commands.size());
    return submit_timed(stream, work, submission, limit, status, std::move(pending));
}

// Reads what has ended, in whichever order.
void DeviceRecorder::collect() {
    std::erase_if(pending_, [&](const Pending& pending) {
        if (!pending.point.settled()) return false;
        read(pending);
        return true;
    });
}

void DeviceRecorder::forget(const TimedGraph& graph) {
    std::lock_guard lock(mutex_);
    if (!device_) return;
    collect();
    dropped += std::erase_if(
        pending_, [&](const Pending& pending) { return pending.words == graph.words(); });
}

// Ticks for now; finish makes them ns.
void DeviceRecorder::read(const Pending& pending) {
    const auto word = [&](uint64_t i) -> uint64_t { return pending.words[i]; };
    const Names& names = *pending.names;
    for (size_t i = 0; i < names.size(); ++i) {
        // 0: an operation before failed.
        if (word(i) == 0 || word(i + 1) == 0 || spans.size() >= max_events_) {
            ++dropped;
            continue;
        }
        spans.push_back({names[i], pending.stream, pending.operation, word(i), word(i + 1)});
    }
    calls.push_back({pending.origin, pending.stream, pending.operation, pending.call_ns,
                     pending.returned_ns, word(0)});
}

uint64_t DeviceRecorder::to_ns(uint64_t ticks) const {
    const Moment& a = begin_;
    const Moment& b = end_;
    const double passed = double(int64_t(ticks - a.ticks));
    const double rate = b.ticks > a.ticks ? double(b.ns - a.ns) / double(b.ticks - a.ticks)
                                          : 1e9 / double(device_->info.clock_hz);
    return static_cast<uint64_t>(int64_t(a.ns) + int64_t(passed * rate));
}

void DeviceRecorder::finish(uint64_t deadline_ns) {
    std::unique_lock lock(mutex_);
    if (!device_) return;
    std::vector<Point> points;
    for (const Pending& pending : pending_) points.push_back(pending.point);
    lock.unlock();
    for (const Point& point : points) {
        point.wait(deadline_ns, nullptr);
    }
    lock.lock();
    if (!device_) return;
    collect();
    dropped += pending_.size();
    const bool idle = pending_.empty();
    pending_.clear();
    end_ = now();
    for (DeviceSpan& span : spans) {
        span.start_ns = to_ns(span.start_ns);
        span.end_ns = to_ns(span.end_ns);
    }
    for (DriverSpan& call : calls)
        if (call.started_ns) call.started_ns = to_ns(call.started_ns);
    // What has not ended still writes there.
    if (idle)
        device_->hal.memory->free(buffer_);
    else
        device_->keep(buffer_);
    device_ = nullptr;
}

}  // namespace enpu::rt::profile
