// SPDX-License-Identifier: MIT
// The functional model as a bare device: this process is its bus and its memory.
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

#include "bare_device.h"
#include "enpu_model.h"
#include "failure.h"
#include "os/sim/options.h"

namespace enpu::tools {
namespace {

constexpr uint64_t kMemoryBytes = 128 << 20;
constexpr uint64_t kMemoryBus = 0x4000'0000;

struct FreeDeleter {
    void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, FreeDeleter>;

Memory allocate(uint64_t bytes) {
    void* memory = std::aligned_alloc(ENPU_LARGE_PAGE_SIZE, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0, bytes);
    return Memory(static_cast<std::byte*>(memory));
}

// Device and driver share words of 8 and 4 bytes: those move as one.
void move(void* to, const void* from, uint64_t bytes) {
    const bool aligned =
        (reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % bytes == 0;
    if (bytes == 8 && aligned)
        __atomic_store_n(static_cast<uint64_t*>(to),
                         __atomic_load_n(static_cast<const uint64_t*>(from), __ATOMIC_SEQ_CST),
                         __ATOMIC_SEQ_CST);
    else if (bytes == 4 && aligned)
        __atomic_store_n(static_cast<uint32_t*>(to),
                         __atomic_load_n(static_cast<const uint32_t*>(from), __ATOMIC_SEQ_CST),
                         __ATOMIC_SEQ_CST);
    else
        std::memcpy(to, from, bytes);
}

class ModelDevice final : public BareDevice {
  public:
    explicit ModelDevice(const sim::Options& options);
    ~ModelDevice() override { enpu_model_destroy(model_); }

    std::string name() const override { return "sim"; }
    uint64_t read(uint32_t offset, unsigned bytes) override {
        return enpu_model_read(model_, offset, bytes);
    }
    void write(uint32_t offset, uint64_t value, unsigned bytes) override {
        enpu_model_write(model_, offset, value, bytes);
    }
    void doorbell(uint32_t queue) override { enpu_model_doorbell(model_, queue); }
    std::span<std::byte> memory() override { return {memory_.get(), kMemoryBytes}; }
    uint64_t memory_bus() const override { return kMemoryBus; }
    std::span<std::byte> local() override { return {local_.get(), local_bytes_}; }
    uint64_t interrupts(uint32_t vector) override { return interrupts_.at(vector).load(); }
    void function_reset() override { enpu_model_reset(model_); }

  private:
    std::byte* at(uint64_t bus, uint64_t bytes) const {
        const bool inside =
            bus >= kMemoryBus && bytes <= kMemoryBytes && bus - kMemoryBus <= kMemoryBytes - bytes;
        return inside ? memory_.get() + (bus - kMemoryBus) : nullptr;
    }
    enpu_model_host host();

    uint64_t local_bytes_;
    Memory memory_, local_;
    std::array<std::atomic<uint64_t>, ENPU_MAX_VECTORS> interrupts_{};
    enpu_model* model_ = nullptr;
};

enpu_model_host ModelDevice::host() {
    enpu_model_host host{};
    host.struct_size = sizeof(host);
    host.opaque = this;
    host.dma_read = [](void* self, uint64_t bus, void* buffer, uint64_t bytes) {
        const std::byte* from = static_cast<ModelDevice*>(self)->at(bus, bytes);
        if (from != nullptr) move(buffer, from, bytes);
        return from != nullptr ? 0 : -1;
    };
    host.dma_write = [](void* self, uint64_t bus, const void* buffer, uint64_t bytes) {
        std::byte* to = static_cast<ModelDevice*>(self)->at(bus, bytes);
        if (to != nullptr) move(to, buffer, bytes);
        return to != nullptr ? 0 : -1;
    };
    host.raise_irq = [](void* self, uint32_t vector) {
        auto& counts = static_cast<ModelDevice*>(self)->interrupts_;
        if (vector < counts.size()) ++counts[vector];
    };
    host.clock_ns = [](void*) {
        timespec now = {};
        clock_gettime(CLOCK_MONOTONIC, &now);
        return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
               static_cast<uint64_t>(now.tv_nsec);
    };
    return host;
}

ModelDevice::ModelDevice(const sim::Options& options)
    : local_bytes_(options.local_bytes),
      memory_(allocate(kMemoryBytes)),
      local_(allocate(options.local_bytes)) {
    enpu_model_config config{};
    config.struct_size = sizeof(config);
    config.abi = ENPU_MODEL_ABI;
    config.cores = options.cores;
    config.threads = options.threads;
    config.copy_engines = options.copy_engines;
    config.fault_injection = options.fault_injection;
    config.local_bytes = local_bytes_;
    config.local_memory = local_.get();
    const enpu_model_host functions = host();
    char why[256] = "";
    model_ = enpu_model_create(&config, &functions, why, sizeof(why));
    if (model_ == nullptr) throw Failure(kUsage, std::string("sim: ") + why);
}

}  // namespace

std::unique_ptr<BareDevice> open_model(const std::string& options) {
    sim::Options parsed;
    enpu_error error = {};
    if (sim::parse_options(options, &parsed, &error) != 0) throw Failure(kUsage, error.message);
    return std::make_unique<ModelDevice>(parsed);
}

}  // namespace enpu::tools
