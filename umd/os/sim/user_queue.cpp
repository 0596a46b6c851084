// SPDX-License-Identifier: MIT
// User-mode queues of the simulator: what the kernel driver does for them, for one process.
#include "os/sim/user_queue.h"

#include <algorithm>

#include "enpu_status.h"
#include "os/sim/scheduler.h"

namespace enpu::sim {
namespace {

constexpr uint32_t kMinLog2 = 2;
// How long the current packet may go on when its queue is destroyed.
constexpr int64_t kStopNs = 1'000'000'000;

}  // namespace

int UserQueue::result(uint64_t wanted_fence) const {
    if (__atomic_load_n(&header->fence, __ATOMIC_ACQUIRE) >= wanted_fence || fence >= wanted_fence)
        return 0;
    if (error != 0) return error;
    return torn >= wanted_fence ? -ESTALE : 1;
}

void UserQueue::arm() {
    const uint64_t done = __atomic_load_n(&header->fence, __ATOMIC_ACQUIRE);
    const auto next = wanted.upper_bound(done);
    // Either the device sees it, or the caller sees the device's fence.
    __atomic_store_n(&header->irq_fence, next == wanted.end() ? 0 : *next, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool UserQueue::has_work() const {
    return error == 0 && __atomic_load_n(&header->tail, __ATOMIC_ACQUIRE) !=
                             __atomic_load_n(&header->head, __ATOMIC_ACQUIRE);
}

int Scheduler::create_user_queue(drm_enpu_queue_create* create, const Place& place) {
    if (create->flags != 0 || create->pad != 0 || create->queue_id != 0 ||
        create->engine >= engines_ || create->ring_log2 < kMinLog2 ||
        create->ring_log2 > ENPU_MAX_RING_LOG2)
        return -EINVAL;
    const uint64_t bytes =
        ENPU_QUEUE_RING_OFFSET +
        ((sizeof(enpu_ring_entry) + sizeof(enpu_completion)) << create->ring_log2);
    auto queue = std::make_shared<UserQueue>();
    const QueuePlace found = place(create->ring_va, bytes);
    if (found.memory == nullptr) return -EINVAL;
    Lock lock(mutex_);
    if (lost_ != 0) return lost_;
    Context* context = find_context(create->ctx_id);
    if (context == nullptr) return -ENOENT;
    if (context->status.guilty != 0) return -ENOTRECOVERABLE;
    if (user_queues_.size() >= ENPU_MAX_USER_QUEUES) return -ENOSPC;
    if (!free_id(&queue->id)) return -ENOSPC;
    queue->engine = create->engine;
    queue->context = context;
    queue->va = create->ring_va;
    queue->log2 = create->ring_log2;
    queue->memory = found.owner;
    queue->header = static_cast<enpu_queue_header*>(found.memory);
    queue->ring = reinterpret_cast<const enpu_ring_entry*>(static_cast<std::byte*>(found.memory) +
                                                           ENPU_QUEUE_RING_OFFSET);
    hardware_->enable_user_queue(*queue, context->priority, 0);
    user_by_id_[queue->id] = queue.get();
    create->queue_id = next_user_queue_++;
    user_queues_.emplace(create->queue_id, std::move(queue));
    return 0;
}

bool Scheduler::free_id(uint32_t* id) const {
    for (uint32_t i = 0; i < by_id_.size(); ++i) {
        if (by_id_[i] != nullptr || user_by_id_[i] != nullptr) continue;
        *id = i;
        return true;
    }
    return false;
}

// The device has no part of it any more when this returns.
void Scheduler::shut_user_queue(Lock& lock, UserQueue* queue) {
    if (queue->context == nullptr) return;
    if (queue->error == 0) queue->error = -ECANCELED;
    queue->context = nullptr;
    hardware_->disable_queue(queue->id);
    const int64_t until = os::now_ns() + kStopNs;
    while (hardware_->queue_state(queue->id) != ENPU_QUEUE_STATE_DISABLED && lost_ == 0) {
        if (os::now_ns() > until) {
            const bool occupies =
                hardware_->read32(ENPU_REG_ENGINE_QUEUE(queue->engine)) == queue->id;
            if (!occupies || hardware_->reset_engine(queue->engine) != 0) reset_all(queue->id);
            break;
        }
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        lock.lock();
    }
    user_by_id_[queue->id] = nullptr;
    changed_.notify_all();
}

void Scheduler::destroy_user_queue(uint32_t id) {
    Lock lock(mutex_);
    const auto it = user_queues_.find(id);
    if (it == user_queues_.end()) return;
    const std::shared_ptr<UserQueue> queue = std::move(it->second);
    user_queues_.erase(it);
    shut_user_queue(lock, queue.get());
}

int Scheduler::wait_user_queue(const drm_enpu_queue_wait& wait) {
    Lock lock(mutex_);
    const auto it = user_queues_.find(wait.queue_id);
    if (it == user_queues_.end()) return -ENOENT;
    const std::shared_ptr<UserQueue> queue = it->second;
    int result = queue->result(wait.fence);
    if (result != 1) return result;
    note_work();
    const auto mine = queue->wanted.insert(wait.fence);
    const auto ready = [&] {
        queue->arm();
        result = queue->result(wait.fence);
        return result != 1;
    };
    const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(wait.timeout_ns)};
    const bool done = changed_.wait_until(lock, until, ready);
    queue->wanted.erase(mine);
    return done ? result : -ETIME;
}

void Scheduler::kick_user_queue(uint32_t hardware_id) {
    hardware_->doorbell(hardware_id);
    note_work();
}

uint32_t Scheduler::user_queue_hardware_id(uint32_t id) {
    Lock lock(mutex_);
    return user_queues_.at(id)->id;
}

// The entry that the device is at has failed. Torn by somebody else's reset, the queue goes on
// behind it.
void Scheduler::fail_user_queue(UserQueue* queue, int error, const enpu_error_record* record) {
    const uint64_t head = hardware_->read64(ENPU_REG_QUEUE_HEAD(queue->id));
    const uint64_t fence = queue->ring[head & ((1u << queue->log2) - 1)].fence;
    if (queue->context == nullptr || queue->error != 0) return;
    auto& status = queue->context->status;
    ++status.failed_jobs;
    if (status.error == 0) {
        status.error = error;
        status.failed_seqno = record != nullptr ? record->fence : fence;
        status.failed_job_id = record != nullptr ? record->job_id : 0;
        fill_status(&status, record);
    }
    if (queue->hung || error == -ESTALE) ++status.reset_count;
    if (error == -ESTALE) {
        queue->torn = fence;
        hardware_->disable_queue(queue->id);
        hardware_->enable_user_queue(*queue, queue->context->priority, head + 1);
    } else {
        queue->error = error;
        status.guilty = 1;
        cancel(queue->context, -ECANCELED);
    }
    moved_ = true;
}

// Kicks that got lost, fence words that the device did not write right, interrupts that did not
// come.
void Scheduler::look_at_user_queues() {
    if (lost_ != 0) return;
    for (auto& [id, queue] : user_queues_) {
        if (queue->context == nullptr) continue;
        if (queue->context->status.guilty != 0 && queue->error == 0) {
            queue->error = -ECANCELED;
            hardware_->disable_queue(queue->id);
        }
        uint32_t state = hardware_->queue_state(queue->id);
        if (state == ENPU_QUEUE_STATE_FAULTED && queue->error == 0) {
            // With the state comes the record, which may have come after the last look.
            drain_records();
            state = hardware_->queue_state(queue->id);
        }
        if (state == ENPU_QUEUE_STATE_FAULTED && queue->error == 0) {
            const uint32_t status = hardware_->read32(ENPU_REG_QUEUE_STATUS(queue->id));
            const int error = enpu_status_errno(
                static_cast<uint8_t>(ENPU_FIELD_GET(ENPU_QUEUE_STATUS_ERROR, status)));
            fail_user_queue(queue.get(), queue->hung ? -ETIMEDOUT : error, nullptr);
        }
        if (state != ENPU_QUEUE_STATE_IDLE) continue;
        if (queue->has_work()) hardware_->doorbell(queue->id);
        if (!queue->wanted.empty())
            queue->fence = hardware_->read64(ENPU_REG_QUEUE_FENCE(queue->id));
    }
    if (std::any_of(user_queues_.begin(), user_queues_.end(),
                    [](const auto& entry) { return !entry.second->wanted.empty(); }))
        moved_ = true;
}

// After a device reset: the guilty one ends, others go on, behind an entry that was torn.
void Scheduler::restart_user_queues(uint32_t guilty,
                                    const std::array<uint64_t, ENPU_MAX_QUEUES>& heads,
                                    const std::array<bool, ENPU_MAX_QUEUES>& running) {
    for (auto& [id, queue] : user_queues_) {
        if (queue->context == nullptr || queue->error != 0) continue;
        if (queue->id == guilty) {
            fail_user_queue(queue.get(), -ETIMEDOUT, nullptr);
            continue;
        }
        const uint64_t head = heads[queue->id];
        if (running[queue->id]) {
            auto& status = queue->context->status;
            ++status.reset_count;
            ++status.failed_jobs;
            queue->torn = queue->ring[head & ((1u << queue->log2) - 1)].fence;
            if (status.error == 0) {
                status.error = -ESTALE;
                status.failed_seqno = queue->torn;
            }
        }
        hardware_->enable_user_queue(*queue, queue->context->priority,
                                     head + (running[queue->id] ? 1 : 0));
    }
}

}  // namespace enpu::sim
