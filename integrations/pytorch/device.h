// SPDX-License-Identifier: MIT
// The device of the process as PyTorch sees it: one NPU (index 0), opened at first use and never
// closed, because tensors live until after the destructors of the program have run.
#ifndef ENPU_PYTORCH_DEVICE_H
#define ENPU_PYTORCH_DEVICE_H

#include <ATen/ATen.h>

#include <array>
#include <mutex>
#include <vector>

#include "rt.h"

namespace enpu::pytorch {

// Throws c10::OutOfMemoryError or c10::Error with the sentence of the status, which it frees.
void check(rt_status status, const char* what);

inline constexpr uint64_t kDeadlineMs = 120000;  // of everything that waits

class Runtime {
  public:
    // Opens the device that ENPU_DEVICE names (default: npu). Throws c10::Error when that fails, at
    // each call again.
    static Runtime& get();
    // Whether it has been opened; never opens it.
    static bool opened();

    rt_device device() const { return device_; }
    rt_kernel kernel(enpu_op op) const { return kernels_[op]; }

    // Streams have numbers; 0 is the default one. Threads start on it.
    rt_stream stream(c10::StreamId id);
    rt_stream current() { return stream(current_id()); }
    static c10::StreamId current_id();
    static c10::StreamId exchange_current(c10::StreamId id);  // throws for an unknown number
    c10::StreamId new_stream(int priority);
    // One of a few streams, in turns.
    c10::StreamId pool_stream(bool high_priority);

    rt_counters counters();
    // Makes streams usable again on which work failed; what was enqueued behind it is lost. Blocks.
    void recover();

  private:
    explicit Runtime(const char* spec);

    rt_device device_ = nullptr;
    std::array<rt_kernel, ENPU_OPS> kernels_{};
    std::mutex lock_;
    std::vector<rt_stream> streams_;
    std::vector<c10::StreamId> pool_;
    size_t next_ = 0;
};

inline c10::Device npu() {
    return {c10::DeviceType::PrivateUse1, 0};
}

// Memory of the runtime's pool (allocator.cpp).
c10::Allocator* allocator();

}  // namespace enpu::pytorch
#endif
