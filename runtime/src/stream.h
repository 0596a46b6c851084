// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "copy_merge.h"
#include "device.h"
#include "peer.h"
#include "staging.h"

// What a stream enqueues as one operation.
struct StreamWork {
    const enpu_hal_command* commands = nullptr;
    uint32_t count = 0;
    enpu_hal_graph* graph = nullptr;
    const char* what = "";                  // static: "kernel conv2d_fwd"
    const char* origin = "";                // static: the public function
    const enpu::rt::Point* wait = nullptr;  // one more point to wait for, or null
};

struct rt_stream_impl {
    rt_stream_impl(rt_device_impl* device, const rt_stream_options& options);
    ~rt_stream_impl();
    void retain() { references.fetch_add(1, std::memory_order_relaxed); }
    void release() {
        if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

    rt_status open();  // makes queue and timeline
    void close();      // waits, then gives back everything but the object itself
    rt_status reset();

    // Enqueues one operation; *value (may be null) is its point on *on (may be null), the timeline.
    rt_status enqueue(const StreamWork& work, uint64_t* value,
                      std::shared_ptr<enpu::rt::Timeline>* on = nullptr);
    // Enqueues a copy, or holds a small one back when the stream merges copies; *value (may be
    // null) is the point at which it is done.
    rt_status enqueue_copy(const enpu_hal_place& dst, const enpu_hal_place& src, uint64_t bytes,
                           const char* origin, uint64_t* value);
    // Hands a submission to the backend; the caller holds the lock.
    rt_status submit_now(const StreamWork& work, enpu_hal_submission& submission,
                         enpu_hal_status& status);
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
    rt_status poisoned_status(const char* origin) const;
    uint64_t deadline() const { return rt_deadline_ns(timeout_ns); }

    std::atomic<uint32_t> references{1};
    rt_device_impl* const device;
    const uint64_t number;
    const std::string name;
    const int32_t priority;
    const uint64_t timeout_ns;
    const uint32_t flags;

    std::mutex peer_mutex;  // held by rt_memcpy_peer
    std::unique_ptr<enpu::rt::PeerLink> peer;

    std::mutex mutex;  // guards all below but `cache`, which the pool guards
    enpu_hal_queue* queue = nullptr;
    std::shared_ptr<enpu::rt::Timeline> timeline;
    uint64_t enqueued = 0;
    bool closed = false;
    enpu::rt::Staging staging;
    enpu::rt::StreamCache cache;

  private:
    struct Origin {
        const char* what = "";
        const char* origin = "";
    };
    struct Held {
        std::shared_ptr<enpu::rt::Timeline> timeline;
        uint64_t until;
    };
    static constexpr uint32_t kMaxWaits = 32;
    static constexpr uint64_t kOrigins = 1024;

    rt_status enqueue_locked(const StreamWork& work);
    rt_status submit_locked(const StreamWork& work);
    rt_status flush_locked(const char* origin);
    rt_status failure(const enpu_hal_status& status, const char* origin);
    void hold(const std::shared_ptr<enpu::rt::Timeline>& waited, uint64_t until);

    enpu::rt::CopyList held_back_;        // copies not submitted yet; the next operation
    std::vector<enpu::rt::Point> waits_;  // of the next operation
    std::vector<Held> held_;              // timelines that operations in flight wait for
    std::array<Origin, kOrigins> origins_;
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
