// SPDX-License-Identifier: MIT
#include "user_queue.h"

#include <sys/mman.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>

#include "recovery.h"

namespace enpu::test {
namespace {

uint64_t queue_bytes(uint32_t log2) {
    return ENPU_QUEUE_RING_OFFSET + ((sizeof(enpu_ring_entry) + sizeof(enpu_completion)) << log2);
}

}  // namespace

UserQueue::UserQueue(const Device& device, uint32_t ctx, uint32_t engine, uint64_t va, int* ret,
                     uint32_t log2)
    : device_(device), memory_(device, queue_bytes(log2)) {
    memory_.at(va);
    args_.ctx_id = ctx;
    args_.engine = engine;
    args_.ring_va = va;
    args_.ring_log2 = log2;
    const int result = device.call(DRM_IOCTL_ENPU_QUEUE_CREATE, &args_);
    if (ret) *ret = result;
    if (!ret) REQUIRE(result == 0);
    if (result == 0) REQUIRE(map_doorbell(&door_, MAP_SHARED) == 0);
}

UserQueue::~UserQueue() {
    unmap_doorbell();
    destroy();
}

void UserQueue::unmap_doorbell() {
    if (door_) munmap(const_cast<uint32_t*>(door_), kPage);
    door_ = nullptr;
}

int UserQueue::map_doorbell(volatile uint32_t** address, int flags) const {
    void* page =
        mmap(nullptr, kPage, PROT_READ | PROT_WRITE, flags, device_.fd(), doorbell_offset());
    if (page == MAP_FAILED) return -errno;
    *address = static_cast<volatile uint32_t*>(page);
    return 0;
}

enpu_queue_header* UserQueue::header() const {
    return reinterpret_cast<enpu_queue_header*>(memory_.data());
}

enpu_ring_entry* UserQueue::entry(uint64_t index) const {
    return reinterpret_cast<enpu_ring_entry*>(memory_.data() + ENPU_QUEUE_RING_OFFSET) +
           (index & ((1u << args_.ring_log2) - 1));
}

uint64_t UserQueue::push(uint64_t cmd_va, uint32_t cmd_bytes) {
    write(cmd_va, cmd_bytes);
    set_tail(tail_ + 1);
    return tail_;
}

enpu_ring_entry* UserQueue::write(uint64_t cmd_va, uint32_t cmd_bytes) {
    enpu_ring_entry* next = entry(tail_);
    *next = {cmd_va, cmd_bytes, 0, tail_ + 1, 0x100 + tail_};
    return next;
}

void UserQueue::set_tail(uint64_t tail) {
    tail_ = tail;
    __atomic_store_n(&header()->tail, tail, __ATOMIC_RELEASE);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

void UserQueue::ring() {
    if (__atomic_load_n(&header()->no_doorbell, __ATOMIC_RELAXED) == 0) store_doorbell();
}

uint64_t UserQueue::fence() const {
    return __atomic_load_n(&header()->fence, __ATOMIC_ACQUIRE);
}

int UserQueue::wait(uint64_t fence, int64_t timeout_ns) const {
    drm_enpu_queue_wait args{args_.queue_id, 0, fence, timeout_ns};
    return device_.call(DRM_IOCTL_ENPU_QUEUE_WAIT, &args);
}

bool UserQueue::sleeps_for(uint64_t fence) const {
    return eventually(
        [&] { return __atomic_load_n(&header()->irq_fence, __ATOMIC_ACQUIRE) == fence; });
}

int UserQueue::destroy() {
    if (!args_.queue_id) return -ENOENT;
    drm_enpu_queue_destroy args{args_.queue_id, 0};
    const int ret = device_.call(DRM_IOCTL_ENPU_QUEUE_DESTROY, &args);
    args_.queue_id = 0;
    return ret;
}

}  // namespace enpu::test
