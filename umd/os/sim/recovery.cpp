// SPDX-License-Identifier: MIT
// The scheduler when things go wrong: error records, hung engines, resets, contexts that end with
// jobs in the ring; and its thread.
#include <algorithm>

#include "enpu_status.h"
#include "os/sim/scheduler.h"

namespace enpu::sim {
namespace {

// How often the thread looks while there is work: lost interrupts and hangs are found, dying queues
// are freed.
constexpr std::chrono::milliseconds kTick(10);

// What a dying context leaves on an engine may run on for this long, and for less when it makes no
// progress: a tile takes milliseconds.
constexpr int64_t kLastRunNs = 5'000'000'000;
constexpr int64_t kLastTileNs = 1'000'000'000;

}  // namespace

void Scheduler::start(Hardware* hardware, uint64_t root_bus) {
    hardware_ = hardware;
    root_bus_ = root_bus;
    hardware_->start(root_bus);
    thread_ = std::thread([this] { serve(); });
}

void Scheduler::stop() {
    {
        std::lock_guard lock(wake_mutex_);
        stopping_ = true;
        wake_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
}

void Scheduler::interrupt(uint32_t vector) {
    std::lock_guard lock(wake_mutex_);
    vectors_ |= uint32_t{1} << vector % 32;
    wake_.notify_one();
}

void Scheduler::serve() {
    std::unique_lock wake(wake_mutex_);
    while (!stopping_) {
        if (work_ && vectors_ == 0)
            wake_.wait_for(wake, kTick, [&] { return stopping_ || vectors_ != 0; });
        if (!work_) wake_.wait(wake, [&] { return stopping_ || work_ || vectors_ != 0; });
        const uint32_t vectors = std::exchange(vectors_, 0);
        // Before the look: a job that comes while nobody looks sets it again.
        work_ = false;
        wake.unlock();
        bool more;
        {
            Lock lock(mutex_);
            // Cleared first: what completes from here on raises the vector again.
            if (vectors != 0) hardware_->acknowledge(vectors);
            const int64_t now = os::now_ns();
            if (lost_ == 0 && hardware_->gone()) lose(-ENODEV);
            drain_errors();
            pump();
            watch(now);
            look_at_user_queues();
            bury_dying(now);
            pump();
            more = busy();
        }
        wake.lock();
        work_ |= more;
    }
}

bool Scheduler::busy() const {
    return std::any_of(contexts_.begin(), contexts_.end(),
                       [](const auto& entry) {
                           return entry.second->dying || !entry.second->unfinished.empty();
                       }) ||
           std::any_of(user_queues_.begin(), user_queues_.end(), [](const auto& entry) {
               return entry.second->has_work() || !entry.second->wanted.empty();
           });
}

void Scheduler::drain_errors() {
    if (lost_ != 0) return;
    drain_records();
    // A record can be lost when the FIFO is full; the queue itself still says that it has faulted.
    // Its memory says so first. With the state comes the record, so that is looked for once more.
    each_queue([&](Queue* queue) {
        if (queue->faulted || queue->flying.empty() || queue->memory.status() == ENPU_STATUS_OK ||
            hardware_->queue_state(queue->id) != ENPU_QUEUE_STATE_FAULTED)
            return;
        drain_records();
        if (queue->faulted || queue->flying.empty()) return;
        complete(queue);
        fail_front(queue, enpu_status_errno(queue->memory.status()), nullptr);
    });
}

void Scheduler::drain_records() {
    enpu_error_record record;
    for (uint32_t i = 0; i < ENPU_ERROR_FIFO_DEPTH && hardware_->pop_error(&record); ++i)
        handle_error(record);
}

void Scheduler::handle_error(const enpu_error_record& record) {
    if (record.kind == ENPU_STATUS_ECC_CORRECTED || record.queue >= by_id_.size()) return;
    if (UserQueue* user = user_by_id_[record.queue]) {
        // A record may be about an earlier owner of the number.
        if (hardware_->queue_state(user->id) == ENPU_QUEUE_STATE_FAULTED)
            fail_user_queue(user, user->hung ? -ETIMEDOUT : enpu_status_errno(record.kind),
                            &record);
        return;
    }
    Queue* queue = by_id_[record.queue];
    if (queue == nullptr || queue->faulted) return;
    complete(queue);
    fail_front(queue, queue->hung ? -ETIMEDOUT : enpu_status_errno(record.kind), &record);
}

void Scheduler::fill_status(drm_enpu_ctx_status* status, const enpu_error_record* record) {
    status->operand = 0xff;
    if (record == nullptr) return;
    status->hw_status = record->kind;
    status->fault_va = record->va;
    status->packet = record->packet;
    status->rule = record->rule;
    status->operand = record->kind == ENPU_STATUS_BAD_OPERAND ? record->cause : 0xff;
    status->opcode = record->opcode;
}

// The job at the head of the ring has failed and its queue stands.
void Scheduler::fail_front(Queue* queue, int error, const enpu_error_record* record) {
    if (queue->faulted) return;
    queue->faulted = true;
    Context* context = queue->context;
    auto& status = context->status;
    if (status.error == 0) {
        status.hw_status = static_cast<uint16_t>(queue->memory.status());
        fill_status(&status, record);
    }
    if (error == -ETIMEDOUT && queue->hung) ++status.reset_count;
    if (!queue->flying.empty()) {
        Job* job = queue->flying.front();
        queue->flying.pop_front();
        end(job, error);
    }
    status.guilty = 1;
    cancel(context, -ECANCELED);
}

// Ends what the device does not have or will never run: everything that waits, and what stands
// behind a faulted job.
void Scheduler::cancel(Context* context, int error) {
    for (auto& queue : context->queues) {
        if (!queue) continue;
        if (queue->faulted) {
            for (Job* job : queue->flying) end(job, error);
            queue->flying.clear();
        }
        for (Job* job : queue->pending) end(job, error);
        queue->pending.clear();
    }
}

void Scheduler::destroy_context(uint32_t id) {
    Lock lock(mutex_);
    Context* context = find_context(id);
    if (context == nullptr) return;
    context->dying = true;
    std::vector<std::shared_ptr<UserQueue>> users;
    for (auto& [number, queue] : user_queues_)
        if (queue->context == context) users.push_back(queue);
    for (auto& queue : users) shut_user_queue(lock, queue.get());
    cancel(context, -ECANCELED);
    const int64_t now = os::now_ns();
    for (auto& queue : context->queues) {
        if (!queue) continue;
        queue->stopping = true;
        queue->stop_since_ns = now;
        hardware_->disable_queue(queue->id);
    }
    bury_dying(now);
    pump();
    lock.unlock();
    std::lock_guard wake(wake_mutex_);
    work_ = true;
    wake_.notify_one();
}

// True when the device is done with a queue that was told to stop.
bool Scheduler::stop_queue(Queue* queue, int64_t now) {
    const uint32_t state = hardware_->queue_state(queue->id);
    if (state != ENPU_QUEUE_STATE_DISABLED && state != ENPU_QUEUE_STATE_FAULTED && lost_ == 0) {
        // It stops at the end of a packet; one that does not end is cut off. Nobody waits for its
        // result, so this does not take the time that a job may hang.
        const int64_t timeout_ns = int64_t{queue->context->timeout_ms} * 1'000'000;
        const int64_t stopping_ns = now - queue->stop_since_ns;
        Watch& watch = watches_[queue->engine];
        const int64_t still_ns =
            watch.queue == queue->id ? std::min(now - watch.since_ns, stopping_ns) : 0;
        const bool occupies = hardware_->read32(ENPU_REG_ENGINE_QUEUE(queue->engine)) == queue->id;
        if (occupies && (stopping_ns > std::min(timeout_ns, kLastRunNs) ||
                         still_ns > std::min(timeout_ns, kLastTileNs))) {
            reset_hung(queue->engine, queue->id);
            watch = {};
        }
        return false;
    }
    complete(queue);
    for (Job* job : queue->flying) end(job, -ECANCELED);
    queue->flying.clear();
    by_id_[queue->id] = nullptr;
    return true;
}

void Scheduler::bury_dying(int64_t now) {
    for (auto it = contexts_.begin(); it != contexts_.end();) {
        Context* context = it->second.get();
        bool gone = context->dying;
        for (auto& queue : context->queues) {
            if (!context->dying || !queue) continue;
            if (stop_queue(queue.get(), now)) {
                queue.reset();
            } else {
                gone = false;
            }
        }
        it = gone ? contexts_.erase(it) : std::next(it);
    }
}

// A busy engine whose progress stands still for longer than the context of its queue allows is
// hung. The blame goes to the queue that occupies it, not to those that wait behind.
void Scheduler::watch(int64_t now) {
    if (lost_ != 0 || !busy()) return;
    for (uint32_t engine = 0; engine < engines_; ++engine) {
        Watch& watch = watches_[engine];
        const Watch seen = {hardware_->read32(ENPU_REG_ENGINE_QUEUE(engine)),
                            hardware_->read64(ENPU_REG_ENGINE_PROGRESS(engine)),
                            hardware_->read64(ENPU_REG_ENGINE_FENCE(engine)), now};
        const bool same = seen.queue == watch.queue && seen.progress == watch.progress &&
                          seen.fence == watch.fence;
        const Context* context = owner(seen.queue);
        if (!same || context == nullptr) {
            watch = seen;
            continue;
        }
        if (now - watch.since_ns <= int64_t{context->timeout_ms} * 1'000'000) continue;
        reset_hung(engine, seen.queue);
        watch = {};
    }
    // A doorbell may have been lost: rings that hold work are kicked again, which costs nothing
    // when they are being served.
    each_queue([&](Queue* queue) {
        if (!queue->flying.empty() && !queue->faulted &&
            hardware_->queue_state(queue->id) == ENPU_QUEUE_STATE_IDLE) {
            hardware_->doorbell(queue->id);
        }
    });
}

void Scheduler::reset_hung(uint32_t engine, uint32_t id) {
    ++resets_;
    Queue* queue = by_id_[id];
    if (queue != nullptr) queue->hung = true;
    if (UserQueue* user = user_by_id_[id]) user->hung = true;
    if (hardware_->reset_engine(engine) != 0) {
        reset_all(id);
        return;
    }
    drain_errors();
    if (queue == nullptr) return;
    complete(queue);
    if (!queue->faulted && !queue->flying.empty()) fail_front(queue, -ETIMEDOUT, nullptr);
}

// The context that a hardware queue works for, or NULL.
Context* Scheduler::owner(uint32_t queue) const {
    if (queue >= by_id_.size()) return nullptr;
    if (by_id_[queue] != nullptr) return by_id_[queue]->context;
    return user_by_id_[queue] != nullptr ? user_by_id_[queue]->context : nullptr;
}

// Device reset: the guilty job fails, jobs that were torn fail with their own code, the rest runs
// again from the start of each queue.
void Scheduler::reset_all(uint32_t guilty) {
    ++resets_;
    std::array<bool, ENPU_MAX_QUEUES> running{};
    std::array<uint64_t, ENPU_MAX_QUEUES> heads{};
    for (uint32_t id = 0; id < heads.size(); ++id)
        if (user_by_id_[id] != nullptr) heads[id] = hardware_->read64(ENPU_REG_QUEUE_HEAD(id));
    for (uint32_t engine = 0; engine < engines_; ++engine) {
        const uint32_t queue = hardware_->read32(ENPU_REG_ENGINE_QUEUE(engine));
        if (queue < running.size()) running[queue] = true;
    }
    if (hardware_->reset_device() != 0) {
        lose(hardware_->gone() ? -ENODEV : -EIO);
        return;
    }
    hardware_->start(root_bus_);
    each_queue([&](Queue* queue) {
        complete(queue);
        if (queue->id == guilty) {
            fail_front(queue, -ETIMEDOUT, nullptr);
        } else if (running[queue->id] && !queue->faulted && !queue->flying.empty()) {
            ++queue->context->status.reset_count;
            Job* job = queue->flying.front();
            queue->flying.pop_front();
            end(job, -ESTALE);
        }
        if (queue->faulted || queue->stopping) return;
        hardware_->enable_queue(queue->id, queue->memory, queue->engine, queue->context->priority,
                                queue->pushed - queue->flying.size());
    });
    restart_user_queues(guilty, heads, running);
}

// The device was pulled out, or does not come back: every job fails, every later call is refused.
void Scheduler::lose(int error) {
    lost_ = error;
    each_queue([&](Queue* queue) {
        complete(queue);  // what had ended before
        queue->faulted = true;
    });
    for (auto& [id, context] : contexts_) {
        cancel(context.get(), error);
        context->status.guilty = 1;
    }
    for (auto& [id, queue] : user_queues_)
        if (queue->error == 0) queue->error = error;
    moved_ = true;
}

}  // namespace enpu::sim
