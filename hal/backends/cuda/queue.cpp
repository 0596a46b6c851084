// SPDX-License-Identifier: MIT
#include "queue.h"

#include <algorithm>
#include <exception>
#include <new>

#include "arguments.h"
#include "status.h"

using enpu::hal::fail;
using enpu::hal::now_ns;
using namespace enpu::hal::cuda;

namespace {

constexpr uint64_t kDefaultTimeoutNs = 60'000'000'000;
constexpr uint64_t kDestroyTimeoutNs = 10'000'000'000;
// A launch blocks inside the driver when about 1024 of them wait in a stream.
constexpr uint32_t kMaxCallsInFlight = 512;

}  // namespace

enpu_hal_queue::enpu_hal_queue(enpu_hal_device* owner, const enpu_hal_queue_desc& desc)
    : device(owner),
      engine(desc.engine),
      gpu_(owner->gpu),
      timeout_ns_(desc.timeout_ns ? desc.timeout_ns : kDefaultTimeoutNs) {
    ++device->counters.queues;
}

uint32_t enpu_hal_queue::create(int32_t priority, enpu_hal_status* status) {
    const Driver& api = gpu_.api;
    const InContext in(gpu_);
    int least = 0, greatest = 0;
    Result error = api.cuCtxGetStreamPriorityRange(&least, &greatest);
    // Smaller numbers come first; normal is in the middle.
    const int level = priority < 0 ? least : priority > 0 ? greatest : (least + greatest) / 2;
    if (error == kSuccess)
        error = api.cuStreamCreateWithPriority(&stream_, kStreamNonBlocking, level);
    for (uint64_t i = 0; i < kJobs && error == kSuccess; ++i) {
        error = api.cuEventCreate(&jobs_[i].start, kEventDefault);
        if (error == kSuccess) error = api.cuEventCreate(&jobs_[i].end, kEventDefault);
    }
    void* words = nullptr;
    DevicePtr address = 0;
    if (error == kSuccess)
        error = api.cuMemHostAlloc(&words, sizeof(Offence), kHostPortable | kHostDeviceMap);
    offence_ = static_cast<Offence*>(words);
    if (error == kSuccess) error = api.cuMemHostGetDevicePointer(&address, words, 0);
    offence_address_ = address;
    return gpu_.result(status, ENPU_HAL_RESOURCE_EXHAUSTED, error, "queue: making a stream");
}

enpu_hal_queue::~enpu_hal_queue() {
    {
        std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    const uint64_t deadline = now_ns() + kDestroyTimeoutNs;
    while (pump() && now_ns() < deadline)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (head_ != tail_) {
        enpu_hal_status why{};
        fail(&why, ENPU_HAL_DATA_LOSS,
             "the queue was destroyed, and its work did not end within 10 s");
        why.op_id = at(head_).op_id;
        fail_job(at(head_), why);
        gpu_.lose(why, true);
        pump();
    }
    --device->counters.queues;
    const InContext in(gpu_);
    for (uint64_t i = 0; i < kJobs; ++i) {
        if (jobs_[i].start) gpu_.api.cuEventDestroy(jobs_[i].start);
        if (jobs_[i].end) gpu_.api.cuEventDestroy(jobs_[i].end);
    }
    if (stream_) gpu_.api.cuStreamDestroy(stream_);
    if (workspace_ && !gpu_.is_lost()) gpu_.give_back(workspace_);
    if (offence_ && !gpu_.is_lost()) gpu_.api.cuMemFreeHost(offence_);
}

// ---------------------------------------------------------------------------------- submission

uint32_t enpu_hal_queue::check(const enpu_hal_submission& submission, const enpu_hal_graph* graph,
                               enpu_hal_status* status) const {
    if (graph && (submission.command_count != 0 || graph->device != device))
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "launch: takes no commands, and a graph of the queue's device");
    if (engine == ENPU_HAL_ENGINE_COPY) {
        if (graph)
            return fail(status, ENPU_HAL_INVALID_ARGUMENT, "launch: a copy queue runs no graphs");
        for (uint32_t i = 0; i < submission.command_count; ++i)
            if (submission.commands[i].kind == ENPU_HAL_COMMAND_DISPATCH)
                return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                            "submit: a copy queue runs no kernels");
    }
    return gpu_.check(status);
}

uint32_t enpu_hal_queue::fill(Job& job, const enpu_hal_submission& submission,
                              enpu_hal_graph* graph, enpu_hal_status* status) {
    job.op_id = submission.op_id;
    job.graph = graph;
    job.stage = Stage::kHeld;
    job.next = 0;
    job.suspect = job.first = job.failed = false;
    job.waits.assign(submission.waits, submission.waits + submission.wait_count);
    job.signals.assign(submission.signals, submission.signals + submission.signal_count);
    job.record_count = submission.command_count;
    if (job.records.size() < job.record_count) job.records.resize(job.record_count);
    uint64_t workspace = 0;
    for (uint32_t i = 0; i < submission.command_count; ++i) {
        if (uint32_t code =
                resolve(*device, submission.commands[i], offence_address_, job.records[i], status))
            return code;
        workspace = std::max(workspace, job.records[i].workspace_bytes());
    }
    if (workspace == 0 || workspace_) return ENPU_HAL_OK;
    // Where there is none the own kernels do the work, which is counted.
    const InContext in(gpu_);
    if (gpu_.take(kWorkspaceBytes, &workspace_, nullptr) != ENPU_HAL_OK) workspace_ = 0;
    return ENPU_HAL_OK;
}

uint32_t enpu_hal_queue::submit(const enpu_hal_submission& submission, enpu_hal_graph* graph,
                                uint64_t deadline_ns, enpu_hal_status* status) {
    if (uint32_t code = check(submission, graph, status)) return code;
    const auto room = [&] { return tail_.load() - head_.load() < kJobs; };
    for (;;) {
        if (!device->sleepers.wait_until(deadline_ns, room))
            return fail(status, ENPU_HAL_DEADLINE_EXCEEDED, "submit: the queue stayed full");
        std::lock_guard lock(mutex_);
        if (tail_ - head_ >= kJobs) continue;  // another thread took it
        if (graph) {
            const InContext in(gpu_);
            if (uint32_t code = graph->build(status)) return code;
        }
        if (uint32_t code = fill(at(tail_), submission, graph, status)) return code;
        ++tail_;
        pump_locked();
        break;
    }
    device->kick();
    return ENPU_HAL_OK;
}

// ------------------------------------------------------------------------------------- progress

bool enpu_hal_queue::pump() {
    std::lock_guard lock(mutex_);
    return pump_locked();
}

bool enpu_hal_queue::pump_locked() {
    if (head_ == tail_) return false;
    const InContext in(gpu_);
    if (stopping_) drop_held();
    const uint64_t before = head_;
    for (bool moved = true; moved;) {
        moved = false;
        if (gpu_.is_lost()) fail_all_lost();
        while (issued_ != tail_ && issue_job(at(issued_)) == Move::kDone) {
            ++issued_;
            moved = true;
        }
        while (head_ != issued_ && retire_job(at(head_)) == Move::kDone) {
            ++head_;
            last_progress_ns_ = now_ns();
            moved = true;
        }
    }
    if (head_ != before) device->sleepers.notify();  // room
    return head_ != tail_;
}

// Work that waits for others never runs any more; what the GPU has goes on.
void enpu_hal_queue::drop_held() {
    for (uint64_t i = issued_; i != tail_; ++i) {
        if (at(i).stage != Stage::kHeld) continue;
        enpu_hal_status why{};
        fail(&why, ENPU_HAL_ABORTED, "dropped, because the queue was destroyed");
        fail_held(at(i), why);
    }
}

void enpu_hal_queue::fail_all_lost() {
    enpu_hal_status why{};
    gpu_.check(&why);
    for (; head_ != tail_; ++head_) {
        Job& job = at(head_);
        if (!job.failed) fail_job(job, why);
        finish(job);
    }
    issued_ = tail_;
    calls_in_flight_ = 0;
}

// The first failure of a queue is the reason why what follows is dropped.
void enpu_hal_queue::fail_job(Job& job, const enpu_hal_status& why) {
    job.failed = true;
    job.failure = why;
    if (why.op_id == 0) job.failure.op_id = job.op_id;
    if (failed_) return;
    failed_ = true;
    failure_ = job.failure;
}

void enpu_hal_queue::fail_held(Job& job, const enpu_hal_status& why) {
    fail_job(job, why);
    job.stage = Stage::kEnded;
}

// What is on the GPU already uses the buffers: the failure is told when that has ended.
void enpu_hal_queue::fail_started(Job& job, const enpu_hal_status& why) {
    fail_job(job, why);
    const bool recorded = gpu_.api.cuEventRecord(job.end, stream_) == kSuccess;
    job.stage = recorded ? Stage::kOnGpu : Stage::kEnded;
}

enpu_hal_queue::Move enpu_hal_queue::issue_job(Job& job) {
    if (job.stage == Stage::kHeld && failed_) {
        enpu_hal_status why{};
        fail(&why, ENPU_HAL_ABORTED, "dropped, because earlier work of the queue failed: %.180s",
             failure_.message);
        why.op_id = failure_.op_id;
        fail_held(job, why);
    }
    if (job.stage == Stage::kHeld) {
        if (!job.first) job.since = now_ns();
        job.first = true;
        const uint32_t wanted = calls(job);
        if (await_points(job) == Move::kStuck) return Move::kStuck;
        if (job.stage == Stage::kEnded) return Move::kDone;
        const bool full = calls_in_flight_ != 0 && calls_in_flight_ + wanted > kMaxCallsInFlight;
        if (full || (job.graph && !job.graph->claim(&job))) return Move::kStuck;
        if (!start(job)) return Move::kDone;
        calls_in_flight_ += wanted;
    }
    return job.stage == Stage::kStarted ? issue_steps(job) : Move::kDone;
}

// Stuck until every point was reached, failed, or is known to the GPU.
enpu_hal_queue::Move enpu_hal_queue::await_points(Job& job) {
    using Look = enpu_hal_fence::Look;
    for (const enpu_hal_point& point : job.waits) {
        Look seen = point.fence->look(point.value);
        // An event of another GPU cannot be waited for in this context.
        if (seen == Look::kOnGpu && &point.fence->device->gpu != &gpu_) seen = Look::kUnknown;
        if (seen == Look::kReached || seen == Look::kOnGpu) continue;
        enpu_hal_status why{};
        if (seen == Look::kFailed) {
            const enpu_hal_status cause = point.fence->failure();
            fail(&why, ENPU_HAL_ABORTED, "a point it waits for failed: %.200s", cause.message);
            why.op_id = cause.op_id;
        } else if (now_ns() - job.since < timeout_ns_) {
            return Move::kStuck;
        } else {
            fail(&why, ENPU_HAL_WORK_TIMEOUT, "a point it waits for was not reached within %llu ms",
                 static_cast<unsigned long long>(timeout_ns_ / 1'000'000));
        }
        fail_held(job, why);
        return Move::kDone;
    }
    return Move::kDone;
}

// Lets the stream wait where the GPU knows the point. False when the job failed.
bool enpu_hal_queue::start(Job& job) {
    using Look = enpu_hal_fence::Look;
    enpu_hal_status why{};
    for (const enpu_hal_point& point : job.waits) {
        Result error = kSuccess;
        const Look seen = point.fence->chain(point.value, gpu_.api, stream_, &error);
        if (seen == Look::kFailed)
            fail(&why, ENPU_HAL_ABORTED, "a point it waits for failed: %.200s",
                 point.fence->failure().message);
        else
            gpu_.result(&why, ENPU_HAL_WORK_FAILED, error, "cuStreamWaitEvent");
        if (why.code != ENPU_HAL_OK) break;
    }
    if (why.code == ENPU_HAL_OK)
        gpu_.result(&why, ENPU_HAL_WORK_FAILED, gpu_.api.cuEventRecord(job.start, stream_),
                    "cuEventRecord");
    job.stage = Stage::kStarted;
    job.since = now_ns();
    if (why.code == ENPU_HAL_OK) return true;
    fail_started(job, why);
    return false;
}

Result enpu_hal_queue::issue_step(Job& job, bool* fallible, const char** what) {
    if (job.graph) {
        const enpu_hal_graph::Segment& segment = job.graph->segments[job.next];
        *fallible = segment.fallible;
        return gpu_.api.cuGraphLaunch(segment.exec, stream_);
    }
    *fallible = job.records[job.next].fallible();
    const Result error = issue(*device, job.records[job.next], stream_, workspace_);
    *what = issue_what(job.records[job.next]);
    return error;
}

enpu_hal_queue::Move enpu_hal_queue::issue_steps(Job& job) {
    enpu_hal_status why{};
    while (job.stage == Stage::kStarted) {
        if (job.suspect) {
            if (settle_suspect(job) == Move::kStuck) return Move::kStuck;
            continue;
        }
        if (job.next == steps(job)) break;
        // Nobody else uses the words: work after a fallible step waits for its verdict.
        offence_of(job) = {};
        bool fallible = false;
        const char* what = "giving work to the GPU";
        Result error = issue_step(job, &fallible, &what);
        if (error == kSuccess && fallible) error = gpu_.api.cuEventRecord(job.end, stream_);
        if (gpu_.result(&why, ENPU_HAL_WORK_FAILED, error, what)) {
            fail_started(job, why);
            return Move::kDone;
        }
        ++job.next;
        job.suspect = fallible;
    }
    if (job.stage != Stage::kStarted) return Move::kDone;
    const Result error = gpu_.api.cuEventRecord(job.end, stream_);
    if (gpu_.result(&why, ENPU_HAL_WORK_FAILED, error, "cuEventRecord")) {
        fail_started(job, why);
        return Move::kDone;
    }
    job.stage = Stage::kOnGpu;
    for (const enpu_hal_point& point : job.signals) point.fence->announce(point.value, job.end);
    return Move::kDone;
}

// Asks for the end event. False while the GPU works; a hang or an error fails the job.
bool enpu_hal_queue::query_end(Job& job, bool* ready) {
    const Result error = gpu_.api.cuEventQuery(job.end);
    *ready = error != kNotReady || is_hung(job, now_ns());
    if (!*ready) return false;
    if (error == kNotReady) {
        lose_hung(job);
        return false;
    }
    enpu_hal_status why{};
    if (gpu_.result(&why, ENPU_HAL_WORK_FAILED, error, "work on the GPU") == ENPU_HAL_OK)
        return true;
    if (!job.failed) fail_job(job, why);
    return false;
}

// The verdict on the last step, as soon as it has run.
enpu_hal_queue::Move enpu_hal_queue::settle_suspect(Job& job) {
    bool ready = false;
    const bool good = query_end(job, &ready);
    if (!ready) return Move::kStuck;
    job.suspect = false;
    const Offence seen = offence_of(job);
    if (good && seen.found == 0) return Move::kDone;
    job.stage = Stage::kEnded;
    if (!good) return Move::kDone;
    size_t last = job.next - 1;
    if (job.graph) last = job.graph->segments[last].first + job.graph->segments[last].count - 1;
    enpu_hal_status why{};
    fail_offence(&why, (job.graph ? job.graph->records : job.records)[last].op, seen);
    fail_job(job, why);
    return Move::kDone;
}

enpu_hal_queue::Move enpu_hal_queue::retire_job(Job& job) {
    if (job.stage == Stage::kOnGpu) {
        bool ready = false;
        query_end(job, &ready);
        if (!ready) return Move::kStuck;
    }
    // Nobody may see the signals before the points that they came after: those are told by other
    // queues, which ask the driver in their own time.
    const bool ahead =
        !job.failed && std::any_of(job.waits.begin(), job.waits.end(), [](const auto& point) {
            return point.fence->look(point.value) == enpu_hal_fence::Look::kOnGpu;
        });
    if (ahead) return Move::kStuck;
    if (job.since != 0) calls_in_flight_ -= std::min(calls_in_flight_, calls(job));
    finish(job);
    return Move::kDone;
}

void enpu_hal_queue::finish(Job& job) {
    if (job.graph) job.graph->release(&job);
    if (job.failed) {
        device->counters.jobs_failed.fetch_add(1);
        for (const enpu_hal_point& point : job.signals) point.fence->fail(job.failure);
        return;
    }
    float milliseconds = 0;
    if (gpu_.api.cuEventElapsedTime(&milliseconds, job.start, job.end) != kSuccess)
        milliseconds = 0;
    const auto busy_ns = static_cast<uint64_t>(std::max(milliseconds, 0.0f) * 1e6f);
    if (job.graph) {
        job.graph->totals.count(device->counters, busy_ns);
    } else {
        Totals totals;
        for (size_t i = 0; i < job.record_count; ++i) totals.add(job.records[i]);
        totals.count(device->counters, busy_ns);
    }
    // Before the signals: who waits for them sees the job counted.
    device->counters.jobs.fetch_add(1);
    for (const enpu_hal_point& point : job.signals) point.fence->signal(point.value);
}

bool enpu_hal_queue::is_hung(const Job& job, uint64_t now) const {
    const uint64_t since = std::max(job.since, last_progress_ns_);
    return now > since && now - since > timeout_ns_;
}

// A kernel cannot be ended but with its context.
void enpu_hal_queue::lose_hung(Job& job) {
    enpu_hal_status why{};
    fail(&why, ENPU_HAL_WORK_TIMEOUT, "work did not end within %llu ms: the context is given up",
         static_cast<unsigned long long>(timeout_ns_ / 1'000'000));
    why.op_id = job.op_id;
    device->counters.faults.fetch_add(1);
    fail_job(job, why);
    gpu_.lose(why, true);
}

uint32_t enpu_hal_queue::calls(const Job& job) const {
    if (job.graph) return static_cast<uint32_t>(job.graph->segments.size()) + 2;
    uint32_t total = 2;  // two events
    for (size_t i = 0; i < job.record_count; ++i) total += job.records[i].calls();
    return total;
}

Offence& enpu_hal_queue::offence_of(Job& job) const {
    return job.graph ? *job.graph->offence : *offence_;
}

// ---------------------------------------------------------------------------------------- table

namespace enpu::hal::cuda {
namespace {

uint32_t queue_create(enpu_hal_device* device, const enpu_hal_queue_desc* desc,
                      enpu_hal_queue** queue, enpu_hal_status* status) {
    const auto copy_engines = static_cast<uint32_t>(device->gpu.info.copy_engines);
    if (uint32_t code = check_queue_desc(desc, copy_engines, status)) return code;
    if (uint32_t code = device->gpu.check(status)) return code;
    try {
        auto made = std::make_unique<enpu_hal_queue>(device, *desc);
        if (uint32_t code = made->create(desc->priority, status)) return code;
        device->add(made.get());
        *queue = made.release();
    } catch (const std::exception& error) {
        return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "queue: %.200s", error.what());
    }
    return ENPU_HAL_OK;
}

void queue_destroy(enpu_hal_queue* queue) {
    if (!queue) return;
    queue->device->remove(queue);
    delete queue;
}

uint32_t queue_submit(enpu_hal_queue* queue, const enpu_hal_submission* submission,
                      uint64_t deadline_ns, enpu_hal_status* status) {
    if (uint32_t code = check_submission(submission, kMaxCommands, kMaxPoints, status)) return code;
    return queue->submit(*submission, nullptr, deadline_ns, status);
}

}  // namespace

const enpu_hal_queue_table kQueue = {
    table_header(sizeof(enpu_hal_queue_table), ENPU_HAL_TYPE_QUEUE_TABLE), queue_create,
    queue_destroy, queue_submit};

}  // namespace enpu::hal::cuda
