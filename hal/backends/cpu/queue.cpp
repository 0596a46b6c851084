// SPDX-License-Identifier: MIT
#include "queue.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "arguments.h"
#include "status.h"

using enpu::hal::code_name;
using enpu::hal::fail;
using enpu::hal::now_ns;

namespace {

constexpr uint64_t kDefaultTimeoutNs = 60'000'000'000;
// A producer in its stride comes back within microseconds: sleeping and being woken costs more.
constexpr uint64_t kSpinNs = 20'000;

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

}  // namespace

enpu_hal_queue::enpu_hal_queue(enpu_hal_device* owner, const enpu_hal_queue_desc& desc)
    : device(owner),
      engine(desc.engine),
      timeout_ns_(desc.timeout_ns ? desc.timeout_ns : kDefaultTimeoutNs),
      worker_([this] { loop(); }) {
    ++device->counters.queues;
}

enpu_hal_queue::~enpu_hal_queue() {
    stop_.store(true);
    {
        std::lock_guard lock(wake_mutex_);
        wake_.notify_all();
    }
    device->sleepers.notify();
    worker_.join();
    --device->counters.queues;
}

// ----------------------------------------------------------------------------------------
// submission

uint32_t enpu_hal_queue::check(const enpu_hal_submission& submission, const enpu_hal_graph* graph,
                               enpu_hal_status* status) const {
    static_assert(enpu::hal::cpu::kMaxCommands + 2 * enpu::hal::cpu::kMaxPoints + 2 <= kSlots / 2);
    if (uint32_t code = enpu::hal::check_submission(&submission, enpu::hal::cpu::kMaxCommands,
                                                    enpu::hal::cpu::kMaxPoints, status))
        return code;
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
    return ENPU_HAL_OK;
}

uint32_t enpu_hal_queue::wait_for_room(uint64_t slots, uint64_t deadline_ns,
                                       enpu_hal_status* status) {
    const auto room = [&] {
        head_seen_ = head_.load();
        return write_ - head_seen_ + slots <= kSlots;
    };
    if (write_ - head_seen_ + slots <= kSlots || device->sleepers.wait_until(deadline_ns, room))
        return ENPU_HAL_OK;
    return fail(status, ENPU_HAL_DEADLINE_EXCEEDED, "submit: the queue stayed full");
}

enpu_hal_queue::Slot& enpu_hal_queue::next(SlotKind kind, uint64_t op_id) {
    Slot& slot = slots_[write_++ % kSlots];
    slot.kind = kind;
    slot.done = slot.last = false;
    slot.op_id = op_id;
    slot.signal.fence = nullptr;
    return slot;
}

// The signals, of which the first goes with the slot that is the job's last one so far, or null.
void enpu_hal_queue::finish_job(Slot* last, const enpu_hal_submission& submission) {
    if (!last) last = &next(SlotKind::kNothing, submission.op_id);
    last->done = true;
    for (uint32_t i = 0; i < submission.signal_count; ++i) {
        if (i > 0) last = &next(SlotKind::kNothing, submission.op_id);
        last->signal = submission.signals[i];
    }
    last->last = true;
}

void enpu_hal_queue::publish() {
    tail_.store(write_);
    // Woken once: until it runs, more calls would only get into its way.
    if (!sleeping_.load() || !sleeping_.exchange(false)) return;
    { std::lock_guard lock(wake_mutex_); }
    wake_.notify_one();
}

uint32_t enpu_hal_queue::submit(const enpu_hal_submission& submission, const enpu_hal_graph* graph,
                                uint64_t deadline_ns, enpu_hal_status* status) {
    if (uint32_t code = check(submission, graph, status)) return code;
    const uint64_t slots =
        uint64_t{submission.wait_count} + submission.signal_count + submission.command_count + 2;
    std::lock_guard lock(producers_);
    if (uint32_t code = wait_for_room(slots, deadline_ns, status)) return code;
    const uint64_t begin = write_;
    Slot* last = nullptr;
    for (uint32_t i = 0; i < submission.wait_count; ++i) {
        last = &next(SlotKind::kWait, submission.op_id);
        last->wait = submission.waits[i];
    }
    for (uint32_t i = 0; i < submission.command_count; ++i) {
        last = &next(SlotKind::kRecord, submission.op_id);
        if (uint32_t code = enpu::hal::cpu::resolve(submission.commands[i], last->record, status)) {
            write_ = begin;  // nothing was published
            return code;
        }
    }
    if (graph) {
        last = &next(SlotKind::kGraph, submission.op_id);
        last->graph = graph;
    }
    finish_job(last, submission);
    publish();
    return ENPU_HAL_OK;
}

// --------------------------------------------------------------------------------------------
// worker

bool enpu_hal_queue::wait_for_work() {
    const uint64_t until = now_ns() + kSpinNs;
    while (!ready() && now_ns() < until)
        for (int i = 0; i < 8 && !ready(); ++i) relax();
    if (!ready()) {
        std::unique_lock lock(wake_mutex_);
        while (sleeping_.store(true), !ready())
            wake_.wait(lock);  // idle, not waiting for anybody's work: no deadline
        sleeping_.store(false);
    }
    return tail_.load() != head_.load();
}

void enpu_hal_queue::loop() {
    while (wait_for_work()) {
        uint64_t head = head_.load();
        // Not all at once: a producer may wait for room.
        const uint64_t end = std::min(tail_.load(), head + kSlots / 4);
        for (; head != end; ++head) {
            const Slot& slot = slots_[head % kSlots];
            process(slot);
            if (slot.last) head_.store(head + 1);
        }
        head_.store(head);
        device->sleepers.notify();  // room
    }
}

void enpu_hal_queue::process(const Slot& slot) {
    if (!job_failed_) run_slot(slot);
    if (slot.done) {
        // Before the signals: who waits for them sees the job counted. A job without commands
        // fails here when an earlier one did.
        if (failed_ && !job_failed_) fail_job(failure_, slot.op_id);
        (job_failed_ ? device->counters.jobs_failed : device->counters.jobs).fetch_add(1);
    }
    if (slot.signal.fence) {
        if (job_failed_)
            slot.signal.fence->fail(job_failure_);
        else
            slot.signal.fence->signal(slot.signal.value);
    }
    if (slot.last) job_failed_ = false;
}

void enpu_hal_queue::run_slot(const Slot& slot) {
    switch (slot.kind) {
        case SlotKind::kNothing:
            break;
        case SlotKind::kWait:
            wait_point(slot);
            break;
        case SlotKind::kRecord:
            run_record(slot.record, slot.op_id);
            break;
        case SlotKind::kGraph:
            for (const auto& record : slot.graph->records)
                if (!job_failed_) run_record(record, slot.op_id);
            break;
    }
}

void enpu_hal_queue::fail_job(const enpu_hal_status& why, uint64_t op_id) {
    job_failed_ = true;
    if (!failed_) {
        failed_ = true;
        failure_ = why;
        failure_.op_id = op_id;
        job_failure_ = failure_;
        return;
    }
    fail(&job_failure_, ENPU_HAL_ABORTED,
         "dropped, because earlier work of the queue failed: %.180s", failure_.message);
    job_failure_.op_id = failure_.op_id;
}

void enpu_hal_queue::run_record(const enpu::hal::cpu::Record& record, uint64_t op_id) {
    enpu_hal_status why{};
    if (failed_) return fail_job(failure_, op_id);
    if (stop_.load()) {
        fail(&why, ENPU_HAL_ABORTED, "dropped, because the queue was destroyed");
        return fail_job(why, op_id);
    }
    const uint64_t start = now_ns();
    uint32_t code = ENPU_HAL_OK;
    try {
        code = enpu::hal::cpu::run(*device, record, stop_, &why);
    } catch (const std::exception& error) {
        code = fail(&why, ENPU_HAL_RESOURCE_EXHAUSTED, "operator: %.200s", error.what());
    }
    const bool compute = record.kind == enpu::hal::cpu::RecordKind::kDispatch;
    (compute ? device->counters.busy_compute_ns : device->counters.busy_copy_ns)
        .fetch_add(now_ns() - start, std::memory_order_relaxed);
    if (code != ENPU_HAL_OK) fail_job(why, op_id);
}

void enpu_hal_queue::wait_point(const Slot& slot) {
    if (failed_) return fail_job(failure_, slot.op_id);
    enpu_hal_fence* fence = slot.wait.fence;
    const bool settled = device->sleepers.wait_until(
        now_ns() + timeout_ns_, [&] { return fence->settled(slot.wait.value) || stop_.load(); });
    if (fence->value.load() >= slot.wait.value) return;
    enpu_hal_status why{};
    if (fence->failed.load())
        fail(&why, ENPU_HAL_ABORTED, "a point it waits for failed: %.200s", fence->failure.message);
    else if (settled)
        fail(&why, ENPU_HAL_ABORTED, "dropped, because the queue was destroyed");
    else
        fail(&why, ENPU_HAL_WORK_TIMEOUT, "a point it waits for was not reached within %llu ms",
             static_cast<unsigned long long>(timeout_ns_ / 1'000'000));
    fail_job(why, slot.op_id);
}

// --------------------------------------------------------------------------------------------
// tables

namespace enpu::hal::cpu {
namespace {

uint32_t queue_create(enpu_hal_device* device, const enpu_hal_queue_desc* desc,
                      enpu_hal_queue** queue, enpu_hal_status* status) {
    if (uint32_t code = check_queue_desc(desc, 1, status)) return code;
    try {
        *queue = new enpu_hal_queue(device, *desc);
    } catch (const std::exception& error) {
        return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "queue: %.200s", error.what());
    }
    return ENPU_HAL_OK;
}

void queue_destroy(enpu_hal_queue* queue) {
    delete queue;
}

uint32_t queue_submit(enpu_hal_queue* queue, const enpu_hal_submission* submission,
                      uint64_t deadline_ns, enpu_hal_status* status) {
    if (!submission) return check_submission(submission, kMaxCommands, kMaxPoints, status);
    return queue->submit(*submission, nullptr, deadline_ns, status);
}

uint32_t graph_create(enpu_hal_device* device, const enpu_hal_command* commands, uint32_t count,
                      enpu_hal_graph** graph, enpu_hal_status* status) {
    if (count == 0 || !commands)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "graph: has no commands");
    try {
        auto made = std::make_unique<enpu_hal_graph>(device);
        made->records.resize(count);
        for (uint32_t i = 0; i < count; ++i) {
            const uint32_t code =
                commands[i].kind == ENPU_HAL_COMMAND_HOST_CALL
                    ? fail(status, ENPU_HAL_INVALID_ARGUMENT, "graph: no host calls")
                    : resolve(commands[i], made->records[i], status);
            if (code != ENPU_HAL_OK) {
                if (status) status->op_id = i + 1;
                return code;
            }
        }
        *graph = made.release();
    } catch (const std::exception&) {
        return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "graph: no host memory for %u commands",
                    count);
    }
    return ENPU_HAL_OK;
}

void graph_destroy(enpu_hal_graph* graph) {
    delete graph;
}

uint32_t graph_update(enpu_hal_graph* graph, uint32_t index, const enpu_hal_command* command,
                      enpu_hal_status* status) {
    if (index >= graph->records.size())
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "graph: has no command %u", index);
    Record record;
    if (uint32_t code = resolve(*command, record, status)) return code;
    const Record& old = graph->records[index];
    if (record.kind != old.kind ||
        (record.kind == RecordKind::kDispatch &&
         record.dispatch.packet().header.opcode != old.dispatch.packet().header.opcode))
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "graph: command %u can only be replaced by one of its kind", index);
    graph->records[index] = record;
    return ENPU_HAL_OK;
}

uint32_t graph_launch(enpu_hal_queue* queue, enpu_hal_graph* graph,
                      const enpu_hal_submission* submission, uint64_t deadline_ns,
                      enpu_hal_status* status) {
    if (!submission) return check_submission(submission, kMaxCommands, kMaxPoints, status);
    return queue->submit(*submission, graph, deadline_ns, status);
}

}  // namespace

const enpu_hal_queue_table kQueue = {
    table_header(sizeof(enpu_hal_queue_table), ENPU_HAL_TYPE_QUEUE_TABLE), queue_create,
    queue_destroy, queue_submit};
const enpu_hal_graph_table kGraph = {
    table_header(sizeof(enpu_hal_graph_table), ENPU_HAL_TYPE_GRAPH_TABLE), graph_create,
    graph_destroy, graph_update, graph_launch};

}  // namespace enpu::hal::cpu
