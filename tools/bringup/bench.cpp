// SPDX-License-Identifier: MIT
#include "bench.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>

#include "enpu_hw_tables.h"
#include "lib/output.h"

namespace enpu::bringup {
namespace {

using tools::format;
using tools::hex;

uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

uint64_t* word_at(std::byte* memory) {
    return reinterpret_cast<uint64_t*>(memory);
}

}  // namespace

void require(bool holds, const std::string& otherwise) {
    if (!holds) throw StageFailure(otherwise);
}

void require_equal(const std::string& what, uint64_t found, uint64_t expected) {
    if (found != expected)
        throw StageFailure(what + " is " + hex(found) + ", must be " + hex(expected));
}

uint32_t Bench::compute_engines() {
    return ENPU_FIELD_GET(ENPU_CAP_ENGINES_CORES, read32(ENPU_REG_CAP_ENGINES));
}
uint32_t Bench::engines() {
    return compute_engines() + ENPU_FIELD_GET(ENPU_CAP_ENGINES_COPY, read32(ENPU_REG_CAP_ENGINES));
}
uint32_t Bench::vectors() {
    return ENPU_FIELD_GET(ENPU_CAP_MISC_VECTORS, read32(ENPU_REG_CAP_MISC));
}

bool Bench::soon(const std::function<bool()>& condition, unsigned milliseconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return condition();
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return true;
}

void Bench::await(const std::string& what, const std::function<bool()>& condition) {
    require(soon(condition), format("%s: not within %u ms", what.c_str(), wait_ms_));
}

void Bench::reset_device() {
    write32(ENPU_REG_CTRL, ENPU_CTRL_RESET);
    await("STATUS.READY after CTRL.RESET", [&] {
        const uint32_t status = read32(ENPU_REG_STATUS);
        return (status & ENPU_STATUS_READY) && !(status & ENPU_STATUS_RESETTING);
    });
}

void Bench::start_over() {
    reset_device();
    used_ = local_used_ = 0;
    next_va_ = 0x10'0000;
    std::fill(std::begin(roots_), std::end(roots_), 0);
}

void Bench::set_up() {
    start_over();
    write64(ENPU_REG_AS_ROOT(kAs), root(kAs) | ENPU_AS_ROOT_VALID);
    write32(ENPU_REG_IRQ_ENABLE, vectors() >= 32 ? ~0u : (1u << vectors()) - 1);
    write32(ENPU_REG_CTRL, ENPU_CTRL_ENABLE);
    invalidate();
}

// ---------------------------------------------------------------- memory

uint64_t Bench::pages(uint64_t bytes) {
    if (bytes >= ENPU_LARGE_PAGE_SIZE) used_ = round_up(used_, ENPU_LARGE_PAGE_SIZE);
    const uint64_t at = used_;
    used_ += round_up(std::max<uint64_t>(bytes, 1), ENPU_PAGE_SIZE);
    if (used_ > device_.memory().size()) throw StageFailure("the bench has too little memory");
    std::memset(device_.memory().data() + at, 0, used_ - at);
    return device_.memory_bus() + at;
}

std::byte* Bench::at(uint64_t bus) {
    return device_.memory().data() + (bus - device_.memory_bus());
}

uint64_t Bench::word(uint64_t bus) {
    return __atomic_load_n(word_at(at(bus)), __ATOMIC_ACQUIRE);
}

void Bench::set_word(uint64_t bus, uint64_t value) {
    __atomic_store_n(word_at(at(bus)), value, __ATOMIC_SEQ_CST);
}

uint64_t Bench::root(uint32_t as_id) {
    if (roots_[as_id] == 0) roots_[as_id] = pages(ENPU_PAGE_SIZE);
    return roots_[as_id];
}

// Bus address of the entry of a VA in the table of a level; tables on the way are made.
uint64_t Bench::slot(uint64_t va, unsigned level, uint32_t as_id) {
    uint64_t table = root(as_id);
    for (unsigned depth = 3;; --depth) {
        const uint64_t entry = table + ((va >> (12 + 9 * depth)) & 511) * 8;
        if (depth == level) return entry;
        if (!(word(entry) & ENPU_PTE_VALID))
            set_word(entry, pages(ENPU_PAGE_SIZE) | ENPU_PTE_VALID);
        table = word(entry) & ENPU_PTE_ADDR;
    }
}

void Bench::set_entry(uint64_t va, unsigned level, uint64_t entry, uint32_t as_id) {
    set_word(slot(va, level, as_id), entry);
}

void Bench::map(uint64_t va, uint64_t address, uint64_t bytes, uint64_t bits, uint32_t as_id) {
    for (uint64_t done = 0; done < bytes;) {
        const bool large = (va + done) % ENPU_LARGE_PAGE_SIZE == 0 &&
                           (address + done) % ENPU_LARGE_PAGE_SIZE == 0 &&
                           bytes - done >= ENPU_LARGE_PAGE_SIZE;
        const uint64_t kind = large ? ENPU_PTE_LARGE : 0;
        set_entry(va + done, large ? 1 : 0, (address + done) | bits | ENPU_PTE_VALID | kind, as_id);
        done += large ? ENPU_LARGE_PAGE_SIZE : ENPU_PAGE_SIZE;
    }
}

void Bench::invalidate(uint32_t as_id) {
    write32(ENPU_REG_TLB_INVALIDATE, as_id);
    const uint32_t sequence = read32(ENPU_REG_TLB_SEQ);
    await("TLB_DONE reaching TLB_SEQ",
          [&] { return static_cast<int32_t>(read32(ENPU_REG_TLB_DONE) - sequence) >= 0; });
}

uint64_t Bench::free_va(uint64_t bytes) {
    if (bytes >= ENPU_LARGE_PAGE_SIZE) next_va_ = round_up(next_va_, ENPU_LARGE_PAGE_SIZE);
    const uint64_t va = next_va_;
    next_va_ += round_up(std::max<uint64_t>(bytes, 1), ENPU_PAGE_SIZE) + ENPU_PAGE_SIZE;
    return va;
}

Memory Bench::buffer(uint64_t bytes, bool local, uint32_t as_id) {
    const uint64_t size = round_up(std::max<uint64_t>(bytes, 1), ENPU_PAGE_SIZE);
    const uint64_t va = free_va(size);
    if (!local) {
        const uint64_t bus = pages(size);
        map(va, bus, size, ENPU_PTE_READ | ENPU_PTE_WRITE, as_id);
        return {va, {at(bus), bytes}};
    }
    if (size >= ENPU_LARGE_PAGE_SIZE) local_used_ = round_up(local_used_, ENPU_LARGE_PAGE_SIZE);
    if (local_used_ + size > device_.local().size())
        throw StageFailure("the bench has too little local memory");
    map(va, local_used_, size, ENPU_PTE_READ | ENPU_PTE_WRITE | ENPU_PTE_LOCAL, as_id);
    std::byte* host = device_.local().data() + local_used_;
    std::memset(host, 0, size);
    local_used_ += size;
    return {va, {host, bytes}};
}

// ---------------------------------------------------------------- queues

Bench::Queue Bench::queue(uint32_t id, uint32_t engine, uint32_t ring_log2, uint32_t as_id,
                          uint32_t priority) {
    Queue queue{id, engine, ring_log2, as_id, 0, 0, 0};
    queue.bus = pages(ENPU_QUEUE_RING_OFFSET +
                      queue.entries() * (sizeof(enpu_ring_entry) + sizeof(enpu_completion)));
    write64(ENPU_REG_QUEUE_ADDR(id), queue.bus);
    write64(ENPU_REG_QUEUE_HEAD(id), 0);
    write64(ENPU_REG_QUEUE_RESUME(id), 0);
    write32(ENPU_REG_QUEUE_CTRL(id), ENPU_QUEUE_CTRL_ENABLE |
                                         ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_RING_LOG2, ring_log2) |
                                         ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_ENGINE, engine) |
                                         ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_AS, as_id) |
                                         ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_PRIORITY, priority));
    await(format("queue %u leaving DISABLED after ENABLE", id),
          [&] { return state(queue) != ENPU_QUEUE_STATE_DISABLED; });
    return queue;
}

void Bench::push_entry(Queue& queue, const enpu_ring_entry& entry, bool kicked) {
    const uint64_t index = queue.tail & (queue.entries() - 1);
    std::memcpy(at(queue.bus + ENPU_QUEUE_RING_OFFSET + index * sizeof(entry)), &entry,
                sizeof(entry));
    set_word(queue.bus + offsetof(enpu_queue_header, tail), ++queue.tail);
    const auto* polling =
        reinterpret_cast<const uint32_t*>(at(queue.bus + offsetof(enpu_queue_header, no_doorbell)));
    if (kicked && __atomic_load_n(polling, __ATOMIC_SEQ_CST) == 0) kick(queue);
}

uint64_t Bench::push(Queue& queue, const Stream& stream, bool kicked, uint32_t flags) {
    const Memory commands = buffer(stream.bytes().size(), false, queue.as_id);
    std::memcpy(commands.host.data(), stream.bytes().data(), stream.bytes().size());
    enpu_ring_entry entry{};
    entry.cmd_va = commands.va;
    entry.cmd_bytes = static_cast<uint32_t>(stream.bytes().size());
    entry.flags = flags;
    entry.fence = ++queue.fence;
    entry.job_id = 0xb1'0000 + entry.fence;
    push_entry(queue, entry, kicked);
    return entry.fence;
}

uint64_t Bench::fence(const Queue& queue) {
    return word(queue.bus + offsetof(enpu_queue_header, fence));
}

enpu_queue_header Bench::header(const Queue& queue) {
    enpu_queue_header header;
    std::memcpy(&header, at(queue.bus), sizeof(header));
    return header;
}

enpu_completion Bench::completion(const Queue& queue, uint64_t index) {
    enpu_completion record;
    const uint64_t records =
        queue.bus + ENPU_QUEUE_RING_OFFSET + queue.entries() * sizeof(enpu_ring_entry);
    std::memcpy(&record, at(records + (index & (queue.entries() - 1)) * sizeof(record)),
                sizeof(record));
    return record;
}

uint32_t Bench::state(const Queue& queue) {
    return ENPU_FIELD_GET(ENPU_QUEUE_STATUS_STATE, read32(ENPU_REG_QUEUE_STATUS(queue.id)));
}
uint32_t Bench::status(const Queue& queue) {
    return ENPU_FIELD_GET(ENPU_QUEUE_STATUS_ERROR, read32(ENPU_REG_QUEUE_STATUS(queue.id)));
}

void Bench::await_fence(const Queue& queue, uint64_t value, const std::string& step) {
    if (soon([&] { return fence(queue) >= value || state(queue) == ENPU_QUEUE_STATE_FAULTED; }) &&
        fence(queue) >= value)
        return;
    enpu_error_record record;
    const std::string why =
        pop_error(&record) ? tools::describe(record)
                           : format("queue %u is %s", queue.id,
                                    tools::name_of(enpu_queue_state_names, state(queue)).c_str());
    throw StageFailure(format("%s: fence is %llu, %llu was to come; %s", step.c_str(),
                              (unsigned long long)fence(queue), (unsigned long long)value,
                              why.c_str()));
}

void Bench::await_faulted(const Queue& queue, const std::string& step) {
    await(step + ": queue becoming FAULTED",
          [&] { return state(queue) == ENPU_QUEUE_STATE_FAULTED; });
    await(step + ": an error record", [&] { return read32(ENPU_REG_ERR_COUNT) != 0; });
}

void Bench::disable(const Queue& queue) {
    write32(ENPU_REG_QUEUE_CTRL(queue.id), 0);
    await(format("queue %u becoming DISABLED", queue.id),
          [&] { return state(queue) == ENPU_QUEUE_STATE_DISABLED; });
}

bool Bench::pop_error(enpu_error_record* record) {
    if (read32(ENPU_REG_ERR_COUNT) == 0) return false;
    uint64_t words[8];
    for (unsigned i = 0; i < 8; ++i) words[i] = read64(ENPU_REG_ERR_RECORD(i));
    static_assert(sizeof(words) == sizeof(*record));
    std::memcpy(record, words, sizeof(words));
    write32(ENPU_REG_ERR_POP, 1);
    return true;
}

}  // namespace enpu::bringup
