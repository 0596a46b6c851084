// SPDX-License-Identifier: MIT
#include "queue.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>

#include "arguments.h"
#include "ranges.h"
#include "status.h"
#include "structure.h"

namespace enpu::hal {
namespace {

constexpr uint64_t kDefaultTimeoutNs = 60'000'000'000;
constexpr uint64_t kSliceNs = 20'000'000;  // how long the thread is deaf to its end

enpu_hal_submission submission_of(const enpu_hal_command* commands, size_t count, uint64_t op_id) {
    enpu_hal_submission made{};
    made.header = table_header(sizeof(made), ENPU_HAL_TYPE_SUBMISSION);
    made.op_id = op_id;
    made.commands = commands;
    made.command_count = static_cast<uint32_t>(count);
    return made;
}

enpu_hal_command copy_of(const enpu_hal_place& dst, const enpu_hal_place& src, uint64_t bytes) {
    enpu_hal_command command{};
    command.kind = ENPU_HAL_COMMAND_COPY;
    command.u.copy = {dst, src, bytes, 1, bytes, bytes};
    return command;
}

}  // namespace

EmulatedQueue::EmulatedQueue(const enpu_hal_plugin& below, Fences& fences, enpu_hal_device* device,
                             const enpu_hal_device_info& info, uint64_t timeout_ns)
    : next_(below),
      fences_(fences),
      device_(device),
      info_(info),
      timeout_ns_(timeout_ns ? timeout_ns : kDefaultTimeoutNs) {}

EmulatedQueue::~EmulatedQueue() {
    {
        std::lock_guard lock(mutex_);
        stop_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
    if (handle_) next_.queue->destroy(handle_);
    if (patterns_) next_.memory->free(patterns_);
    if (own_) next_.fence->destroy(own_);
}

uint32_t EmulatedQueue::open(const enpu_hal_queue_desc& desc, enpu_hal_status* status) {
    if (uint32_t code = next_.fence->create(device_, 0, &own_, status)) return code;
    if (lacks(ENPU_HAL_CAP_FILL)) {
        enpu_hal_buffer_desc memory{};
        memory.header = table_header(sizeof(memory), ENPU_HAL_TYPE_BUFFER_DESC);
        memory.bytes = kSlots * kSlotBytes;
        memory.memory = ENPU_HAL_MEMORY_HOST;
        if (uint32_t code = next_.memory->alloc(device_, &memory, &patterns_, status)) return code;
        enpu_hal_buffer_info about{};
        about.header = table_header(sizeof(about), ENPU_HAL_TYPE_BUFFER_INFO);
        if (uint32_t code = next_.memory->info(patterns_, &about, status)) return code;
        patterns_host_ = static_cast<unsigned char*>(about.host);
    }
    return next_.queue->create(device_, &desc, &handle_, status);
}

bool EmulatedQueue::must_change(const enpu_hal_command& command) const {
    switch (command.kind) {
        case ENPU_HAL_COMMAND_COPY:
            return command.u.copy.height > 1 && lacks(ENPU_HAL_CAP_COPY_2D);
        case ENPU_HAL_COMMAND_FILL:
            return lacks(ENPU_HAL_CAP_FILL);
        case ENPU_HAL_COMMAND_HOST_CALL:
            return lacks(ENPU_HAL_CAP_HOST_CALL);
    }
    return false;
}

bool EmulatedQueue::direct(const enpu_hal_submission& submission) {
    {
        std::lock_guard lock(mutex_);
        if (failed_ || !held_.empty()) return false;
    }
    for (uint32_t i = 0; i < submission.wait_count; ++i)
        if (fences_.any_failed() ||
            (lacks(ENPU_HAL_CAP_WAIT_EARLY) && !fences_.known(submission.waits[i])))
            return false;
    for (uint32_t i = 0; i < submission.command_count; ++i)
        if (must_change(submission.commands[i])) return false;
    return true;
}

// ------------------------------------------------------------------------------- submission

uint32_t EmulatedQueue::submit(const enpu_hal_submission& submission, const Launch& launch,
                               uint64_t deadline_ns, enpu_hal_status* status) {
    const CommandList* list = launch.list;
    const size_t count = list ? list->size() : submission.command_count;
    const auto command = [&](size_t i) -> const enpu_hal_command& {
        return list ? (*list)[i] : submission.commands[i];
    };
    bool calls = false, early = false;
    for (size_t i = 0; i < count; ++i) {
        calls |= command(i).kind == ENPU_HAL_COMMAND_HOST_CALL && lacks(ENPU_HAL_CAP_HOST_CALL);
        if (!must_change(command(i))) continue;
        if (uint32_t code = check_command(next_, device_, command(i), status)) return code;
    }
    for (uint32_t i = 0; i < submission.wait_count; ++i) {
        enpu_hal_status why{};
        if (fences_.failed(submission.waits[i], &why))
            return enpu::hal::fail(status, ENPU_HAL_ABORTED, "a point it waits for failed: %.200s",
                                   why.message);
        early |= lacks(ENPU_HAL_CAP_WAIT_EARLY) && !fences_.known(submission.waits[i]);
    }
    std::unique_lock lock(mutex_);
    if (failed_)
        return enpu::hal::fail(status, ENPU_HAL_ABORTED,
                               "dropped, because earlier work of the queue failed: %.180s",
                               failure_.message);
    if (calls || early || !held_.empty())
        return hold(submission, launch, deadline_ns, lock, status);
    if (launch.graph) {
        const uint32_t code =
            next_.graph->launch(handle_, launch.graph, &submission, deadline_ns, status);
        if (code == ENPU_HAL_OK) fences_.submitted(submission.signals, submission.signal_count);
        return code;
    }
    std::vector<enpu_hal_command> commands;
    for (size_t i = 0; i < count; ++i) commands.push_back(command(i));
    // Still under the lock, so that nothing is held back in front of it meanwhile.
    return submit_parts(commands, {submission.waits, submission.waits + submission.wait_count},
                        {submission.signals, submission.signals + submission.signal_count},
                        submission.op_id, deadline_ns, nullptr, status);
}

uint32_t EmulatedQueue::hold(const enpu_hal_submission& submission, const Launch& launch,
                             uint64_t deadline_ns, std::unique_lock<std::mutex>& lock,
                             enpu_hal_status* status) {
    const std::chrono::steady_clock::time_point deadline{std::chrono::nanoseconds(
        deadline_ns > uint64_t(INT64_MAX) ? INT64_MAX : int64_t(deadline_ns))};
    if (!changed_.wait_until(lock, deadline, [&] { return held_.size() < kMostHeld; }))
        return enpu::hal::fail(status, ENPU_HAL_DEADLINE_EXCEEDED, "submit: the queue stayed full");
    Held held;
    held.op_id = submission.op_id;
    held.waits.assign(submission.waits, submission.waits + submission.wait_count);
    held.signals.assign(submission.signals, submission.signals + submission.signal_count);
    for (uint32_t i = 0; i < submission.command_count; ++i)
        held.commands.append(submission.commands[i]);
    for (size_t i = 0; launch.list && i < launch.list->size(); ++i)
        held.commands.append((*launch.list)[i]);
    held.graph = launch.graph;
    if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
    held_.push_back(std::move(held));
    changed_.notify_all();
    return ENPU_HAL_OK;
}

uint32_t EmulatedQueue::submit_parts(const std::vector<enpu_hal_command>& commands,
                                     const std::vector<enpu_hal_point>& waits,
                                     const std::vector<enpu_hal_point>& signals, uint64_t op_id,
                                     uint64_t deadline_ns, enpu_hal_point* end,
                                     enpu_hal_status* status) {
    std::lock_guard lock(submit_mutex_);
    std::vector<enpu_hal_command> made;
    bool fills = false;
    for (const enpu_hal_command& command : commands)
        if (uint32_t code = expand(command, made, fills, deadline_ns, status)) return code;
    const size_t most = std::max<uint32_t>(info_.max_commands, 1);
    for (size_t at = 0; at == 0 || at < made.size(); at += most) {
        const size_t count = std::min(most, made.size() - at);
        enpu_hal_submission part = submission_of(made.data() + at, count, op_id);
        if (at == 0) {
            part.waits = waits.data();
            part.wait_count = static_cast<uint32_t>(waits.size());
        }
        if (at + count == made.size()) {
            part.signals = signals.data();
            part.signal_count = static_cast<uint32_t>(signals.size());
        }
        if (uint32_t code = next_.queue->submit(handle_, &part, deadline_ns, status)) return code;
    }
    fences_.submitted(signals.data(), static_cast<uint32_t>(signals.size()));
    if (!fills && !end) return ENPU_HAL_OK;
    // Patterns may be overwritten when it is reached.
    const enpu_hal_point point{own_, own_value_ + 1};
    enpu_hal_submission release = submission_of(nullptr, 0, op_id);
    release.signals = &point;
    release.signal_count = 1;
    const uint32_t code = next_.queue->submit(handle_, &release, deadline_ns, status);
    if (code == ENPU_HAL_OK) own_value_ = point.value;
    if (end) *end = point;
    return code;
}

uint32_t EmulatedQueue::expand(const enpu_hal_command& command, std::vector<enpu_hal_command>& out,
                               bool& fills, uint64_t deadline_ns, enpu_hal_status* status) {
    if (!must_change(command)) {
        out.push_back(command);
        return ENPU_HAL_OK;
    }
    if (command.kind == ENPU_HAL_COMMAND_FILL) {
        fills = true;
        return expand_fill(command.u.fill, out, deadline_ns, status);
    }
    const enpu_hal_copy& copy = command.u.copy;
    for (uint64_t row = 0; row < copy.height; ++row)
        out.push_back(copy_of({copy.dst.buffer, copy.dst.offset + row * copy.dst_pitch},
                              {copy.src.buffer, copy.src.offset + row * copy.src_pitch},
                              copy.width));
    return ENPU_HAL_OK;
}

uint32_t EmulatedQueue::expand_fill(const enpu_hal_fill& fill, std::vector<enpu_hal_command>& out,
                                    uint64_t deadline_ns, enpu_hal_status* status) {
    uint64_t slot = 0;
    if (uint32_t code = pattern_slot(deadline_ns, slot, status)) return code;
    unsigned char* pattern = patterns_host_ + slot * kSlotBytes;
    for (uint64_t at = 0; at < kSlotBytes; at += fill.pattern_bytes)
        std::memcpy(pattern + at, &fill.pattern, fill.pattern_bytes);
    const enpu_hal_place dst = fill.dst;
    uint64_t done = std::min(fill.bytes, kSlotBytes);
    out.push_back(copy_of(dst, {patterns_, slot * kSlotBytes}, done));
    while (done < fill.bytes) {
        const uint64_t bytes = std::min(done, fill.bytes - done);
        out.push_back(copy_of({dst.buffer, dst.offset + done}, dst, bytes));
        done += bytes;
    }
    return ENPU_HAL_OK;
}

uint32_t EmulatedQueue::pattern_slot(uint64_t deadline_ns, uint64_t& slot,
                                     enpu_hal_status* status) {
    slot = slots_used_ % kSlots;
    const enpu_hal_point last{own_, slot_points_[slot]};
    if (last.value > own_value_)
        return enpu::hal::fail(status, ENPU_HAL_INVALID_ARGUMENT,
                               "submit: more than %u fills in one submission", kSlots);
    if (last.value != 0)
        if (uint32_t code = next_.fence->wait(device_, &last, 1, 0, deadline_ns, status))
            return code;
    slot_points_[slot] = own_value_ + 1;
    ++slots_used_;
    return ENPU_HAL_OK;
}

// ------------------------------------------------------------------------- what is held back

void EmulatedQueue::loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return stop_ || !held_.empty(); });
        if (held_.empty()) return;
        const Held& held = held_.front();  // stays there, so that nothing passes it
        enpu_hal_status why{};
        uint32_t code = ENPU_HAL_OK;
        if (stop_)
            code =
                enpu::hal::fail(&why, ENPU_HAL_ABORTED, "dropped, because the queue was destroyed");
        else if (failed_)
            code = enpu::hal::fail(&why, ENPU_HAL_ABORTED,
                                   "dropped, because earlier work of the queue failed: %.180s",
                                   failure_.message);
        lock.unlock();
        try {
            if (code == ENPU_HAL_OK) code = run(held, &why);
        } catch (const std::exception& error) {
            code = enpu::hal::fail(&why, ENPU_HAL_RESOURCE_EXHAUSTED, "held-back work: %.200s",
                                   error.what());
        }
        if (code != ENPU_HAL_OK) fail(held, why);
        lock.lock();
        held_.pop_front();
        changed_.notify_all();
    }
}

uint32_t EmulatedQueue::run(const Held& held, enpu_hal_status* status) {
    if (uint32_t code = wait_here(held.waits, status)) {
        if (code == ENPU_HAL_WORK_TIMEOUT) return code;
        return enpu::hal::fail(status, ENPU_HAL_ABORTED, "a point it waits for failed: %.200s",
                               std::string(status->message).c_str());
    }
    std::vector<enpu_hal_command> segment;
    const auto deadline = [this] { return now_ns() + timeout_ns_; };
    for (size_t i = 0; i < held.commands.size(); ++i) {
        const enpu_hal_command& command = held.commands[i];
        if (command.kind != ENPU_HAL_COMMAND_HOST_CALL || !lacks(ENPU_HAL_CAP_HOST_CALL)) {
            segment.push_back(command);
            continue;
        }
        enpu_hal_point before{};
        if (uint32_t code = submit_parts(segment, {}, {}, held.op_id, deadline(), &before, status))
            return code;
        if (uint32_t code = wait_here({before}, status)) return code;
        command.u.host_call.function(command.u.host_call.context);
        segment.clear();
    }
    if (!held.graph)
        return submit_parts(segment, {}, held.signals, held.op_id, deadline(), nullptr, status);
    enpu_hal_submission launch = submission_of(nullptr, 0, held.op_id);
    launch.signals = held.signals.data();
    launch.signal_count = static_cast<uint32_t>(held.signals.size());
    if (uint32_t code = next_.graph->launch(handle_, held.graph, &launch, deadline(), status))
        return code;
    fences_.submitted(launch.signals, launch.signal_count);
    return ENPU_HAL_OK;
}

// OK, the failure of a point, or WORK_TIMEOUT.
uint32_t EmulatedQueue::wait_here(const std::vector<enpu_hal_point>& points,
                                  enpu_hal_status* status) {
    const uint64_t end = now_ns() + timeout_ns_;
    for (const enpu_hal_point& point : points) {
        for (;;) {
            if (fences_.failed(point, status)) return status->code;
            const uint64_t slice = std::min(end, now_ns() + kSliceNs);
            const uint32_t code = next_.fence->wait(device_, &point, 1, 0, slice, status);
            if (fences_.failed(point, status)) return status->code;
            if (code == ENPU_HAL_OK) break;
            if (code != ENPU_HAL_DEADLINE_EXCEEDED) return code;
            std::lock_guard lock(mutex_);
            if (stop_)
                return enpu::hal::fail(status, ENPU_HAL_ABORTED,
                                       "dropped, because the queue was destroyed");
            if (now_ns() >= end)
                return enpu::hal::fail(status, ENPU_HAL_WORK_TIMEOUT,
                                       "a point it waits for was not reached within %llu ms",
                                       static_cast<unsigned long long>(timeout_ns_ / 1'000'000));
        }
    }
    return ENPU_HAL_OK;
}

void EmulatedQueue::fail(const Held& held, const enpu_hal_status& why) {
    enpu_hal_status failure = why;
    if (failure.op_id == 0) failure.op_id = held.op_id;
    {
        std::lock_guard lock(mutex_);
        if (!failed_) failure_ = failure;
        failed_ = true;
    }
    for (const enpu_hal_point& point : held.signals) fences_.fail(point, failure);
}

}  // namespace enpu::hal
