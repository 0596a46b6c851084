// SPDX-License-Identifier: MIT
// The one thread of a device that calls back: host functions in stream order, and notices of
// completion. It also submits what was held back behind a host function. Made when first needed.
#pragma once

#include <memory>

#include "timeline.h"

struct rt_stream_impl;

namespace enpu::rt {

class HostThread {
  public:
    explicit HostThread(rt_device_impl& device);
    ~HostThread();
    HostThread(const HostThread&) = delete;

    rt_status start(const char* origin);
    // The stream has held-back work. Called with the stream's lock held.
    void watch(rt_stream_impl* stream);
    // Calls back once when the point is settled.
    void notify(const Point& point, rt_stream_impl* stream,
                void (*function)(void* context, rt_status status), void* context);
    // Looks again at what it waits for.
    void wake();
    // Blocks until no callback of the stream runs or the deadline passes; false then.
    bool quiesce(const rt_stream_impl* stream, uint64_t deadline_ns);

    // Whether the calling thread is inside a callback of the device: it may not wait there.
    static bool inside(const rt_device_impl* device);

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace enpu::rt
