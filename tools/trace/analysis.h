// SPDX-License-Identifier: MIT
// What a trace says: which lanes were busy, what each waited for, which kernels took the time, how
// memory went.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perfetto_reader.h"

namespace enpu::tools {

// Why an engine or a stream had nothing to do: nothing was submitted; a copy that was on its way
// ended within the wait; a dependency or the scheduler.
enum class Gap { kHost, kCopy, kQueue };
const char* gap_name(Gap gap);  // "host", "copy", "queue"
struct LaneGap {
    uint64_t from_ns = 0, to_ns = 0;
    Gap reason = Gap::kHost;
};
struct Interval {
    uint64_t from_ns = 0, to_ns = 0;
};
// A span of work, and when the host had handed it over.
struct Work {
    uint64_t from_ns = 0, to_ns = 0, submit_ns = 0;
};
// Gaps between pieces of work in order; `copies` are those of other lanes, in order of their ends.
std::vector<LaneGap> gaps_between(const std::vector<Work>& work,
                                  const std::vector<Interval>& copies);

struct Lane {
    std::string name;
    bool busy = false;  // device work: it has gaps and counts as used
    std::vector<TraceSlice> slices;
    std::vector<LaneGap> gaps;
};
struct KernelRow {
    std::string name;
    uint64_t count = 0, total_ns = 0, shortest_ns = 0, longest_ns = 0;
};
struct Series {
    std::string name, unit;
    std::vector<TraceValue> values;
};

struct Analysis {
    uint64_t begin_ns = 0, end_ns = 0;
    std::vector<Lane> lanes;         // device work first, then calls, then instants
    std::vector<KernelRow> kernels;  // most time first
    std::vector<KernelRow> calls;    // of runtime and driver, most time first
    std::vector<Series> series;      // memory and other counters over time
    uint64_t unfinished = 0;
};
Analysis analyse(const Trace& trace);

}  // namespace enpu::tools
