// SPDX-License-Identifier: MIT
// Buffer objects and the address space of one simulated device.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/range_allocator.h"
#include "drm/enpu_accel.h"
#include "os/sim/hardware.h"
#include "os/sim/page_table.h"
#include "os/sim/user_queue.h"

namespace enpu::sim {

class Scheduler;

// A BO lives as long as its handle or a mapping of it.
struct Bo {
    ~Bo();
    class Objects* owner = nullptr;
    uint64_t bytes = 0;
    uint32_t flags = 0;      // DRM_ENPU_BO_*
    void* memory = nullptr;  // CPU address
    uint64_t address = 0;    // bus address, or offset in local memory
    bool user = false;       // memory of the caller
    bool read_only = false;
};

class Objects {
  public:
    Objects(HostMemory* memory, Hardware* hardware, Scheduler* scheduler, uint64_t local_bytes,
            uint64_t host_limit);
    ~Objects();

    uint64_t root_bus() const { return tables_.root_bus(); }

    int create(drm_enpu_bo_create* create);
    int wrap(drm_enpu_bo_userptr* userptr);
    int info(drm_enpu_bo_info* info);
    int cpu_address(uint32_t handle, void** address);
    bool exists(uint32_t handle);
    void close(uint32_t handle);
    int map(const drm_enpu_vm_map& map);
    int unmap(const drm_enpu_vm_unmap& unmap);
    // Host memory, readable and writable, that one mapping holds whole; NULL when there is none.
    QueuePlace place(uint64_t va, uint64_t bytes);
    void memory_info(drm_enpu_memory_info* info);

  private:
    friend struct Bo;
    struct Mapping {
        uint64_t bytes;
        uint64_t offset;
        uint32_t flags;
        std::shared_ptr<Bo> bo;
    };
    int allocate_host(Bo* bo);
    int allocate_local(Bo* bo);
    uint32_t add(std::shared_ptr<Bo> bo);
    std::shared_ptr<Bo> find(uint32_t handle);

    HostMemory* const memory_;
    Hardware* const hardware_;
    Scheduler* const scheduler_;
    const uint64_t host_limit_;
    const uint64_t local_bytes_;
    std::mutex mutex_;
    RangeAllocator local_;
    uint64_t host_used_ = 0;
    uint32_t next_handle_ = 1;
    PageTable tables_;
    // Last: their BOs give memory back to what stands above.
    std::unordered_map<uint32_t, std::shared_ptr<Bo>> handles_;
    std::map<uint64_t, Mapping> mappings_;
};

}  // namespace enpu::sim
