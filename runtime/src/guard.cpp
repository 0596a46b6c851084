// SPDX-License-Identifier: MIT
#include "guard.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/status.h"
#include "kernel.h"
#include "operand.h"
#include "stream.h"

namespace enpu::rt {
namespace {

constexpr uint64_t kMoveNs = 10'000'000'000;

Span span_of(const enpu_hal_place& place, uint64_t bytes) {
    return {place.buffer, place.offset, place.offset + bytes};
}

Span span_of(const enpu_hal_operand& operand) {
    uint64_t before = 0, from = 0;
    tensor_extent(operand.tensor, before, from);  // was checked when the operand was bound
    return {operand.place.buffer, operand.place.offset - before, operand.place.offset + from};
}

uint64_t pitched(uint64_t width, uint64_t height, uint64_t pitch) {
    return height > 1 ? pitch * (height - 1) + width : width;
}

// Failures of work, as opposed to wrong arguments: these may go away.
bool worth_repair(rt_code code) {
    return code >= RT_ABORTED || code == RT_DEADLINE_EXCEEDED || code == RT_INTERNAL;
}

}  // namespace

void add_access(const enpu_hal_command& command, Access& access) {
    switch (command.kind) {
        case ENPU_HAL_COMMAND_COPY: {
            const enpu_hal_copy& copy = command.u.copy;
            access.reads.push_back(
                span_of(copy.src, pitched(copy.width, copy.height, copy.src_pitch)));
            access.writes.push_back(
                span_of(copy.dst, pitched(copy.width, copy.height, copy.dst_pitch)));
            break;
        }
        case ENPU_HAL_COMMAND_FILL:
            access.writes.push_back(span_of(command.u.fill.dst, command.u.fill.bytes));
            break;
        case ENPU_HAL_COMMAND_TIMESTAMP:
            access.writes.push_back(span_of(command.u.timestamp.dst, 8));
            break;
        case ENPU_HAL_COMMAND_DISPATCH: {
            // The output is the last operand of every kernel.
            const enpu_hal_dispatch& dispatch = *command.u.dispatch;
            for (uint32_t i = 0; i < dispatch.operand_count; ++i) {
                if (dispatch.operands[i].tensor.dtype == ENPU_OP_NONE) continue;
                auto& list = i + 1 == dispatch.operand_count ? access.writes : access.reads;
                list.push_back(span_of(dispatch.operands[i]));
            }
            break;
        }
        default:
            break;
    }
}

bool inputs_survive(const enpu_hal_command* commands, uint32_t count) {
    Access access;
    for (uint32_t i = 0; i < count; ++i) {
        add_access(commands[i], access);
        for (const Span& write : access.writes)
            for (const Span& read : access.reads)
                if (write.overlaps(read)) return false;
    }
    return true;
}

// ---------------------------------------------------------------------------------------------
// PlainQueue

uint32_t PlainQueue::open(const enpu_hal_plugin& hal, enpu_hal_device* device,
                          enpu_hal_status* status) {
    close();
    hal_ = &hal;
    device_ = device;
    value_ = 0;
    enpu_hal_queue_desc desc{};
    desc.header = {sizeof(desc), ENPU_HAL_TYPE_QUEUE_DESC, nullptr};
    if (uint32_t code = hal.fence->create(device, 0, &fence_, status)) return code;
    return hal.queue->create(device, &desc, &queue_, status);
}

void PlainQueue::close() {
    if (queue_) hal_->queue->destroy(queue_);
    if (fence_) hal_->fence->destroy(fence_);
    queue_ = nullptr;
    fence_ = nullptr;
}

uint32_t PlainQueue::run(const enpu_hal_command* commands, uint32_t count, uint64_t deadline_ns,
                         enpu_hal_status* status) {
    const enpu_hal_point signal{fence_, ++value_};
    enpu_hal_submission submission{};
    submission.header = {sizeof(submission), ENPU_HAL_TYPE_SUBMISSION, nullptr};
    submission.op_id = value_;
    submission.signals = &signal;
    submission.signal_count = 1;
    submission.commands = commands;
    submission.command_count = count;
    uint32_t code = hal_->queue->submit(queue_, &submission, deadline_ns, status);
    if (code == ENPU_HAL_OK) code = hal_->fence->wait(device_, &signal, 1, 0, deadline_ns, status);
    if (code == ENPU_HAL_OK) return code;
    enpu_hal_status ignored{};  // a failed queue takes nothing more
    if (open(*hal_, device_, &ignored) != ENPU_HAL_OK) close();
    return code;
}

// ------------------------------------------------------------------------------------------------
// Guard

Guard::~Guard() {
    here_.close();
    there_.close();
    for (auto& [buffer, shadow] : shadows_) drop(shadow);
    if (fallback_) hal_->device->close(fallback_);
}

void Guard::tell(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(counts_.last_event, sizeof(counts_.last_event), format, arguments);
    va_end(arguments);
    if (notice_)
        notice_(context_, counts_.last_event);
    else
        std::fprintf(stderr, "enpu: %s\n", counts_.last_event);
}

rt_status Guard::open_fallback(const rt_policy& policy) {
    std::string reasons;
    for (const char* spec : policy.fallbacks) {
        if (!spec) break;
        rt_status status = open_backend(spec, "rt_device_set_policy", &hal_, &fallback_);
        enpu_hal_status wrong{};
        if (!status && there_.open(*hal_, fallback_, &wrong) == ENPU_HAL_OK) {
            std::snprintf(counts_.fallback, sizeof(counts_.fallback), "%s", spec);
            return RT_OK;
        }
        reasons += std::string(reasons.empty() ? "" : "; ") + spec + ": " +
                   (status ? rt_status_message(status) : wrong.message);
        rt_status_free(status);
    }
    if (reasons.empty()) return RT_OK;  // none was asked for
    return make_status(RT_UNAVAILABLE, "rt_device_set_policy", "no fallback opens: %s",
                       reasons.c_str());
}

rt_status Guard::open(const rt_policy& policy) {
    retries_ = policy.retries;
    retain_ = policy.retain != 0;
    notice_ = policy.notice;
    context_ = policy.context;
    RT_TRY(open_fallback(policy));
    if (!hal_) {
        if (retain_)
            return make_status(RT_INVALID_ARGUMENT, "rt_device_set_policy",
                               "retain is set, but there is no fallback to use what is retained");
        return RT_OK;
    }
    if (!(device_.info.caps & ENPU_HAL_CAP_USERPTR) || !(hal_->caps & ENPU_HAL_CAP_USERPTR))
        return make_status(RT_UNSUPPORTED, "rt_device_set_policy",
                           "a fallback needs backends that use memory of the process in place");
    enpu_hal_status status{};
    if (here_.open(device_.hal, device_.handle, &status) != ENPU_HAL_OK)
        return from_hal(status, "rt_device_set_policy");
    return RT_OK;
}

void Guard::report(rt_policy_report& out) {
    std::lock_guard lock(mutex_);
    const uint32_t size = out.struct_size;
    out = counts_;
    out.struct_size = size;
}

bool Guard::lost() {
    if (counts_.device_lost) return true;
    enpu_hal_status status{};
    counts_.device_lost = device_.hal.device->check(device_.handle, &status) != ENPU_HAL_OK;
    return counts_.device_lost;
}

// -------------------------------------------------------------------------------------------
// shadows

void Guard::drop(Shadow& shadow) {
    if (shadow.there) hal_->memory->free(shadow.there);
    if (shadow.here) device_.hal.memory->free(shadow.here);
    if (shadow.owned) std::free(shadow.host);
    shadow = {};
}

uint32_t Guard::shadow_of(enpu_hal_buffer* buffer, Shadow** out, enpu_hal_status* status) {
    enpu_hal_buffer_info info{};
    info.header = {sizeof(info), ENPU_HAL_TYPE_BUFFER_INFO, nullptr};
    if (uint32_t code = device_.hal.memory->info(buffer, &info, status)) return code;
    Shadow& shadow = shadows_[buffer];
    *out = &shadow;
    if (shadow.host && shadow.address == info.address && shadow.bytes == info.bytes)
        return ENPU_HAL_OK;
    drop(shadow);  // of a buffer that is gone
    shadow.address = info.address;
    shadow.bytes = info.bytes;
    shadow.owned = info.host == nullptr;
    constexpr uint64_t kPage = 4096;
    const uint64_t bytes = (info.bytes + kPage - 1) / kPage * kPage;
    shadow.host = shadow.owned ? std::aligned_alloc(kPage, bytes) : info.host;
    if (!shadow.host)
        return hal::fail(status, ENPU_HAL_RESOURCE_EXHAUSTED,
                         "no host memory to keep %llu bytes of the device",
                         static_cast<unsigned long long>(bytes));
    if (shadow.owned && !counts_.device_lost)
        if (uint32_t code =
                device_.hal.memory->wrap(device_.handle, shadow.host, bytes, &shadow.here, status))
            return code;
    return hal_->memory->wrap(fallback_, shadow.host, shadow.owned ? bytes : info.bytes,
                              &shadow.there, status);
}

// Between the device and its shadows; host memory is its own shadow.
uint32_t Guard::move(const std::vector<Span>& spans, bool to_host, uint64_t deadline_ns,
                     enpu_hal_status* status) {
    for (const Span& span : spans) {
        Shadow* shadow = nullptr;
        if (uint32_t code = shadow_of(span.buffer, &shadow, status)) return code;
        if (!shadow->owned) continue;
        const enpu_hal_place device{span.buffer, span.begin}, host{shadow->here, span.begin};
        const uint64_t bytes = span.end - span.begin;
        enpu_hal_command command{};
        command.kind = ENPU_HAL_COMMAND_COPY;
        command.u.copy = {to_host ? host : device, to_host ? device : host, bytes, 1, bytes, bytes};
        if (uint32_t code = here_.run(&command, 1, deadline_ns, status)) return code;
    }
    return ENPU_HAL_OK;
}

// --------------------------------------------------------------------------------------------
// the fallback

uint32_t Guard::translate(OpRecord& op, enpu_hal_status* status) {
    const auto there = [&](enpu_hal_place& place) -> uint32_t {
        Shadow* shadow = nullptr;
        if (uint32_t code = shadow_of(place.buffer, &shadow, status)) return code;
        place.buffer = shadow->there;
        return ENPU_HAL_OK;
    };
    switch (op.command.kind) {
        case ENPU_HAL_COMMAND_COPY:
            if (uint32_t code = there(op.command.u.copy.dst)) return code;
            return there(op.command.u.copy.src);
        case ENPU_HAL_COMMAND_FILL:
            return there(op.command.u.fill.dst);
        case ENPU_HAL_COMMAND_TIMESTAMP:
            return there(op.command.u.timestamp.dst);
        case ENPU_HAL_COMMAND_DISPATCH:
            break;
        default:
            return hal::fail(status, ENPU_HAL_UNSUPPORTED, "command %u cannot run elsewhere",
                             op.command.kind);
    }
    if (op.dispatch.op == ENPU_OP_PACK_WEIGHTS && hal_ != &device_.hal)
        return hal::fail(status, ENPU_HAL_UNSUPPORTED,
                         "unsupported: packed weights fit the device they are packed for");
    for (uint32_t i = 0; i < op.dispatch.operand_count; ++i) {
        if (op.operands[i].tensor.dtype == ENPU_OP_NONE) continue;
        if (op.operands[i].tensor.format == ENPU_OP_PACKED && hal_ != &device_.hal)
            return hal::fail(status, ENPU_HAL_UNSUPPORTED,
                             "unsupported: operand %u is packed for the device", i);
        if (uint32_t code = there(op.operands[i].place)) return code;
    }
    return ENPU_HAL_OK;
}

uint32_t Guard::run_there(const StreamWork& work, uint64_t deadline_ns, enpu_hal_status* status) {
    for (uint32_t i = 0; i < work.count; ++i) {
        OpRecord op(work.commands[i]);
        if (uint32_t code = translate(op, status)) return code;
        if (uint32_t code = there_.run(&op.command, 1, deadline_ns, status)) return code;
    }
    return ENPU_HAL_OK;
}

// The operation on the other backend, with what the device or its shadows hold as inputs.
rt_status Guard::fall_back(rt_stream_impl& stream, const StreamWork& work) {
    enpu_hal_status status{};
    if (!hal_)
        return make_status(RT_FAILED_PRECONDITION, work.origin, "the policy names no fallback");
    if (lost() && !retain_)
        return make_status(RT_DEVICE_LOST, work.origin,
                           "the device is lost, and the policy does not retain its memory");
    Access access;
    for (uint32_t i = 0; i < work.count; ++i) add_access(work.commands[i], access);
    const uint64_t deadline = std::max(stream.deadline(), rt_deadline_ns(kMoveNs));
    uint32_t code = ENPU_HAL_OK;
    if (!counts_.device_lost && !retain_) {
        // Outputs too: what an operator does not write of their span must stay.
        code = move(access.reads, true, deadline, &status);
        if (code == ENPU_HAL_OK) code = move(access.writes, true, deadline, &status);
    }
    if (code == ENPU_HAL_OK) code = run_there(work, deadline, &status);
    if (code == ENPU_HAL_OK && !counts_.device_lost)
        code = move(access.writes, false, deadline, &status);
    if (code != ENPU_HAL_OK) return from_hal(status, work.origin);
    ++counts_.fallback_ops;
    return stream.done_elsewhere(work);
}

// -------------------------------------------------------------------------------------------
// run

rt_status Guard::attempt(rt_stream_impl& stream, const StreamWork& work) {
    uint64_t value = 0;
    {
        std::lock_guard lock(stream.mutex);
        RT_TRY(stream.enqueue_locked(work));
        value = stream.enqueued_on(0);
    }
    RT_TRY(stream.wait_for(value, stream.deadline(), work.origin));
    if (!retain_) return RT_OK;
    Access access;
    for (uint32_t i = 0; i < work.count; ++i) add_access(work.commands[i], access);
    enpu_hal_status status{};
    if (move(access.writes, true, rt_deadline_ns(kMoveNs), &status) == ENPU_HAL_OK) return RT_OK;
    return from_hal(status, work.origin);
}

rt_status Guard::repair(rt_stream_impl& stream, const StreamWork& work, rt_status failed) {
    const bool began = rt_status_code(failed) != RT_ABORTED;
    if (began && !inputs_survive(work.commands, work.count)) {
        ++counts_.refused;
        tell("%s on stream %s failed (%s) and was not done again: it writes what it reads",
             work.what, stream.name.c_str(), rt_code_name(rt_status_code(failed)));
        return failed;
    }
    for (uint32_t i = 0; i < retries_ && !lost(); ++i) {
        rt_status renewed = stream.renew(work.origin);
        if (renewed) {
            rt_status_free(renewed);
            break;
        }
        ++counts_.retries;
        tell("%s on stream %s failed (%s: %.120s), try %u of %u", work.what, stream.name.c_str(),
             rt_code_name(rt_status_code(failed)), rt_status_message(failed), i + 2, retries_ + 1);
        rt_status again = attempt(stream, work);
        if (!again) {
            ++counts_.repaired;
            rt_status_free(failed);
            return RT_OK;
        }
        ++counts_.failures;
        rt_status_free(again);
    }
    if (!lost()) rt_status_free(stream.renew(work.origin));
    rt_status elsewhere = fall_back(stream, work);
    if (!elsewhere) {
        tell("%s of stream %s ran on %s instead, because it failed here (%s: %.120s)", work.what,
             stream.name.c_str(), counts_.fallback, rt_code_name(rt_status_code(failed)),
             rt_status_message(failed));
        rt_status_free(failed);
        return RT_OK;
    }
    ++counts_.refused;
    tell("%s on stream %s failed for good (%s: %.100s); elsewhere: %.100s", work.what,
         stream.name.c_str(), rt_code_name(rt_status_code(failed)), rt_status_message(failed),
         rt_status_message(elsewhere));
    rt_status_free(elsewhere);
    if (rt_status_impl* out = writable(failed)) {
        out->message += "; tried " + std::to_string(retries_ + 1) + " times and elsewhere";
        std::lock_guard lock(stream.mutex);
        stream.poison_with(*out);
    }
    return failed;
}

rt_status Guard::run(rt_stream_impl& stream, const StreamWork& work) {
    std::lock_guard lock(mutex_);
    {
        std::lock_guard stream_lock(stream.mutex);
        RT_TRY(stream.check_usable(work.origin));
    }
    stream.mark_good();
    if (counts_.device_lost) return fall_back(stream, work);
    rt_status failed = attempt(stream, work);
    if (!failed) return RT_OK;
    if (!worth_repair(rt_status_code(failed))) return failed;
    ++counts_.failures;
    return repair(stream, work, failed);
}

}  // namespace enpu::rt

using namespace enpu::rt;

rt_status rt_device_set_policy(rt_device device, const rt_policy* policy) {
    RT_NOT_NULL(device);
    RT_NOT_NULL(policy);
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_device_set_policy";
        if (policy->struct_size < sizeof(*policy) || policy->retries > 16)
            return make_status(RT_INVALID_ARGUMENT, kOrigin,
                               "struct_size is %u, must be at least %zu, or %u retries are more "
                               "than 16",
                               policy->struct_size, sizeof(*policy), policy->retries);
        std::lock_guard lock(device->streams_mutex);
        if (!device->streams.empty() || device->pool->reserved_bytes() != 0)
            return make_status(RT_FAILED_PRECONDITION, kOrigin,
                               "streams were made or memory allocated before");
        auto made = std::make_unique<Guard>(*device);
        RT_TRY(made->open(*policy));
        device->guard = std::move(made);
        device->guarded.store(true);
        return RT_OK;
    });
}

rt_status rt_device_policy_report(rt_device device, rt_policy_report* report) {
    RT_NOT_NULL(device);
    RT_NOT_NULL(report);
    if (report->struct_size < sizeof(*report))
        return make_status(RT_INVALID_ARGUMENT, __func__, "struct_size is %u, must be at least %zu",
                           report->struct_size, sizeof(*report));
    if (!device->guarded.load())
        return make_status(RT_FAILED_PRECONDITION, __func__, "the device has no policy");
    device->guard->report(*report);
    return RT_OK;
}
