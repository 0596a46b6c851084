// SPDX-License-Identifier: MIT
#include "capture.h"

#include <algorithm>
#include <utility>

#include "fork.h"
#include "graph.h"

namespace enpu::rt {

Capture::Capture(rt_stream_impl* stream)
    : origin(stream), graph(new rt_graph_impl(stream->device)) {}

Capture::~Capture() {
    for (rt_stream_impl* stream : streams_) stream->release();
    if (!graph_taken_) delete graph;
}

void Capture::join(rt_stream_impl* stream) {
    std::lock_guard lock(mutex_);
    streams_.push_back(stream);
    stream->retain();
}

std::vector<rt_stream_impl*> Capture::take_streams() {
    std::lock_guard lock(mutex_);
    return std::exchange(streams_, {});
}

rt_graph_impl* Capture::take_graph() {
    graph_taken_ = true;
    return graph;
}

}  // namespace enpu::rt

using namespace enpu::rt;

// ------------------------------------------------------------------------------------------
// the stream's part, with its lock held

rt_status rt_stream_impl::capture_add(const StreamWork& work) {
    if (work.function) {
        auto node = std::make_unique<GraphNode>();
        node->kind = GraphNode::Kind::kHost;
        node->function = work.function;
        node->context = work.context;
        node->what = work.what;
        capture_tail = {capture->graph->append(std::move(node), capture_tail)};
        return RT_OK;
    }
    for (uint32_t i = 0; i < work.count; ++i) {
        auto node = std::make_unique<GraphNode>();
        node->op.assign(work.commands[i]);
        node->what = work.what;
        capture_tail = {capture->graph->append(std::move(node), capture_tail)};
    }
    return RT_OK;
}

rt_status rt_stream_impl::capture_graph(const GraphNodes& nodes) {
    std::vector<rt_node> ends;
    capture->graph->append_all(nodes, capture_tail, ends);
    capture_tail = std::move(ends);
    return RT_OK;
}

rt_status rt_stream_impl::capture_refuses(const char* origin) const {
    return make_status(RT_FAILED_PRECONDITION, origin,
                       "stream %s is captured: this call waits for work, frees memory or reads "
                       "pageable memory, which a graph cannot do when it is launched",
                       name.c_str());
}

// The stream is reset or destroyed in the middle.
void rt_stream_impl::abandon_capture() {
    capture.reset();
    capture_tail.clear();
}

bool rt_stream_impl::is_captured() {
    std::lock_guard lock(mutex);
    return capture != nullptr;
}

bool rt_stream_impl::captured_point(CapturedPoint& point) {
    std::lock_guard lock(mutex);
    if (!capture) return false;
    point = {capture, capture_tail};
    return true;
}

rt_status rt_stream_impl::join_capture(const std::shared_ptr<Capture>& joined,
                                       const std::vector<rt_node>& nodes) {
    constexpr const char* kOrigin = "rt_stream_wait_event";
    std::lock_guard lock(mutex);
    RT_TRY(check_usable(kOrigin));
    if (!capture) {
        joined->join(this);
        capture = joined;
        capture_tail.clear();
    }
    if (capture != joined)
        return make_status(RT_FAILED_PRECONDITION, kOrigin,
                           "stream %s and the event belong to different captures", name.c_str());
    for (rt_node node : nodes)
        if (std::find(capture_tail.begin(), capture_tail.end(), node) == capture_tail.end())
            capture_tail.push_back(node);
    return RT_OK;
}

// --------------------------------------------------------------------------------------------
// public

namespace {

// All nodes that `ends` come after, themselves included.
std::vector<bool> everything_before(const GraphNodes& nodes, std::vector<rt_node> ends) {
    std::vector<bool> seen(nodes.size());
    while (!ends.empty()) {
        const rt_node node = ends.back();
        ends.pop_back();
        if (seen[node]) continue;
        seen[node] = true;
        ends.insert(ends.end(), nodes[node]->dependencies.begin(), nodes[node]->dependencies.end());
    }
    return seen;
}

// Takes all streams out of the capture; the name of one whose work was not joined, or "".
std::string leave_capture(Capture& capture, const std::vector<rt_node>& ends) {
    const std::vector<bool> joined = everything_before(capture.graph->nodes, ends);
    std::string open;
    for (rt_stream_impl* stream : capture.take_streams()) {
        {
            std::lock_guard lock(stream->mutex);
            if (stream->capture.get() == &capture) {
                for (rt_node node : stream->capture_tail)
                    if (!joined[node]) open = stream->name;
                stream->capture.reset();
                stream->capture_tail.clear();
            }
        }
        stream->release();
    }
    return open;
}

}  // namespace

rt_status rt_stream_begin_capture(rt_stream stream) {
    RT_NOT_NULL(stream);
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_stream_begin_capture";
        RT_TRY(check_fork(*stream->device, kOrigin));
        Point before;
        RT_TRY(stream->last_point(kOrigin, before));  // waits for events are no part of the graph
        auto made = std::make_shared<Capture>(stream);
        made->join(stream);
        std::lock_guard lock(stream->mutex);
        RT_TRY(stream->check_usable(kOrigin));
        if (stream->capture)
            return make_status(RT_FAILED_PRECONDITION, kOrigin, "stream %s is captured already",
                               stream->name.c_str());
        stream->capture = std::move(made);
        stream->capture_tail.clear();
        return RT_OK;
    });
}

rt_status rt_stream_end_capture(rt_stream stream, rt_graph* graph) {
    RT_NOT_NULL(stream);
    RT_NOT_NULL(graph);
    *graph = nullptr;
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_stream_end_capture";
        std::shared_ptr<Capture> capture;
        std::vector<rt_node> ends;
        {
            std::lock_guard lock(stream->mutex);
            if (!stream->capture || stream->capture->origin != stream)
                return make_status(RT_FAILED_PRECONDITION, kOrigin,
                                   "no capture was begun on stream %s", stream->name.c_str());
            capture = stream->capture;
            ends = stream->capture_tail;
        }
        const std::string open = leave_capture(*capture, ends);
        if (!open.empty())
            return make_status(RT_FAILED_PRECONDITION, kOrigin,
                               "stream %s joined the capture, and stream %s has not waited for its "
                               "last work: record an event there and wait for it here",
                               open.c_str(), stream->name.c_str());
        *graph = capture->take_graph();
        return RT_OK;
    });
}

rt_status rt_stream_is_capturing(rt_stream stream, uint32_t* capturing) {
    RT_NOT_NULL(stream);
    RT_NOT_NULL(capturing);
    *capturing = stream->is_captured();
    return RT_OK;
}
