// SPDX-License-Identifier: MIT
#include "analysis.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

namespace enpu::tools {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
    return text.size() >= end.size() &&
           text.compare(text.size() - end.size(), end.size(), end) == 0;
}

constexpr const char* kStreamDevice = ": device";
constexpr const char* kStreamCall = ": driver call";
constexpr const char* kEngine = "engine ";
constexpr const char* kCopyEngine = "(copy)";
constexpr const char* kSubmitted = "submitted at ";

bool is_stream(const TraceTrack& track) {
    return ends_with(track.name, kStreamDevice);
}
bool is_engine(const TraceTrack& track) {
    return track.name.rfind(kEngine, 0) == 0;
}
bool is_copy(const TraceTrack& track, const TraceSlice& slice) {
    return is_engine(track) ? ends_with(track.name, kCopyEngine) : slice.name == "copy";
}

class Analyser {
  public:
    explicit Analyser(const Trace& trace) : trace_(trace) {
        for (const TraceSlice& slice : trace.slices) by_track_[slice.track].push_back(slice);
    }

    Analysis run() {
        bounds();
        for (const auto& [id, track] : trace_.tracks)
            if (!track.counter && by_track_.count(id)) lane(id, track);
        std::stable_sort(result_.lanes.begin(), result_.lanes.end(),
                         [](const Lane& a, const Lane& b) { return rank(a) < rank(b); });
        result_.kernels = rows(kernels_);
        result_.calls = rows(calls_);
        std::map<uint64_t, Series> series;
        for (const TraceValue& value : trace_.values) {
            const auto track = trace_.tracks.find(value.track);
            Series& one = series[value.track];
            if (one.name.empty() && track != trace_.tracks.end()) {
                one.name = track->second.name;
                one.unit = track->second.unit;
            }
            one.values.push_back(value);
        }
        for (auto& [id, one] : series) result_.series.push_back(std::move(one));
        result_.unfinished = trace_.unfinished;
        return std::move(result_);
    }

  private:
    static int rank(const Lane& lane) {
        const bool instants =
            std::all_of(lane.slices.begin(), lane.slices.end(),
                        [](const TraceSlice& slice) { return slice.from_ns == slice.to_ns; });
        return lane.busy ? 0 : instants ? 2 : 1;
    }

    void bounds() {
        uint64_t begin = UINT64_MAX, end = 0;
        for (const TraceSlice& slice : trace_.slices) {
            begin = std::min(begin, slice.from_ns);
            end = std::max(end, slice.to_ns);
        }
        for (const TraceValue& value : trace_.values) {
            begin = std::min(begin, value.ns);
            end = std::max(end, value.ns);
        }
        result_.begin_ns = end ? begin : 0;
        result_.end_ns = end;
    }

    // Copies on other tracks under the same parent, in order of their ends.
    std::vector<Interval> copies_beside(uint64_t id, const TraceTrack& own) const {
        std::vector<Interval> copies;
        for (const auto& [other, track] : trace_.tracks) {
            const auto slices = by_track_.find(other);
            if (other == id || track.parent != own.parent || slices == by_track_.end() ||
                !(is_stream(track) || is_engine(track)))
                continue;
            for (const TraceSlice& slice : slices->second)
                if (is_copy(track, slice)) copies.push_back({slice.from_ns, slice.to_ns});
        }
        std::sort(copies.begin(), copies.end(),
                  [](const Interval& a, const Interval& b) { return a.to_ns < b.to_ns; });
        return copies;
    }

    // When the driver's calls of a stream had returned, by their note ("operation 7").
    std::map<std::string, uint64_t> returned(const TraceTrack& own) const {
        std::map<std::string, uint64_t> ends;
        const std::string name =
            own.name.substr(0, own.name.size() - std::string(kStreamDevice).size()) + kStreamCall;
        for (const auto& [other, track] : trace_.tracks) {
            const auto slices = by_track_.find(other);
            if (track.name != name || track.parent != own.parent || slices == by_track_.end())
                continue;
            for (const TraceSlice& slice : slices->second) ends[slice.note] = slice.to_ns;
        }
        return ends;
    }

    std::vector<Work> work_of(const TraceTrack& track, const std::vector<TraceSlice>& slices) {
        const bool stream = is_stream(track);
        const auto ends = stream ? returned(track) : std::map<std::string, uint64_t>();
        std::vector<Work> work;
        for (const TraceSlice& slice : slices) {
            uint64_t submit = slice.from_ns;
            if (stream) {
                if (const auto found = ends.find(slice.note); found != ends.end())
                    submit = found->second;
            } else if (const size_t at = slice.note.find(kSubmitted); at != std::string::npos) {
                submit = std::strtoull(
                    slice.note.c_str() + at + std::string_view(kSubmitted).size(), nullptr, 10);
            }
            work.push_back({slice.from_ns, slice.to_ns, submit});
        }
        return work;
    }

    void lane(uint64_t id, const TraceTrack& track) {
        Lane made{trace_.path(id), is_stream(track) || is_engine(track), by_track_[id], {}};
        if (made.busy)
            made.gaps = gaps_between(work_of(track, made.slices), copies_beside(id, track));
        auto& table = made.busy ? kernels_ : calls_;
        for (const TraceSlice& slice : made.slices) {
            // The queue is no call, and the jobs of an engine are no kernels when streams name these.
            if (slice.from_ns == slice.to_ns || ends_with(track.name, ": queued")) continue;
            const std::string& name = is_engine(track) ? track.name : slice.name;
            KernelRow& row = table[name];
            const uint64_t ns = slice.to_ns - slice.from_ns;
            row.name = name;
            row.shortest_ns = row.count++ ? std::min(row.shortest_ns, ns) : ns;
            row.longest_ns = std::max(row.longest_ns, ns);
            row.total_ns += ns;
        }
        result_.lanes.push_back(std::move(made));
    }

    static std::vector<KernelRow> rows(const std::map<std::string, KernelRow>& table) {
        std::vector<KernelRow> all;
        for (const auto& [name, row] : table) all.push_back(row);
        std::stable_sort(all.begin(), all.end(), [](const KernelRow& a, const KernelRow& b) {
            return a.total_ns > b.total_ns;
        });
        return all;
    }

    const Trace& trace_;
    Analysis result_;
    std::map<uint64_t, std::vector<TraceSlice>> by_track_;
    std::map<std::string, KernelRow> kernels_, calls_;
};

}  // namespace

const char* gap_name(Gap gap) {
    static constexpr const char* kNames[] = {"host", "copy", "queue"};
    return kNames[static_cast<int>(gap)];
}

std::vector<LaneGap> gaps_between(const std::vector<Work>& work,
                                  const std::vector<Interval>& copies) {
    std::vector<LaneGap> gaps;
    uint64_t free_ns = work.empty() ? 0 : work[0].to_ns;
    for (size_t i = 1; i < work.size(); ++i) {
        const Work& next = work[i];
        if (next.from_ns > free_ns) {
            const uint64_t there_ns = std::clamp(next.submit_ns, free_ns, next.from_ns);
            if (there_ns > free_ns) gaps.push_back({free_ns, there_ns, Gap::kHost});
            // The last copy that ended while the work was there and did not run.
            auto copy = std::upper_bound(
                copies.begin(), copies.end(), next.from_ns,
                [](uint64_t ns, const Interval& interval) { return ns < interval.to_ns; });
            const bool waited = copy != copies.begin() && (--copy)->to_ns > there_ns;
            const uint64_t until = waited ? copy->to_ns : there_ns;
            if (waited) gaps.push_back({there_ns, until, Gap::kCopy});
            if (next.from_ns > until) gaps.push_back({until, next.from_ns, Gap::kQueue});
        }
        free_ns = std::max(free_ns, next.to_ns);
    }
    return gaps;
}

Analysis analyse(const Trace& trace) {
    return Analyser(trace).run();
}

}  // namespace enpu::tools
