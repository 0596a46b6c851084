// SPDX-License-Identifier: MIT
#include "os/sim/objects.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "os/sim/scheduler.h"

namespace enpu::sim {
namespace {

constexpr uint64_t kPage = ENPU_PAGE_SIZE;
constexpr uint64_t kLarge = ENPU_LARGE_PAGE_SIZE;

bool is_paged(uint64_t value) {
    return (value & (kPage - 1)) == 0;
}

bool round_up(uint64_t* value, uint64_t alignment) {
    if (__builtin_add_overflow(*value, alignment - 1, value)) return false;
    *value &= ~(alignment - 1);
    return true;
}

// Every page of the range is mapped, which is what pinning it would find out.
bool is_mapped(uint64_t begin, uint64_t bytes) {
    constexpr uint64_t kPages = 4096;
    std::vector<unsigned char> present(kPages);
    for (uint64_t done = 0; done < bytes; done += kPages * kPage) {
        const uint64_t part = std::min(bytes - done, kPages * kPage);
        if (mincore(reinterpret_cast<void*>(begin + done), part, present.data()) != 0) return false;
    }
    return true;
}

}  // namespace

// Called with the owner's mutex held: the last reference is dropped by close() and unmap() only.
Bo::~Bo() {
    if (owner == nullptr) return;
    if ((flags & DRM_ENPU_BO_LOCAL) != 0) {
        // Fresh pages are zero: the next BO here starts cleared, as the driver promises.
        madvise(memory, bytes, MADV_DONTNEED);
        owner->local_.release(address, bytes);
        return;
    }
    owner->memory_->hide(address, bytes);
    if (user) return;
    HostMemory::release(memory, bytes);
    owner->host_used_ -= bytes;
}

Objects::Objects(HostMemory* memory, Hardware* hardware, Scheduler* scheduler, uint64_t local_bytes,
                 uint64_t host_limit)
    : memory_(memory),
      hardware_(hardware),
      scheduler_(scheduler),
      host_limit_(host_limit),
      local_bytes_(local_bytes),
      local_(0, local_bytes),
      tables_(memory) {}

Objects::~Objects() = default;

uint32_t Objects::add(std::shared_ptr<Bo> bo) {
    const uint32_t handle = next_handle_++;
    handles_.emplace(handle, std::move(bo));
    return handle;
}

std::shared_ptr<Bo> Objects::find(uint32_t handle) {
    auto it = handles_.find(handle);
    return it == handles_.end() ? nullptr : it->second;
}

int Objects::allocate_host(Bo* bo) {
    if (bo->bytes > host_limit_ - host_used_) return -ENOMEM;
    bo->memory = HostMemory::allocate(bo->bytes);
    if (bo->memory == nullptr) return -ENOMEM;
    bo->address = memory_->expose(bo->memory, bo->bytes);
    if (bo->address == 0) {
        HostMemory::release(bo->memory, bo->bytes);
        return -ENOMEM;
    }
    host_used_ += bo->bytes;
    return 0;
}

int Objects::allocate_local(Bo* bo) {
    const auto place = local_.allocate(bo->bytes, bo->bytes >= kLarge ? kLarge : kPage);
    if (!place) return -ENOSPC;
    bo->address = *place;
    bo->memory = hardware_->local() + *place;
    return 0;
}

int Objects::create(drm_enpu_bo_create* create) {
    const uint32_t placement = create->flags & (DRM_ENPU_BO_HOST | DRM_ENPU_BO_LOCAL);
    constexpr uint32_t kKnown = DRM_ENPU_BO_HOST | DRM_ENPU_BO_LOCAL | DRM_ENPU_BO_PRIVATE;
    const bool local = placement == DRM_ENPU_BO_LOCAL;
    if ((create->flags & ~kKnown) != 0 || (!local && placement != DRM_ENPU_BO_HOST) ||
        create->size == 0)
        return -EINVAL;
    auto bo = std::make_shared<Bo>();
    bo->bytes = create->size;
    bo->flags = create->flags;
    if (!round_up(&bo->bytes, local && create->size >= kLarge ? kLarge : kPage)) return -EINVAL;
    std::lock_guard lock(mutex_);
    if (const int r = local ? allocate_local(bo.get()) : allocate_host(bo.get())) return r;
    bo->owner = this;
    create->size = bo->bytes;
    create->handle = add(std::move(bo));
    return 0;
}

int Objects::wrap(drm_enpu_bo_userptr* userptr) {
    uint64_t end;
    if (!is_paged(userptr->addr) || !is_paged(userptr->size) || userptr->size == 0 ||
        userptr->addr == 0 || (userptr->flags & ~DRM_ENPU_USERPTR_READ_ONLY) != 0 ||
        __builtin_add_overflow(userptr->addr, userptr->size, &end)) {
        return -EINVAL;
    }
    if (!is_mapped(userptr->addr, userptr->size)) return -EFAULT;
    auto bo = std::make_shared<Bo>();
    bo->bytes = userptr->size;
    bo->flags = DRM_ENPU_BO_HOST;
    bo->memory = reinterpret_cast<void*>(userptr->addr);
    bo->user = true;
    bo->read_only = (userptr->flags & DRM_ENPU_USERPTR_READ_ONLY) != 0;
    std::lock_guard lock(mutex_);
    bo->address = memory_->expose(bo->memory, bo->bytes);
    if (bo->address == 0) return -ENOMEM;
    bo->owner = this;
    userptr->handle = add(std::move(bo));
    return 0;
}

int Objects::info(drm_enpu_bo_info* info) {
    std::lock_guard lock(mutex_);
    const auto bo = find(info->handle);
    if (!bo) return -ENOENT;
    info->flags = bo->flags;
    info->size = bo->bytes;
    info->mmap_offset = 0;
    return 0;
}

int Objects::cpu_address(uint32_t handle, void** address) {
    std::lock_guard lock(mutex_);
    const auto bo = find(handle);
    if (!bo) return -ENOENT;
    *address = bo->memory;
    return 0;
}

bool Objects::exists(uint32_t handle) {
    std::lock_guard lock(mutex_);
    return handles_.count(handle) != 0;
}

void Objects::close(uint32_t handle) {
    std::lock_guard lock(mutex_);
    handles_.erase(handle);
}

int Objects::map(const drm_enpu_vm_map& map) {
    uint64_t end, bo_end;
    if (!is_paged(map.va | map.bo_offset | map.size) || map.size == 0 || map.va < ENPU_VA_START ||
        __builtin_add_overflow(map.va, map.size, &end) || end > ENPU_VA_END ||
        __builtin_add_overflow(map.bo_offset, map.size, &bo_end) || map.flags == 0 ||
        (map.flags & ~(DRM_ENPU_MAP_READ | DRM_ENPU_MAP_WRITE)) != 0) {
        return -EINVAL;
    }
    std::lock_guard lock(mutex_);
    auto bo = find(map.handle);
    if (!bo) return -ENOENT;
    if (bo_end > bo->bytes) return -EINVAL;
    if (bo->read_only && (map.flags & DRM_ENPU_MAP_WRITE) != 0) return -EACCES;
    const auto next = mappings_.lower_bound(map.va);
    if (next != mappings_.end() && next->first < end) return -EEXIST;
    if (next != mappings_.begin() &&
        std::prev(next)->first + std::prev(next)->second.bytes > map.va)
        return -EEXIST;
    uint64_t bits = (bo->flags & DRM_ENPU_BO_LOCAL) != 0 ? ENPU_PTE_LOCAL : 0;
    if ((map.flags & DRM_ENPU_MAP_READ) != 0) bits |= ENPU_PTE_READ;
    if ((map.flags & DRM_ENPU_MAP_WRITE) != 0) bits |= ENPU_PTE_WRITE;
    tables_.map(map.va, bo->address + map.bo_offset, map.size, bits);
    mappings_.emplace(map.va, Mapping{map.size, map.bo_offset, map.flags, std::move(bo)});
    return 0;
}

int Objects::unmap(const drm_enpu_vm_unmap& unmap) {
    uint64_t end;
    if (!is_paged(unmap.va | unmap.size) || unmap.size == 0 || unmap.pad != 0 ||
        __builtin_add_overflow(unmap.va, unmap.size, &end)) {
        return -EINVAL;
    }
    if (const int r = scheduler_->wait_idle(unmap.timeout_ns)) return r;
    std::lock_guard lock(mutex_);
    const auto first = mappings_.find(unmap.va);
    auto last = first;
    for (uint64_t at = unmap.va; at != end; ++last) {
        if (last == mappings_.end() || last->first != at || last->second.bytes > end - at)
            return -EINVAL;
        at += last->second.bytes;
    }
    tables_.unmap(unmap.va, unmap.size);
    // When the device does not answer, what it may still reach is never given to anybody else.
    if (const int r = hardware_->flush_tlb()) return r;
    tables_.retire();
    mappings_.erase(first, last);
    return 0;
}

QueuePlace Objects::place(uint64_t va, uint64_t bytes) {
    constexpr uint32_t kBoth = DRM_ENPU_MAP_READ | DRM_ENPU_MAP_WRITE;
    std::lock_guard lock(mutex_);
    auto it = mappings_.upper_bound(va);
    if (!is_paged(va) || it == mappings_.begin()) return {};
    const auto& [start, mapping] = *--it;
    const uint64_t skip = va - start;
    if (skip > mapping.bytes || bytes > mapping.bytes - skip || mapping.flags != kBoth ||
        (mapping.bo->flags & DRM_ENPU_BO_HOST) == 0 || mapping.bo->user)
        return {};
    return {mapping.bo, static_cast<std::byte*>(mapping.bo->memory) + mapping.offset + skip};
}

void Objects::memory_info(drm_enpu_memory_info* info) {
    std::lock_guard lock(mutex_);
    *info = {local_bytes_, local_.free_bytes(), local_.largest(),
             local_bytes_ - local_.free_bytes(), host_used_};
}

}  // namespace enpu::sim
