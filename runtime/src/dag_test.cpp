// SPDX-License-Identifier: MIT
// The scheduler of graphs, without a device.
#include "dag.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>

using namespace enpu::rt;

namespace {

struct Graph {
    std::vector<uint64_t> cost;
    std::vector<uint8_t> place;
    std::vector<uint32_t> begin{0}, dependency;

    uint32_t add(std::vector<uint32_t> dependencies, uint64_t ns = 1000,
                 uint8_t where = kDagCompute) {
        cost.push_back(ns);
        place.push_back(where);
        dependency.insert(dependency.end(), dependencies.begin(), dependencies.end());
        begin.push_back(static_cast<uint32_t>(dependency.size()));
        return static_cast<uint32_t>(cost.size() - 1);
    }
    DagInput input(uint32_t compute, uint32_t copy = 0, uint64_t crossing = 0) const {
        return {static_cast<uint32_t>(cost.size()),
                cost.data(),
                place.data(),
                begin.data(),
                dependency.data(),
                compute,
                copy,
                crossing};
    }
};

Graph random_graph(uint32_t nodes, uint32_t seed) {
    std::mt19937 random(seed);
    Graph graph;
    for (uint32_t i = 0; i < nodes; ++i) {
        std::vector<uint32_t> before;
        for (uint32_t k = i == 0 ? 0 : random() % 4; k > 0; --k) before.push_back(random() % i);
        std::sort(before.begin(), before.end());
        before.erase(std::unique(before.begin(), before.end()), before.end());
        const uint8_t places[] = {kDagCompute, kDagCompute, kDagCompute | kDagCopy, kDagHost};
        graph.add(before, 100 + random() % 5000, places[random() % (i % 16 == 0 ? 4 : 3)]);
    }
    return graph;
}

// What every lane knows after each step, found by following waits alone: the slow and sure way.
struct Knowledge {
    explicit Knowledge(const DagScheduler& dag) {
        std::vector<std::vector<std::vector<bool>>> of_lane(dag.lanes);
        std::vector<std::vector<bool>> now(dag.lanes, std::vector<bool>(dag.sequence.size()));
        done_before.resize(dag.sequence.size());
        for (const DagStep& step : dag.steps) {
            std::vector<bool>& known = now[step.lane];
            for (uint32_t w = 0; w < step.wait_count; ++w) {
                const DagPoint& wait = dag.waits[step.wait_first + w];
                if (wait.ordinal == 0) continue;
                REQUIRE(wait.ordinal <= of_lane[wait.lane].size());  // submitted before
                const auto& theirs = of_lane[wait.lane][wait.ordinal - 1];
                for (size_t i = 0; i < known.size(); ++i) known[i] = known[i] || theirs[i];
            }
            for (uint32_t i = step.first; i < step.first + step.count; ++i) {
                done_before[dag.sequence[i]] = known;
                known[dag.sequence[i]] = true;
            }
            REQUIRE(step.ordinal == of_lane[step.lane].size() + 1);
            of_lane[step.lane].push_back(known);
        }
        at_end = now[0];
        for (const DagPoint& wait : dag.join)
            for (size_t i = 0; i < at_end.size(); ++i)
                at_end[i] = at_end[i] || of_lane[wait.lane][wait.ordinal - 1][i];
    }
    std::vector<std::vector<bool>> done_before;
    std::vector<bool> at_end;
};

}  // namespace

TEST_CASE("dag: a chain stays on one lane as one step without a wait") {
    Graph graph;
    uint32_t last = graph.add({});
    for (int i = 0; i < 9; ++i) last = graph.add({last}, 1000, kDagCompute | kDagCopy);
    DagScheduler dag;
    REQUIRE(dag.run(graph.input(2, 2)));
    CHECK(dag.lanes == 1);
    REQUIRE(dag.steps.size() == 1);
    CHECK(dag.steps[0].count == 10);
    CHECK(dag.waits.empty());
    CHECK(dag.join.empty());
}

TEST_CASE("dag: the two arms of a diamond go to two lanes with one wait each way") {
    Graph graph;
    const uint32_t a = graph.add({}), b = graph.add({a}), c = graph.add({a});
    graph.add({b, c});
    DagScheduler dag;
    REQUIRE(dag.run(graph.input(2)));
    CHECK(dag.lanes == 2);
    CHECK(dag.makespan_ns == 3000);
    CHECK(dag.serial_ns == 4000);
    CHECK(dag.waits.size() == 2);
    CHECK(dag.crossing_edges == 2);
}

TEST_CASE("dag: a crossing that costs more than it gains is not made") {
    Graph graph;
    const uint32_t a = graph.add({}), b = graph.add({a}), c = graph.add({a});
    graph.add({b, c});
    DagScheduler dag;
    REQUIRE(dag.run(graph.input(2, 0, 5000)));
    CHECK(dag.lanes == 1);
}

TEST_CASE("dag: the longest way goes first") {
    Graph graph;
    graph.add({}, 10);                         // 0: short
    const uint32_t first = graph.add({}, 10);  // 1: begins the long way
    const uint32_t second = graph.add({first}, 1000);
    graph.add({second}, 1000);
    DagScheduler dag;
    REQUIRE(dag.run(graph.input(1)));
    CHECK(dag.sequence == std::vector<uint32_t>{1, 2, 3, 0});
}

TEST_CASE("dag: nodes without cost come after what they depend on, equals as numbered") {
    Graph graph;
    graph.add({3}, 0);  // 0, the end of a chain numbered backwards
    graph.add({}, 0);   // 1
    graph.add({}, 0);   // 2
    graph.add({4}, 0);  // 3
    graph.add({}, 0);   // 4
    DagScheduler dag;
    REQUIRE(dag.run(graph.input(1)));
    CHECK(dag.sequence == std::vector<uint32_t>{4, 3, 0, 1, 2});
    CHECK(dag.serial_ns == 0);
}

TEST_CASE("dag: ranks of many bytes are in order") {
    Graph graph;
    constexpr uint64_t kMost = uint64_t{1} << 40;  // of rt_graph_set_cost
    const uint64_t costs[] = {1, kMost, 255, 256, kMost - 1, 65'536, 1, kMost / 2, 257};
    for (const uint64_t cost : costs) graph.add({}, cost);
    DagScheduler dag;
    REQUIRE(dag.run(graph.input(1)));
    CHECK(dag.sequence == std::vector<uint32_t>{1, 4, 7, 5, 8, 3, 2, 0, 6});
    DagScheduler empty;
    REQUIRE(empty.run(Graph().input(1)));
    CHECK(empty.sequence.empty());
}

TEST_CASE("dag: waits that other waits imply are dropped") {
    Graph graph;  // on two lanes: x on the other one, then y after x here, then z after both
    const uint32_t a = graph.add({}, 1000), x = graph.add({}, 1000);
    const uint32_t y = graph.add({a, x}, 1000);
    graph.add({y, x}, 1000);  // knows x through y
    DagScheduler dag;
    REQUIRE(dag.run(graph.input(2)));
    CHECK(dag.crossing_edges >= 1);
    size_t fences = 0;
    for (const DagPoint& wait : dag.waits) fences += wait.ordinal != 0;
    CHECK(fences == 1);
    CHECK(dag.dropped_waits == dag.crossing_edges - 1);
}

TEST_CASE("dag: copies overlap with kernels on a copy lane, kernels never run there") {
    Graph graph;
    const uint32_t kernel = graph.add({}, 5000, kDagCompute);
    const uint32_t copy = graph.add({}, 5000, kDagCompute | kDagCopy);
    graph.add({kernel, copy}, 1000, kDagCompute);
    DagScheduler dag;
    REQUIRE(dag.run(graph.input(1, 1)));
    CHECK(dag.lanes == 2);
    for (const DagStep& step : dag.steps)
        for (uint32_t i = 0; i < step.count; ++i)
            if (step.lane == 1) CHECK((graph.place[dag.sequence[step.first + i]] & kDagCopy) != 0);
}

TEST_CASE("dag: a cycle is reported with the nodes on it and no others") {
    Graph graph;
    graph.add({});      // 0, before the cycle
    graph.add({0, 4});  // 1
    graph.add({1});     // 2
    graph.add({2});     // 3, behind it
    graph.add({2});     // 4
    graph.add({4, 3});  // 5
    DagScheduler dag;
    REQUIRE_FALSE(dag.run(graph.input(2)));
    CHECK(dag.cycle == std::vector<uint32_t>{1, 2, 4});
    Graph self;
    self.add({0});
    REQUIRE_FALSE(dag.run(self.input(1)));
    CHECK(dag.cycle == std::vector<uint32_t>{0});
}

TEST_CASE("dag: in random graphs every dependency is kept, by the waits alone") {
    DagScheduler dag;
    for (uint32_t seed = 1; seed <= 60; ++seed) {
        const Graph graph = random_graph(20 + seed * 5, seed);
        const uint32_t compute = 1 + seed % 4, copy = seed % 3;
        REQUIRE(dag.run(graph.input(compute, copy, seed % 2 ? 300 : 0)));
        const Knowledge known(dag);
        size_t fences = 0;
        for (const DagPoint& wait : dag.waits) fences += wait.ordinal != 0;
        CHECK(fences <= dag.crossing_edges);
        CHECK(fences + dag.dropped_waits == dag.crossing_edges);
        for (uint32_t node = 0; node < graph.cost.size(); ++node) {
            for (uint32_t i = graph.begin[node]; i < graph.begin[node + 1]; ++i)
                REQUIRE(known.done_before[node][graph.dependency[i]]);
            REQUIRE(known.at_end[node]);
        }
        for (const DagStep& step : dag.steps)
            if (step.host) REQUIRE((step.lane == 0 && step.count == 1));
    }
}
