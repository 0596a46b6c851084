// SPDX-License-Identifier: MIT
// A capture: streams whose operations become nodes of a graph.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "rt.h"

namespace enpu::rt {

class Capture {
  public:
    explicit Capture(rt_stream_impl* origin);
    ~Capture();
    Capture(const Capture&) = delete;

    rt_stream_impl* const origin;  // not to be used but for comparing
    rt_graph_impl* const graph;

    // Holds a reference to the stream until the end.
    void join(rt_stream_impl* stream);
    // Hands the streams and the graph over.
    std::vector<rt_stream_impl*> take_streams();
    rt_graph_impl* take_graph();

  private:
    std::mutex mutex_;
    std::vector<rt_stream_impl*> streams_;
    bool graph_taken_ = false;
};

// What an event stands for that was recorded in a capture.
struct CapturedPoint {
    std::weak_ptr<Capture> capture;
    std::vector<rt_node> nodes;
};

}  // namespace enpu::rt
