// SPDX-License-Identifier: MIT
#include "os/sim/hardware.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "base/error.h"
#include "enpu_hw_tables.h"
#include "os/os.h"
#include "os/sim/user_queue.h"

namespace enpu::sim {
namespace {

constexpr uint64_t kQueueBytes =
    ENPU_QUEUE_RING_OFFSET +
    QueueMemory::kEntries * (sizeof(enpu_ring_entry) + sizeof(enpu_completion));
static_assert(kQueueBytes % ENPU_PAGE_SIZE == 0);
constexpr int64_t kTlbWaitNs = 5'000'000'000;
constexpr int64_t kResetWaitNs = 2'000'000'000;

// Polls a condition that the device makes true at its next tile boundary.
template <typename Condition>
int poll(int64_t wait_ns, Condition&& condition) {
    const int64_t deadline = os::now_ns() + wait_ns;
    while (!condition()) {
        if (os::now_ns() > deadline) return -EIO;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return 0;
}

}  // namespace

QueueMemory::QueueMemory(HostMemory* memory)
    : host_(memory), memory_(HostMemory::allocate(kQueueBytes)) {
    if (memory_ == nullptr) throw std::bad_alloc();
    bus_ = host_->expose(memory_, kQueueBytes);
    if (bus_ != 0) return;
    HostMemory::release(memory_, kQueueBytes);
    throw std::bad_alloc();
}

QueueMemory::~QueueMemory() {
    host_->hide(bus_, kQueueBytes);
    HostMemory::release(memory_, kQueueBytes);
}

enpu_completion QueueMemory::completion(uint64_t index) const {
    enpu_completion completion;
    const std::byte* records = ring() + kEntries * sizeof(enpu_ring_entry);
    std::memcpy(&completion, records + (index & (kEntries - 1)) * sizeof(completion),
                sizeof(completion));
    return completion;
}

bool QueueMemory::push(uint64_t index, const enpu_ring_entry& entry) {
    std::memcpy(ring() + (index & (kEntries - 1)) * sizeof(entry), &entry, sizeof(entry));
    // The tail must be visible before no_doorbell is read: the device clears that word and then
    // reads the tail once more.
    __atomic_store_n(&header()->tail, index + 1, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&header()->no_doorbell, __ATOMIC_SEQ_CST) == 0;
}

Hardware::Hardware(HostMemory* memory, std::function<void(uint32_t)> interrupt)
    : memory_(memory), interrupt_(std::move(interrupt)) {}

enpu_model_host Hardware::host() {
    enpu_model_host host{};
    host.struct_size = sizeof(host);
    host.opaque = this;
    host.dma_read = [](void* self, uint64_t address, void* buffer, uint64_t bytes) {
        return static_cast<Hardware*>(self)->memory_->read(address, buffer, bytes);
    };
    host.dma_write = [](void* self, uint64_t address, const void* buffer, uint64_t bytes) {
        return static_cast<Hardware*>(self)->memory_->write(address, buffer, bytes);
    };
    host.raise_irq = [](void* self, uint32_t vector) {
        static_cast<Hardware*>(self)->interrupt_(vector);
    };
    host.clock_ns = [](void*) { return static_cast<uint64_t>(os::now_ns()); };
    static const bool log = std::getenv("ENPU_SIM_LOG") != nullptr;
    if (log)
        host.log = [](void*, const char* message) {
            std::fprintf(stderr, "enpu-sim: %s\n", message);
        };
    return host;
}

std::unique_ptr<Hardware> Hardware::create(const Options& options, HostMemory* memory,
                                           std::function<void(uint32_t)> interrupt,
                                           std::string* why) {
    std::unique_ptr<Hardware> hardware(new Hardware(memory, std::move(interrupt)));
    hardware->local_bytes_ = options.local_bytes;
    hardware->fault_injection_ = options.fault_injection;
    hardware->local_ = HostMemory::allocate(options.local_bytes);
    if (hardware->local_ == nullptr) throw std::bad_alloc();
    enpu_model_config config{};
    config.struct_size = sizeof(config);
    config.abi = ENPU_MODEL_ABI;
    config.cores = options.cores;
    config.threads = options.threads;
    config.copy_engines = options.copy_engines;
    config.fault_injection = options.fault_injection;
    config.local_bytes = options.local_bytes;
    config.local_memory = hardware->local_;
    const enpu_model_host host = hardware->host();
    char error[256] = "";
    hardware->model_ = enpu_model_create(&config, &host, error, sizeof(error));
    if (hardware->model_ != nullptr) return hardware;
    *why = error;
    return nullptr;
}

void Hardware::shut_down() {
    enpu_model_destroy(model_);
    model_ = nullptr;
}

Hardware::~Hardware() {
    shut_down();
    if (local_ != nullptr) HostMemory::release(local_, local_bytes_);
}

uint32_t Hardware::read32(uint64_t offset) const {
    return static_cast<uint32_t>(enpu_model_read(model_, offset, 4));
}
uint64_t Hardware::read64(uint64_t offset) const {
    return enpu_model_read(model_, offset, 8);
}
void Hardware::write32(uint64_t offset, uint32_t value) {
    enpu_model_write(model_, offset, value, 4);
}
void Hardware::write64(uint64_t offset, uint64_t value) {
    enpu_model_write(model_, offset, value, 8);
}
void Hardware::doorbell(uint32_t queue) {
    enpu_model_doorbell(model_, queue);
}
void Hardware::acknowledge(uint32_t vectors) {
    write32(ENPU_REG_IRQ_PENDING, vectors);
}

void Hardware::start(uint64_t root_bus) {
    write64(ENPU_REG_AS_ROOT(kAs), root_bus | ENPU_AS_ROOT_VALID);
    write32(ENPU_REG_IRQ_ENABLE, 0xffffffffu);
    write32(ENPU_REG_CTRL, ENPU_CTRL_ENABLE);
}

int Hardware::flush_tlb() {
    write32(ENPU_REG_TLB_INVALIDATE, ENPU_FIELD_PREP(ENPU_TLB_INVALIDATE_AS, kAs));
    const uint32_t wanted = read32(ENPU_REG_TLB_SEQ);
    return poll(kTlbWaitNs,
                [&] { return static_cast<int32_t>(read32(ENPU_REG_TLB_DONE) - wanted) >= 0; });
}

void Hardware::enable_queue(uint32_t queue, const QueueMemory& memory, uint32_t engine,
                            uint32_t priority, uint64_t head) {
    enable(queue, memory.bus(), head,
           ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_RING_LOG2, QueueMemory::kLog2) |
               ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_ENGINE, engine) |
               ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_PRIORITY, priority));
}

void Hardware::enable_user_queue(const UserQueue& queue, uint32_t priority, uint64_t head) {
    enable(queue.id, queue.va, head,
           ENPU_QUEUE_CTRL_VIRT | ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_RING_LOG2, queue.log2) |
               ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_ENGINE, queue.engine) |
               ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_PRIORITY, priority));
}

void Hardware::enable(uint32_t queue, uint64_t address, uint64_t head, uint32_t ctrl) {
    write64(ENPU_REG_QUEUE_ADDR(queue), address);
    write64(ENPU_REG_QUEUE_HEAD(queue), head);
    write64(ENPU_REG_QUEUE_RESUME(queue), 0);
    write32(ENPU_REG_QUEUE_CTRL(queue),
            ctrl | ENPU_QUEUE_CTRL_ENABLE | ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_AS, kAs));
}

void Hardware::disable_queue(uint32_t queue) {
    write32(ENPU_REG_QUEUE_CTRL(queue), 0);
}

uint32_t Hardware::queue_state(uint32_t queue) const {
    return ENPU_FIELD_GET(ENPU_QUEUE_STATUS_STATE, read32(ENPU_REG_QUEUE_STATUS(queue)));
}

bool Hardware::pop_error(enpu_error_record* record) {
    if (read32(ENPU_REG_ERR_COUNT) == 0) return false;
    uint64_t words[sizeof(*record) / 8];
    for (uint32_t i = 0; i < std::size(words); ++i) words[i] = read64(ENPU_REG_ERR_RECORD(i));
    write32(ENPU_REG_ERR_POP, 1);
    std::memcpy(record, words, sizeof(*record));
    return true;
}

bool Hardware::gone() const {
    return read32(ENPU_REG_ID) != ENPU_MAGIC;
}

int Hardware::reset_engine(uint32_t engine) {
    write32(ENPU_REG_ENGINE_CTRL(engine), ENPU_ENGINE_CTRL_RESET);
    return poll(kResetWaitNs, [&] {
        return (read32(ENPU_REG_ENGINE_CTRL(engine)) & ENPU_ENGINE_CTRL_RESET) == 0;
    });
}

int Hardware::reset_device() {
    write32(ENPU_REG_CTRL, ENPU_CTRL_RESET);
    return poll(kResetWaitNs, [&] {
        const uint32_t status = read32(ENPU_REG_STATUS);
        return (status & ENPU_STATUS_READY) != 0 && (status & ENPU_STATUS_RESETTING) == 0;
    });
}

int Hardware::inject(const std::vector<enpu_fault>& faults, enpu_error* error) {
    if (!fault_injection_) return fail(error, -EOPNOTSUPP, os::kNoFaults);
    for (const enpu_fault& fault : faults) {
        if (enpu_model_inject(model_, &fault) == 0) continue;
        const enpu_fault none{};
        enpu_model_inject(model_, &none);
        return fail(error, -ENOSPC,
                    "the device refused fault '%s' for target %u: there is no such target, or "
                    "too many are armed; all have been cleared",
                    enpu_faults[fault.kind].name, fault.target);
    }
    return 0;
}

int Hardware::faults_fired(uint32_t kind, uint32_t* fired, uint64_t* last_ns, enpu_error* error) {
    if (!fault_injection_) return fail(error, -EOPNOTSUPP, os::kNoFaults);
    *fired = enpu_model_fault_fired(model_, kind, last_ns);
    return 0;
}

}  // namespace enpu::sim
