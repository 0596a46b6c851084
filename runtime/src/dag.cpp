// SPDX-License-Identifier: MIT
#include "dag.h"

#include <algorithm>
#include <numeric>

namespace enpu::rt {
namespace {

// Positions on a lane count from 1. On lane 0 the first is the launch itself, which everything
// without dependencies comes after.
constexpr uint32_t kLaunch = 1;
constexpr uint32_t kNoNode = UINT32_MAX;

}  // namespace

bool DagScheduler::run(const DagInput& input) {
    in_ = input;
    lane_count_ = std::min(in_.compute_lanes + in_.copy_lanes, kMaxLanes);
    find_successors();
    if (!sort()) {
        find_cycle();
        return false;
    }
    rank();
    sort_by_rank();
    place();
    find_waits();
    cut();
    return true;
}

void DagScheduler::find_successors() {
    const uint32_t edges = in_.begin[in_.nodes];
    successor_begin_.assign(in_.nodes + 1, 0);
    successor_.resize(edges);
    for (uint32_t i = 0; i < edges; ++i) ++successor_begin_[in_.dependency[i]];
    uint32_t sum = 0;
    for (uint32_t i = 0; i <= in_.nodes; ++i) {
        sum += successor_begin_[i];
        successor_begin_[i] = sum;
    }
    // Filled from the back, which leaves each begin where it belongs.
    for (uint32_t node = in_.nodes; node-- > 0;)
        for (uint32_t i = in_.begin[node]; i < in_.begin[node + 1]; ++i)
            successor_[--successor_begin_[in_.dependency[i]]] = node;
}

bool DagScheduler::sort() {
    open_.resize(in_.nodes);
    topological_.clear();
    for (uint32_t node = 0; node < in_.nodes; ++node) {
        open_[node] = in_.begin[node + 1] - in_.begin[node];
        if (open_[node] == 0) topological_.push_back(node);
    }
    for (size_t i = 0; i < topological_.size(); ++i) {
        const uint32_t node = topological_[i];
        for (uint32_t s = successor_begin_[node]; s < successor_begin_[node + 1]; ++s)
            if (--open_[successor_[s]] == 0) topological_.push_back(successor_[s]);
    }
    return topological_.size() == in_.nodes;
}

// Every node that is still open depends on an open one: walking back must come round.
void DagScheduler::find_cycle() {
    cycle.clear();
    uint32_t node = static_cast<uint32_t>(
        std::find_if(open_.begin(), open_.end(), [](uint32_t open) { return open != 0; }) -
        open_.begin());
    std::vector<uint32_t> seen_at(in_.nodes, kNoNode);
    std::vector<uint32_t> path;
    while (seen_at[node] == kNoNode) {
        seen_at[node] = static_cast<uint32_t>(path.size());
        path.push_back(node);
        for (uint32_t i = in_.begin[node]; i < in_.begin[node + 1]; ++i) {
            if (open_[in_.dependency[i]] == 0) continue;
            node = in_.dependency[i];
            break;
        }
    }
    cycle.assign(path.rbegin(), path.rend() - seen_at[node]);
    std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
}

// The longest way to the end: who holds up most goes first. A node that costs nothing still ranks
// above what depends on it.
void DagScheduler::rank() {
    rank_.resize(in_.nodes);
    serial_ns = 0;
    for (size_t i = topological_.size(); i-- > 0;) {
        const uint32_t node = topological_[i];
        uint64_t longest = 0;
        for (uint32_t s = successor_begin_[node]; s < successor_begin_[node + 1]; ++s)
            longest = std::max(longest, rank_[successor_[s]]);
        rank_[node] = longest + std::max<uint64_t>(in_.cost_ns[node], 1);
        serial_ns += in_.cost_ns[node];
    }
}

// By falling rank, equals as numbered. A node ranks above all that depend on it, so this is what a
// list scheduler that always takes the ready node of the highest rank comes to. A radix sort by
// bytes: compares of a heap or a merge are half of them mispredicted.
void DagScheduler::sort_by_rank() {
    constexpr uint32_t kDigit = 8, kValues = 1u << kDigit;
    const uint64_t highest =
        in_.nodes ? *std::max_element(rank_.begin(), rank_.begin() + in_.nodes) : 0;
    order_.resize(in_.nodes);
    other_order_.resize(in_.nodes);
    std::iota(order_.begin(), order_.end(), 0u);
    for (uint32_t shift = 0; shift < 64 && highest >> shift != 0; shift += kDigit) {
        const auto digit = [&](uint32_t node) {
            return static_cast<uint32_t>((highest - rank_[node]) >> shift) % kValues;
        };
        uint32_t begin[kValues + 1] = {};
        for (const uint32_t node : order_) ++begin[digit(node) + 1];
        for (uint32_t i = 1; i < kValues; ++i) begin[i] += begin[i - 1];
        for (const uint32_t node : order_) other_order_[begin[digit(node)]++] = node;
        order_.swap(other_order_);
    }
}

// The lane on which the node ends first; the lowest of equals.
uint32_t DagScheduler::best_lane(uint32_t node, uint64_t& start) const {
    uint64_t at[kMaxLanes];
    std::copy_n(lane_free_, lane_count_, at);
    for (uint32_t i = in_.begin[node]; i < in_.begin[node + 1]; ++i) {
        const uint32_t before = in_.dependency[i];
        const uint64_t near = finish_[before], far = near + in_.crossing_ns;
        for (uint32_t lane = 0; lane < lane_count_; ++lane)
            at[lane] = std::max(at[lane], lane == lane_of_[before] ? near : far);
    }
    uint32_t best = 0;
    if (!(in_.place[node] & kDagHost)) {
        for (uint32_t lane = 1; lane < lane_count_; ++lane) {
            const bool copy_lane = lane >= in_.compute_lanes;
            if (!(in_.place[node] & (copy_lane ? kDagCopy : kDagCompute))) continue;
            if (at[lane] < at[best]) best = lane;
        }
    }
    start = at[best];
    return best;
}

void DagScheduler::place() {
    for (uint32_t lane = 0; lane < lane_count_; ++lane) {
        lane_free_[lane] = lane == 0 ? 0 : in_.crossing_ns;
        lane_nodes_[lane].clear();
    }
    finish_.resize(in_.nodes);
    lane_of_.resize(in_.nodes);
    position_.resize(in_.nodes);
    makespan_ns = 0;
    lanes = 1;
    for (const uint32_t node : order_) {
        uint64_t start = 0;
        const uint32_t lane = best_lane(node, start);
        lane_of_[node] = lane;
        lanes = std::max(lanes, lane + 1);
        finish_[node] = lane_free_[lane] = start + in_.cost_ns[node];
        makespan_ns = std::max(makespan_ns, finish_[node] + (lane == 0 ? 0 : in_.crossing_ns));
        lane_nodes_[lane].push_back(node);
        position_[node] =
            static_cast<uint32_t>(lane_nodes_[lane].size()) + (lane == 0 ? kLaunch : 0);
    }
}

// Each lane keeps a clock: how far it knows each other lane to be. A wait that tells it nothing new
// is dropped.
void DagScheduler::find_waits() {
    clocks_.resize(size_t{in_.nodes} * lanes);
    signals_.assign(in_.nodes, 0);
    node_wait_begin_.assign(1, 0);
    node_wait_.clear();
    crossing_edges = dropped_waits = 0;
    for (auto& clock : lane_clock_) std::fill(std::begin(clock), std::end(clock), 0);
    lane_clock_[0][0] = kLaunch;
    for (uint32_t node : order_) {
        node_waits(node);
        node_wait_begin_.push_back(static_cast<uint32_t>(node_wait_.size()));
    }
    join.clear();
}

void DagScheduler::node_waits(uint32_t node) {
    const uint32_t lane = lane_of_[node];
    uint32_t* known = lane_clock_[lane];
    uint32_t needed[kMaxLanes] = {};
    uint32_t edges = 0, kept = 0;
    for (uint32_t i = in_.begin[node]; i < in_.begin[node + 1]; ++i) {
        const uint32_t before = in_.dependency[i];
        if (lane_of_[before] == lane) continue;
        ++edges;
        needed[lane_of_[before]] = std::max(needed[lane_of_[before]], position_[before]);
    }
    if (in_.begin[node] == in_.begin[node + 1] && lane != 0) needed[0] = kLaunch;
    const auto node_at = [&](uint32_t other) {
        return needed[other] == kLaunch && other == 0
                   ? kNoNode
                   : lane_nodes_[other][needed[other] - 1 - (other == 0 ? kLaunch : 0)];
    };
    const auto implied = [&](uint32_t other) {
        if (needed[other] <= known[other]) return true;
        for (uint32_t by = 0; by < lanes; ++by) {
            if (by == other || needed[by] <= known[by] || node_at(by) == kNoNode) continue;
            if (clock_of(node_at(by))[other] >= needed[other]) return true;
        }
        return false;
    };
    bool keep[kMaxLanes] = {};
    for (uint32_t other = 0; other < lanes; ++other) keep[other] = !implied(other);
    for (uint32_t other = 0; other < lanes; ++other) {
        if (!keep[other]) continue;
        const uint32_t awaited = node_at(other);
        node_wait_.push_back(awaited);
        known[other] = needed[other];
        if (awaited == kNoNode) continue;
        ++kept;
        signals_[awaited] = 1;
        for (uint32_t i = 0; i < lanes; ++i) known[i] = std::max(known[i], clock_of(awaited)[i]);
    }
    crossing_edges += edges;
    dropped_waits += edges - kept;
    known[lane] = position_[node];
    std::copy_n(known, lanes, clock_of(node));
}

// Nodes of a lane go into one step until somebody waits for one of them, or one waits.
void DagScheduler::cut() {
    steps.clear();
    waits.clear();
    sequence.clear();
    step_of_.resize(in_.nodes);
    uint32_t lane_first[kMaxLanes], ordinals[kMaxLanes] = {};
    uint32_t last_step[kMaxLanes], last_node[kMaxLanes];
    for (uint32_t lane = 0; lane < lanes; ++lane) {
        lane_first[lane] = static_cast<uint32_t>(sequence.size());
        sequence.insert(sequence.end(), lane_nodes_[lane].begin(), lane_nodes_[lane].end());
        last_node[lane] = kNoNode;
    }
    for (uint32_t i = 0; i < in_.nodes; ++i) {
        const uint32_t node = order_[i], lane = lane_of_[node], before = last_node[lane];
        const uint32_t wait_count = node_wait_begin_[i + 1] - node_wait_begin_[i];
        const bool host = in_.place[node] & kDagHost;
        if (before == kNoNode || wait_count || host || signals_[before] ||
            steps[last_step[lane]].host) {
            last_step[lane] = static_cast<uint32_t>(steps.size());
            steps.push_back({lane, ++ordinals[lane], lane_first[lane], 0,
                             static_cast<uint32_t>(waits.size()), wait_count, host});
            for (uint32_t w = node_wait_begin_[i]; w < node_wait_begin_[i + 1]; ++w) {
                const uint32_t awaited = node_wait_[w];
                if (awaited == kNoNode)
                    waits.push_back({0, 0});
                else
                    waits.push_back({lane_of_[awaited], steps[step_of_[awaited]].ordinal});
            }
        }
        step_of_[node] = last_step[lane];
        ++steps[last_step[lane]].count;
        ++lane_first[lane];
        last_node[lane] = node;
    }
    for (uint32_t lane = 1; lane < lanes; ++lane) {
        if (lane_nodes_[lane].empty()) continue;
        const uint32_t end = position_[last_node[lane]];
        bool implied = lane_clock_[0][lane] >= end;
        for (uint32_t by = 1; by < lanes && !implied; ++by)
            implied = by != lane && lane_clock_[by][lane] >= end;
        if (!implied) join.push_back({lane, ordinals[lane]});
    }
}

}  // namespace enpu::rt
