// SPDX-License-Identifier: MIT
#include "ring.h"

#include <atomic>
#include <cstddef>

namespace enpu::model {
namespace {

// start_ns, end_ns and status, which lie together.
struct HeaderTimes {
    uint64_t start_ns, end_ns;
    uint32_t status, reserved;
};
static_assert(offsetof(enpu_queue_header, end_ns) == offsetof(enpu_queue_header, start_ns) + 8);
static_assert(offsetof(enpu_queue_header, status) == offsetof(enpu_queue_header, start_ns) + 16);

}  // namespace

bool Ring::read_tail(uint64_t& tail) {
    const uint64_t at = address_ + offsetof(enpu_queue_header, tail);
    if (!memory_.read(space_, at, &tail, sizeof(tail), ENPU_ACCESS_READ, fault_)) return false;
    // The entries behind this tail are read after it.
    std::atomic_thread_fence(std::memory_order_acquire);
    return true;
}

bool Ring::read_fence(uint64_t& fence) {
    const uint64_t at = address_ + offsetof(enpu_queue_header, fence);
    return memory_.read(space_, at, &fence, sizeof(fence), ENPU_ACCESS_READ, fault_);
}

bool Ring::read_irq_fence(uint64_t& fence) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const uint64_t at = address_ + offsetof(enpu_queue_header, irq_fence);
    return memory_.read(space_, at, &fence, sizeof(fence), ENPU_ACCESS_READ, fault_);
}

bool Ring::read_entry(uint64_t index, enpu_ring_entry& entry) {
    const uint64_t slot = index & (entries() - 1);
    return memory_.read(space_, address_ + ENPU_QUEUE_RING_OFFSET + slot * sizeof(entry), &entry,
                        sizeof(entry), ENPU_ACCESS_READ, fault_);
}

bool Ring::write_no_doorbell(bool value) {
    const uint32_t word = value;
    if (!write_at(offsetof(enpu_queue_header, no_doorbell), &word, sizeof(word))) return false;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return true;
}

bool Ring::write_status(enpu_status status) {
    const uint32_t word = status;
    return write_at(offsetof(enpu_queue_header, status), &word, sizeof(word));
}

bool Ring::write_completion(uint64_t index, const enpu_completion& completion, uint64_t fence) {
    const uint64_t slot = index & (entries() - 1);
    const uint64_t records = ENPU_QUEUE_RING_OFFSET + entries() * sizeof(enpu_ring_entry);
    const HeaderTimes times{completion.start_ns, completion.end_ns, completion.status, 0};
    const uint64_t head = index + 1;
    // What the job wrote comes before the word that says it is done.
    std::atomic_thread_fence(std::memory_order_release);
    if (!write_at(records + slot * sizeof(completion), &completion, sizeof(completion)) ||
        !write_at(offsetof(enpu_queue_header, start_ns), &times, sizeof(times)))
        return false;
    if (completion.status != ENPU_STATUS_OK) return true;
    if (!write_at(offsetof(enpu_queue_header, head), &head, sizeof(head))) return false;
    std::atomic_thread_fence(std::memory_order_release);
    return write_at(offsetof(enpu_queue_header, fence), &fence, sizeof(fence));
}

}  // namespace enpu::model
