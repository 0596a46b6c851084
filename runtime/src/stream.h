// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capture.h"
#include "copy_merge.h"
#include "device.h"
#include "lane.h"
#include "peer.h"
#include "staging.h"

namespace enpu::rt {
struct GraphNode;
namespace profile {
class TimedGraph;
}

// A value of another lane of the same stream.
struct LanePoint {
    uint32_t lane;
    uint64_t value;
};

// A host function whose turn has come.
struct HostCall {
    HostFunction function = nullptr;
    void* context = nullptr;
    uint32_t lane = 0;
    uint64_t value = 0;
};

enum class Drained { kAll, kBlocked, kHostCall };
}  // namespace enpu::rt

// What a stream enqueues as one operation.
struct StreamWork {
    const enpu_hal_command* commands = nullptr;
    uint32_t count = 0;
    enpu_hal_graph* graph = nullptr;
    const char* what = "";                  // static: "kernel conv2d_fwd"
    const char* origin = "";                // static: the public function
    const enpu::rt::Point* wait = nullptr;  // one more point to wait for, or null

    uint32_t lane = 0;
    const enpu::rt::LanePoint* lane_waits = nullptr;
    uint32_t lane_wait_count = 0;
    enpu::rt::HostFunction function = nullptr;  // instead of commands: a host call
    void* context = nullptr;
    uint32_t first_node = 0, nodes = 0;              // of a graph, for messages
    enpu::rt::profile::TimedGraph* timed = nullptr;  // whose graph it is, in a recording
};

struct rt_stream_impl {
    rt_stream_impl(rt_device_impl* device, const rt_stream_options& options);
    void retain() { references.fetch_add(1, std::memory_order_relaxed); }
    void release() {
        if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

    rt_status open();  // makes queue and timeline
    void close();      // waits, then gives back everything but the object itself
    rt_status reset();

    // Enqueues one operation; *value (may be null) is its point on *on (may be null), the timeline.
    // While the stream is captured the operation becomes a node of the graph, and *value is 0.
    rt_status enqueue(const StreamWork& work, uint64_t* value,
                      std::shared_ptr<enpu::rt::Timeline>* on = nullptr);
    // Enqueues a copy, or holds a small one back when the stream merges copies; *value (may be
    // null) is the point at which it is done.
    rt_status enqueue_copy(const enpu_hal_place& dst, const enpu_hal_place& src, uint64_t bytes,
                           const char* origin, uint64_t* value);
    // Hands a submission to the backend, which waits for room until `limit`; the caller holds the
    // lock.
    rt_status submit_now(const StreamWork& work, enpu_hal_submission& submission, uint64_t limit,
                         enpu_hal_status& status);
    const std::shared_ptr<enpu::rt::Timeline>& timeline_of(uint32_t lane) {
        return lane_at(lane).timeline;
    }
    // Submits what was held back.
    rt_status flush(const char* origin);
    rt_status sync(uint64_t deadline_ns, const char* origin);
    rt_status wait_for(uint64_t value, uint64_t deadline_ns, const char* origin);
    // Everything enqueued so far, waits included.
    rt_status last_point(const char* origin, enpu::rt::Point& point);
    rt_status wait_event_point(const enpu::rt::Point& point);
    // Frees a block in stream order after the uses of other streams.
    rt_status free_block(void* pointer, const std::vector<enpu::rt::Point>& uses,
                         const char* origin);
    // rt_free: what nothing but this stream has used, and not in a capture.
    rt_status free_pointer(void* pointer, const char* origin);
    rt_status poisoned_status(const char* origin) const;
    uint64_t deadline() const { return rt_deadline_ns(timeout_ns.load()); }
    // Refuses a call that would wait where it must not: in a callback of the device, in a capture.
    rt_status may_block(const char* origin) const;

    // With the lock held, for graphs: lanes beside the first, `count` in all.
    rt_status make_lanes(uint32_t count, const char* origin);
    rt_status enqueue_locked(const StreamWork& work);
    uint64_t enqueued_on(uint32_t lane) { return lane_at(lane).enqueued; }
    rt_status check_usable(const char* origin) const;
    bool has_waits() const { return !waits_.empty(); }
    rt_status capture_graph(const std::vector<std::unique_ptr<enpu::rt::GraphNode>>& nodes);
    void poison_with(const rt_status_impl& status);

    // Of the guard (guard.h): the point to go back to, a queue in place of one that failed, and an
    // operation that was done on another backend.
    void mark_good();
    rt_status renew(const char* origin);
    rt_status done_elsewhere(const StreamWork& work);

    // Captures. What a captured stream has come to; false when it is not captured.
    bool captured_point(enpu::rt::CapturedPoint& point);
    bool is_captured();
    rt_status capture_refuses(const char* origin) const;
    rt_status join_capture(const std::shared_ptr<enpu::rt::Capture>& joined,
                           const std::vector<rt_node>& nodes);

    // Of the host thread. Submits held-back work as far as it can; a host call that is due stays at
    // the front until host_call_done.
    enpu::rt::Drained drain(enpu::rt::HostCall& call, enpu::rt::Point& blocked, bool& progress);
    void host_call_done(const enpu::rt::HostCall& call);
    // Why the operation at the value of lane 0 did not end well.
    rt_status completion_status(uint64_t value);

    std::atomic<uint32_t> references{1};
    const enpu::rt::DeviceRef device;
    const uint64_t number;
    const std::string name;
    const int32_t priority;
    const uint64_t hang_ns;
    const uint32_t wait_policy;
    const uint32_t engine;  // number of the compute engine that is asked for
    const uint32_t flags;
    std::atomic<uint64_t> timeout_ns;

    std::mutex peer_mutex;  // held by rt_memcpy_peer
    std::unique_ptr<enpu::rt::PeerLink> peer;

    std::mutex mutex;  // guards all below but `cache`, which the pool guards
    enpu::rt::Lane main;
    bool closed = false;
    enpu::rt::Staging staging;
    enpu::rt::StreamCache cache;
    std::shared_ptr<enpu::rt::Capture> capture;  // of the moment, or null
    std::vector<rt_node> capture_tail;           // what the next captured node depends on

  private:
    struct Held {
        std::shared_ptr<enpu::rt::Timeline> timeline;
        uint64_t until;
    };
    struct Waits;
    static constexpr uint32_t kMaxWaits = 32;

    rt_status open_lane(enpu::rt::Lane& lane, uint32_t engine_number, const char* origin);
    rt_status open_queue(enpu::rt::Lane& lane, uint32_t engine_number, const char* origin);
    void end_lanes(const char* why);
    enpu::rt::Lane& lane_at(uint32_t index) { return index == 0 ? main : *sides_[index - 1]; }
    rt_status submit_locked(const StreamWork& work);
    rt_status flush_locked(const char* origin);
    rt_status merge_copy(const enpu_hal_place& dst, const enpu_hal_place& src, uint64_t bytes,
                         const char* origin);
    rt_status wait_in_sync_mode(const char* origin);
    void gather(const StreamWork& work, Waits& waits);
    rt_status submit(const StreamWork& work, enpu::rt::Lane& lane, const Waits& waits,
                     uint64_t now_ns);
    rt_status hand_over(const StreamWork& work, enpu_hal_submission& submission, uint64_t now_ns);
    rt_status free_locked(void* pointer, const char* origin);
    void hold(const std::shared_ptr<enpu::rt::Timeline>& waited, uint64_t until);
    rt_status capture_add(const StreamWork& work);
    void abandon_capture();

    rt_status hold_back(const StreamWork& work, enpu::rt::Lane& lane);
    rt_status submit_held(enpu::rt::HeldOp& op);
    bool blocked(enpu::rt::HeldOp& op, enpu::rt::Point& on);
    bool held_failed(enpu::rt::HeldOp& op, enpu_hal_status& status);
    void drop_held(const enpu_hal_status& why);

    rt_status failure(const enpu_hal_status& status, const char* origin);
    void find_root(enpu_hal_status& status);
    void describe(rt_status_impl& out, const enpu::rt::Origin& from, uint64_t lane, uint64_t op,
                  const char* found_by) const;
    rt_status late_status(uint64_t value, uint64_t start, const char* origin);

    std::vector<std::unique_ptr<enpu::rt::Lane>> sides_;  // of graphs
    enpu::rt::HeldOps held_ops_;
    std::vector<enpu_hal_command> held_commands_;  // scratch of submit_held
    uint64_t good_ = 0;                            // of mark_good
    bool watched_ = false;                         // by the host thread
    enpu::rt::CopyList held_back_;                 // copies not submitted yet; the next operation
    std::vector<enpu::rt::Point> waits_;           // of the next operation
    std::vector<Held> held_;                       // timelines that operations in flight wait for
    std::atomic<bool> poisoned_{false};
    rt_code poison_code_ = RT_CODE_OK;
    uint64_t poison_operation_ = 0;
    std::string poison_message_, poison_origin_;
};

namespace enpu::rt {

// A reference to a stream.
class StreamRef {
  public:
    explicit StreamRef(rt_stream_impl* stream) : stream_(stream) { stream_->retain(); }
    StreamRef(StreamRef&& other) noexcept : stream_(other.stream_) { other.stream_ = nullptr; }
    StreamRef& operator=(StreamRef&& other) noexcept {
        std::swap(stream_, other.stream_);
        return *this;
    }
    StreamRef(const StreamRef&) = delete;
    ~StreamRef() {
        if (stream_) stream_->release();
    }
    rt_stream_impl* operator->() const { return stream_; }
    rt_stream_impl* get() const { return stream_; }

  private:
    rt_stream_impl* stream_;
};

}  // namespace enpu::rt
