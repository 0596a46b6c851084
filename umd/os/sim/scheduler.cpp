// SPDX-License-Identifier: MIT
#include "os/sim/scheduler.h"

#include <algorithm>

namespace enpu::sim {
namespace {

// A waiter looks at the queues itself for this long before it sleeps: short jobs end sooner than a
// thread wakes up.
constexpr int64_t kSpinNs = 20'000;

void pause_cpu() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

std::chrono::steady_clock::time_point time_point(int64_t deadline_ns) {
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline_ns));
}

}  // namespace

Scheduler::Scheduler(HostMemory* memory, uint32_t engines, uint32_t max_command_bytes,
                     uint32_t default_timeout_ms)
    : memory_(memory),
      engines_(engines),
      max_command_bytes_(max_command_bytes),
      default_timeout_ms_(default_timeout_ms) {}

Scheduler::~Scheduler() {
    stop();
    for (auto& [id, context] : contexts_) {
        for (Job* job : context->unfinished) delete job;
    }
}

Context* Scheduler::find_context(uint32_t id) {
    auto it = contexts_.find(id);
    return it == contexts_.end() || it->second->dying ? nullptr : it->second.get();
}

int Scheduler::create_context(drm_enpu_ctx_create* create) {
    constexpr uint32_t kMaxTimeoutMs = 600'000;
    if (create->priority > DRM_ENPU_PRIORITY_HIGH || create->timeout_ms > kMaxTimeoutMs ||
        create->max_jobs > ENPU_MAX_JOBS || create->flags != 0 || create->pad != 0) {
        return -EINVAL;
    }
    Lock lock(mutex_);
    if (lost_ != 0) return lost_;
    if (contexts_.size() >= ENPU_MAX_CONTEXTS) return -ENOSPC;
    auto context = std::make_unique<Context>();
    context->id = next_context_++;
    context->priority = create->priority;
    context->timeout_ms = create->timeout_ms != 0 ? create->timeout_ms : default_timeout_ms_;
    context->max_jobs = create->max_jobs != 0 ? create->max_jobs : ENPU_MAX_JOBS;
    context->status.ctx_id = context->id;
    context->status.operand = 0xff;
    create->ctx_id = context->id;
    contexts_.emplace(context->id, std::move(context));
    return 0;
}

int Scheduler::status(drm_enpu_ctx_status* status) {
    Lock lock(mutex_);
    Context* context = find_context(status->ctx_id);
    if (context == nullptr) return -ENOENT;
    *status = context->status;
    status->completed =
        context->unfinished.empty() ? status->submitted : context->unfinished.front()->seqno - 1;
    return 0;
}

Job* Scheduler::take_job() {
    if (pool_.empty()) return new Job;
    Job* job = pool_.back().release();
    pool_.pop_back();
    return job;
}

void Scheduler::recycle(Job* job) {
    job->waits.clear();
    job->signals.clear();
    job->ended = false;
    pool_.emplace_back(job);
}

// Checks the sync operations as the kernel would and resolves them.
int Scheduler::read_points(const drm_enpu_submit& submit, Job* job) {
    if (submit.sync_count > ENPU_MAX_SYNC_OPS ||
        (submit.sync_count != 0 && submit.sync_stride < sizeof(drm_enpu_sync_op)))
        return -EINVAL;
    for (uint32_t i = 0; i < submit.sync_count; ++i) {
        const auto& op = *reinterpret_cast<const drm_enpu_sync_op*>(
            submit.syncs + uint64_t{i} * submit.sync_stride);
        if ((op.flags & ~DRM_ENPU_SYNC_SIGNAL) != 0 || op.point == 0) return -EINVAL;
        auto it = timelines_.find(op.handle);
        if (it == timelines_.end()) return -ENOENT;
        if (op.flags == DRM_ENPU_SYNC_WAIT) {
            if (op.point > it->second->last()) return -EINVAL;
            if (op.point > it->second->reached()) job->waits.push_back({it->second, op.point});
            continue;
        }
        uint64_t last = it->second->last();
        for (const Point& point : job->signals) {
            if (point.timeline.get() == it->second.get()) last = std::max(last, point.value);
        }
        if (op.point <= last) return -EINVAL;
        job->signals.push_back({it->second, op.point});
    }
    return 0;
}

int Scheduler::queue_for(Context* context, uint32_t engine, Queue** queue) {
    auto& slot = context->queues[engine];
    if (!slot) {
        uint32_t id = 0;
        if (!free_id(&id)) return -ENOSPC;
        slot = std::make_unique<Queue>(id, engine, context, memory_);
        by_id_[id] = slot.get();
        hardware_->enable_queue(id, slot->memory, engine, context->priority, 0);
    }
    *queue = slot.get();
    return 0;
}

int Scheduler::submit(drm_enpu_submit* submit) {
    if (submit->flags != 0 || submit->pad != 0 || submit->engine >= engines_ ||
        submit->cmd_va % ENPU_PACKET_ALIGN != 0 || submit->cmd_bytes % ENPU_PACKET_ALIGN != 0 ||
        submit->cmd_bytes == 0 || submit->cmd_bytes > max_command_bytes_ ||
        submit->bo_count > ENPU_MAX_SUBMIT_BOS) {
        return -EINVAL;
    }
    Lock lock(mutex_);
    if (lost_ != 0) return lost_;
    Context* context = find_context(submit->ctx_id);
    if (context == nullptr) return -ENOENT;
    if (context->status.guilty != 0) return -ENOTRECOVERABLE;
    if (context->unfinished.size() >= context->max_jobs) return -EAGAIN;
    Job* job = take_job();
    Queue* queue = nullptr;
    int result = read_points(*submit, job);
    if (result == 0) result = queue_for(context, submit->engine, &queue);
    if (result != 0) {
        recycle(job);
        return result;
    }
    job->context = context;
    job->seqno = ++context->status.submitted;
    job->cmd_va = submit->cmd_va;
    job->cmd_bytes = submit->cmd_bytes;
    job->job_id = submit->job_id;
    for (const Point& point : job->signals) point.timeline->add(point.value);
    context->unfinished.push_back(job);
    queue->pending.push_back(job);
    submit->seqno = job->seqno;
    push(queue);
    lock.unlock();
    note_work();
    return 0;
}

void Scheduler::note_work() {
    std::lock_guard wake(wake_mutex_);
    if (work_) return;
    work_ = true;
    wake_.notify_one();
}

// Moves jobs whose points are reached into the ring.
bool Scheduler::push(Queue* queue) {
    bool any = false;
    while (!queue->pending.empty() && !queue->faulted && !queue->stopping &&
           queue->flying.size() < QueueMemory::kEntries) {
        Job* job = queue->pending.front();
        const bool ready = std::all_of(
            job->waits.begin(), job->waits.end(),
            [](const Point& point) { return point.timeline->reached() >= point.value; });
        if (!ready) break;
        queue->pending.pop_front();
        queue->flying.push_back(job);
        job->fence = queue->pushed + 1;
        const enpu_ring_entry entry = {job->cmd_va, job->cmd_bytes, ENPU_RING_FLAG_IRQ, job->fence,
                                       job->job_id};
        if (queue->memory.push(queue->pushed++, entry)) hardware_->doorbell(queue->id);
        any = true;
    }
    return any;
}

// Ends the jobs that the queue's fence has passed.
bool Scheduler::complete(Queue* queue) {
    if (queue->flying.empty()) return false;
    uint64_t fence = queue->memory.fence();
    // A value that was never asked for is not believed: the register is the device's own count.
    if (fence > queue->pushed)
        fence = std::min(hardware_->read64(ENPU_REG_QUEUE_FENCE(queue->id)), queue->pushed);
    bool any = false;
    while (!queue->flying.empty() && queue->flying.front()->fence <= fence) {
        Job* job = queue->flying.front();
        queue->flying.pop_front();
        end(job, 0);
        any = true;
    }
    return any;
}

// A job has ended: its points close, whatever happened to it.
void Scheduler::end(Job* job, int error) {
    Context* context = job->context;
    if (error != 0) {
        ++context->status.failed_jobs;
        if (context->status.error == 0) {
            context->status.error = error;
            context->status.failed_seqno = job->seqno;
            context->status.failed_job_id = job->job_id;
        }
    }
    for (const Point& point : job->signals) point.timeline->finish(point.value);
    job->ended = true;
    while (!context->unfinished.empty() && context->unfinished.front()->ended) {
        recycle(context->unfinished.front());
        context->unfinished.pop_front();
    }
    moved_ = true;
}

// Takes in what the device has finished and gives it what has become ready.
void Scheduler::pump() {
    each_queue([&](Queue* queue) { complete(queue); });
    each_queue([&](Queue* queue) { push(queue); });
    if (std::exchange(moved_, false)) changed_.notify_all();
}

int Scheduler::wait_idle(int64_t deadline_ns) {
    Lock lock(mutex_);
    struct Mark {
        uint32_t context;
        uint64_t seqno;
    };
    std::array<Mark, ENPU_MAX_CONTEXTS> marks;
    size_t count = 0;
    for (const auto& [id, context] : contexts_) marks[count++] = {id, context->status.submitted};
    const auto idle = [&] {
        while (count != 0) {
            auto it = contexts_.find(marks[count - 1].context);
            if (it != contexts_.end() && !it->second->unfinished.empty() &&
                it->second->unfinished.front()->seqno <= marks[count - 1].seqno) {
                return false;
            }
            --count;
        }
        return true;
    };
    pump();
    return changed_.wait_until(lock, time_point(deadline_ns), idle) ? 0 : -ETIME;
}

int Scheduler::create_timeline(uint32_t* handle) {
    Lock lock(mutex_);
    *handle = next_timeline_++;
    timelines_.emplace(*handle, Ref<Timeline>::adopt(new Timeline));
    return 0;
}

void Scheduler::destroy_timeline(uint32_t handle) {
    Lock lock(mutex_);
    timelines_.erase(handle);
}

int Scheduler::wait(os::SyncWait* wait) {
    if (wait->count > ENPU_MAX_SYNC_OPS) return -EINVAL;
    Ref<Timeline> timelines[ENPU_MAX_SYNC_OPS];
    Lock lock(mutex_);
    for (uint32_t i = 0; i < wait->count; ++i) {
        auto it = timelines_.find(wait->handles[i]);
        if (it == timelines_.end()) return -ENOENT;
        timelines[i] = it->second;
    }
    const auto reached = [&] {
        for (uint32_t i = 0; i < wait->count; ++i) {
            const bool there = timelines[i]->reached() >= wait->points[i];
            if (wait->any && there) {
                wait->first = i;
                return true;
            }
            if (!wait->any && !there) return false;
        }
        return !wait->any;
    };
    const int64_t spin_until = std::min(os::now_ns() + kSpinNs, wait->deadline_ns);
    do {
        pump();
        if (reached()) return 0;
        lock.unlock();
        pause_cpu();
        lock.lock();
    } while (os::now_ns() < spin_until);
    return changed_.wait_until(lock, time_point(wait->deadline_ns), reached) ? 0 : -ETIME;
}

int Scheduler::query(uint32_t handle, uint64_t* value) {
    Lock lock(mutex_);
    auto it = timelines_.find(handle);
    if (it == timelines_.end()) return -ENOENT;
    pump();
    *value = it->second->reached();
    return 0;
}

int Scheduler::signal(uint32_t handle, uint64_t value) {
    Lock lock(mutex_);
    auto it = timelines_.find(handle);
    if (it == timelines_.end()) return -ENOENT;
    if (value <= it->second->last()) return -EINVAL;
    it->second->add(value);
    it->second->finish(value);
    moved_ = true;
    pump();
    return 0;
}

uint32_t Scheduler::resets() {
    Lock lock(mutex_);
    return resets_;
}

}  // namespace enpu::sim
