// SPDX-License-Identifier: MIT
#include "rig.h"

#include <chrono>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <thread>

namespace enpu::test {
namespace {

uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

bool is_word(const void* pointer, uint64_t bytes) {
    return bytes == 8 && reinterpret_cast<uintptr_t>(pointer) % 8 == 0;
}

uint64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

std::byte* allocate_pages(uint64_t bytes) {
    void* pointer = std::aligned_alloc(ENPU_LARGE_PAGE_SIZE, round_up(bytes, ENPU_LARGE_PAGE_SIZE));
    if (!pointer) throw std::bad_alloc();
    std::memset(pointer, 0, bytes);
    return static_cast<std::byte*>(pointer);
}

}  // namespace

void GuestRam::Free::operator()(std::byte* pointer) const {
    std::free(pointer);
}

GuestRam::GuestRam(uint64_t bytes) : bytes_(bytes), memory_(allocate_pages(bytes)) {}

uint64_t GuestRam::allocate(uint64_t bytes) {
    if (bytes >= ENPU_LARGE_PAGE_SIZE) used_ = round_up(used_, ENPU_LARGE_PAGE_SIZE);
    const uint64_t bus = kBase + used_;
    used_ += round_up(bytes, ENPU_PAGE_SIZE);
    if (used_ > bytes_) throw std::runtime_error("the rig has too little guest RAM");
    return bus;
}

bool GuestRam::holds(uint64_t bus, uint64_t bytes) const {
    return bus_master && bus >= kBase && bytes <= bytes_ && bus - kBase <= bytes_ - bytes;
}

uint64_t GuestRam::word(uint64_t bus) {
    return __atomic_load_n(reinterpret_cast<uint64_t*>(at(bus)), __ATOMIC_SEQ_CST);
}

void GuestRam::set_word(uint64_t bus, uint64_t value) {
    __atomic_store_n(reinterpret_cast<uint64_t*>(at(bus)), value, __ATOMIC_SEQ_CST);
}

void GuestRam::watch_reads(std::function<void(uint64_t bus)> watcher) {
    watcher_ = std::move(watcher);
    watched_.store(true, std::memory_order_release);
}

int GuestRam::read(uint64_t bus, void* buffer, uint64_t bytes) {
    ++reads;
    if (watched_.load(std::memory_order_acquire)) watcher_(bus);
    if (!holds(bus, bytes)) return -1;
    const std::byte* from = at(bus);
    if (is_word(from, bytes)) {
        const uint64_t value = word(bus);
        std::memcpy(buffer, &value, sizeof(value));
    } else {
        std::memcpy(buffer, from, bytes);
    }
    return 0;
}

int GuestRam::write(uint64_t bus, const void* buffer, uint64_t bytes) {
    ++writes;
    if (!holds(bus, bytes)) return -1;
    std::byte* to = at(bus);
    if (is_word(to, bytes)) {
        uint64_t value;
        std::memcpy(&value, buffer, sizeof(value));
        set_word(bus, value);
    } else if (bytes == 4) {
        uint32_t value;
        std::memcpy(&value, buffer, sizeof(value));
        __atomic_store_n(reinterpret_cast<uint32_t*>(to), value, __ATOMIC_SEQ_CST);
    } else {
        std::memcpy(to, buffer, bytes);
    }
    return 0;
}

// ---------------------------------------------------------------- the device

Rig::Rig(const Options& options)
    : options(options),
      ram(options.ram_bytes),
      local(allocate_pages(options.local_bytes), std::free) {
    enpu_model_host host{};
    host.struct_size = sizeof(host);
    host.opaque = this;
    host.dma_read = [](void* self, uint64_t bus, void* buffer, uint64_t bytes) {
        return static_cast<Rig*>(self)->ram.read(bus, buffer, bytes);
    };
    host.dma_write = [](void* self, uint64_t bus, const void* buffer, uint64_t bytes) {
        return static_cast<Rig*>(self)->ram.write(bus, buffer, bytes);
    };
    host.raise_irq = [](void* self, uint32_t vector) {
        Rig& rig = *static_cast<Rig*>(self);
        ++rig.irqs[vector];
        if (rig.on_irq) rig.on_irq(vector);
    };
    host.clock_ns = [](void* self) { return now_ns() + static_cast<Rig*>(self)->clock_offset; };
    host.thread_enter = [](void* self) { ++static_cast<Rig*>(self)->threads; };
    host.thread_leave = [](void* self) { --static_cast<Rig*>(self)->threads; };
    host.set_removed = [](void* self, bool gone) { static_cast<Rig*>(self)->removed = gone; };
    enpu_model_config config{};
    config.struct_size = sizeof(config);
    config.abi = ENPU_MODEL_ABI;
    config.cores = options.cores;
    config.copy_engines = options.copy_engines;
    config.threads = options.threads;
    config.sync = options.sync;
    config.fault_injection = options.faults;
    config.local_bytes = options.local_bytes;
    config.local_memory = local.get();
    char error[256];
    model = enpu_model_create(&config, &host, error, sizeof(error));
    if (!model) throw std::runtime_error(error);
}

Rig::~Rig() {
    enpu_model_destroy(model);
}

void Rig::set_up() {
    write64(ENPU_REG_AS_ROOT(kAs), root(kAs) | ENPU_AS_ROOT_VALID);
    write32(ENPU_REG_IRQ_ENABLE, ~0u);
    write32(ENPU_REG_CTRL, ENPU_CTRL_ENABLE);
}

void Rig::set_guest(const Guest& guest) {
    std::copy(guest.roots.begin(), guest.roots.end(), roots_.begin());
    next_va_ = guest.next_va;
    next_local_ = guest.next_local;
}

uint64_t Rig::root(uint32_t as_id) {
    if (roots_[as_id] == 0) roots_[as_id] = ram.allocate(ENPU_PAGE_SIZE);
    return roots_[as_id];
}

// Bus address of the entry of a VA in the table of a level; tables on the way are made.
uint64_t Rig::table_slot(uint64_t va, unsigned level, uint32_t as_id) {
    uint64_t table = root(as_id);
    for (unsigned at = 3;; --at) {
        const uint64_t slot = table + ((va >> (12 + 9 * at)) & 511) * 8;
        if (at == level) return slot;
        if (!(ram.word(slot) & ENPU_PTE_VALID))
            ram.set_word(slot, ram.allocate(ENPU_PAGE_SIZE) | ENPU_PTE_VALID);
        table = ram.word(slot) & ENPU_PTE_ADDR;
    }
}

void Rig::set_pte(uint64_t va, unsigned level, uint64_t pte, uint32_t as_id) {
    ram.set_word(table_slot(va, level, as_id), pte);
}

void Rig::map(uint64_t va, uint64_t address, uint64_t bytes, uint64_t bits, uint32_t as_id) {
    for (uint64_t done = 0; done < bytes;) {
        const bool large = (va + done) % ENPU_LARGE_PAGE_SIZE == 0 &&
                           (address + done) % ENPU_LARGE_PAGE_SIZE == 0 &&
                           bytes - done >= ENPU_LARGE_PAGE_SIZE;
        set_pte(va + done, large ? 1 : 0,
                (address + done) | bits | ENPU_PTE_VALID | (large ? ENPU_PTE_LARGE : 0), as_id);
        done += large ? ENPU_LARGE_PAGE_SIZE : ENPU_PAGE_SIZE;
    }
}

uint64_t Rig::buffer(uint64_t bytes) {
    if (bytes >= ENPU_LARGE_PAGE_SIZE) next_va_ = round_up(next_va_, ENPU_LARGE_PAGE_SIZE);
    const uint64_t va = next_va_;
    const uint64_t size = round_up(bytes, ENPU_PAGE_SIZE);
    next_va_ += size + ENPU_PAGE_SIZE;  // a gap behind it
    map(va, ram.allocate(size), size, ENPU_PTE_READ | ENPU_PTE_WRITE);
    return va;
}

uint64_t Rig::local_buffer(uint64_t bytes) {
    if (bytes >= ENPU_LARGE_PAGE_SIZE) {
        next_va_ = round_up(next_va_, ENPU_LARGE_PAGE_SIZE);
        next_local_ = round_up(next_local_, ENPU_LARGE_PAGE_SIZE);
    }
    const uint64_t va = next_va_;
    const uint64_t size = round_up(bytes, ENPU_PAGE_SIZE);
    if (next_local_ + size > options.local_bytes)
        throw std::runtime_error("too little local memory");
    next_va_ += size + ENPU_PAGE_SIZE;
    map(va, next_local_, size, ENPU_PTE_READ | ENPU_PTE_WRITE | ENPU_PTE_LOCAL);
    next_local_ += size;
    return va;
}

std::byte* Rig::host(uint64_t va) {
    for (unsigned level : {1u, 0u}) {
        const uint64_t pte = ram.word(table_slot(va, level, kAs));
        const bool leaf = level == 0 || (pte & ENPU_PTE_LARGE);
        if (!leaf) continue;
        const uint64_t offset = va & ((level ? ENPU_LARGE_PAGE_SIZE : ENPU_PAGE_SIZE) - 1);
        const uint64_t address = (pte & ENPU_PTE_ADDR) + offset;
        return pte & ENPU_PTE_LOCAL ? local.get() + address : ram.at(address);
    }
    return nullptr;
}

// ---------------------------------------------------------------- queues

Rig::Queue Rig::queue(uint32_t id, uint32_t engine, uint32_t priority, uint32_t ring_log2,
                      uint32_t as_id) {
    const uint64_t entries = uint64_t{1} << ring_log2;
    Queue queue{id, ring_log2,
                ram.allocate(ENPU_QUEUE_RING_OFFSET +
                             entries * (sizeof(enpu_ring_entry) + sizeof(enpu_completion)))};
    write64(ENPU_REG_QUEUE_ADDR(id), queue.bus);
    write64(ENPU_REG_QUEUE_HEAD(id), 0);
    write64(ENPU_REG_QUEUE_RESUME(id), 0);
    enable(queue, engine, priority, as_id);
    return queue;
}

void Rig::enable(const Queue& queue, uint32_t engine, uint32_t priority, uint32_t as_id) {
    write32(ENPU_REG_QUEUE_CTRL(queue.id),
            ENPU_QUEUE_CTRL_ENABLE | ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_RING_LOG2, queue.ring_log2) |
                ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_ENGINE, engine) |
                ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_AS, as_id) |
                ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_PRIORITY, priority));
}

uint64_t Rig::push(Queue& queue, const Commands& commands, bool kick, uint32_t flags) {
    const auto& bytes = commands.bytes();
    enpu_ring_entry entry{};
    entry.cmd_va = bytes.empty() ? 0 : buffer(bytes.size());
    for (uint64_t done = 0; done < bytes.size(); done += ENPU_PAGE_SIZE)
        std::memcpy(host(entry.cmd_va + done), bytes.data() + done,
                    std::min<uint64_t>(ENPU_PAGE_SIZE, bytes.size() - done));
    entry.cmd_bytes = static_cast<uint32_t>(bytes.size());
    entry.flags = flags;
    entry.fence = queue.tail + 1;
    entry.job_id = 1000 + entry.fence;
    push_entry(queue, entry, kick);
    return entry.fence;
}

void Rig::push_entry(Queue& queue, const enpu_ring_entry& entry, bool kick) {
    const uint64_t slot = queue.tail & ((uint64_t{1} << queue.ring_log2) - 1);
    std::memcpy(ram.at(queue.bus + ENPU_QUEUE_RING_OFFSET + slot * sizeof(entry)), &entry,
                sizeof(entry));
    ram.set_word(queue.bus + offsetof(enpu_queue_header, tail), ++queue.tail);
    const auto* word =
        reinterpret_cast<uint32_t*>(ram.at(queue.bus + offsetof(enpu_queue_header, no_doorbell)));
    if (kick && __atomic_load_n(word, __ATOMIC_SEQ_CST) == 0) enpu_model_doorbell(model, queue.id);
}

uint64_t Rig::fence(const Queue& queue) {
    return ram.word(queue.bus + offsetof(enpu_queue_header, fence));
}

enpu_queue_header Rig::header(const Queue& queue) {
    enpu_queue_header header;
    std::memcpy(&header, ram.at(queue.bus), sizeof(header));
    return header;
}

enpu_completion Rig::completion(const Queue& queue, uint64_t index) {
    const uint64_t entries = uint64_t{1} << queue.ring_log2;
    enpu_completion completion;
    std::memcpy(&completion,
                ram.at(queue.bus + ENPU_QUEUE_RING_OFFSET + entries * sizeof(enpu_ring_entry) +
                       (index & (entries - 1)) * sizeof(completion)),
                sizeof(completion));
    return completion;
}

bool Rig::wait_for(const std::function<bool()>& condition) const {
    const uint64_t end = now_ns() + kWaitMs * 1'000'000;
    while (!condition()) {
        if (now_ns() > end) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return true;
}

bool Rig::wait_fence(const Queue& queue, uint64_t value) {
    return wait_for([&] { return fence(queue) >= value; });
}

enpu_queue_state Rig::state(uint32_t queue) const {
    return static_cast<enpu_queue_state>(
        ENPU_FIELD_GET(ENPU_QUEUE_STATUS_STATE, read32(ENPU_REG_QUEUE_STATUS(queue))));
}

enpu_status Rig::error(uint32_t queue) const {
    return static_cast<enpu_status>(
        ENPU_FIELD_GET(ENPU_QUEUE_STATUS_ERROR, read32(ENPU_REG_QUEUE_STATUS(queue))));
}

bool Rig::wait_state(uint32_t queue, enpu_queue_state state) {
    return wait_for([&] { return this->state(queue) == state; });
}

bool Rig::wait_reg(uint64_t reg, uint32_t mask, uint32_t value) {
    return wait_for([&] { return (read32(reg) & mask) == value; });
}

enpu_error_record Rig::error_record() const {
    uint64_t words[8];
    for (unsigned i = 0; i < 8; ++i) words[i] = read64(ENPU_REG_ERR_RECORD(i));
    enpu_error_record record;
    std::memcpy(&record, words, sizeof(record));
    return record;
}

bool Rig::inject(enpu_fault_kind kind, uint32_t target, uint32_t after, uint32_t times,
                 uint64_t argument) {
    enpu_fault fault{};
    fault.kind = kind;
    fault.target = target;
    fault.after = after;
    fault.times = times;
    fault.argument = argument;
    return inject(fault);
}

bool Rig::inject(const enpu_fault& fault) {
    return enpu_model_inject(model, &fault) == 0;
}

bool Rig::invalidate_tlb(uint32_t as_id) {
    write32(ENPU_REG_TLB_INVALIDATE, as_id);
    const uint32_t seq = read32(ENPU_REG_TLB_SEQ);
    return wait_for([&] { return static_cast<int32_t>(read32(ENPU_REG_TLB_DONE) - seq) >= 0; });
}

void Rig::reset_device() {
    write32(ENPU_REG_CTRL, ENPU_CTRL_RESET);
    wait_reg(ENPU_REG_STATUS, ENPU_STATUS_READY | ENPU_STATUS_RESETTING, ENPU_STATUS_READY);
}

}  // namespace enpu::test
