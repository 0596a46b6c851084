// SPDX-License-Identifier: MIT
// The simulator behind the OS interface: the functional model in this process, with a small driver
// of its own in front of it.
#pragma once

#include <memory>

#include "os/os.h"
#include "os/sim/objects.h"
#include "os/sim/scheduler.h"

namespace enpu::sim {

class SimOs final : public os::Os {
  public:
    static int open(const Options& options, std::unique_ptr<os::Os>* os, enpu_error* error);
    ~SimOs() override;

    bool simulator() const override { return true; }
    int query(uint32_t type, void* data, uint32_t* bytes) override;
    int bo_create(drm_enpu_bo_create* create) override;
    int bo_userptr(drm_enpu_bo_userptr* userptr) override;
    int bo_import(int fd, uint32_t* handle) override;
    int bo_export(uint32_t handle, int* fd) override;
    int bo_info(drm_enpu_bo_info* info) override;
    int bo_wait(const drm_enpu_bo_wait& wait) override;
    void bo_close(uint32_t handle) override;
    int bo_mmap(const drm_enpu_bo_info& info, void** address) override;
    void bo_munmap(void* address, uint64_t bytes) override;
    int vm_map(const drm_enpu_vm_map& map) override;
    int vm_unmap(const drm_enpu_vm_unmap& unmap) override;
    int ctx_create(drm_enpu_ctx_create* create) override;
    void ctx_destroy(uint32_t ctx_id) override;
    int ctx_status(drm_enpu_ctx_status* status) override;
    int submit(drm_enpu_submit* submit) override;
    int queue_create(drm_enpu_queue_create* create,
                     std::unique_ptr<os::Doorbell>* doorbell) override;
    void queue_destroy(uint32_t queue_id) override;
    int queue_wait(const drm_enpu_queue_wait& wait) override;
    int sync_create(uint32_t* handle) override;
    void sync_destroy(uint32_t handle) override;
    int sync_wait(os::SyncWait* wait) override;
    int sync_query(uint32_t handle, uint64_t* value) override;
    int sync_signal(uint32_t handle, uint64_t value) override;
    int sync_export(uint32_t handle, int* fd) override;
    int sync_import(int fd, uint32_t* handle) override;
    int inject_faults(const char* faults, enpu_error* error) override;
    int faults_fired(uint32_t kind, uint32_t* fired, uint64_t* last_ns, enpu_error* error) override;

  private:
    SimOs() = default;
    void device_info(drm_enpu_device_info* info);
    void opcode_info(drm_enpu_opcode_info* info);

    // In the order of construction; the device goes before the memory it uses.
    HostMemory memory_;
    std::unique_ptr<Scheduler> scheduler_;
    std::unique_ptr<Objects> objects_;
    std::unique_ptr<Hardware> hardware_;
};

}  // namespace enpu::sim
