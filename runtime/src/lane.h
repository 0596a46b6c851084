// SPDX-License-Identifier: MIT
// A queue of the device with its timeline, and what a stream keeps of work that is in flight or held
// back.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dag.h"
#include "record.h"
#include "timeline.h"

namespace enpu::rt {
namespace profile {
class TimedGraph;
}

// Where the caller enqueued something: set by rt_call_site for the calling thread, used up by the
// next operation.
struct CallSite {
    const char* file = nullptr;  // static
    uint32_t line = 0;
};
CallSite take_call_site();
std::string to_text(const CallSite& site);  // "file.c:12", or ""

// What is remembered of an operation in case it fails.
struct Origin {
    const char* what = "";    // static: "kernel conv2d_fwd"
    const char* origin = "";  // static: the public function
    CallSite site;
    uint64_t enqueued_ns = 0;
    uint32_t first_node = 0, nodes = 0;  // of a graph, in order of execution
};

struct Lane {
    static constexpr uint64_t kOrigins = 1024;

    uint32_t index = 0;
    bool copies = false;  // a copy engine: takes no kernels and no graphs
    enpu_hal_queue* queue = nullptr;
    std::shared_ptr<Timeline> timeline;
    uint64_t enqueued = 0;  // held-back work counted
    std::vector<Origin> origins = std::vector<Origin>(kOrigins);

    Origin& origin(uint64_t operation) { return origins[operation % kOrigins]; }
    // The id of an operation in the HAL's statuses, and back.
    uint64_t op_id(uint64_t operation) const { return uint64_t{index} << 56 | operation; }
};
constexpr uint64_t kOperationMask = (uint64_t{1} << 56) - 1;

using HostFunction = void (*)(void* context);

// An operation that cannot be submitted yet: a host call, or what comes behind one.
struct HeldOp {
    uint32_t lane = 0;
    uint64_t value = 0;
    uint32_t commands = 0;
    std::vector<OpRecord> records;  // the first `commands` count
    enpu_hal_graph* graph = nullptr;
    profile::TimedGraph* timed = nullptr;
    std::vector<Point> waits;
    HostFunction function = nullptr;  // a host call
    void* context = nullptr;
    const char* origin = "";
};

// First in, first out; keeps its memory.
class HeldOps {
  public:
    bool empty() const { return first_ == last_; }
    HeldOp& front() { return *ring_[first_ % ring_.size()]; }
    HeldOp& push() {
        if (last_ - first_ == ring_.size()) grow();
        return *ring_[last_++ % ring_.size()];
    }
    void pop() {
        front().waits.clear();
        ++first_;
    }
    void clear() {
        while (!empty()) pop();
    }

  private:
    void grow() {
        std::vector<std::unique_ptr<HeldOp>> larger;
        for (uint64_t i = first_; i != last_; ++i)
            larger.push_back(std::move(ring_[i % ring_.size()]));
        last_ -= first_;
        first_ = 0;
        while (larger.size() < 2 * ring_.size() + 16) {
            larger.push_back(std::make_unique<HeldOp>());
            // Which place gets which kind of work is chance: none may have to grow later.
            larger.back()->records.resize(1);
            larger.back()->waits.reserve(4);
        }
        ring_ = std::move(larger);
    }
    std::vector<std::unique_ptr<HeldOp>> ring_;
    uint64_t first_ = 0, last_ = 0;
};

}  // namespace enpu::rt
