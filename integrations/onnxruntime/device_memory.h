// SPDX-License-Identifier: MIT
// The device's own memory for ONNX Runtime: allocators over the runtime's pool, copies, streams.
// There is one opening of the device for all sessions that use it, since memory belongs to one.
#ifndef ENPU_ORT_DEVICE_MEMORY_H
#define ENPU_ORT_DEVICE_MEMORY_H

#include <set>

#include "ort_api.h"
#include "session.h"

namespace enpu::ort {

class SharedDevice {
  public:
    explicit SharedDevice(std::string spec) : spec_(std::move(spec)) {}
    ~SharedDevice();
    SharedDevice(const SharedDevice&) = delete;
    SharedDevice& operator=(const SharedDevice&) = delete;

    const std::string& spec() const { return spec_; }
    // Opens the device at the first call. Throws lowering::Error.
    std::shared_ptr<lowering::OpenDevice> open();

    // Pool memory, usable on `stream` from now on; NULL: on streams that allocate on this one.
    void* allocate(size_t bytes, rt_stream stream);
    // Goes back to the pool when the work that has been enqueued on any stream is done.
    void release(void* pointer);
    void* allocate_host(size_t bytes);
    void release_host(void* pointer);  // waits for what has been enqueued

    rt_stream add_stream();
    void remove_stream(rt_stream stream);
    void wait();  // for what has been enqueued on any stream
    rt_stream
    own_stream();  // for copies that name none: behind what has been enqueued on any other

    lowering::DeviceOptions options;  // of the opening; set before the first open()

  private:
    void wait_for_streams(bool on_host);
    std::string spec_;
    std::mutex lock_;
    std::shared_ptr<lowering::OpenDevice> device_;
    rt_stream memory_stream_ = nullptr;
    std::set<rt_stream> streams_;
    rt_event event_ = nullptr;
};

// Whether the host reads and writes it: not the provider's own device memory.
bool in_host_memory(const OrtValue* value);

// Throws when a value of `bytes` has no memory.
void check_memory(const void* data, size_t bytes, const std::string& what);

// All of them keep `device` alive. Released by ONNX Runtime.
OrtAllocator* make_allocator(std::shared_ptr<SharedDevice> device, const OrtMemoryInfo* info);
void release_allocator(OrtAllocator* allocator);
OrtDataTransferImpl* make_data_transfer(std::shared_ptr<SharedDevice> device);
OrtSyncStreamImpl* make_sync_stream(std::shared_ptr<SharedDevice> device);

}  // namespace enpu::ort
#endif
