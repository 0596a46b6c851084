// SPDX-License-Identifier: MIT
// The register BAR: decoded by the generated table, so that widths, accesses and masks are those of
// the data sheet.
#include <cstring>
#include <vector>

#include "device.h"
#include "tables.h"

namespace enpu::model {
namespace {

constexpr uint32_t kCounterEnd = ENPU_COUNTER_BASE + ENPU_COUNTER_STRIDE * ENPU_MAX_AS;
constexpr uint16_t kNoRegister = 0xffff;
constexpr uint32_t kIdleMilliwatts = 2000, kBusyMilliwatts = 8000;
constexpr uint32_t kIdleMillidegrees = 40000, kBusyMillidegrees = 5000;

// Index into enpu_registers of the register that begins at a 4-byte slot.
const std::vector<uint16_t>& slots() {
    static const std::vector<uint16_t> table = [] {
        std::vector<uint16_t> slots(ENPU_COUNTER_BASE / 4, kNoRegister);
        for (uint16_t i = 0; i < ENPU_NUM_REGISTERS; ++i)
            for (uint32_t n = 0; n < enpu_registers[i].count; ++n)
                slots[(enpu_registers[i].offset + n * enpu_registers[i].stride) / 4] = i;
        return slots;
    }();
    return table;
}

// The register at an offset when the access has its width, else null.
const enpu_reg_info* decode(uint64_t offset, uint32_t bytes, uint32_t& index) {
    if (offset >= ENPU_COUNTER_BASE || offset % 4 != 0) return nullptr;
    const uint16_t slot = slots()[offset / 4];
    if (slot == kNoRegister || enpu_registers[slot].bytes != bytes) return nullptr;
    const enpu_reg_info& reg = enpu_registers[slot];
    index = (static_cast<uint32_t>(offset) - reg.offset) / reg.stride;
    return &reg;
}

uint64_t writable(const enpu_reg_info& reg) {
    if (!reg.fields) return reg.bytes == 8 ? ~0ull : 0xffffffffull;
    uint64_t mask = 0;
    for (const enpu_field_info* field = reg.fields; field->name; ++field) mask |= field->mask;
    return mask;
}

bool is_counter(uint64_t offset, uint32_t bytes) {
    return offset >= ENPU_COUNTER_BASE && offset < kCounterEnd && bytes == 8 && offset % 8 == 0;
}

}  // namespace

uint64_t Device::read(uint64_t offset, uint32_t bytes) {
    uint64_t value = 0;
    bool known = true;
    const auto look = [&](Lock&) {
        if (gone()) {
            value = bytes == 8 ? ~0ull : 0xffffffffull;
            return;
        }
        uint32_t index = 0;
        const enpu_reg_info* reg = decode(offset, bytes, index);
        if (is_counter(offset, bytes)) {
            const auto at = static_cast<uint32_t>(offset - ENPU_COUNTER_BASE);
            value = counters.get(at / ENPU_COUNTER_STRIDE, at % ENPU_COUNTER_STRIDE / 8);
        } else if (reg && reg->access != ENPU_WO) {
            value = read_register(reg->offset, index);
        } else {
            known = false;
        }
    };
    if (config.sync) {
        locked(look);  // a deadline may have passed
    } else {
        Lock lock(mutex);
        look(lock);
    }
    if (!known)
        host.log("read of %u bytes at register offset %#llx is not allowed", bytes,
                 static_cast<unsigned long long>(offset));
    return value;
}

void Device::write(uint64_t offset, uint64_t value, uint32_t bytes) {
    bool known = true;
    locked([&](Lock&) {
        if (gone()) return;
        uint32_t index = 0;
        const enpu_reg_info* reg = decode(offset, bytes, index);
        known = reg && reg->access != ENPU_RO;
        if (!known) return;
        // A device in reset takes nothing but another try.
        if (resetting && reg->offset != ENPU_REG_CTRL) return;
        write_register(reg->offset, index, value & writable(*reg));
    });
    if (!known)
        host.log("write of %u bytes at register offset %#llx is not allowed", bytes,
                 static_cast<unsigned long long>(offset));
}

// ---------------------------------------------------------------- reads

uint64_t Device::read_register(uint32_t reg, uint32_t index) const {
    if (reg >= ENPU_QUEUE_BASE) return read_queue(reg, index);
    if (reg >= ENPU_AS_BASE) return spaces[index].root.load(std::memory_order_relaxed);
    if (reg >= ENPU_ENGINE_BASE) return read_engine(reg, index);
    if (reg >= ENPU_REG_FAULT_KIND && reg < ENPU_REG_CAP_OP_DTYPES(0))
        return read_fault_block(reg, index);
    if (reg < ENPU_REG_CTRL || reg >= ENPU_REG_CAP_OP_DTYPES(0)) return read_capability(reg, index);
    return read_global(reg, index);
}

uint64_t Device::read_capability(uint32_t reg, uint32_t index) const {
    switch (reg) {
        case ENPU_REG_ID:
            return ENPU_MAGIC;
        case ENPU_REG_VERSION:
            return ENPU_FIELD_PREP(ENPU_VERSION_MAJOR, ENPU_HW_VERSION_MAJOR) |
                   ENPU_FIELD_PREP(ENPU_VERSION_MINOR, ENPU_HW_VERSION_MINOR);
        case ENPU_REG_CAP_ENGINES:
            return ENPU_FIELD_PREP(ENPU_CAP_ENGINES_CORES, config.cores) |
                   ENPU_FIELD_PREP(ENPU_CAP_ENGINES_COPY, config.copy_engines) |
                   ENPU_FIELD_PREP(ENPU_CAP_ENGINES_THREADS, config.threads);
        case ENPU_REG_CAP_LIMITS:
            return ENPU_FIELD_PREP(ENPU_CAP_LIMITS_QUEUES, ENPU_MAX_QUEUES) |
                   ENPU_FIELD_PREP(ENPU_CAP_LIMITS_AS, ENPU_MAX_AS);
        case ENPU_REG_CAP_MISC:
            return ENPU_FIELD_PREP(ENPU_CAP_MISC_VA_BITS, ENPU_VA_BITS) |
                   ENPU_FIELD_PREP(ENPU_CAP_MISC_VECTORS, ENPU_MAX_VECTORS) |
                   ENPU_FIELD_PREP(ENPU_CAP_MISC_RING_LOG2, ENPU_MAX_RING_LOG2) |
                   ENPU_FIELD_PREP(ENPU_CAP_MISC_FIFO, ENPU_ERROR_FIFO_DEPTH);
        case ENPU_REG_CAP_FEATURES:
            return (config.fault_injection ? ENPU_CAP_FEATURES_FAULT_INJECTION : 0) |
                   (config.sync ? ENPU_CAP_FEATURES_SYNC : 0) | ENPU_CAP_FEATURES_USER_QUEUES |
                   ENPU_CAP_FEATURES_IRQ_FENCE;
        case ENPU_REG_LOCAL_MEM_SIZE:
            return config.local_bytes;
        case ENPU_REG_CAP_MAX_COMMAND:
            return ENPU_MAX_COMMAND_BYTES;
        case ENPU_REG_CAP_MAX_TENSOR:
            return ENPU_MAX_TENSOR_BYTES;
        case ENPU_REG_CAP_MAX_WORK:
            return max_packet_work();
        case ENPU_REG_TIMESTAMP:
            return host.now();
        case ENPU_REG_SCRATCH:
            return registers_.scratch;
        case ENPU_REG_CAP_OPCODES: {
            uint64_t opcodes = 0;
            for (uint32_t i = 0; i < ENPU_MAX_OPCODES; ++i)
                opcodes |= uint64_t{enpu_opcodes[i].exists} << i;
            return opcodes;
        }
        default:
            return enpu_opcodes[index].dtypes;  // CAP_OP_DTYPES
    }
}

uint64_t Device::read_global(uint32_t reg, uint32_t index) const {
    switch (reg) {
        case ENPU_REG_CTRL:
            return enabled ? ENPU_CTRL_ENABLE : 0;
        case ENPU_REG_STATUS:
            return (resetting ? ENPU_STATUS_RESETTING : ENPU_STATUS_READY) |
                   (busy_engines() ? ENPU_STATUS_BUSY : 0);
        case ENPU_REG_RESET_COUNT:
            return reset_count_;
        case ENPU_REG_IRQ_ENABLE:
            return irq.state().enable;
        case ENPU_REG_IRQ_PENDING:
            return irq.state().pending;
        case ENPU_REG_IRQ_COALESCE:
            return irq.state().coalesce;
        case ENPU_REG_IRQ_RAISED:
            return irq.state().raised;
        case ENPU_REG_KICKS:
            return kicks_;
        case ENPU_REG_TLB_SEQ:
            return tlb_seq;
        case ENPU_REG_TLB_DONE:
            return tlb_done();
        case ENPU_REG_ERR_COUNT:
            return errors.count();
        case ENPU_REG_ERR_LOST:
            return errors.lost();
        case ENPU_REG_ERR_RECORD(0): {
            const enpu_error_record record = errors.front();
            uint64_t words[sizeof(record) / sizeof(uint64_t)];
            std::memcpy(words, &record, sizeof(record));
            return words[index];
        }
        case ENPU_REG_SENSOR_TEMP:
            return kIdleMillidegrees + kBusyMillidegrees * busy_engines();
        case ENPU_REG_SENSOR_POWER:
            return kIdleMilliwatts + kBusyMilliwatts * busy_engines();
        case ENPU_REG_SENSOR_CLOCK:
            return 1000;
        default:
            return 0;
    }
}

uint64_t Device::read_fault_block(uint32_t reg, uint32_t index) const {
    if (!config.fault_injection) return 0;
    switch (reg) {
        case ENPU_REG_FAULT_KIND:
            return registers_.fault.kind;
        case ENPU_REG_FAULT_TARGET:
            return registers_.fault.target;
        case ENPU_REG_FAULT_AFTER:
            return registers_.fault.after;
        case ENPU_REG_FAULT_TIMES:
            return registers_.fault.times;
        case ENPU_REG_FAULT_EVERY:
            return registers_.fault.every;
        case ENPU_REG_FAULT_ARG:
            return registers_.fault.argument;
        case ENPU_REG_FAULT_SEED:
            return registers_.fault.seed;
        case ENPU_REG_FAULT_FIRED_NS(0):
            return faults.fired_ns(index);
        case ENPU_REG_FAULT_LAST_NS:
            return faults.last_ns();
        default:
            return faults.fired(index);
    }
}

// Engines that are not there read as a new one.
uint64_t Device::read_engine(uint32_t reg, uint32_t index) const {
    if (index >= engines.size()) return reg == ENPU_REG_ENGINE_QUEUE(0) ? kNone : 0;
    const Engine& engine = *engines[index];
    switch (reg) {
        case ENPU_REG_ENGINE_CTRL(0):
            return (engine.stop ? ENPU_ENGINE_CTRL_STOP : 0) |
                   (engine.reset_requested ? ENPU_ENGINE_CTRL_RESET : 0);
        case ENPU_REG_ENGINE_STATUS(0):
            return ENPU_FIELD_PREP(ENPU_ENGINE_STATUS_STATE, engine.state()) |
                   ENPU_FIELD_PREP(ENPU_ENGINE_STATUS_KIND, engine.kind());
        case ENPU_REG_ENGINE_QUEUE(0):
            return engine.job.queue;
        case ENPU_REG_ENGINE_PACKET(0):
            return engine.job.offset;
        case ENPU_REG_ENGINE_PROGRESS(0):
            return engine.progress;
        case ENPU_REG_ENGINE_FENCE(0):
            return engine.job.entry.fence;
        case ENPU_REG_ENGINE_BUSY_NS(0):
            return engine.busy_ns();
        default:
            return engine.jobs;
    }
}

uint64_t Device::read_queue(uint32_t reg, uint32_t index) const {
    const Queue& queue = queues[index];
    switch (reg) {
        case ENPU_REG_QUEUE_CTRL(0):
            return queue.ctrl;
        case ENPU_REG_QUEUE_STATUS(0):
            return ENPU_FIELD_PREP(ENPU_QUEUE_STATUS_STATE, queue.state) |
                   ENPU_FIELD_PREP(ENPU_QUEUE_STATUS_ERROR, queue.error);
        case ENPU_REG_QUEUE_ADDR(0):
            return queue.address;
        case ENPU_REG_QUEUE_HEAD(0):
            return queue.head;
        case ENPU_REG_QUEUE_RESUME(0):
            return queue.resume;
        default:
            return queue.fence;
    }
}

uint32_t Device::tlb_done() const {
    uint32_t lag = tlb_stuck;
    for (const auto& engine : engines) lag = std::max(lag, engine->tlb_lag());
    return tlb_seq - lag;
}

uint32_t Device::busy_engines() const {
    uint32_t busy = 0;
    for (const auto& engine : engines) busy += engine->job.queue != kNone;
    return busy;
}

// ---------------------------------------------------------------- writes

void Device::write_register(uint32_t reg, uint32_t index, uint64_t value) {
    if (reg >= ENPU_QUEUE_BASE) return write_queue(reg, index, value);
    if (reg == ENPU_REG_AS_CTRL(0)) {
        if (value & ENPU_AS_CTRL_CLEAR) counters.clear(index);
        return;
    }
    if (reg == ENPU_REG_AS_ROOT(0)) {
        spaces[index].root.store(value, std::memory_order_release);
        spaces[index].epoch.fetch_add(1, std::memory_order_acq_rel);
        return;
    }
    if (reg == ENPU_REG_ENGINE_CTRL(0))
        return write_engine_control(index, static_cast<uint32_t>(value));
    if (reg >= ENPU_REG_FAULT_KIND) return write_fault_block(reg, value);
    write_global(reg, value);
}

void Device::write_global(uint32_t reg, uint64_t value) {
    const auto word = static_cast<uint32_t>(value);
    switch (reg) {
        case ENPU_REG_SCRATCH:
            registers_.scratch = value;
            break;
        case ENPU_REG_CTRL:
            write_control(word);
            break;
        case ENPU_REG_IRQ_ENABLE:
            irq.write_enable(word);
            break;
        case ENPU_REG_IRQ_PENDING:
            irq.clear_pending(word);
            break;
        case ENPU_REG_IRQ_TRIGGER:
            for (uint32_t v = 0; v < ENPU_MAX_VECTORS; ++v)
                if (word & (1u << v)) irq.assert_vector(v);
            break;
        case ENPU_REG_IRQ_COALESCE:
            irq.write_coalesce(word, host.now());
            timer_.notify_one();
            break;
        case ENPU_REG_TLB_INVALIDATE:
            invalidate_tlb(word);
            break;
        case ENPU_REG_ERR_POP:
            errors.pop();
            break;
        default:
            break;
    }
}

void Device::write_control(uint32_t value) {
    if (value & ENPU_CTRL_RESET) return begin_reset(false);
    if (resetting) return;
    enabled = value & ENPU_CTRL_ENABLE;
    wake_all();
}

void Device::invalidate_tlb(uint32_t value) {
    const uint32_t as_id = ENPU_FIELD_GET(ENPU_TLB_INVALIDATE_AS, value);
    const bool all = value & ENPU_TLB_INVALIDATE_ALL;
    for (uint32_t i = 0; i < ENPU_MAX_AS; ++i)
        if (all || i == as_id) spaces[i].epoch.fetch_add(1, std::memory_order_acq_rel);
    ++tlb_seq;
    // What TLB_DONE shows is all that is stuck: the entries are gone.
    if (tlb_stuck != 0 ||
        (faults.armed() && faults.fire(ENPU_FAULT_KIND_TLB_STUCK, all ? kAnyTarget : as_id)))
        ++tlb_stuck;
}

void Device::write_engine_control(uint32_t index, uint32_t value) {
    if (index >= engines.size()) return;
    Engine& engine = *engines[index];
    engine.stop = value & ENPU_ENGINE_CTRL_STOP;
    if (value & ENPU_ENGINE_CTRL_RESET) engine.request_reset();
    engine.wake();
}

void Device::write_fault_block(uint32_t reg, uint64_t value) {
    if (!config.fault_injection) return;
    const auto word = static_cast<uint32_t>(value);
    switch (reg) {
        case ENPU_REG_FAULT_KIND:
            registers_.fault.kind = word;
            break;
        case ENPU_REG_FAULT_TARGET:
            registers_.fault.target = word;
            break;
        case ENPU_REG_FAULT_AFTER:
            registers_.fault.after = word;
            break;
        case ENPU_REG_FAULT_TIMES:
            registers_.fault.times = word;
            break;
        case ENPU_REG_FAULT_EVERY:
            registers_.fault.every = word;
            break;
        case ENPU_REG_FAULT_SEED:
            registers_.fault.seed = value;
            break;
        case ENPU_REG_FAULT_ARG:
            registers_.fault.argument = value;
            break;
        case ENPU_REG_FAULT_ARM:
            arm_fault(word);
            break;
        default:
            break;
    }
}

void Device::arm_fault(uint32_t value) {
    if (value == 0) return clear_faults();
    if (value != 1) return;
    if (!arm(registers_.fault)) host.log("fault of kind %u cannot be armed", registers_.fault.kind);
}

void Device::write_queue(uint32_t reg, uint32_t index, uint64_t value) {
    Queue& queue = queues[index];
    const bool off = queue.state == ENPU_QUEUE_STATE_DISABLED;
    switch (reg) {
        case ENPU_REG_QUEUE_CTRL(0):
            return write_queue_control(index, static_cast<uint32_t>(value));
        case ENPU_REG_QUEUE_KICK(0):
            return kick(index);
        case ENPU_REG_QUEUE_ADDR(0):
            // What is in use was taken at the start.
            if (off) queue.address = value;
            break;
        case ENPU_REG_QUEUE_HEAD(0):
            if (off) queue.head = value;
            break;
        case ENPU_REG_QUEUE_RESUME(0):
            if (off) queue.resume = value;
            break;
        default:
            break;
    }
    if (!off)
        host.log("queue %u: register %#x is written while the queue is not disabled", index, reg);
}

void Device::write_queue_control(uint32_t index, uint32_t value) {
    Queue& queue = queues[index];
    const bool was = queue.ctrl & ENPU_QUEUE_CTRL_ENABLE;
    const bool on = value & ENPU_QUEUE_CTRL_ENABLE;
    if (on && !was && queue.state != ENPU_QUEUE_STATE_DISABLED) {
        host.log("queue %u: started again before it has stopped", index);
        return;
    }
    queue.ctrl = value;
    if (on && !was) start_queue(index);
    if (!on && was) stop_queue(index);
}

}  // namespace enpu::model
