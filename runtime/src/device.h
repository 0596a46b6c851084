// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "address_map.h"
#include "common/op_table.h"
#include "dag.h"
#include "host_thread.h"
#include "pool.h"
#include "rt.h"
#include "status.h"
#include "timeline.h"

struct rt_kernel_impl {
    rt_device_impl* device = nullptr;
    const enpu::hal::OpInfo* info = nullptr;
};

namespace enpu::rt::profile {
class DeviceRecorder;
}

namespace enpu::rt {

class Guard;

// Opens a device of the first backend that accepts the spec.
rt_status open_backend(const char* spec, const char* origin, const enpu_hal_plugin** plugin,
                       enpu_hal_device** handle);

// 8-byte words of pinned memory for timestamps. A word is reused when the work that writes it has
// ended.
class TimestampSlots {
  public:
    struct Slot {
        enpu_hal_buffer* buffer = nullptr;
        uint64_t offset = 0;
        const volatile uint64_t* word = nullptr;
    };
    rt_status take(rt_device_impl& device, Slot& slot);
    void give_back(const Slot& slot, const Point& last_use);
    void release(const enpu_hal_plugin& hal);

  private:
    struct Returned {
        Slot slot;
        Point last_use;
    };
    std::mutex mutex_;
    std::deque<Returned> returned_;
    std::vector<enpu_hal_buffer*> pages_;
};

}  // namespace enpu::rt

// An open device. Streams, events, tensors and graphs hold references.
struct rt_device_impl {
    rt_device_impl(const enpu_hal_plugin& plugin, enpu_hal_device* device);
    ~rt_device_impl();
    void retain() { references.fetch_add(1, std::memory_order_relaxed); }
    void release() {
        if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

    // The HAL place of a pointer; the whole [pointer, pointer + bytes) must lie in one buffer.
    // `what` names the argument.
    rt_status resolve(const void* pointer, uint64_t bytes, const char* origin, const char* what,
                      enpu_hal_place& place) const;
    // The same for an operand, whose span the backend checks.
    rt_status resolve_operand(const rt_operand& operand, const enpu::hal::OpInfo& info,
                              uint32_t index, const char* origin, enpu_hal_operand& out) const;
    // True and the place when all of the range is pinned host memory.
    bool resolve_pinned(const void* pointer, uint64_t bytes, enpu_hal_place& place) const;

    // Lanes of a graph: lane 0 … compute_lanes() - 1 compute, those after them copy.
    uint32_t compute_lanes() const {
        return std::clamp(info.compute_engines, 1u, enpu::rt::kMaxLanes);
    }
    uint32_t copy_lanes() const {
        return std::min(info.copy_engines, enpu::rt::kMaxLanes - compute_lanes());
    }
    // Points that one submission or one wait of the backend takes.
    uint32_t max_points() const { return std::max(info.max_points, 16u); }
    uint64_t ticks_to_ns(uint64_t ticks) const {
        if (info.clock_hz == 1'000'000'000 || info.clock_hz == 0) return ticks;
        return static_cast<uint64_t>(static_cast<double>(ticks) * 1e9 /
                                     static_cast<double>(info.clock_hz));
    }

    // The thread for host functions, started when first needed.
    rt_status start_host(const char* origin);
    void watch_host(rt_stream_impl* stream) { host->watch(stream); }
    // Blocks until no host function of the stream runs; false when the deadline passes.
    bool quiesce_host(const rt_stream_impl* stream, uint64_t deadline_ns) {
        return !host_started.load() || host->quiesce(stream, deadline_ns);
    }

    rt_status allocate_host(uint64_t bytes, const char* origin, enpu_hal_buffer** buffer,
                            void** pointer);

    std::atomic<uint32_t> references{1};
    const enpu_hal_plugin& hal;
    enpu_hal_device* const handle;
    enpu_hal_device_info info{};

    enpu::rt::AddressMap device_map;  // memory of the pool
    enpu::rt::AddressMap host_map;    // pinned memory
    std::unique_ptr<enpu::rt::Pool> pool;
    enpu::rt::TimestampSlots timestamps;
    std::array<rt_kernel_impl, ENPU_OPS> kernels;

    std::atomic<bool> poison{false};  // poison.h

    // Of the recording `recorder_generation`, made when the device first does something in it.
    std::mutex recorder_mutex;
    std::shared_ptr<enpu::rt::profile::DeviceRecorder> recorder;
    uint64_t recorder_generation = 0;
    // Frees the buffer when the device closes: hung work may still write to it.
    void keep(enpu_hal_buffer* buffer);
    std::vector<enpu_hal_buffer*> kept;      // guarded by streams_mutex
    std::unique_ptr<enpu::rt::Guard> guard;  // of the policy, set before there are streams
    std::atomic<bool> guarded{false};

    const uint32_t fork_generation;
    std::atomic<bool> sync_mode{false};
    std::atomic<bool> host_started{false};
    std::unique_ptr<enpu::rt::HostThread> host;

    std::mutex streams_mutex;
    std::vector<rt_stream_impl*> streams;
    std::atomic<uint64_t> stream_number{0};

    struct {
        std::atomic<uint64_t> launches{0}, submissions{0};
        std::atomic<uint64_t> bytes_h2d{0}, bytes_d2h{0}, bytes_d2d{0}, host_allocations{0};
        std::atomic<uint64_t> copies{0}, copies_merged{0};
    } counted;
};

namespace enpu::rt {

// A reference to a device. The first member of what holds one, so that it is the last to go: the
// device closes with it, and fences and buffers of the other members must be given back before.
class DeviceRef {
  public:
    explicit DeviceRef(rt_device_impl* device) : device_(device) { device_->retain(); }
    DeviceRef(const DeviceRef&) = delete;
    ~DeviceRef() { device_->release(); }
    operator rt_device_impl*() const { return device_; }
    rt_device_impl* operator->() const { return device_; }

  private:
    rt_device_impl* const device_;
};

}  // namespace enpu::rt
