// SPDX-License-Identifier: MIT
#include "device.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "tables.h"

namespace enpu::model {
namespace {

constexpr uint64_t kMinSleepNs = 50'000;
constexpr uint64_t kMaxSleepNs = 1'000'000'000;
constexpr uint32_t kMaxPriority = 3;
constexpr uint32_t kMinRingLog2 = 2;
// Sync mode: a ring whose jobs fill it again goes on with the next access, and not for ever in this.
constexpr uint32_t kInlineSteps = 4096;

}  // namespace

Device::Device(const enpu_model_config& config, const enpu_model_host& host)
    : config(config), host(host), faults(this->host), irq(faults) {
    for (uint32_t i = 0; i < config.cores + config.copy_engines; ++i) {
        const auto kind = i < config.cores ? ENPU_ENGINE_KIND_COMPUTE : ENPU_ENGINE_KIND_COPY;
        engines.push_back(std::make_unique<Engine>(*this, i, kind));
    }
    if (config.sync) return;
    try {
        for (auto& engine : engines) engine->start_thread();
        timer_thread_ = std::thread([this] { timer_main(); });
    } catch (...) {
        end_threads();
        throw;
    }
}

Device::~Device() {
    end_threads();
}

void Device::end_threads() {
    {
        Lock lock(mutex);
        quit_ = true;
        for (auto& engine : engines) engine->quit = engine->discard = true;
        wake_all();
        timer_.notify_all();
    }
    for (auto& engine : engines) engine->join();
    if (timer_thread_.joinable()) timer_thread_.join();
}

void Device::wake_all() {
    for (auto& engine : engines) engine->wake();
}

// Coalesced interrupts that are due, and a link that comes back.
void Device::timer_main() {
    host.thread_enter();
    pthread_setname_np(pthread_self(), "enpu-interrupts");
    {
        Lock lock(mutex);
        while (!quit_) {
            const uint64_t now = host.now();
            if (!stopped) irq.expire(now);
            if (!stopped) expire_removal(now);
            if (deliver(lock)) continue;
            const uint64_t deadline =
                stopped ? kNever : std::min(irq.next_deadline(), link_back_ns);
            if (deadline == kNever) {
                timer_.wait(lock);
                continue;
            }
            const uint64_t left = deadline > now ? deadline - now : 0;
            timer_.wait_for(lock,
                            std::chrono::nanoseconds(std::clamp(left, kMinSleepNs, kMaxSleepNs)));
        }
    }
    host.thread_leave();
}

// Interrupts go out with no lock held: the host may take its own to send them.
bool Device::deliver(Lock& lock) {
    Irq::Messages messages;
    if (stopped || !irq.take_messages(messages)) return false;
    lock.unlock();
    for (uint32_t v = 0; v < ENPU_MAX_VECTORS; ++v) {
        if (messages[v] != 0) host.trace(ENPU_MODEL_EVENT_IRQ, kNone, kNone, v, messages[v]);
        for (uint32_t i = 0; i < messages[v]; ++i) host.raise_irq(v);
    }
    lock.lock();
    return true;
}

void Device::run_inline(Lock& lock) {
    irq.expire(host.now());
    uint32_t left = kInlineSteps;
    for (bool stepped = true; stepped && left > 0;) {
        stepped = false;
        for (auto& engine : engines)
            while (left > 0 && engine->step_inline(lock)) {
                stepped = true;
                --left;
            }
        try_finish_reset();
    }
}

void Device::push_error(const enpu_error_record& record) {
    errors.push(record);
    counters.add(record.as_id % ENPU_MAX_AS, ENPU_COUNTER_FAULTS, 1);
    irq.assert_vector(0);
    host.trace(ENPU_MODEL_EVENT_ERROR, record.engine, record.queue, record.kind, record.va);
    host.log(
        "queue %u: job %llu failed with status %u at packet +%#x (opcode %u, rule %u), va %#llx",
        record.queue, static_cast<unsigned long long>(record.job_id), record.kind, record.packet,
        record.opcode, record.rule, static_cast<unsigned long long>(record.va));
}

void Device::complete_irq(uint32_t vector, uint64_t now) {
    irq.completion(vector, now);
    if (irq.next_deadline() != kNever) timer_.notify_one();
}

void Device::announce_write() {
    ++write_events;
    for (auto& engine : engines) {
        bool waiting = false;
        for (uint16_t q : engine->queues) {
            if (queues[q].state != ENPU_QUEUE_STATE_WAITING) continue;
            queues[q].recheck = waiting = true;
        }
        if (waiting) engine->wake();
    }
}

// ---------------------------------------------------------------- queues

void Device::kick(uint32_t index) {
    ++kicks_;
    if (resetting || index >= ENPU_MAX_QUEUES) return;
    if (faults.armed() && faults.fire(ENPU_FAULT_KIND_DOORBELL_IGNORED, index)) return;
    announce_write();
    Queue& queue = queues[index];
    if (queue.state == ENPU_QUEUE_STATE_DISABLED || queue.state == ENPU_QUEUE_STATE_FAULTED) return;
    queue.pending = true;
    // Not idle any more, however busy its engine is: software tells a lost kick by that.
    if (queue.state == ENPU_QUEUE_STATE_IDLE) queue.state = ENPU_QUEUE_STATE_ACTIVE;
    engines[queue.engine]->wake();
}

void Device::start_queue(uint32_t index) {
    Queue& queue = queues[index];
    queue.is_virtual = queue.ctrl & ENPU_QUEUE_CTRL_VIRT;
    queue.ring_log2 = ENPU_FIELD_GET(ENPU_QUEUE_CTRL_RING_LOG2, queue.ctrl);
    queue.engine = ENPU_FIELD_GET(ENPU_QUEUE_CTRL_ENGINE, queue.ctrl);
    queue.as_id = ENPU_FIELD_GET(ENPU_QUEUE_CTRL_AS, queue.ctrl);
    queue.priority = ENPU_FIELD_GET(ENPU_QUEUE_CTRL_PRIORITY, queue.ctrl);
    queue.error = ENPU_STATUS_OK;
    queue.doorbell_off = queue.recheck = false;
    queue.start_ns = 0;
    queue.wait_deadline_ns = kNever;
    const bool valid = queue.engine < engines.size() && queue.as_id < ENPU_MAX_AS &&
                       queue.priority <= kMaxPriority && queue.ring_log2 >= kMinRingLog2 &&
                       queue.ring_log2 <= ENPU_MAX_RING_LOG2 && queue.address % ENPU_PAGE_SIZE == 0;
    if (!valid) {
        queue.state = ENPU_QUEUE_STATE_FAULTED;
        queue.error = ENPU_STATUS_RING_ERROR;
        queue.engine = queue.as_id = 0;
        enpu_error_record record{};
        record.kind = ENPU_STATUS_RING_ERROR;
        record.queue = static_cast<uint16_t>(index);
        record.time_ns = host.now();
        record.detail = queue.ctrl;
        push_error(record);
        return;
    }
    // The ring may have been filled while the queue was off.
    queue.state = ENPU_QUEUE_STATE_ACTIVE;
    queue.pending = queue.fresh = true;
    engines[queue.engine]->queues.push_back(static_cast<uint16_t>(index));
    engines[queue.engine]->wake();
}

void Device::stop_queue(uint32_t index) {
    Queue& queue = queues[index];
    if (queue.state == ENPU_QUEUE_STATE_DISABLED) return;
    if (engines[queue.engine]->attends(index)) {
        queue.state = ENPU_QUEUE_STATE_STOPPING;
        engines[queue.engine]->wake();
    } else {
        disable_queue(index);
    }
}

void Device::disable_queue(uint32_t index) {
    Queue& queue = queues[index];
    queue.state = ENPU_QUEUE_STATE_DISABLED;
    queue.pending = false;
    auto& served = engines[queue.engine]->queues;
    served.erase(std::remove(served.begin(), served.end(), index), served.end());
}

// ---------------------------------------------------------------- reset, stop

void Device::begin_reset(bool power_on) {
    clear_faults_ = clear_faults_ || power_on;
    reset_stuck_ = !power_on && faults.fire(ENPU_FAULT_KIND_RESET_FAILS, kAnyTarget);
    resetting = true;
    for (auto& engine : engines) engine->discard = true;
    host.trace(ENPU_MODEL_EVENT_RESET, kNone, kNone, kNone, 0);
    wake_all();
    try_finish_reset();
}

void Device::try_finish_reset() {
    if (!resetting || reset_stuck_) return;
    for (auto& engine : engines)
        if (!engine->idle()) return;
    if (clear_faults_) faults.clear();
    clear_faults_ = false;
    clear_state();
    resetting = false;
    ++reset_count_;
    rested.notify_all();
}

// No engine touches anything; only power-on counters stay.
void Device::clear_state() {
    for (auto& engine : engines) engine->reset();
    queues.fill({});
    for (uint32_t i = 0; i < ENPU_MAX_AS; ++i) {
        spaces[i].root.store(0, std::memory_order_release);
        spaces[i].epoch.fetch_add(1, std::memory_order_release);
        counters.clear(i);
    }
    irq.reset();
    errors.reset();
    registers_ = {};
    enabled = false;
    tlb_seq = tlb_stuck = 0;
    for (auto& engine : engines) engine->tlb_seen = 0;
}

void Device::doorbell(uint32_t queue) {
    locked([&](Lock&) {
        if (!gone()) kick(queue);
    });
}

void Device::reset() {
    locked([&](Lock& lock) {
        begin_reset(true);
        rested.wait(lock, [&] { return !resetting; });
        if (removed) set_removed(false);
    });
}

void Device::stop() {
    locked([&](Lock& lock) {
        stopped = true;
        wake_all();
        rested.wait(lock, [&] {
            return std::all_of(engines.begin(), engines.end(),
                               [](const auto& engine) { return engine->resting(); });
        });
    });
}

void Device::start() {
    locked([&](Lock&) {
        stopped = false;
        wake_all();
        timer_.notify_all();
    });
}

// ---------------------------------------------------------------- faults

bool Device::inject(const enpu_fault& fault) {
    bool armed = false;
    locked([&](Lock&) {
        if (!config.fault_injection) return;
        armed = fault.kind == ENPU_FAULT_KIND_NONE || arm(fault);
        if (fault.kind == ENPU_FAULT_KIND_NONE) clear_faults();
    });
    return armed;
}

// False also for a target that is not there: such a fault would never fire.
bool Device::arm(const enpu_fault& fault) {
    if (!Faults::valid(fault)) return false;
    const std::string_view target = enpu_faults[fault.kind].target;
    const uint32_t count = target == "engine"   ? static_cast<uint32_t>(engines.size())
                           : target == "vector" ? ENPU_MAX_VECTORS
                           : target == "queue"  ? ENPU_MAX_QUEUES
                           : target == "as"     ? ENPU_MAX_AS
                                                : 0;
    if (fault.target != kAnyTarget && fault.target >= count) return false;
    return faults.arm(fault);
}

uint32_t Device::fault_fired(uint32_t kind, uint64_t& last_ns) const {
    last_ns = faults.fired_ns(kind);
    return faults.fired(kind);
}

// A hang ends with its fault, and so does what a reset or an invalidation did not finish.
void Device::clear_faults() {
    faults.clear();
    for (auto& engine : engines) engine->hung = engine->reset_stuck = false;
    reset_stuck_ = false;
    tlb_stuck = 0;
    if (removed) set_removed(false);
    wake_all();
    try_finish_reset();
}

// Without a link nothing reaches guest memory, and no message gets out.
void Device::set_removed(bool now_removed) {
    removed = now_removed;
    link_back_ns = kNever;
    host.set_removed(removed);
}

void Device::expire_removal(uint64_t now) {
    if (removed && now >= link_back_ns) set_removed(false);
}

// Every access of a BAR asks whether the device is still there.
bool Device::gone() {
    uint64_t away_ns = 0;
    expire_removal(host.now());
    if (!removed && faults.armed() && faults.fire(ENPU_FAULT_KIND_REMOVED, kAnyTarget, &away_ns)) {
        set_removed(true);
        if (away_ns != 0) link_back_ns = host.now() + std::min(away_ns, kNever / 2);
        timer_.notify_one();
    }
    return removed;
}

}  // namespace enpu::model
