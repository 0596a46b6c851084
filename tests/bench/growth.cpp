// SPDX-License-Identifier: MIT
// What a job, a buffer and a packet cost when there have been, or are, many of them. Ours is the cost at the
// end of a series, the peer that at its beginning; so is the memory of the process.
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <thread>

#include "stand.h"

namespace enpu::bench {
namespace {

double resident_bytes() {
    long pages = 0, resident = 0;
    std::FILE* file = std::fopen("/proc/self/statm", "r");
    if (file != nullptr) {
        if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
        std::fclose(file);
    }
    return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

Command nops(const Stand& stand, unsigned count) {
    Builder builder(stand.device(), ENPU_ENGINE_KIND_COMPUTE);
    for (unsigned i = 0; i < count; ++i)
        check([&](enpu_error* e) { return enpu_build_nop(builder.get(), e); });
    return builder.finish();
}

// First and last tenth of a series.
Result ends_of(const std::string& name, const std::string& unit, double x,
               const std::vector<double>& series) {
    const size_t tenth = std::max<size_t>(series.size() / 10, 1);
    Result r{name, unit, x, {}, {}};
    r.peer.assign(series.begin(), series.begin() + static_cast<ptrdiff_t>(tenth));
    r.ours.assign(series.end() - static_cast<ptrdiff_t>(tenth), series.end());
    return r;
}

void grow_jobs(const Options& options, std::vector<Result>& results) {
    Stand stand(options.device);
    const Timeline timeline = Timeline::create(stand.device());
    const Command command = nops(stand, 1);
    constexpr unsigned kDepth = 64, kBatch = 1000;
    const bool simulator = stand.device().info().simulator != 0;
    // The guest's processor is emulated: a tenth shows the same there.
    const unsigned total = (options.quick ? 20'000u : 1'000'000u) / (simulator ? 1 : 10);
    std::vector<double> costs, memory;
    uint64_t point = 0;
    for (unsigned done = 0; done < total; done += kBatch) {
        const double begin = now_ns();
        for (unsigned i = 0; i < kBatch; ++i) {
            stand.context().submit(0, command, {}, {timeline.at(++point)});
            if (point > kDepth)
                stand.context().wait(timeline, point - kDepth, enpu_deadline_after(kDeadlineNs));
        }
        costs.push_back((now_ns() - begin) / kBatch);
        memory.push_back(resident_bytes());
    }
    stand.context().wait(timeline, point, enpu_deadline_after(kDeadlineNs));
    // The first batch pays for what is kept from then on.
    costs.erase(costs.begin());
    memory.erase(memory.begin());
    results.push_back(ends_of("growth: a job, after many", "ns", total, costs));
    results.push_back(ends_of("growth: memory, after many jobs", "bytes", total, memory));
}

void grow_buffers(const Options& options, std::vector<Result>& results) {
    Stand stand(options.device);
    const unsigned total = options.quick ? 2'000 : 10'000;
    const Command command = nops(stand, 1);
    const auto job = [&] {
        std::vector<double> times;
        for (unsigned i = 0; i < 50; ++i) times.push_back(stand.run(0, command));
        std::nth_element(times.begin(), times.begin() + 25, times.end());
        return times[25];
    };
    Result jobs{"growth: a job, with many buffers", "ns", double(total), {}, {}};
    std::vector<double> create;
    for (unsigned round = 0; round < 3; ++round) {
        jobs.peer.push_back(job());
        std::vector<Buffer> buffers;
        for (unsigned i = 0; i < total; i += 100) {
            const double begin = now_ns();
            for (unsigned n = 0; n < 100; ++n)
                buffers.push_back(stand.buffer(4096, ENPU_BUFFER_HOST));
            if (round == 1) create.push_back((now_ns() - begin) / 100);
        }
        jobs.ours.push_back(job());
    }
    results.push_back(std::move(jobs));
    results.push_back(ends_of("growth: making a buffer, with many", "ns", total, create));
}

void grow_packets(const Options& options, std::vector<Result>& results) {
    Stand stand(options.device);
    // What 1,000 packets cost each, beside 100: a job has a cost of its own, which 1 or 10 would show.
    const Command few = nops(stand, 100), many = nops(stand, 1000);
    Result r{"growth: a packet of a job of 1000", "ns", 1000, {}, {}};
    for (unsigned i = 0; i < options.runs; ++i) {
        r.peer.push_back(stand.run(0, few) / 100);
        r.ours.push_back(stand.run(0, many) / 1000);
    }
    results.push_back(std::move(r));
}

// Switches of all threads of this process to another one or to rest.
uint64_t switches() {
    uint64_t sum = 0;
    DIR* tasks = opendir("/proc/self/task");
    if (tasks == nullptr) return 0;
    while (const dirent* entry = readdir(tasks)) {
        if (entry->d_name[0] == '.') continue;
        const std::string path = std::string("/proc/self/task/") + entry->d_name + "/status";
        std::FILE* file = std::fopen(path.c_str(), "r");
        if (file == nullptr) continue;
        char line[256];
        unsigned long long value = 0;
        while (std::fgets(line, sizeof(line), file) != nullptr)
            if (std::sscanf(line, "voluntary_ctxt_switches: %llu", &value) == 1) sum += value;
        std::fclose(file);
    }
    closedir(tasks);
    return sum;
}

double processor_us() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto us = [](const timeval& t) { return double(t.tv_sec) * 1e6 + double(t.tv_usec); };
    return us(usage.ru_utime) + us(usage.ru_stime);
}

}  // namespace

std::vector<Result> bench_growth(const Options& options) {
    std::vector<Result> results;
    grow_jobs(options, results);
    grow_buffers(options, results);
    grow_packets(options, results);
    return results;
}

// A device that has worked and now has nothing to do: what its threads still do in two seconds.
std::vector<Result> bench_idle(const Options& options) {
    Stand stand(options.device);
    stand.run(0, nops(stand, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    Result wakeups{"idle: wake-ups", "1/s", 0, {}, {}}, busy{"idle: processor", "us/s", 0, {}, {}};
    const unsigned runs = options.quick ? 1 : 3;
    for (unsigned run = 0; run < runs; ++run) {
        const uint64_t before = switches();
        const double us = processor_us();
        std::this_thread::sleep_for(std::chrono::seconds(2));
        // The sleep of this thread is one.
        wakeups.ours.push_back(static_cast<double>(switches() - before - 1) / 2);
        busy.ours.push_back((processor_us() - us) / 2);
    }
    return {wakeups, busy};
}

}  // namespace enpu::bench
