// SPDX-License-Identifier: MIT
// The thread of an engine and its boundaries: the only places where it waits.
#include "engine.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "device.h"

namespace enpu::model {
namespace {

// The device clock may stand still (a stopped or virtual clock): look again after a moment of real
// time.
constexpr uint64_t kMinSleepNs = 50'000;
constexpr uint64_t kMaxSleepNs = 1'000'000'000;
constexpr uint64_t kDefaultSlowNs = 1'000'000;

}  // namespace

Engine::Engine(Device& device, uint32_t index, enpu_engine_kind kind)
    : device_(device),
      index_(index),
      kind_(kind),
      mmu_(device.host, device.spaces, device.faults, index, device.config.local_bytes),
      memory_(device.host, mmu_, device.faults, index,
              static_cast<std::byte*>(device.config.local_memory)) {
    queues.reserve(ENPU_MAX_QUEUES);
}

void Engine::start_thread() {
    thread_ = std::thread([this] { main(); });
}

void Engine::join() {
    if (thread_.joinable()) thread_.join();
}

void Engine::main() {
    device_.host.thread_enter();
    // For who looks at the threads of a process; 15 characters at most.
    pthread_setname_np(pthread_self(), ("enpu-engine" + std::to_string(index_)).c_str());
    {
        Lock lock(device_.mutex);
        resting_ = idle_ = false;
        while (!quit) {
            // Messages go out after each step: jobs one after the other must not hold them back.
            const bool worked = step(lock);
            if (device_.deliver(lock) || worked) continue;
            idle_ = true;
            device_.try_finish_reset();
            rest(lock, next_deadline());
            idle_ = false;
        }
        resting_ = idle_ = true;
        device_.rested.notify_all();
    }
    device_.host.thread_leave();
}

void Engine::rest(Lock& lock, uint64_t deadline_ns, bool counts) {
    resting_ = counts;
    device_.rested.notify_all();
    if (deadline_ns == kNever) {
        wake_.wait(lock);
    } else {
        const uint64_t now = device_.host.now();
        const uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
        wake_.wait_for(lock, std::chrono::nanoseconds(std::clamp(left, kMinSleepNs, kMaxSleepNs)));
    }
    resting_ = false;
}

uint64_t Engine::next_deadline() const {
    uint64_t deadline = kNever;
    if (device_.stopped || stop || !device_.fetching()) return deadline;
    for (uint16_t q : queues)
        if (device_.queues[q].state == ENPU_QUEUE_STATE_WAITING)
            deadline = std::min(deadline, device_.queues[q].wait_deadline_ns);
    return deadline;
}

bool Engine::step(Lock& lock) {
    tlb_seen = device_.tlb_seq;
    if (discard || device_.stopped) return false;
    if (reset_requested) {
        if (reset_stuck) return false;
        end_reset(lock);
        return true;
    }
    if (hung) return false;
    if (job.queue != kNone) {
        const bool leaves = device_.queues[job.queue].state == ENPU_QUEUE_STATE_STOPPING;
        if (leaves || !device_.fetching()) {
            park_job();
        } else if (stop) {
            return false;
        } else {
            run_job(lock);
        }
        return true;
    }
    if (stop || !device_.fetching()) return false;
    const uint32_t queue = pick(device_.host.now());
    if (queue == kNone) return false;
    serve(lock, queue);
    return true;
}

bool Engine::step_inline(Lock& lock) {
    resting_ = idle_ = false;
    const bool stepped = step(lock);
    resting_ = idle_ = true;
    return stepped;
}

// Holds the engine where it is. False: in sync mode nobody waits, the job stays on the engine and
// the caller leaves.
bool Engine::hold(Lock& lock) {
    if (device_.config.sync) return false;
    rest(lock, kNever);
    return true;
}

// Every tile begins here. A packet that cannot be run again from its start goes on through a stop
// and does not hang, because its state could not be saved; a reset ends it like any other.
Engine::Verdict Engine::boundary(bool packet_start) {
    Lock lock(device_.mutex);
    const bool may_hold = packet_start || restartable_;
    if (!packet_start) job.half_way = true;
    if (may_hold && device_.faults.armed() && !hung)
        hung = device_.faults.fire(ENPU_FAULT_KIND_ENGINE_HANG, index_);
    bool slowed = false;
    for (;;) {
        if (discard) return Verdict::kLeave;
        if (device_.stopped && may_hold) {
            if (!hold(lock)) return Verdict::kLeave;
            continue;
        }
        if (reset_requested && !reset_stuck) return Verdict::kAbort;
        // A hung engine does not hear that a queue has to stop: its job stays on it.
        const bool leaves = !hung && device_.queues[job.queue].state == ENPU_QUEUE_STATE_STOPPING;
        if (packet_start && (leaves || !device_.fetching())) return Verdict::kPark;
        if (hung || reset_requested || (packet_start && stop)) {
            halted_ = stop;
            const bool held = hold(lock);
            halted_ = false;
            if (!held) return Verdict::kLeave;
            continue;
        }
        // Much may have happened in its sleep.
        if (slowed || !slow_down(lock, may_hold)) break;
        slowed = true;
    }
    ++progress;
    tlb_seen = device_.tlb_seq;
    device_.counters.add(as_id_, ENPU_COUNTER_TILES, 1);
    return Verdict::kGo;
}

// True when it slept. A tile that must go on through a stop is under way meanwhile: nobody may take
// the engine for resting.
bool Engine::slow_down(Lock& lock, bool may_hold) {
    uint64_t ns = 0;
    if (!device_.faults.armed() || !device_.faults.fire(ENPU_FAULT_KIND_ENGINE_SLOW, index_, &ns))
        return false;
    ns = std::min(ns ? ns : kDefaultSlowNs, kMaxSleepNs);
    if (device_.config.sync) return false;
    const uint64_t end = device_.host.now() + ns;
    while (device_.host.now() < end && !discard && !reset_requested && !device_.stopped)
        rest(lock, end, may_hold);
    return true;
}

void Engine::request_reset() {
    reset_stuck = device_.faults.fire(ENPU_FAULT_KIND_RESET_FAILS, index_);
    reset_requested = true;
    device_.host.trace(ENPU_MODEL_EVENT_RESET, index_, job.queue, index_, 0);
    wake();
}

void Engine::end_reset(Lock& lock) {
    if (job.queue != kNone) {
        Failure failure;
        failure.status = job.half_way ? ENPU_STATUS_TORN : ENPU_STATUS_ABORTED;
        fail_job(lock, failure);
    }
    hung = false;
    reset_requested = false;
}

void Engine::reset() {
    job = {};
    stop = reset_requested = reset_stuck = hung = discard = false;
    last_queue = 0;
    tlb_seen = device_.tlb_seq;
    queues.clear();
}

enpu_engine_state Engine::state() const {
    if (reset_requested) return ENPU_ENGINE_STATE_RESETTING;
    if (stop && (halted_ || job.queue == kNone || (idle_ && !hung)))
        return ENPU_ENGINE_STATE_STOPPED;
    return job.queue != kNone ? ENPU_ENGINE_STATE_RUNNING : ENPU_ENGINE_STATE_IDLE;
}

uint32_t Engine::tlb_lag() const {
    return resting_ ? 0 : device_.tlb_seq - tlb_seen;
}

uint64_t Engine::busy_ns() const {
    return busy_total_ns + (job.queue != kNone ? device_.host.now() - job.busy_ns : 0);
}

}  // namespace enpu::model
