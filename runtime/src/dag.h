// SPDX-License-Identifier: MIT
// Places the nodes of a graph on lanes (queues of one device) and finds the fewest waits that keep
// their order. Knows nothing of devices; keeps its memory, so that a second run of the same size
// allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace enpu::rt {

// Lane 0 is that of the launching stream and takes everything.
constexpr uint32_t kMaxLanes = 8;

// Where a node may run; more than one bit may be set.
enum DagPlace : uint8_t {
    kDagCompute = 1,  // compute lanes
    kDagCopy = 2,     // copy lanes
    kDagHost = 4,     // called on the host: lane 0, in a step of its own
};

// Dependencies of node i are dependency[begin[i]] … dependency[begin[i + 1] - 1], in any order,
// cycles included.
struct DagInput {
    uint32_t nodes = 0;
    const uint64_t* cost_ns = nullptr;
    const uint8_t* place = nullptr;  // enum DagPlace
    const uint32_t* begin = nullptr;
    const uint32_t* dependency = nullptr;
    uint32_t compute_lanes = 1;  // lane 0 counted
    uint32_t copy_lanes = 0;
    uint64_t crossing_ns = 0;  // what a dependency costs that crosses lanes
};

// The end of a step: `ordinal` counts the steps of its lane from 1; 0 is what the lane did before.
struct DagPoint {
    uint32_t lane;
    uint32_t ordinal;
};

// Nodes sequence[first] … that run one after the other on a lane as one submission, after
// waits[wait_first] …
struct DagStep {
    uint32_t lane;
    uint32_t ordinal;
    uint32_t first, count;
    uint32_t wait_first, wait_count;
    bool host;
};

class DagScheduler {
  public:
    // False when there is a cycle, which `cycle` then holds, each node depending on the one before.
    bool run(const DagInput& input);

    // Of the last run. Steps come in an order in which everything waited for stands before.
    std::vector<DagStep> steps;
    std::vector<uint32_t> sequence;
    std::vector<DagPoint> waits;
    std::vector<DagPoint> join;  // what lane 0 still has to wait for at the end
    std::vector<uint32_t> cycle;
    uint32_t lanes = 0;           // up to the last one that is used
    uint64_t makespan_ns = 0;     // as estimated
    uint64_t serial_ns = 0;       // sum of all costs
    uint32_t crossing_edges = 0;  // dependencies that cross lanes
    uint32_t dropped_waits = 0;   // of them, implied by other waits

  private:
    void find_successors();
    bool sort();
    void find_cycle();
    void rank();
    void sort_by_rank();
    void place();
    uint32_t best_lane(uint32_t node, uint64_t& start) const;
    void find_waits();
    void node_waits(uint32_t node);
    void cut();
    uint32_t* clock_of(uint32_t node) { return clocks_.data() + std::size_t{node} * lanes; }

    DagInput in_;
    uint32_t lane_count_ = 0;
    std::vector<uint32_t> successor_begin_, successor_, open_, topological_, order_, other_order_;
    std::vector<uint64_t> rank_, finish_;
    std::vector<uint32_t> lane_of_, position_, clocks_, step_of_;
    std::vector<uint8_t> signals_;
    std::vector<uint32_t> node_wait_begin_, node_wait_;  // by place in order_; nodes waited for
    std::vector<uint32_t> lane_nodes_[kMaxLanes];
    uint64_t lane_free_[kMaxLanes] = {};
    uint32_t lane_clock_[kMaxLanes][kMaxLanes] = {};
};

}  // namespace enpu::rt
