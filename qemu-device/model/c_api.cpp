// SPDX-License-Identifier: MIT
// The C interface: checks what the host gives and lets no exception out.
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "device.h"
#include "enpu_model.h"

using enpu::model::Device;

struct enpu_model {
    enpu_model(const enpu_model_config& config, const enpu_model_host& host)
        : device(config, host) {}
    Device device;
};

namespace {

constexpr uint32_t kMaxCores = 16, kMaxThreads = 64, kMaxCopyEngines = 4;

void say(char* error, size_t bytes, const char* text) {
    if (error && bytes > 0) std::snprintf(error, bytes, "%s", text);
}

// What is wrong, or null.
const char* check(const enpu_model_config& c, const enpu_model_host& h) {
    if (c.struct_size != sizeof(c)) return "config.struct_size is not that of this library";
    if (c.abi != ENPU_MODEL_ABI) return "config.abi is not that of this library";
    if (h.struct_size < offsetof(enpu_model_host, thread_enter))
        return "host.struct_size is too small for the callbacks that are needed";
    if (!h.dma_read || !h.dma_write || !h.raise_irq || !h.clock_ns)
        return "host: dma_read, dma_write, raise_irq and clock_ns are needed";
    if (c.cores < 1 || c.cores > kMaxCores) return "cores must be 1 to 16";
    if (c.threads < 1 || c.threads > kMaxThreads) return "threads must be 1 to 64";
    if (c.copy_engines < 1 || c.copy_engines > kMaxCopyEngines)
        return "copy engines must be 1 to 4";
    if (c.local_bytes < ENPU_LARGE_PAGE_SIZE || c.local_bytes % ENPU_LARGE_PAGE_SIZE != 0)
        return "local memory must be a multiple of 2 MiB, at least 2 MiB";
    if (!c.local_memory || reinterpret_cast<uintptr_t>(c.local_memory) % ENPU_PAGE_SIZE != 0)
        return "local memory must be 4 KiB aligned";
    if (c.max_packet_work > ENPU_MAX_PACKET_WORK)
        return "the largest work of a packet must be at most 2^38";
    return nullptr;
}

}  // namespace

enpu_model* enpu_model_create(const enpu_model_config* config, const enpu_model_host* host,
                              char* error, size_t error_bytes) {
    say(error, error_bytes, "");
    if (const char* wrong = check(*config, *host)) {
        say(error, error_bytes, wrong);
        return nullptr;
    }
    try {
        return new enpu_model(*config, *host);
    } catch (const std::exception& failure) {
        say(error, error_bytes, failure.what());
        return nullptr;
    }
}

void enpu_model_destroy(enpu_model* model) {
    delete model;
}

uint64_t enpu_model_read(enpu_model* model, uint64_t offset, uint32_t bytes) {
    return model->device.read(offset, bytes);
}

void enpu_model_write(enpu_model* model, uint64_t offset, uint64_t value, uint32_t bytes) {
    model->device.write(offset, value, bytes);
}

void enpu_model_doorbell(enpu_model* model, uint32_t queue) {
    model->device.doorbell(queue);
}

void enpu_model_reset(enpu_model* model) {
    model->device.reset();
}

void enpu_model_stop(enpu_model* model) {
    model->device.stop();
}

void enpu_model_start(enpu_model* model) {
    model->device.start();
}

size_t enpu_model_save(enpu_model* model, void* buffer, size_t capacity) try {
    return model->device.save(buffer, capacity);
} catch (const std::bad_alloc&) {
    return 0;
}

int enpu_model_load(enpu_model* model, const void* buffer, size_t bytes, char* error,
                    size_t error_bytes) try {
    std::string why;
    const bool loaded = model->device.load(buffer, bytes, why);
    say(error, error_bytes, why.c_str());
    return loaded ? 0 : -1;
} catch (const std::bad_alloc&) {
    say(error, error_bytes, "no memory for the saved state");
    return -1;
}

int enpu_model_inject(enpu_model* model, const enpu_fault* fault) {
    return model->device.inject(*fault) ? 0 : -1;
}

uint32_t enpu_model_fault_fired(enpu_model* model, uint32_t kind, uint64_t* last_ns) {
    *last_ns = 0;
    return kind < ENPU_FAULT_KINDS ? model->device.fault_fired(kind, *last_ns) : 0;
}
