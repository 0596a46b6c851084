// SPDX-License-Identifier: MIT
// One context and engine of the device, with a ring of command memory: packets of small submissions
// are written into it, so that a submission neither allocates nor maps anything.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "enpu/enpu.h"
#include "enpu_hal.h"

struct enpu_hal_device;
struct enpu_hal_fence;
struct enpu_hal_graph;

namespace enpu::hal::npu {

constexpr uint32_t kMaxPoints = 64;

class Channel {
  public:
    Channel() = default;
    ~Channel();
    Channel(const Channel&) = delete;

    uint32_t open(enpu_hal_device& device, const enpu_hal_queue_desc& desc,
                  enpu_hal_status* status);
    uint32_t submit(const enpu_hal_submission& submission, uint64_t deadline_ns,
                    enpu_hal_status* status);
    uint32_t launch(const enpu_hal_graph& graph, const enpu_hal_submission& submission,
                    uint64_t deadline_ns, enpu_hal_status* status);
    // Fails the fences of jobs that the device has failed. Cheap when nothing is wrong.
    void refresh();
    // Cancels what has not ended.
    void close();

  private:
    static constexpr uint64_t kRingBytes = 1u << 20;
    static constexpr uint64_t kRecords = 4096;

    // A job in flight, or one that has ended and was not needed since.
    struct Record {
        enpu_timeline* timeline = nullptr;  // holds a reference
        enpu_hal_fence* fence =
            nullptr;  // valid until the point is reached; null: the channel's own timeline
        uint64_t value = 0;
        uint64_t seqno = 0;
        uint64_t ring_end = 0;
    };
    struct Points {
        enpu_point waits[kMaxPoints];
        enpu_point signals[kMaxPoints + 1];  // and the channel's own
        uint32_t wait_count = 0, signal_count = 0;
    };

    uint32_t check(Points& points, enpu_hal_status* status);
    uint32_t collect(const enpu_hal_submission& submission, Points& points,
                     enpu_hal_status* status);
    uint32_t make_room(uint64_t bytes, uint64_t deadline_ns, enpu_hal_status* status);
    uint32_t retire_one(uint64_t deadline_ns, enpu_hal_status* status);
    void retire_reached();
    uint64_t ring_start(uint64_t bytes) const;
    uint32_t submitted(int result, const enpu_error& error, const enpu_hal_submission& submission,
                       const Points& points, uint64_t seqno, uint64_t ring_end,
                       enpu_hal_status* status);
    void fail_from(uint64_t seqno, const enpu_hal_status& why, bool unfinished_only);
    void refresh_locked();

    std::mutex mutex_;
    enpu_context* context_ = nullptr;
    enpu_builder* builder_ = nullptr;
    enpu_buffer* ring_ = nullptr;
    std::byte* ring_host_ = nullptr;
    uint64_t ring_va_ = 0;
    uint64_t head_ = 0, tail_ = 0;  // bytes, the offset is modulo kRingBytes
    enpu_timeline* own_ = nullptr;  // for submissions that signal nothing
    uint64_t own_value_ = 0;
    uint32_t engine_ = 0;
    bool copy_ = false;
    bool failed_ = false;
    enpu_hal_status failure_{};
    std::array<Record, kRecords> records_{};
    uint64_t first_ = 0, last_ = 0;
};

}  // namespace enpu::hal::npu
