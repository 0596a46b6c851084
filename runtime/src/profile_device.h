// SPDX-License-Identifier: MIT
// The device's side of a recording: words of pinned memory that its engines write their clock into,
// and the correlation of that clock with CLOCK_MONOTONIC.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "enpu_hal.h"
#include "rt.h"
#include "timeline.h"

struct rt_device_impl;
struct rt_stream_impl;
struct StreamWork;

namespace enpu::rt::profile {

class TimedGraph;
using Names = std::vector<const char*>;  // static: "kernel conv2d_fwd"
const char* command_name(const enpu_hal_command& command);
enpu_hal_command timestamp_command(enpu_hal_buffer* buffer, uint64_t offset);
// The commands with a timestamp before, between and behind them, in words `first` and on.
std::vector<enpu_hal_command> with_timestamps(const enpu_hal_command* commands, uint32_t count,
                                              enpu_hal_buffer* buffer, uint64_t first);

// A piece of an operation as it happened, all times in ns of CLOCK_MONOTONIC.
struct DeviceSpan {
    const char* name = "";  // static: "kernel conv2d_fwd"
    uint64_t stream = 0;    // its number
    uint64_t operation = 0;
    uint64_t start_ns = 0, end_ns = 0;
};

// An operation as the driver saw it: handed over, and started by the device.
struct DriverSpan {
    const char* origin = "";  // static: the public function
    uint64_t stream = 0;
    uint64_t operation = 0;
    uint64_t call_ns = 0, returned_ns = 0, started_ns = 0;
};

// One per device and recording. Outlives the device: what it collected stays.
class DeviceRecorder {
  public:
    DeviceRecorder(rt_device_impl& device, uint64_t max_events);
    ~DeviceRecorder();
    DeviceRecorder(const DeviceRecorder&) = delete;

    // Submits with a timestamp before, between and behind the commands; a graph has them in it.
    rt_status submit(rt_stream_impl& stream, const StreamWork& work,
                     enpu_hal_submission& submission, uint64_t limit, enpu_hal_status& status);
    // Reads the launches of the graph that have ended; none of it writes here any more.
    void forget(const TimedGraph& graph);
    // Waits for what is in flight and lets go of the device. Idempotent.
    void finish(uint64_t deadline_ns);

    // After finish.
    const std::string name;
    std::vector<DeviceSpan> spans;
    std::vector<DriverSpan> calls;
    uint64_t dropped = 0;

  private:
    static constexpr uint64_t kOfGraph = UINT64_MAX;
    struct Pending {
        Point point;
        uint64_t first = kOfGraph;                 // word of the ring
        const volatile uint64_t* words = nullptr;  // one more than names
        uint64_t stream = 0, operation = 0;
        uint64_t call_ns = 0, returned_ns = 0;
        const char* origin = "";
        std::shared_ptr<const Names> names;  // of the commands
    };
    // The device clock and CLOCK_MONOTONIC at one moment.
    struct Moment {
        uint64_t ticks = 0, ns = 0;
    };
    static constexpr uint64_t kWords = 1u << 16;

    const uint64_t max_events_;
    bool open();
    bool take_words(uint64_t count, uint64_t& first);
    rt_status submit_timed(rt_stream_impl& stream, const StreamWork& work,
                           enpu_hal_submission& submission, uint64_t limit, enpu_hal_status& status,
                           Pending pending);
    void collect();
    void read(const Pending& pending);
    Moment now() const;
    uint64_t to_ns(uint64_t ticks) const;

    std::mutex mutex_;
    rt_device_impl* device_ = nullptr;  // null: finished
    enpu_hal_buffer* buffer_ = nullptr;
    volatile uint64_t* words_ = nullptr;
    uint64_t head_ = 0;  // of the ring of words, never reduced
    std::deque<Pending> pending_;
    Moment begin_, end_;
};

}  // namespace enpu::rt::profile
