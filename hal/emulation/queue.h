// SPDX-License-Identifier: MIT
// A queue above the backend's: turns commands that the device lacks into those it has, and holds
// back, in order, what the device cannot be told of yet.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "command_list.h"
#include "fences.h"

namespace enpu::hal {

class EmulatedQueue {
  public:
    EmulatedQueue(const enpu_hal_plugin& below, Fences& fences, enpu_hal_device* device,
                  const enpu_hal_device_info& info, uint64_t timeout_ns);
    ~EmulatedQueue();
    EmulatedQueue(const EmulatedQueue&) = delete;

    uint32_t open(const enpu_hal_queue_desc& desc, enpu_hal_status* status);
    // What runs besides the commands of a submission: for a launch, the list of a graph that was
    // made here, or a graph of the backend.
    struct Launch {
        const CommandList* list = nullptr;
        enpu_hal_graph* graph = nullptr;
    };
    uint32_t submit(const enpu_hal_submission& submission, const Launch& launch,
                    uint64_t deadline_ns, enpu_hal_status* status);

    // The backend's queue, for what is passed on; only while nothing is held back.
    enpu_hal_queue* handle() const { return handle_; }
    enpu_hal_device* device() const { return device_; }
    const enpu_hal_device_info& info() const { return info_; }
    // Whether a call can go straight to the device.
    bool direct(const enpu_hal_submission& submission);

  private:
    struct Held {
        CommandList commands;
        enpu_hal_graph* graph = nullptr;
        std::vector<enpu_hal_point> waits, signals;
        uint64_t op_id = 0;
    };
    static constexpr size_t kMostHeld = 1024;
    static constexpr uint32_t kSlots = 256;     // of patterns in flight
    static constexpr uint64_t kSlotBytes = 64;  // every alignment and pattern divides it

    bool lacks(uint32_t cap) const { return (info_.caps & cap) == 0; }
    bool must_change(const enpu_hal_command& command) const;
    uint32_t hold(const enpu_hal_submission& submission, const Launch& launch, uint64_t deadline_ns,
                  std::unique_lock<std::mutex>& lock, enpu_hal_status* status);
    // `end`, when asked for, is a point of own_ behind all of it.
    uint32_t submit_parts(const std::vector<enpu_hal_command>& commands,
                          const std::vector<enpu_hal_point>& waits,
                          const std::vector<enpu_hal_point>& signals, uint64_t op_id,
                          uint64_t deadline_ns, enpu_hal_point* end, enpu_hal_status* status);
    uint32_t expand(const enpu_hal_command& command, std::vector<enpu_hal_command>& out,
                    bool& fills, uint64_t deadline_ns, enpu_hal_status* status);
    uint32_t expand_fill(const enpu_hal_fill& fill, std::vector<enpu_hal_command>& out,
                         uint64_t deadline_ns, enpu_hal_status* status);
    uint32_t pattern_slot(uint64_t deadline_ns, uint64_t& slot, enpu_hal_status* status);

    void loop();
    uint32_t run(const Held& held, enpu_hal_status* status);
    uint32_t wait_here(const std::vector<enpu_hal_point>& points, enpu_hal_status* status);
    void fail(const Held& held, const enpu_hal_status& why);

    const enpu_hal_plugin& next_;
    Fences& fences_;
    enpu_hal_device* const device_;
    const enpu_hal_device_info info_;
    const uint64_t timeout_ns_;
    enpu_hal_queue* handle_ = nullptr;

    enpu_hal_fence* own_ = nullptr;  // of segments before a host call, and of patterns
    uint64_t own_value_ = 0;
    enpu_hal_buffer* patterns_ = nullptr;
    unsigned char* patterns_host_ = nullptr;
    uint64_t slots_used_ = 0;
    uint64_t slot_points_[kSlots] = {};

    std::mutex submit_mutex_;  // own_, patterns, the order of the backend's queue
    std::mutex mutex_;         // held_, failed_, stop_
    std::condition_variable changed_;
    std::deque<Held> held_;  // the front one is the thread's
    bool failed_ = false, stop_ = false;
    enpu_hal_status failure_{};
    std::thread thread_;
};

}  // namespace enpu::hal
