// SPDX-License-Identifier: MIT
#include <time.h>

#include <algorithm>
#include <map>

#include "lib/output.h"
#include "perfetto.h"
#include "timeline.h"

namespace enpu::tools {
namespace {

// Far from the numbers that the runtime gives its tracks, whose trace stands in the same file.
constexpr uint64_t kFirstTrack = uint64_t{1} << 40;

uint64_t clock_ns(clockid_t id) {
    timespec now = {};
    clock_gettime(id, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

class Writer {
  public:
    Writer(const std::vector<KernelEvent>& events, std::optional<uint32_t> compute_engines)
        : events_(events), compute_engines_(compute_engines) {}

    std::string write() {
        trace_.clocks(clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_BOOTTIME),
                      clock_ns(CLOCK_REALTIME));
        trace_.track(kFirstTrack, 0, "enpu, seen by the kernel");
        engines();
        memory();
        ioctls();
        for (const char* group :
             {"enpu_irq", "enpu_step", "enpu_error", "enpu_vm_", "drm_", "dma_fence_"})
            instants(group);
        return trace_.bytes();
    }

  private:
    uint64_t next(const std::string& name) {
        trace_.track(++last_, kFirstTrack, name);
        return last_;
    }

    void engines() {
        std::vector<std::pair<uint64_t, int>> steps;
        for (const auto& [engine, jobs] : job_spans(events_)) {
            const bool copies = compute_engines_ && engine >= *compute_engines_;
            const uint64_t track = next(format("engine %u%s", engine, copies ? " (copy)" : ""));
            for (const JobSpan& job : jobs) {
                trace_.begin(
                    track, job.begin_ns,
                    format("%sjob %llu", job.error ? "failed " : "", (unsigned long long)job.seqno),
                    format("context %u, id %s, from %s, error %d, submitted at %llu", job.context,
                           hex(job.job_id).c_str(), job.task.c_str(), job.error,
                           (unsigned long long)job.submit_ns));
                trace_.end(track, job.done_ns);
                steps.push_back({job.submit_ns, 1});
                steps.push_back({job.done_ns, -1});
            }
        }
        std::sort(steps.begin(), steps.end());
        trace_.counter(++last_, kFirstTrack, "jobs in flight", "jobs");
        int64_t count = 0;
        for (const auto& [ns, step] : steps) trace_.value(last_, ns, count += step);
    }

    // Bytes mapped for the device since the recording began, all processes together.
    void memory() {
        uint64_t track = 0;
        int64_t bytes = 0;
        for (const KernelEvent& event : events_) {
            const bool map = event.name == "enpu_vm_map";
            if (!map && event.name != "enpu_vm_unmap") continue;
            if (track == 0)
                trace_.counter(track = ++last_, kFirstTrack, "mapped for the device", "bytes");
            const auto size = static_cast<int64_t>(event.number("size"));
            trace_.value(track, event.ns, bytes += map ? size : -size);
        }
    }

    void ioctls() {
        std::map<int, uint64_t> tracks;
        for (const IoctlSpan& span : ioctl_spans(events_)) {
            if (tracks.count(span.tid) == 0) tracks[span.tid] = next("ioctls of " + span.task);
            trace_.begin(tracks[span.tid], span.from_ns, span.name,
                         format("returned %lld", (long long)span.result));
            trace_.end(tracks[span.tid], span.to_ns);
        }
    }

    void instants(const std::string& prefix) {
        uint64_t track = 0;
        for (const KernelEvent& event : events_) {
            if (event.name.rfind(prefix, 0) != 0) continue;
            if (track == 0) track = next(prefix.substr(0, prefix.find_last_not_of('_') + 1));
            trace_.instant(track, event.ns, event.name, event.text);
        }
    }

    const std::vector<KernelEvent>& events_;
    const std::optional<uint32_t> compute_engines_;
    rt::PerfettoTrace trace_;
    uint64_t last_ = kFirstTrack;
};

}  // namespace

std::string perfetto_trace(const std::vector<KernelEvent>& events,
                           std::optional<uint32_t> compute_engines) {
    return Writer(events, compute_engines).write();
}

}  // namespace enpu::tools
