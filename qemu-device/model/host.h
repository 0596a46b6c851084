// SPDX-License-Identifier: MIT
// The host behind its callbacks: guest memory, interrupts, clock, log.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "enpu_model.h"

namespace enpu::model {

constexpr uint32_t kNone = 0xffffffff;
constexpr uint64_t kNever = UINT64_MAX;

class Host {
  public:
    // A host built against an older header gives a shorter struct; what it lacks is null.
    explicit Host(const enpu_model_host& host) {
        std::memcpy(&host_, &host, std::min<size_t>(host.struct_size, sizeof(host_)));
    }

    // Both fail while the device is removed.
    bool read(uint64_t bus, void* buffer, uint64_t bytes) const {
        return linked() && host_.dma_read(host_.opaque, bus, buffer, bytes) == 0;
    }
    bool write(uint64_t bus, const void* buffer, uint64_t bytes) const {
        return linked() && host_.dma_write(host_.opaque, bus, buffer, bytes) == 0;
    }
    void raise_irq(uint32_t vector) const {
        if (linked()) host_.raise_irq(host_.opaque, vector);
    }
    uint64_t now() const { return host_.clock_ns(host_.opaque); }
    void thread_enter() const {
        if (host_.thread_enter) host_.thread_enter(host_.opaque);
    }
    void thread_leave() const {
        if (host_.thread_leave) host_.thread_leave(host_.opaque);
    }
    void trace(enpu_model_event event, uint32_t engine, uint32_t queue, uint64_t value0,
               uint64_t value1) const {
        if (host_.trace) host_.trace(host_.opaque, event, engine, queue, value0, value1);
    }
    void set_removed(bool removed) const {
        removed_.store(removed, std::memory_order_relaxed);
        if (host_.set_removed) host_.set_removed(host_.opaque, removed);
    }
    __attribute__((format(printf, 2, 3))) void log(const char* format, ...) const {
        if (!host_.log) return;
        char line[256];
        va_list args;
        va_start(args, format);
        std::vsnprintf(line, sizeof(line), format, args);
        va_end(args);
        host_.log(host_.opaque, line);
    }

  private:
    bool linked() const { return !removed_.load(std::memory_order_relaxed); }

    enpu_model_host host_{};
    mutable std::atomic<bool> removed_{false};
};

}  // namespace enpu::model
