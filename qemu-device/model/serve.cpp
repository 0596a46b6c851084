// SPDX-License-Identifier: MIT
// How an engine serves its queues: whose turn it is, the look at a ring, the beginning and the end
// of a job.
#include <algorithm>

#include "device.h"
#include "engine.h"

namespace enpu::model {
namespace {

constexpr uint64_t kNsPerUs = 1000;
constexpr uint64_t kMaxDelayNs = 10'000'000'000;
constexpr uint64_t kDefaultDelayNs = 100'000'000;

Failure to_failure(const Fault& fault) {
    Failure failure;
    failure.status = fault.status;
    failure.access = fault.access;
    failure.cause = fault.cause;
    failure.va = fault.va;
    return failure;
}

Failure ring_error(uint64_t detail) {
    Failure failure;
    failure.status = ENPU_STATUS_RING_ERROR;
    failure.detail = detail;
    return failure;
}

}  // namespace

// The highest priority; among equal ones the next after the one served last.
uint32_t Engine::pick(uint64_t now) const {
    uint32_t best = kNone, best_distance = 0;
    for (uint16_t q : queues) {
        const Queue& queue = device_.queues[q];
        if (!queue.runnable(now)) continue;
        const uint32_t distance = (q - last_queue - 1) % ENPU_MAX_QUEUES;
        const bool better =
            best == kNone || queue.priority > device_.queues[best].priority ||
            (queue.priority == device_.queues[best].priority && distance < best_distance);
        if (!better) continue;
        best = q;
        best_distance = distance;
    }
    return best;
}

void Engine::serve(Lock& lock, uint32_t queue) {
    last_queue = queue;
    const bool waiting = device_.queues[queue].state == ENPU_QUEUE_STATE_WAITING;
    if (waiting ? look_at_word(lock, queue) : look_at_ring(lock, queue)) run_job(lock);
}

// After a look at a queue's memory. True when the queue was asked to stop meanwhile, and has.
bool Engine::release(uint32_t queue) {
    attended_ = kNone;
    tlb_seen = device_.tlb_seq;
    if (device_.queues[queue].state != ENPU_QUEUE_STATE_STOPPING) return false;
    device_.disable_queue(queue);
    return true;
}

// True: the word is there and the job is on the engine again.
bool Engine::look_at_word(Lock& lock, uint32_t index) {
    Queue& queue = device_.queues[index];
    const Queue seen = queue;
    queue.recheck = false;  // what is written from here on sets it again
    attended_ = index;
    lock.unlock();
    uint64_t word = 0;
    Fault fault;
    const bool read = memory_.read({true, seen.as_id}, seen.wait_address, &word, sizeof(word),
                                   ENPU_ACCESS_READ, fault);
    lock.lock();
    if (release(index) || discard) return false;

    const uint64_t now = device_.host.now();
    const bool satisfied = read && word >= seen.wait_value;
    if (read && !satisfied && now < seen.wait_deadline_ns) return false;
    device_.counters.add(seen.as_id, ENPU_COUNTER_STALL_NS, now - seen.wait_start_ns);
    begin_job(index, seen.entry);
    if (satisfied) {
        job.offset += sizeof(enpu_wait_packet);
        device_.counters.add(seen.as_id, ENPU_OPCODE_WAIT, 1);
        device_.counters.add(seen.as_id, ENPU_COUNTER_PACKETS, 1);
        return true;
    }
    Failure failure = to_failure(fault);
    if (read) {
        failure.status = ENPU_STATUS_WAIT_TIMEOUT;
        failure.va = seen.wait_address;
        failure.detail = word;
    }
    failure.opcode = ENPU_OPCODE_WAIT;
    failure.tag = seen.wait_tag;
    fail_job(lock, failure);
    return false;
}

// True: a job is on the engine.
bool Engine::look_at_ring(Lock& lock, uint32_t index) {
    Queue& queue = device_.queues[index];
    Queue seen = queue;
    queue.pending = false;  // a kick from here on sets it again
    attended_ = index;
    lock.unlock();
    enpu_ring_entry entry{};
    bool empty = false;
    Failure failure;
    const bool ok = scan_ring(seen, entry, empty, failure);
    lock.lock();
    queue.doorbell_off = seen.doorbell_off;
    if (ok) {
        queue.fresh = false;
        queue.fence = seen.fence;
    }
    if (release(index) || discard) return false;
    if (!ok) {
        ring_failed(lock, index, failure);
        return false;
    }
    if (empty) {
        queue.state = queue.pending ? ENPU_QUEUE_STATE_ACTIVE : ENPU_QUEUE_STATE_IDLE;
        return false;
    }
    begin_job(index, entry);
    return true;
}

// Reads the tail and the next entry. While entries are there the producer need not kick; before the
// engine turns away it takes that back and looks once more.
bool Engine::scan_ring(Queue& seen, enpu_ring_entry& entry, bool& empty, Failure& failure) {
    Ring ring = ring_of(seen);
    const auto fault = [&] {
        failure = to_failure(ring.fault());
        return false;
    };
    uint64_t tail = 0;
    if (seen.fresh && !ring.read_fence(seen.fence)) return fault();
    if (!ring.read_tail(tail)) return fault();
    if (tail == seen.head && (seen.doorbell_off || seen.fresh)) {
        if (!ring.write_no_doorbell(false)) return fault();
        seen.doorbell_off = false;
        if (!ring.read_tail(tail)) return fault();
    }
    empty = tail == seen.head;
    if (empty) return true;
    if (tail - seen.head > ring.entries()) {
        failure = ring_error(tail);
        return false;
    }
    if (!seen.doorbell_off) {
        if (!ring.write_no_doorbell(true)) return fault();
        seen.doorbell_off = true;
    }
    if (!ring.read_entry(seen.head, entry)) return fault();
    return check_entry(seen, entry, failure);
}

bool Engine::check_entry(const Queue& seen, const enpu_ring_entry& entry, Failure& failure) const {
    const auto refuse = [&](uint64_t value) {
        failure = ring_error(value);
        return false;
    };
    if (entry.cmd_va % ENPU_PACKET_ALIGN != 0) return refuse(entry.cmd_va);
    if (entry.cmd_bytes % ENPU_PACKET_ALIGN != 0 || entry.cmd_bytes > ENPU_MAX_COMMAND_BYTES)
        return refuse(entry.cmd_bytes);
    if (entry.flags & ~ENPU_RING_FLAG_IRQ) return refuse(entry.flags);
    if (entry.fence <= seen.fence) return refuse(entry.fence);
    if (seen.resume % ENPU_PACKET_ALIGN != 0 || seen.resume > entry.cmd_bytes)
        return refuse(seen.resume);
    return true;
}

void Engine::begin_job(uint32_t index, const enpu_ring_entry& entry) {
    Queue& queue = device_.queues[index];
    const uint64_t now = device_.host.now();
    if (queue.start_ns == 0) {
        queue.start_ns = now;
        device_.host.trace(ENPU_MODEL_EVENT_JOB_START, index_, index, entry.fence, entry.job_id);
        if (device_.faults.armed() && device_.faults.fire(ENPU_FAULT_KIND_IRQ_SPURIOUS, 1 + index_))
            device_.irq.spurious(1 + index_);
    }
    queue.state = ENPU_QUEUE_STATE_ACTIVE;
    queue.wait_deadline_ns = kNever;
    queue.recheck = false;
    job = {};
    job.queue = index;
    job.entry = entry;
    job.offset = static_cast<uint32_t>(queue.resume);
    job.start_ns = queue.start_ns;
    job.busy_ns = now;
}

void Engine::run_job(Lock& lock) {
    as_id_ = device_.queues[job.queue].as_id;
    lock.unlock();
    Failure failure;
    const Result result = run_packets(failure);
    lock.lock();
    tlb_seen = device_.tlb_seq;
    switch (result) {
        case Result::kDone:
            finish_job(lock);
            break;
        case Result::kFailed:
            fail_job(lock, failure);
            break;
        case Result::kAborted:
            end_reset(lock);
            break;
        case Result::kParked:
            park_job();
            break;
        case Result::kWaiting:
            park_waiting(lock);
            break;
        case Result::kLeft:
            break;
    }
}

// Fault COMPLETION_DELAYED: the work is done, its completion comes later.
void Engine::delay_completion(Lock& lock) {
    uint64_t ns = 0;
    if (!device_.faults.armed() ||
        !device_.faults.fire(ENPU_FAULT_KIND_COMPLETION_DELAYED, job.queue, &ns) ||
        device_.config.sync)
        return;
    const uint64_t end = device_.host.now() + std::min(ns ? ns : kDefaultDelayNs, kMaxDelayNs);
    while (device_.host.now() < end && !discard && !reset_requested) {
        if (!device_.stopped) ++progress;  // delayed is not hung
        rest(lock, std::min(end, device_.host.now() + kDefaultDelayNs / 10));
    }
}

void Engine::corrupt(enpu_fault_kind kind, uint64_t& value) {
    uint64_t mask = 0;
    if (device_.faults.armed() && device_.faults.fire(kind, job.queue, &mask))
        value ^= mask ? mask : ~0ull;
}

// After the fence was written. A queue of a process does not decide about interrupts: its driver does,
// when somebody sleeps.
bool Engine::wants_irq(const Queue& seen, Ring& ring) {
    if (!seen.is_virtual && job.entry.flags & ENPU_RING_FLAG_IRQ) return true;
    uint64_t wanted = 0;
    return ring.read_irq_fence(wanted) && wanted > seen.fence && wanted <= job.entry.fence;
}

void Engine::finish_job(Lock& lock) {
    delay_completion(lock);
    // Guest memory does not change while the machine is stopped, and not after a reset.
    while (device_.stopped && !discard && hold(lock)) {
    }
    if (discard) return;
    Queue& queue = device_.queues[job.queue];
    enpu_completion completion{};
    completion.fence = job.entry.fence;
    completion.start_ns = job.start_ns;
    completion.end_ns = device_.host.now();
    uint64_t fence = job.entry.fence;
    corrupt(ENPU_FAULT_KIND_COMPLETION_CORRUPTED, completion.fence);
    corrupt(ENPU_FAULT_KIND_FENCE_CORRUPTED, fence);
    const Queue seen = queue;
    lock.unlock();
    Ring ring = ring_of(seen);
    const bool written = ring.write_completion(seen.head, completion, fence);
    const bool irq = written && wants_irq(seen, ring);
    lock.lock();
    if (discard) return;
    if (!written) {
        fail_job(lock, to_failure(ring.fault()));
        return;
    }
    queue.head = seen.head + 1;
    queue.fence = job.entry.fence;
    queue.resume = queue.start_ns = 0;
    queue.pending = true;
    ++jobs;
    device_.counters.add(queue.as_id, ENPU_COUNTER_JOBS, 1);
    device_.host.trace(ENPU_MODEL_EVENT_JOB_END, index_, job.queue, job.entry.fence,
                       ENPU_STATUS_OK);
    device_.announce_write();
    if (irq) device_.complete_irq(1 + index_, completion.end_ns);
    const uint32_t index = job.queue;
    leave_engine();
    if (queue.state == ENPU_QUEUE_STATE_STOPPING) device_.disable_queue(index);
}

enpu_error_record Engine::record_of(const Job& job, const Failure& failure) const {
    enpu_error_record record{};
    record.kind = static_cast<uint8_t>(failure.status);
    record.engine = static_cast<uint8_t>(index_);
    record.access = failure.access;
    record.cause = failure.cause;
    record.queue = static_cast<uint16_t>(job.queue);
    record.as_id = static_cast<uint16_t>(device_.queues[job.queue].as_id);
    record.va = failure.va;
    record.packet = job.offset;
    record.opcode = failure.opcode;
    record.rule = failure.rule;
    record.fence = job.entry.fence;
    record.job_id = job.entry.job_id;
    record.tag = failure.tag;
    record.time_ns = device_.host.now();
    record.detail = failure.detail;
    return record;
}

void Engine::fail_job(Lock& lock, const Failure& failure) {
    const uint32_t index = job.queue;
    Queue& queue = device_.queues[index];
    const enpu_error_record record = record_of(job, failure);
    const Queue seen = queue;
    enpu_completion completion{};
    completion.fence = job.entry.fence;
    completion.start_ns = job.start_ns;
    completion.end_ns = record.time_ns;
    completion.status = failure.status;
    completion.packet = job.offset;
    lock.unlock();
    Ring ring = ring_of(seen);
    if (!ring.write_completion(seen.head, completion, completion.fence) ||
        !ring.write_no_doorbell(false))
        device_.host.log("queue %u: the completion record of a failed job cannot be written",
                         index);
    lock.lock();
    tlb_seen = device_.tlb_seq;
    if (discard) return;
    queue.doorbell_off = false;
    queue.error = failure.status;
    queue.resume = queue.start_ns = 0;
    queue.pending = false;
    device_.counters.add(seen.as_id, ENPU_COUNTER_JOBS_FAILED, 1);
    device_.host.trace(ENPU_MODEL_EVENT_JOB_END, index_, index, job.entry.fence, failure.status);
    leave_engine();
    if (queue.state == ENPU_QUEUE_STATE_STOPPING) {
        device_.disable_queue(index);
    } else {
        queue.state = ENPU_QUEUE_STATE_FAULTED;
    }
    device_.push_error(record);
}

void Engine::ring_failed(Lock& lock, uint32_t index, const Failure& failure) {
    Queue& queue = device_.queues[index];
    const Queue seen = queue;
    Job none;
    none.queue = index;
    const enpu_error_record record = record_of(none, failure);
    attended_ = index;
    lock.unlock();
    Ring ring = ring_of(seen);
    if (!ring.write_status(failure.status) || !ring.write_no_doorbell(false))
        device_.host.log("queue %u: its memory cannot be written", index);
    lock.lock();
    const bool disabled = release(index);
    if (discard) return;
    queue.doorbell_off = false;
    queue.error = failure.status;
    if (!disabled) queue.state = ENPU_QUEUE_STATE_FAULTED;
    device_.push_error(record);
}

// The job goes back into its queue, at the current packet.
void Engine::park_job() {
    const uint32_t index = job.queue;
    Queue& queue = device_.queues[index];
    queue.resume = job.offset;
    queue.pending = true;
    leave_engine();
    if (queue.state == ENPU_QUEUE_STATE_STOPPING) device_.disable_queue(index);
}

// The queue waits for a word; the engine serves others meanwhile.
void Engine::park_waiting(Lock& lock) {
    const uint32_t index = job.queue;
    Queue& queue = device_.queues[index];
    const Queue seen = queue;
    lock.unlock();
    // A kick makes the device look at the word.
    const bool written = ring_of(seen).write_no_doorbell(false);
    lock.lock();
    if (discard) return;
    if (written) queue.doorbell_off = false;
    if (queue.state == ENPU_QUEUE_STATE_STOPPING) {
        park_job();
        return;
    }
    queue.state = ENPU_QUEUE_STATE_WAITING;
    queue.resume = job.offset;
    queue.entry = job.entry;
    queue.wait_address = wait_.addr;
    queue.wait_value = wait_.value;
    queue.wait_tag = wait_.header.tag;
    queue.wait_start_ns = device_.host.now();
    queue.wait_deadline_ns = queue.wait_start_ns + wait_.timeout_us * kNsPerUs;
    queue.recheck = device_.write_events != wait_events_;
    leave_engine();
}

void Engine::leave_engine() {
    const uint64_t ns = device_.host.now() - job.busy_ns;
    busy_total_ns += ns;
    device_.counters.add(
        device_.queues[job.queue].as_id,
        kind_ == ENPU_ENGINE_KIND_COPY ? ENPU_COUNTER_BUSY_COPY_NS : ENPU_COUNTER_BUSY_COMPUTE_NS,
        ns);
    job = {};
}

}  // namespace enpu::model
