// SPDX-License-Identifier: MIT
// An open device: the way down, its identity, the VA space, and memory that waits for jobs before
// it can be freed.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/object.h"
#include "base/range_allocator.h"
#include "os/os.h"

namespace enpu {

// What a buffer leaves behind: its place in the address space, its handle, its CPU mapping.
struct Remains {
    uint64_t va = 0;
    uint64_t va_bytes = 0;  // mapped bytes; the VA range ends with one guard page more
    uint32_t handle = 0;
    void* cpu = nullptr;
    uint64_t cpu_bytes = 0;
};

}  // namespace enpu

struct enpu_device final : enpu::Object {
    enpu_device(std::unique_ptr<enpu::os::Os> os_in, const enpu_device_info& info_in,
                uint64_t va_start, uint64_t va_end);

    const std::unique_ptr<enpu::os::Os> os;
    const enpu_device_info info;

    // Maps [0, bytes) of a BO at a new VA.
    int map(uint32_t handle, uint64_t bytes, uint32_t map_flags, uint64_t* va, enpu_error* error);
    // Frees what a buffer leaves, now or once the jobs that may use it have ended.
    void bury(const enpu::Remains& remains);
    // Frees what can be freed; with a deadline it waits for jobs. True when something was freed.
    bool reap(int64_t deadline_ns);

    // The kernel gives an object imported twice the same handle: it is closed with its last buffer.
    // import() runs under the same lock as the close, so that a handle cannot die between the two.
    template <typename Import>
    int import_handle(Import&& import, uint32_t* handle) {
        std::lock_guard lock(handles_mutex_);
        const int result = import(handle);
        if (result == 0) ++handles_[*handle];
        return result;
    }
    void add_handle(uint32_t handle);

  private:
    ~enpu_device() override;
    void close_handle(uint32_t handle);
    int try_free(const enpu::Remains& remains, int64_t deadline_ns);

    std::mutex va_mutex_;
    enpu::RangeAllocator va_;
    std::mutex graves_mutex_;
    std::vector<enpu::Remains> graves_;
    std::mutex handles_mutex_;
    std::unordered_map<uint32_t, uint32_t> handles_;
};
