// SPDX-License-Identifier: MIT
// Reads the part of Perfetto's trace format that the runtime and this tool write: tracks, slices,
// instants and counters. What else a file holds is passed over.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace enpu::tools {

struct TraceTrack {
    uint64_t parent = 0;
    std::string name, unit;
    bool counter = false;
};
struct TraceSlice {
    uint64_t track = 0, from_ns = 0, to_ns = 0;  // equal: an instant
    unsigned depth = 0;                          // slices of the same track that are open around it
    std::string name, note;
};
struct TraceValue {
    uint64_t track = 0, ns = 0;
    int64_t value = 0;
};

struct Trace {
    std::map<uint64_t, TraceTrack> tracks;
    std::vector<TraceSlice> slices;  // in order of their begins
    std::vector<TraceValue> values;  // in order of time, by track
    uint64_t unfinished = 0;         // slices without an end, left out
    // The name of a track, with that of the track around it.
    std::string path(uint64_t track) const;
};

// Throws Failure (kUsage) for bytes that are no trace, and says where they stop being one.
Trace read_trace(std::string_view bytes);

}  // namespace enpu::tools
