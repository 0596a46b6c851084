// SPDX-License-Identifier: MIT
// Saved state: everything but local memory, with jobs in flight. What is loaded is not trusted.
#include <algorithm>

#include "archive.h"
#include "device.h"

namespace enpu::model {
namespace {

constexpr uint64_t kMagic = 0x544154532d55504eull;  // "NPU-STAT"
constexpr uint32_t kVersion = 4;
constexpr uint64_t kRestBytes = 16384;  // COPY and FILL rest at multiples of it
constexpr uint32_t kMaxMessages = 1 << 20;

template <class Archive>
void visit_job(Archive& a, Job& job) {
    a.value(job.queue);
    a.raw(job.entry);
    a.value(job.offset);
    a.value(job.start_ns);
    a.value(job.busy_ns);
    a.value(job.copied);
    a.value(job.half_way);
}

template <class Archive>
void visit_engine(Archive& a, Engine& engine) {
    visit_job(a, engine.job);
    a.value(engine.stop);
    a.value(engine.reset_requested);
    a.value(engine.reset_stuck);
    a.value(engine.hung);
    a.value(engine.last_queue);
    a.value(engine.progress);
    a.value(engine.busy_total_ns);
    a.value(engine.jobs);
    // What a COPY or FILL has moved is counted when it ends; other packets start again.
    uint64_t read = engine.job.copied ? engine.memory().read_bytes() : 0;
    uint64_t written = engine.job.copied ? engine.memory().written_bytes() : 0;
    a.value(read);
    a.value(written);
    if (Archive::kLoads) {
        engine.memory().take_read();
        engine.memory().take_written();
        engine.memory().count(read, written);
    }
}

template <class Archive>
void visit_queue(Archive& a, Queue& q) {
    a.value(q.ctrl);
    a.value(q.address);
    a.value(q.head);
    a.value(q.resume);
    a.value(q.fence);
    a.choice(q.state, ENPU_QUEUE_STATE_STOPPING);
    a.choice(q.error, ENPU_STATUS_LIMIT);
    a.value(q.is_virtual);
    a.value(q.ring_log2);
    a.value(q.engine);
    a.value(q.as_id);
    a.value(q.priority);
    a.value(q.pending);
    a.value(q.fresh);
    a.value(q.doorbell_off);
    a.value(q.start_ns);
    a.raw(q.entry);
    a.value(q.wait_address);
    a.value(q.wait_value);
    a.value(q.wait_tag);
    a.value(q.wait_start_ns);
    a.value(q.wait_deadline_ns);
    a.value(q.recheck);
}

template <class Archive>
void visit_irq(Archive& a, Irq& irq) {
    Irq::State state = irq.state();
    a.value(state.enable);
    a.value(state.pending);
    a.value(state.coalesce);
    a.value(state.raised);
    for (uint32_t v = 0; v < ENPU_MAX_VECTORS; ++v) {
        a.value(state.waiting[v]);
        a.value(state.first_ns[v]);
        a.value(state.messages[v]);
        if (Archive::kLoads) state.messages[v] = std::min(state.messages[v], kMaxMessages);
    }
    if (Archive::kLoads) irq.set_state(state);
}

template <class Archive>
void visit_errors(Archive& a, Errors& errors) {
    uint32_t count = errors.count(), lost = errors.lost();
    a.value(count);
    a.value(lost);
    count = std::min(count, ENPU_ERROR_FIFO_DEPTH);
    for (uint32_t i = 0; i < count; ++i) {
        enpu_error_record record = errors.at(i);
        a.raw(record);
        if (Archive::kLoads) errors.push(record);
    }
    if (Archive::kLoads) errors.set_lost(lost);
}

template <class Archive>
void visit_fault(Archive& a, enpu_fault& fault) {
    a.value(fault.kind);
    a.value(fault.target);
    a.value(fault.after);
    a.value(fault.times);
    a.value(fault.every);
    a.value(fault.argument);
    a.value(fault.seed);
}

template <class Archive>
void visit_faults(Archive& a, Faults& faults) {
    Faults::State state = faults.state();
    a.value(state.count);
    a.value(state.last_ns);
    for (auto& fired : state.fired) a.value(fired);
    for (auto& fired_ns : state.fired_ns) a.value(fired_ns);
    state.count = std::min(state.count, uint32_t{Faults::kMaxArmed});
    for (uint32_t i = 0; i < state.count; ++i) {
        enpu_fault& fault = state.armed[i];
        visit_fault(a, fault);
        if (Archive::kLoads && fault.times == 0) fault.times = 1;
    }
    if (Archive::kLoads) faults.set_state(state);
}

bool is_entry(const enpu_ring_entry& entry) {
    return entry.cmd_va % ENPU_PACKET_ALIGN == 0 && entry.cmd_bytes % ENPU_PACKET_ALIGN == 0 &&
           entry.cmd_bytes <= ENPU_MAX_COMMAND_BYTES && !(entry.flags & ~ENPU_RING_FLAG_IRQ);
}

}  // namespace

template <class Archive>
void Device::visit(Archive& a) {
    a.value(registers_.scratch);
    visit_fault(a, registers_.fault);
    a.value(reset_count_);
    a.value(kicks_);
    a.value(reset_stuck_);
    a.value(enabled);
    a.value(resetting);
    a.value(removed);
    a.value(link_back_ns);
    a.value(tlb_seq);
    a.value(tlb_stuck);
    a.value(write_events);
    visit_irq(a, irq);
    visit_errors(a, errors);
    visit_faults(a, faults);
    for (uint32_t as_id = 0; as_id < ENPU_MAX_AS; ++as_id) {
        uint64_t root = spaces[as_id].root.load(std::memory_order_relaxed);
        a.value(root);
        spaces[as_id].root.store(root, std::memory_order_relaxed);
        for (uint32_t word = 0; word < Counters::kWords; ++word) {
            uint64_t value = counters.get(as_id, word);
            a.value(value);
            counters.set(as_id, word, value);
        }
    }
    for (Queue& queue : queues) visit_queue(a, queue);
    for (auto& engine : engines) visit_engine(a, *engine);
}

size_t Device::save(void* buffer, size_t capacity) {
    Lock lock(mutex);
    Writer writer;
    writer.value(kMagic);
    writer.value(kVersion);
    writer.value(config.cores);
    writer.value(config.copy_engines);
    writer.value(config.local_bytes);
    writer.value(config.fault_injection);
    visit(writer);
    const auto& bytes = writer.bytes();
    if (buffer && capacity >= bytes.size()) std::memcpy(buffer, bytes.data(), bytes.size());
    return bytes.size();
}

const char* Device::check_queue(const Queue& queue) const {
    if (queue.engine >= engines.size()) return "a queue is on an engine that does not exist";
    if (queue.as_id >= ENPU_MAX_AS) return "a queue has an address space that does not exist";
    if (queue.ring_log2 > 15 || queue.priority > 15) return "a queue has a field out of range";
    if (queue.state == ENPU_QUEUE_STATE_DISABLED || queue.state == ENPU_QUEUE_STATE_FAULTED)
        return nullptr;
    if (queue.ring_log2 < 2 || queue.ring_log2 > ENPU_MAX_RING_LOG2)
        return "a queue has a ring of an impossible size";
    if (queue.address % ENPU_PAGE_SIZE != 0) return "queue memory is not aligned";
    if (queue.state == ENPU_QUEUE_STATE_WAITING &&
        (!is_entry(queue.entry) || queue.resume % ENPU_PACKET_ALIGN != 0 ||
         queue.entry.cmd_bytes < sizeof(enpu_wait_packet) ||
         queue.resume > queue.entry.cmd_bytes - sizeof(enpu_wait_packet)))
        return "a waiting queue has an impossible job";
    return nullptr;
}

const char* Device::check_job(const Engine& engine) const {
    const Job& job = engine.job;
    if (job.queue == kNone) return nullptr;
    if (job.queue >= ENPU_MAX_QUEUES) return "an engine has a queue that does not exist";
    const Queue& queue = queues[job.queue];
    if (queue.engine != engine.index() ||
        (queue.state != ENPU_QUEUE_STATE_ACTIVE && queue.state != ENPU_QUEUE_STATE_STOPPING))
        return "an engine has the job of a queue that is not its own";
    if (!is_entry(job.entry) || job.offset % ENPU_PACKET_ALIGN != 0 ||
        job.offset > job.entry.cmd_bytes || job.copied % kRestBytes != 0)
        return "an engine has an impossible job";
    return nullptr;
}

// What is wrong, or null.
const char* Device::check_loaded() const {
    if (resetting && !reset_stuck_) return "a reset is under way";
    const Faults::State armed = faults.state();
    for (uint32_t i = 0; i < armed.count; ++i)
        if (!Faults::valid(armed.armed[i])) return "an unknown fault is armed";
    for (const Queue& queue : queues)
        if (const char* wrong = check_queue(queue)) return wrong;
    for (const auto& engine : engines)
        if (const char* wrong = check_job(*engine)) return wrong;
    for (uint32_t q = 0; q < ENPU_MAX_QUEUES; ++q)
        if (queues[q].state == ENPU_QUEUE_STATE_STOPPING &&
            engines[queues[q].engine]->job.queue != q)
            return "a queue is stopping without a job";
    return nullptr;
}

bool Device::load(const void* buffer, size_t bytes, std::string& error) {
    Reader reader(buffer, bytes);
    uint64_t magic = 0, local_bytes = 0;
    uint32_t version = 0, cores = 0, copy_engines = 0;
    bool fault_injection = false;
    reader.value(magic);
    reader.value(version);
    reader.value(cores);
    reader.value(copy_engines);
    reader.value(local_bytes);
    reader.value(fault_injection);
    const char* wrong = nullptr;
    if (reader.failed() || magic != kMagic) {
        wrong = "not the saved state of this device";
    } else if (version != kVersion) {
        wrong = "saved by another version of the device";
    } else if (cores != config.cores || copy_engines != config.copy_engines ||
               local_bytes != config.local_bytes || fault_injection != config.fault_injection) {
        wrong = "saved by a device with other cores, copy engines, local memory or fault injection";
    }
    reset();
    if (!wrong) {
        Lock lock(mutex);
        if (!stopped) {
            wrong = "the device is not stopped";
        } else {
            visit(reader);
            if (reader.failed() || reader.left() != 0)
                wrong = "the saved state is too short, too long or damaged";
            else
                wrong = check_loaded();
        }
        for (uint32_t q = 0; q < ENPU_MAX_QUEUES && !wrong; ++q) {
            const enpu_queue_state state = queues[q].state;
            if (state != ENPU_QUEUE_STATE_DISABLED && state != ENPU_QUEUE_STATE_FAULTED)
                engines[queues[q].engine]->queues.push_back(static_cast<uint16_t>(q));
        }
        for (auto& engine : engines) engine->tlb_seen = tlb_seq;
        if (wrong) removed = false;
        if (!wrong && removed) host.set_removed(true);
    }
    if (!wrong) return true;
    error = wrong;
    reset();
    return false;
}

}  // namespace enpu::model
