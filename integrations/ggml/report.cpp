// SPDX-License-Identifier: MIT
// ENPU_GGML_REPORT: counters as JSON in a file, written anew at the end of the process and, for servers, which end by a
// signal, at most once a second while graphs run.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "device.h"

namespace enpu::ggml {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kInterval = std::chrono::seconds(1);

// Readers of the file see a whole report: it is put in place by rename.
void write_file(const std::string& path, const Device& device) {
    const std::string part = path + ".part";
    std::FILE* file = std::fopen(part.c_str(), "w");
    if (!file) return report("enpu: cannot write " + part);
    rt_counters counted{};
    counted.struct_size = sizeof(counted);
    rt_status_free(rt_device_get_counters(device.session->device(), &counted));
    const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
    std::fprintf(file,
                 "{\"graphs\": %llu, \"replayed\": %llu, \"nodes\": %llu, \"kernels\": %llu, "
                 "\"device_jobs\": %llu, \"device_jobs_failed\": %llu, \"device_matmuls\": %llu}\n",
                 number(device.counters.graphs), number(device.counters.hits),
                 number(device.counters.nodes), number(device.counters.kernels),
                 number(counted.jobs), number(counted.jobs_failed),
                 number(counted.ops[ENPU_OP_MATMUL_FWD]));
    const bool written = std::fclose(file) == 0;
    if (!written || std::rename(part.c_str(), path.c_str()) != 0) {
        report("enpu: cannot write " + path);
    }
}

}  // namespace

void write_report(const Device& device, bool at_end) {
    static const char* const path = std::getenv("ENPU_GGML_REPORT");
    if (!path) return;
    static std::mutex mutex;
    static Clock::time_point written;
    const std::lock_guard lock(mutex);
    if (!at_end && Clock::now() - written < kInterval) return;
    written = Clock::now();
    write_file(path, device);
}

}  // namespace enpu::ggml
