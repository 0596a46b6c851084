// SPDX-License-Identifier: MIT
// A context on one GPU, shared by all devices that are opened on it. It outlives the last of them,
// because making one takes a tenth of a second, unless it was lost: then the next opening makes a
// new one.
#pragma once

#include <atomic>
#include <mutex>

#include "driver.h"
#include "kernels.h"
#include "libraries/library.h"

namespace enpu::hal::cuda {

struct GpuInfo {
    char name[64];
    int driver_version;  // 12040 is 12.4
    int compute_major, compute_minor;
    int multiprocessors;
    int copy_engines;
    bool unified_addressing, pools, host_register;
    uint64_t memory_bytes;
    uint64_t max_pitch;
};

class Gpu {
  public:
    // How many there are; 0 with the reason in *status when there is no driver.
    static int count(enpu_hal_status* status);
    static uint32_t describe(const Driver& api, int index, GpuInfo& info, enpu_hal_status* status);
    // The context of GPU `index`, with one user more. UNAVAILABLE with the reason.
    static uint32_t acquire(int index, Gpu** gpu, enpu_hal_status* status);
    static void release(Gpu* gpu);

    // After a sticky error or a hang: everything that is left fails with DEVICE_LOST. The first
    // reason is the one that is told. `hung`: work may run forever, so that destroying the context
    // could block: it is given up instead.
    void lose(const enpu_hal_status& why, bool hung);
    bool is_lost() const { return lost_.load(); }
    // DEVICE_LOST with the reason, or OK.
    uint32_t check(enpu_hal_status* status);
    // What a driver call gave: OK, or fail_driver(); a sticky error loses the GPU.
    uint32_t result(enpu_hal_status* status, uint32_t code, Result error, const char* what);

    const Driver& api;
    const int index;
    GpuInfo info{};
    Context context = nullptr;
    // Allocations are ordered in a stream of their own; nothing else runs there.
    Stream memory_stream = nullptr;
    MemoryPool pool = nullptr;  // null where the GPU has none: cuMemAlloc then
    KernelSet kernels;
    Libraries libraries;
    // Local memory, given back by release(). Blocks until it is there, 10 s at most. In the context.
    uint32_t take(uint64_t bytes, DevicePtr* address, enpu_hal_status* status);
    void give_back(DevicePtr address);

  private:
    Gpu(const Driver& driver, int number) : api(driver), index(number) {}
    uint32_t create(enpu_hal_status* status);
    void destroy();
    uint32_t wait_for_pool(enpu_hal_status* status);

    unsigned users_ = 0;  // guarded by the table's mutex
    std::atomic<bool> lost_{false};
    std::atomic<bool> hung_{false};
    std::mutex mutex_;
    enpu_hal_status loss_{};
};

// The context is current on this thread while this lives.
class InContext {
  public:
    explicit InContext(const Gpu& gpu) : gpu_(gpu) {
        entered_ = gpu.api.cuCtxPushCurrent(gpu.context) == kSuccess;
    }
    ~InContext() {
        Context popped = nullptr;
        if (entered_) gpu_.api.cuCtxPopCurrent(&popped);
    }
    InContext(const InContext&) = delete;

  private:
    const Gpu& gpu_;
    bool entered_;
};

}  // namespace enpu::hal::cuda
