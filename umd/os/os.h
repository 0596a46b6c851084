// SPDX-License-Identifier: MIT
// The one way from libenpu to the machine below. Its vocabulary is the uAPI of the kernel driver
// (kmod/uapi/drm/enpu_accel.h): the DRM implementation hands each structure to an ioctl, the
// simulator does what the driver would. Every call returns 0 or a negative errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "drm/enpu_accel.h"
#include "enpu/enpu.h"

namespace enpu::os {

struct SyncWait {
    uint32_t* handles;
    uint64_t* points;
    uint32_t count;
    bool any;
    int64_t deadline_ns;  // absolute CLOCK_MONOTONIC
    uint32_t first;       // out: index of a point that is reached, for `any`
};

inline constexpr const char* kNoFaults =
    "faults can be injected on a simulator opened with fault-injection=on only";

// Where a user-mode queue is rung. Any thread may ring.
class Doorbell {
  public:
    virtual ~Doorbell() = default;
    virtual void ring() = 0;
};

class Os {
  public:
    virtual ~Os() = default;
    virtual bool simulator() const = 0;

    // DRM_ENPU_QUERY: `bytes` in and out as in the uAPI.
    virtual int query(uint32_t type, void* data, uint32_t* bytes) = 0;

    virtual int bo_create(drm_enpu_bo_create* create) = 0;
    virtual int bo_userptr(drm_enpu_bo_userptr* userptr) = 0;
    virtual int bo_import(int fd, uint32_t* handle) = 0;
    virtual int bo_export(uint32_t handle, int* fd) = 0;
    virtual int bo_info(drm_enpu_bo_info* info) = 0;
    virtual int bo_wait(const drm_enpu_bo_wait& wait) = 0;
    virtual void bo_close(uint32_t handle) = 0;
    // CPU mapping of a whole BO.
    virtual int bo_mmap(const drm_enpu_bo_info& info, void** address) = 0;
    virtual void bo_munmap(void* address, uint64_t bytes) = 0;

    virtual int vm_map(const drm_enpu_vm_map& map) = 0;
    virtual int vm_unmap(const drm_enpu_vm_unmap& unmap) = 0;

    virtual int ctx_create(drm_enpu_ctx_create* create) = 0;
    virtual void ctx_destroy(uint32_t ctx_id) = 0;
    virtual int ctx_status(drm_enpu_ctx_status* status) = 0;
    virtual int submit(drm_enpu_submit* submit) = 0;

    // User-mode queues. The doorbell goes before its queue.
    virtual int queue_create(drm_enpu_queue_create* create,
                             std::unique_ptr<Doorbell>* doorbell) = 0;
    virtual void queue_destroy(uint32_t queue_id) = 0;
    virtual int queue_wait(const drm_enpu_queue_wait& wait) = 0;

    // Timeline syncobjs.
    virtual int sync_create(uint32_t* handle) = 0;
    virtual void sync_destroy(uint32_t handle) = 0;
    virtual int sync_wait(SyncWait* wait) = 0;
    virtual int sync_query(uint32_t handle, uint64_t* value) = 0;
    virtual int sync_signal(uint32_t handle, uint64_t value) = 0;
    virtual int sync_export(uint32_t handle, int* fd) = 0;
    virtual int sync_import(int fd, uint32_t* handle) = 0;

    // These say themselves what is wrong.
    virtual int inject_faults(const char* faults, enpu_error* error) = 0;
    virtual int faults_fired(uint32_t kind, uint32_t* fired, uint64_t* last_ns,
                             enpu_error* error) = 0;
};

// Open a device; on failure the negative errno, and a sentence in *error.
int open_drm(const std::string& node, std::unique_ptr<Os>* os, enpu_error* error);
int open_sim(const std::string& options, std::unique_ptr<Os>* os, enpu_error* error);

// CLOCK_MONOTONIC in ns.
int64_t now_ns();

}  // namespace enpu::os
