// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "device.h"
#include "rt.h"

// Slots go round: free -> pushed -> popped -> free. Outputs have one buffer more than there are slots,
// so that the one that is being read keeps no slot busy; in place, the slot stays taken for it.
struct rt_pipeline_impl {
    explicit rt_pipeline_impl(rt_device_impl* owner, const rt_pipeline_desc& from)
        : device(owner), desc(from) {}
    ~rt_pipeline_impl();
    rt_pipeline_impl(const rt_pipeline_impl&) = delete;

    rt_status open();
    rt_status open_slot(uint32_t index);
    rt_status input(uint64_t deadline_ns, void** host);
    rt_status push(const rt_pipeline_piece* pieces, uint32_t count);
    rt_status pop(uint64_t deadline_ns, const void** host);
    void release_output();
    rt_status reset();
    uint32_t free_slots();
    uint32_t in_flight();

    const enpu::rt::DeviceRef device;
    const rt_pipeline_desc desc;

    struct Slot {
        rt_pipeline_slot memory{};
        rt_event loaded = nullptr;    // its input is on the device
        rt_event computed = nullptr;  // its input may be loaded again
        rt_event stored = nullptr;    // its output is in pinned memory
    };
    std::vector<Slot> slots;
    rt_stream load_stream = nullptr;
    rt_stream compute_stream = nullptr;
    rt_stream store_stream = nullptr;

  private:
    rt_status load(const Slot& slot, const rt_pipeline_piece* pieces, uint32_t count);
    rt_status compute(const Slot& slot);
    rt_status store(const Slot& slot, void* host);
    void* host_output(uint64_t item) const {
        return desc.output_in_place ? slots[item % slots.size()].memory.host_output
                                    : outputs_[item % outputs_.size()];
    }
    Slot& at(uint64_t item) { return slots[item % slots.size()]; }
    // Slots neither in flight nor being read; the caller holds the lock.
    uint32_t free_locked() const {
        return static_cast<uint32_t>(slots.size() - (pushed_ - popped_) - reading_);
    }

    std::mutex pushing_;  // one push at a time
    std::mutex mutex_;    // guards the counts
    std::condition_variable changed_;
    uint64_t pushed_ = 0;
    uint64_t popped_ = 0;
    uint32_t reading_ = 0;  // 1: the slot of item popped_ - 1 is being read
    std::vector<void*> outputs_;
};
