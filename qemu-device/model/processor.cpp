// SPDX-License-Identifier: MIT
// The command processor: fetches a command buffer once and runs its packets from that private copy.
#include <algorithm>
#include <exception>
#include <new>

#include "device.h"
#include "engine.h"
#include "tables.h"

namespace enpu::model {
namespace {

constexpr uint32_t kFetchTile = 4 << 20;
constexpr size_t kKeptCommand = 1 << 20;  // larger buffers are given back

enpu_status status_of(const rules::Violation& violation) {
    switch (violation.rule) {
        case rules::Rule::kOpcodeEngine:
            return ENPU_STATUS_UNSUPPORTED;
        case rules::Rule::kSpan:
        case rules::Rule::kWork:
            return ENPU_STATUS_LIMIT;
        default:
            return violation.operand == 0xff ? ENPU_STATUS_ILLEGAL_PACKET : ENPU_STATUS_BAD_OPERAND;
    }
}

// Of a packet that check_packet has let through.
uint64_t work_of(const enpu_packet& packet) {
    if (packet.opcode == ENPU_OPCODE_COPY) {
        const auto& copy = reinterpret_cast<const enpu_copy_packet&>(packet);
        return copy.width * copy.height;
    }
    if (packet.opcode == ENPU_OPCODE_FILL)
        return reinterpret_cast<const enpu_fill_packet&>(packet).bytes;
    if (!is_operator(packet.opcode)) return 0;
    return rules::packet_work(reinterpret_cast<const enpu_operator_packet&>(packet));
}

bool writes_memory(uint16_t opcode) {
    return opcode != ENPU_OPCODE_NOP && opcode != ENPU_OPCODE_BARRIER && opcode != ENPU_OPCODE_WAIT;
}

}  // namespace

Engine::Result Engine::failed(const Fault& fault, Failure& failure) {
    failure.status = fault.status;
    failure.access = fault.access;
    failure.cause = fault.cause;
    failure.va = fault.va;
    return Result::kFailed;
}

// kDone: go on with the next tile of the same packet.
Engine::Result Engine::next_tile() {
    switch (boundary(false)) {
        case Verdict::kGo:
            return Result::kDone;
        case Verdict::kAbort:
            return Result::kAborted;
        case Verdict::kPark:
        case Verdict::kLeave:
            break;
    }
    return Result::kLeft;
}

Engine::Result Engine::fetch(Failure& failure) {
    fetched_ = job.offset;
    const uint32_t bytes = job.entry.cmd_bytes - fetched_;
    if (command_.capacity() > kKeptCommand) command_ = {};
    command_.resize(bytes);
    for (uint32_t done = 0; done < bytes;) {
        const uint32_t length = std::min(bytes - done, kFetchTile);
        Fault fault;
        if (!memory_.read({true, as_id_}, job.entry.cmd_va + fetched_ + done,
                          command_.data() + done, length, ENPU_ACCESS_FETCH, fault))
            return failed(fault, failure);
        done += length;
        if (done == bytes) break;
        if (const Result result = next_tile(); result != Result::kDone) return result;
    }
    return Result::kDone;
}

Engine::Result Engine::run_packets(Failure& failure) try {
    restartable_ = true;
    // Nothing of the packet has run, whatever tiles the fetch takes.
    const bool was_half_way = job.half_way;
    Result result = fetch(failure);
    if (!was_half_way && result != Result::kLeft) {
        Lock lock(device_.mutex);
        job.half_way = false;
    }
    while (result == Result::kDone) {
        switch (boundary(true)) {
            case Verdict::kGo:
                break;
            case Verdict::kAbort:
                return Result::kAborted;
            case Verdict::kPark:
                return Result::kParked;
            case Verdict::kLeave:
                return Result::kLeft;
        }
        if (job.offset == job.entry.cmd_bytes) break;
        const auto* packet =
            reinterpret_cast<const enpu_packet*>(command_.data() + (job.offset - fetched_));
        result = check(packet, job.entry.cmd_bytes - job.offset, failure);
        if (result == Result::kDone) result = run_packet(*packet, failure);
        if (result == Result::kDone) complete_packet(*packet);
    }
    restartable_ = true;
    return result;
} catch (const std::bad_alloc&) {
    restartable_ = true;
    failure.status = ENPU_STATUS_OUT_OF_MEMORY;
    return Result::kFailed;
} catch (const std::exception& error) {
    // A library of the operators that refuses what it should not.
    device_.host.log("engine %u: opcode %u: %s", index_, failure.opcode, error.what());
    restartable_ = true;
    failure.status = ENPU_STATUS_UNSUPPORTED;
    return Result::kFailed;
}

Engine::Result Engine::check(const void* bytes, uint32_t available, Failure& failure) {
    const auto& packet = *static_cast<const enpu_packet*>(bytes);
    failure = {};
    // A command buffer is a multiple of a header's size, so there is one.
    failure.opcode = packet.opcode;
    failure.tag = packet.tag;
    rules::Violation violation = rules::check_packet(bytes, available, kind_);
    if (!violation) {
        violation.value = work_of(packet);
        if (violation.value <= device_.max_packet_work()) return Result::kDone;
        violation.rule = rules::Rule::kWork;
    }
    failure.status = status_of(violation);
    failure.cause = violation.operand;
    failure.rule = static_cast<uint16_t>(violation.rule);
    failure.detail = violation.value;
    if (violation.operand < ENPU_MAX_OPERANDS && is_operator(packet.opcode))
        failure.va =
            reinterpret_cast<const enpu_operator_packet*>(bytes)->operands[violation.operand].addr;
    return Result::kFailed;
}

// Faults that a test has armed for a packet.
Engine::Result Engine::inject(Failure& failure) {
    static constexpr struct {
        enpu_fault_kind kind;
        enpu_status status;
    } kFatal[] = {{ENPU_FAULT_KIND_ILLEGAL_PACKET, ENPU_STATUS_ILLEGAL_PACKET},
                  {ENPU_FAULT_KIND_ECC_UNCORRECTED, ENPU_STATUS_ECC_UNCORRECTED},
                  {ENPU_FAULT_KIND_LOCAL_EXHAUSTED, ENPU_STATUS_OUT_OF_MEMORY}};
    Faults& faults = device_.faults;
    if (!faults.armed()) return Result::kDone;
    if (faults.fire(ENPU_FAULT_KIND_ECC_CORRECTED, index_)) {
        Failure corrected = failure;
        corrected.status = ENPU_STATUS_ECC_CORRECTED;
        Lock lock(device_.mutex);
        device_.push_error(record_of(job, corrected));
    }
    for (const auto& fatal : kFatal) {
        if (!faults.fire(fatal.kind, index_)) continue;
        failure.status = fatal.status;
        return Result::kFailed;
    }
    return Result::kDone;
}

Engine::Result Engine::run_packet(const enpu_packet& packet, Failure& failure) {
    device_.host.trace(ENPU_MODEL_EVENT_PACKET, index_, job.queue, packet.opcode, job.offset);
    if (const Result result = inject(failure); result != Result::kDone) return result;
    switch (packet.opcode) {
        case ENPU_OPCODE_NOP:
            return Result::kDone;
        case ENPU_OPCODE_BARRIER:
            std::atomic_thread_fence(std::memory_order_seq_cst);
            return Result::kDone;
        case ENPU_OPCODE_COPY:
            return run_copy(reinterpret_cast<const enpu_copy_packet&>(packet), failure);
        case ENPU_OPCODE_FILL:
            return run_fill(reinterpret_cast<const enpu_fill_packet&>(packet), failure);
        case ENPU_OPCODE_WAIT:
            return run_wait(reinterpret_cast<const enpu_wait_packet&>(packet), failure);
        case ENPU_OPCODE_SIGNAL: {
            const auto& signal = reinterpret_cast<const enpu_signal_packet&>(packet);
            return write_word(signal.addr, signal.value, failure);
        }
        case ENPU_OPCODE_TIMESTAMP:
            return write_word(reinterpret_cast<const enpu_timestamp_packet&>(packet).addr,
                              device_.host.now(), failure);
        default:
            return run_operator(reinterpret_cast<const enpu_operator_packet&>(packet), failure);
    }
}

void Engine::complete_packet(const enpu_packet& packet) {
    Counters& counters = device_.counters;
    counters.add(as_id_, packet.opcode, 1);
    counters.add(as_id_, ENPU_COUNTER_PACKETS, 1);
    counters.add(as_id_, ENPU_COUNTER_BYTES_READ, memory_.take_read());
    const uint64_t written = memory_.take_written();
    counters.add(as_id_, ENPU_COUNTER_BYTES_WRITTEN, written);
    if (packet.opcode == ENPU_OPCODE_COPY || packet.opcode == ENPU_OPCODE_FILL)
        counters.add(as_id_, ENPU_COUNTER_COPY_BYTES, written);
    if (is_operator(packet.opcode))
        counters.add(as_id_, ENPU_COUNTER_WORK,
                     rules::packet_work(reinterpret_cast<const enpu_operator_packet&>(packet)));
    counters.add(as_id_, ENPU_COUNTER_TLB_HITS, mmu_.take_hits());
    counters.add(as_id_, ENPU_COUNTER_TLB_MISSES, mmu_.take_misses());
    restartable_ = true;
    Lock lock(device_.mutex);
    job.offset += packet.size;
    job.copied = 0;
    job.half_way = false;
    if (writes_memory(packet.opcode)) device_.announce_write();
}

}  // namespace enpu::model
