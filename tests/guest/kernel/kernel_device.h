// SPDX-License-Identifier: MIT
// The kernel interface as it is: raw ioctls, each call returning 0 or -errno. No library in
// between, so that every argument, wrong ones included, reaches the module as written.
#pragma once

#include <drm/enpu_accel.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "enpu_commands.h"
#include "enpu_hw.h"
#include "slower.h"

namespace enpu::test {

constexpr uint64_t kPage = ENPU_PAGE_SIZE;
constexpr uint64_t kLargePage = ENPU_LARGE_PAGE_SIZE;
// Room of its own for each mapping of a test; any VA in the allowed range would do.
constexpr uint64_t kVa = 0x1'0000'0000;

// Absolute CLOCK_MONOTONIC time, for the timeouts of the interface.
int64_t deadline(std::chrono::milliseconds from_now);
inline int64_t soon() {
    return deadline(std::chrono::seconds(20) * slower());
}

// An open device node: one address space.
class Device {
  public:
    Device();
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    int fd() const { return fd_; }
    // 0 or -errno; restarts after a signal.
    int call(unsigned long request, void* args) const;

    drm_enpu_device_info info() const;
    drm_enpu_memory_info memory() const;
    std::vector<uint64_t> counters() const;
    // Index of the first copy engine.
    uint32_t copy_engine() const { return info().compute_engines; }

    int bo_create(uint64_t size, uint32_t flags, uint32_t* handle) const;
    int bo_wait(uint32_t handle, int64_t timeout_ns, uint32_t flags = DRM_ENPU_BO_WAIT_WRITE) const;
    int map(uint64_t va, uint32_t handle, uint64_t size, uint64_t offset = 0,
            uint32_t flags = DRM_ENPU_MAP_READ | DRM_ENPU_MAP_WRITE) const;
    int unmap(uint64_t va, uint64_t size, int64_t timeout_ns = soon()) const;
    int close_handle(uint32_t handle) const;

    int context(uint32_t* id, uint32_t timeout_ms = 0, uint32_t max_jobs = 0) const;
    int context_destroy(uint32_t id) const;
    drm_enpu_ctx_status status(uint32_t ctx) const;

    uint32_t syncobj(bool signaled = false) const;
    void syncobj_destroy(uint32_t handle) const;
    // Waits for a binary syncobj (point 0) or a point of a timeline.
    int syncobj_wait(uint32_t handle, uint64_t point = 0, int64_t timeout_ns = soon()) const;
    int syncobj_signal(uint32_t handle, uint64_t point) const;

    int export_fd(uint32_t handle, int* fd) const;
    int import_fd(int fd, uint32_t* handle) const;

  private:
    int fd_ = -1;
};

// A BO, mapped into the process where its kind allows it, and closed with the object.
class Buffer {
  public:
    Buffer(const Device& device, uint64_t size, uint32_t flags = DRM_ENPU_BO_HOST);
    ~Buffer();
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    uint32_t handle() const { return handle_; }
    uint64_t size() const { return size_; }
    uint8_t* data() const { return data_; }
    std::span<uint8_t> bytes() const { return {data_, size_}; }
    // Also maps it into the device.
    Buffer& at(uint64_t va);

  private:
    const Device& device_;
    uint64_t size_;
    uint32_t handle_ = 0;
    uint8_t* data_ = nullptr;
};

using hw::Commands;

// A SUBMIT with its arrays.
struct Submit {
    drm_enpu_submit args{};
    std::vector<drm_enpu_sync_op> syncs;
    std::vector<drm_enpu_submit_bo> bos;

    Submit(uint32_t ctx, uint32_t engine, uint64_t cmd_va, uint32_t cmd_bytes);
    Submit& wait(uint32_t syncobj, uint64_t point = 0);
    Submit& signal(uint32_t syncobj, uint64_t point = 0);
    Submit& uses(uint32_t handle, uint32_t flags);
    int send(const Device& device);
};

// What most tests need: a device, a context, a command buffer at kCmdVa, and a syncobj for the end
// of a job.
struct Fixture {
    static constexpr uint64_t kCmdVa = 0x2000'0000;

    Device device;
    uint32_t ctx = 0;
    uint32_t copy = 0;
    Buffer commands;
    uint32_t done = 0;

    explicit Fixture(uint32_t timeout_ms = 0);
    ~Fixture();
    // Writes the packets and submits them to an engine; `done` signals at the end. 0 or -errno.
    int submit(uint32_t engine, const Commands& packets, uint64_t job_id = 0);
    // The same, and waits. Fails the test when the submission does.
    void run(uint32_t engine, const Commands& packets);
};

// A named file of this device's directory in sysfs, and its text.
std::string sysfs_path(const std::string& name);
std::string sysfs(const std::string& name);
// Writes a file of the device's directory in debugfs, which is mounted when it is not. 0 or -errno.
int debugfs_write(const std::string& name, const std::string& text);
std::string debugfs_read(const std::string& name);
// A 32-bit or 64-bit register of the device, by debugfs.
uint32_t register32(uint32_t offset);
uint64_t register64(uint32_t offset);

}  // namespace enpu::test
