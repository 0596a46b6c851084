// SPDX-License-Identifier: MIT
// Recording. One at a time for the process; threads and devices join when they first do something.
#include "profile.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "common/status.h"
#include "layers/layers.h"
#include "stream.h"

namespace enpu::rt::profile {

std::atomic<uint32_t> active{0};

namespace {

std::mutex session_mutex;
std::shared_ptr<Recording> session;   // null: none
std::atomic<uint64_t> generation{0};  // of the recording; 0: there was none yet
constexpr uint64_t kDefaultEvents = 1'000'000;

std::shared_ptr<Recording> current() {
    std::lock_guard lock(session_mutex);
    return session;
}

std::string thread_name() {
    char name[16] = "thread";
    pthread_getname_np(pthread_self(), name, sizeof(name));
    return name;
}

// The calling thread's log in this recording; null when there is none any more.
ThreadLog* own_log() {
    thread_local std::shared_ptr<ThreadLog> log;
    thread_local uint64_t of = 0;
    const uint64_t now = generation.load(std::memory_order_acquire);
    if (of == now) return log.get();
    const auto recording = current();
    if (!recording) return nullptr;
    auto made = std::make_shared<ThreadLog>();
    made->tid = static_cast<int32_t>(syscall(SYS_gettid));
    made->name = thread_name();
    made->most = recording->max_events;
    std::lock_guard lock(recording->mutex);
    recording->threads.push_back(made);
    log = made;
    of = now;
    return log.get();
}

}  // namespace

std::shared_ptr<DeviceRecorder> recorder_of(rt_device_impl& device) {
    std::lock_guard lock(device.recorder_mutex);
    const uint64_t now = generation.load(std::memory_order_acquire);
    if (device.recorder_generation == now) return device.recorder;
    const auto recording = current();
    if (!recording) return nullptr;
    auto made = std::make_shared<DeviceRecorder>(device, recording->max_events);
    std::lock_guard list(recording->mutex);
    recording->devices.push_back(made);
    device.recorder = made;
    device.recorder_generation = now;
    return made;
}

namespace {

// False when nobody records any more. No memory for a note: the call itself is fine.
bool keep(ApiCall call) {
    try {
        ThreadLog* log = own_log();
        if (!log) return false;
        std::lock_guard lock(log->mutex);
        if (log->calls.size() < log->most)
            log->calls.push_back(std::move(call));
        else
            ++log->dropped;
    } catch (const std::exception&) {
    }
    return true;
}

// What the trace layer of the HAL saw.
bool note_hal(const hal::TracedCall& call) {
    if (!on(RT_PROFILE_HAL)) return false;
    try {
        std::string note = hal::code_name(call.code);
        if (call.arguments[0]) note += std::string(", ") + call.arguments;
        return keep({call.name, call.start_ns, call.end_ns, true, std::move(note)});
    } catch (const std::exception&) {
        return true;
    }
}

}  // namespace

void note_api(const char* name, uint64_t start_ns) {
    keep({name, start_ns, rt_now_ns(), false, {}});
}

rt_status submit(rt_stream_impl& stream, const StreamWork& work, enpu_hal_submission& submission,
                 uint64_t limit, enpu_hal_status& status) {
    const auto recorder = recorder_of(*stream.device);
    return recorder ? recorder->submit(stream, work, submission, limit, status)
                    : stream.submit_now(work, submission, limit, status);
}

void note_memory(rt_device_impl& device) {
    const auto recorder = recorder_of(device);
    const auto recording = current();
    if (!recorder || !recording) return;
    std::lock_guard lock(recording->mutex);
    if (recording->memory.size() < recording->max_events)
        recording->memory.push_back({recorder.get(), rt_now_ns(), device.pool->used_bytes(),
                                     device.pool->reserved_bytes()});
    else
        ++recording->dropped;
}

void forget(rt_device_impl& device) {
    std::lock_guard lock(device.recorder_mutex);
    if (device.recorder) device.recorder->finish(rt_deadline_ms(1000));
    device.recorder.reset();
}

}  // namespace enpu::rt::profile

using namespace enpu::rt;
using namespace enpu::rt::profile;

rt_status rt_profile_start(const rt_profile_options* options) {
    return guarded(__func__, [&]() -> rt_status {
        constexpr uint32_t kAll = RT_PROFILE_API | RT_PROFILE_DEVICE | RT_PROFILE_MEMORY |
                                  RT_PROFILE_KERNEL | RT_PROFILE_HAL;
        if (options && options->struct_size < sizeof(*options))
            return make_status(RT_INVALID_ARGUMENT, "rt_profile_start",
                               "options: struct_size is %u, must be at least %zu",
                               options->struct_size, sizeof(*options));
        if (options && (options->flags & ~kAll))
            return make_status(RT_INVALID_ARGUMENT, "rt_profile_start",
                               "options: flags has unknown bits: 0x%x", options->flags);
        auto made = std::make_shared<Recording>();
        made->flags = options && options->flags ? options->flags : kAll;
        made->max_events = options && options->max_events ? options->max_events : kDefaultEvents;
        std::lock_guard lock(session_mutex);
        if (session)
            return make_status(RT_FAILED_PRECONDITION, "rt_profile_start",
                               "the process records already");
        if (made->flags & RT_PROFILE_KERNEL)
            made->kernel.start();
        else
            made->kernel.note = "not asked for";
        made->start_ns = rt_now_ns();
        session = made;
        generation.fetch_add(1, std::memory_order_release);
        active.store(made->flags);
        enpu::hal::set_trace_recorder(note_hal);
        return RT_OK;
    });
}

rt_status rt_profile_stop(uint64_t deadline_ns, rt_profile* profile) {
    RT_NOT_NULL(profile);
    *profile = nullptr;
    active.store(0);
    try {
        std::shared_ptr<Recording> done;
        {
            std::lock_guard lock(session_mutex);
            done = std::move(session);
            session.reset();
        }
        if (!done)
            return make_status(RT_FAILED_PRECONDITION, __func__, "the process does not record");
        std::vector<std::shared_ptr<DeviceRecorder>> devices;
        {
            std::lock_guard lock(done->mutex);
            devices = done->devices;
        }
        for (const auto& device : devices) device->finish(deadline_ns);
        done->end_ns = rt_now_ns();
        done->kernel.stop();
        std::lock_guard recorded(done->mutex);
        // A thread that was inside a call when it stopped may still hold its log, not this.
        for (const auto& log : done->threads) {
            std::lock_guard lock(log->mutex);
            done->dropped += log->dropped;
            log->most = 0;
        }
        *profile = new rt_profile_impl{done};
        return RT_OK;
    } catch (const std::exception& error) {
        return make_status(RT_INTERNAL, __func__, "%s", error.what());
    }
}
