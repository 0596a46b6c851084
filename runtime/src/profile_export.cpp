// SPDX-License-Identifier: MIT
// What a recording gives: numbers, the table of kernels, a Perfetto trace.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <tuple>

#include "perfetto.h"
#include "profile.h"
#include "status.h"

using namespace enpu::rt;
using namespace enpu::rt::profile;

namespace {

std::vector<rt_profile_kernel> kernel_rows(const Recording& recording) {
    std::map<std::string, rt_profile_kernel> by_name;
    uint64_t all = 0;
    for (const auto& device : recording.devices)
        for (const DeviceSpan& span : device->spans) {
            rt_profile_kernel& row = by_name[span.name];
            const uint64_t ns = span.end_ns - span.start_ns;
            row.min_ns = row.count++ == 0 ? ns : std::min(row.min_ns, ns);
            row.max_ns = std::max(row.max_ns, ns);
            row.total_ns += ns;
            all += ns;
        }
    std::vector<rt_profile_kernel> rows;
    for (auto& [name, row] : by_name) {
        std::snprintf(row.name, sizeof(row.name), "%s", name.c_str());
        row.mean_ns = double(row.total_ns) / double(row.count);
        row.share = all ? double(row.total_ns) / double(all) : 0;
        rows.push_back(row);
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.total_ns > b.total_ns; });
    return rows;
}

uint64_t clock_ns(clockid_t id) {
    timespec now{};
    clock_gettime(id, &now);
    return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

// Builds the trace. Slices of a track are written in time order and nest or follow each other.
class Writer {
  public:
    explicit Writer(const Recording& recording) : recording_(recording) {}

    const std::string& write() {
        trace_.clocks(clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_BOOTTIME),
                      clock_ns(CLOCK_REALTIME));
        trace_.process(kProcess, getpid(), "enpu");
        for (const auto& log : recording_.threads) write_thread(*log);
        for (const auto& device : recording_.devices) write_device(*device);
        write_kernel_events();
        return trace_.bytes();
    }

  private:
    static constexpr uint64_t kProcess = 1;
    uint64_t next() { return ++last_track_; }

    void write_thread(ThreadLog& log) {
        std::lock_guard lock(log.mutex);
        const uint64_t track = next();
        trace_.thread(track, kProcess, getpid(), log.tid, log.name);
        // Noted when they ended; outer calls begin first.
        std::vector<ApiCall> calls = log.calls;
        std::stable_sort(calls.begin(), calls.end(), [](const ApiCall& a, const ApiCall& b) {
            return std::tuple(a.start_ns, b.end_ns) < std::tuple(b.start_ns, a.end_ns);
        });
        std::vector<uint64_t> open;
        for (const ApiCall& call : calls) {
            while (!open.empty() && open.back() <= call.start_ns) close(track, open);
            trace_.begin(track, call.start_ns, call.name, call.note);
            open.push_back(call.end_ns);
        }
        while (!open.empty()) close(track, open);
    }
    void close(uint64_t track, std::vector<uint64_t>& open) {
        trace_.end(track, open.back());
        open.pop_back();
    }

    // One track a stream for the engine, two for the driver: the call, and the queue.
    struct StreamTracks {
        uint64_t engine = 0, call = 0, queue = 0;
    };
    StreamTracks& tracks(std::map<uint64_t, StreamTracks>& all, uint64_t device, uint64_t stream) {
        StreamTracks& made = all[stream];
        if (made.engine) return made;
        const std::string name = "stream " + std::to_string(stream);
        made = {next(), next(), next()};
        trace_.track(made.call, device, name + ": driver call");
        trace_.track(made.queue, device, name + ": queued");
        trace_.track(made.engine, device, name + ": device");
        return made;
    }

    void write_device(const DeviceRecorder& device) {
        const uint64_t parent = next();
        trace_.track(parent, kProcess, device.name);
        std::map<uint64_t, StreamTracks> all;
        std::vector<DriverSpan> calls = device.calls;
        std::stable_sort(calls.begin(), calls.end(), [](const auto& a, const auto& b) {
            return std::tuple(a.stream, a.operation) < std::tuple(b.stream, b.operation);
        });
        uint64_t stream = 0, busy_until = 0;
        for (const DriverSpan& call : calls) {
            const StreamTracks& to = tracks(all, parent, call.stream);
            const std::string note = "operation " + std::to_string(call.operation);
            trace_.begin(to.call, call.call_ns, call.origin, note);
            trace_.end(to.call, call.returned_ns);
            if (call.stream != stream) busy_until = 0;
            stream = call.stream;
            // The queue shows the head of the line: from when it was first till it started.
            const uint64_t from = std::max(call.returned_ns, busy_until);
            busy_until = std::max(busy_until, call.started_ns);
            if (call.started_ns <= from) continue;
            trace_.begin(to.queue, from, "queued", note);
            trace_.end(to.queue, call.started_ns);
        }
        std::vector<DeviceSpan> spans = device.spans;
        std::stable_sort(spans.begin(), spans.end(),
                         [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
        for (const DeviceSpan& span : spans) {
            const StreamTracks& to = tracks(all, parent, span.stream);
            trace_.begin(to.engine, span.start_ns, span.name,
                         "operation " + std::to_string(span.operation));
            trace_.end(to.engine, span.end_ns);
        }
        write_memory(device, parent);
    }

    void write_memory(const DeviceRecorder& device, uint64_t parent) {
        const uint64_t used = next(), reserved = next();
        trace_.counter(used, parent, "memory used", "bytes");
        trace_.counter(reserved, parent, "memory reserved", "bytes");
        for (const MemorySample& sample : recording_.memory) {
            if (sample.device != &device) continue;
            trace_.value(used, sample.ns, int64_t(sample.used));
            trace_.value(reserved, sample.ns, int64_t(sample.reserved));
        }
    }

    void write_kernel_events() {
        if (recording_.kernel.events.empty()) return;
        const uint64_t track = next();
        trace_.track(track, kProcess, "kernel driver");
        for (const KernelEvent& event : recording_.kernel.events)
            trace_.instant(track, event.ns, event.name, event.text);
    }

    const Recording& recording_;
    PerfettoTrace trace_;
    uint64_t last_track_ = kProcess;
};

rt_status save(const char* path, const std::string& bytes, const char* origin) {
    std::ofstream file(path, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.flush();
    if (file) return RT_OK;
    return make_status(RT_PERMISSION_DENIED, origin, "cannot write '%s'", path);
}

}  // namespace

void rt_profile_destroy(rt_profile profile) {
    delete profile;
}

rt_status rt_profile_get_info(rt_profile profile, rt_profile_info* info) {
    RT_NOT_NULL(profile);
    if (!info || info->struct_size < sizeof(*info))
        return make_status(RT_INVALID_ARGUMENT, __func__,
                           "the structure is null or its struct_size less than %zu", sizeof(*info));
    Recording& recording = *profile->recording;
    std::lock_guard lock(recording.mutex);
    const uint32_t size = info->struct_size;
    *info = {};
    info->struct_size = size;
    for (const auto& log : recording.threads)
        for (const ApiCall& call : log->calls) ++(call.hal ? info->hal_calls : info->api_calls);
    info->dropped = recording.dropped;
    for (const auto& device : recording.devices) {
        info->operations += device->calls.size();
        info->dropped += device->dropped;
    }
    info->memory_samples = recording.memory.size();
    info->kernel_events = recording.kernel.events.size();
    info->kernel_events_read = recording.kernel.note.empty();
    info->start_ns = recording.start_ns;
    info->end_ns = recording.end_ns;
    std::snprintf(info->kernel_note, sizeof(info->kernel_note), "%s",
                  recording.kernel.note.c_str());
    return RT_OK;
}

rt_status rt_profile_get_kernels(rt_profile profile, rt_profile_kernel* rows, uint32_t capacity,
                                 uint32_t* count) {
    RT_NOT_NULL(profile);
    RT_NOT_NULL(count);
    if (capacity) RT_NOT_NULL(rows);
    return guarded(__func__, [&]() -> rt_status {
        std::lock_guard lock(profile->recording->mutex);
        const auto all = kernel_rows(*profile->recording);
        std::copy_n(all.begin(), std::min<size_t>(capacity, all.size()), rows);
        *count = static_cast<uint32_t>(all.size());
        return RT_OK;
    });
}

rt_status rt_profile_print(rt_profile profile, const char* path) {
    RT_NOT_NULL(profile);
    RT_NOT_NULL(path);
    return guarded(__func__, [&]() -> rt_status {
        std::lock_guard lock(profile->recording->mutex);
        std::string text;
        char line[200];
        std::snprintf(line, sizeof(line), "%-28s %8s %12s %12s %12s %12s %7s\n", "operation",
                      "count", "total us", "mean us", "min us", "max us", "share");
        text += line;
        for (const rt_profile_kernel& row : kernel_rows(*profile->recording)) {
            std::snprintf(line, sizeof(line), "%-28s %8llu %12.1f %12.2f %12.2f %12.2f %6.1f%%\n",
                          row.name, static_cast<unsigned long long>(row.count),
                          double(row.total_ns) / 1e3, row.mean_ns / 1e3, double(row.min_ns) / 1e3,
                          double(row.max_ns) / 1e3, 100 * row.share);
            text += line;
        }
        return save(path, text, "rt_profile_print");
    });
}

rt_status rt_profile_write(rt_profile profile, const char* path) {
    RT_NOT_NULL(profile);
    RT_NOT_NULL(path);
    return guarded(__func__, [&]() -> rt_status {
        std::lock_guard lock(profile->recording->mutex);
        Writer writer(*profile->recording);
        return save(path, writer.write(), "rt_profile_write");
    });
}
