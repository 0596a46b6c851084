// SPDX-License-Identifier: MIT
#include "sampler.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <enpu/enpu.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

namespace enpu::tools {
namespace fs = std::filesystem;
namespace {

constexpr const char* kEvents[] = {
    "engine_resets",   "device_resets",  "failed_resets", "hangs", "faults",       "ecc_corrected",
    "lost_interrupts", "lost_doorbells", "irq_storms",    "dumps", "dumps_dropped"};

uint64_t monotonic_ns() {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

std::optional<double> scaled(const fs::path& file, double unit) {
    const auto value = read_number(file);
    return value ? std::optional<double>(static_cast<double>(*value) / unit) : std::nullopt;
}

// Lines "3: compute0 as 1 ctx 1 state 2 error 0 tail 12 done 9 dead 0" of the driver's debugfs.
std::optional<uint64_t> queued_jobs(const fs::path& file) {
    const auto text = read_text(file);
    if (!text) return std::nullopt;
    uint64_t jobs = 0;
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
        const size_t at = line.find(" tail ");
        unsigned long long tail = 0, done = 0;
        if (at != std::string::npos &&
            std::sscanf(line.c_str() + at, " tail %llu done %llu", &tail, &done) == 2 &&
            tail > done)
            jobs += tail - done;
    }
    return jobs;
}

Engines find_engines(const System& system, const PciDevice& device) {
    Engines engines;
    if (!system.real()) {
        engines.compute =
            static_cast<uint32_t>(read_number(device.folder / "test_compute").value_or(1));
        engines.copy = static_cast<uint32_t>(read_number(device.folder / "test_copy").value_or(1));
        return engines;
    }
    const Device opened = Device::open(("/dev/accel/" + device.node).c_str());
    engines.compute = opened.info().compute_engines;
    engines.copy = opened.info().copy_engines;
    return engines;
}

double percent(uint64_t before, uint64_t after, double seconds, double engines) {
    if (after <= before || seconds <= 0 || engines <= 0) return 0;
    return std::min(100.0, static_cast<double>(after - before) / 1e7 / seconds / engines);
}

uint64_t value_of(const std::map<std::string, uint64_t>& values, const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? 0 : found->second;
}

}  // namespace

Sampler::Sampler(const System& system, PciDevice device)
    : system_(system), device_(std::move(device)), engines_(find_engines(system, device_)) {}

Sample Sampler::take() const {
    Sample sample;
    const fs::path& folder = device_.folder;
    sample.monotonic_ns = monotonic_ns();
    sample.busy_ns = read_number(folder / "npu_busy_time_us").value_or(0) * 1000;
    sample.memory_total = read_number(folder / "npu_memory_total");
    sample.memory_used = read_number(folder / "npu_memory_utilization");
    for (const char* name : kEvents) {
        if (const auto value = read_number(folder / name)) sample.events.push_back({name, *value});
    }
    if (const fs::path hwmon = system_.hwmon(device_); !hwmon.empty()) {
        sample.celsius = scaled(hwmon / "temp1_input", 1e3);
        sample.watt = scaled(hwmon / "power1_average", 1e6);
        if (!sample.watt) sample.watt = scaled(hwmon / "power1_input", 1e6);
        sample.megahertz = scaled(hwmon / "freq1_input", 1e6);
    }
    sample.queued =
        queued_jobs(system_.path("/sys/kernel/debug/accel/" + device_.address + "/queues"));
    sample.clients = system_.clients(device_.address);
    return sample;
}

Use use_between(const Sample& before, const Sample& after, const Engines& engines) {
    Use use;
    use.seconds = static_cast<double>(after.monotonic_ns - before.monotonic_ns) / 1e9;
    use.percent = percent(before.busy_ns, after.busy_ns, use.seconds, engines.all());
    for (const Client& client : after.clients) {
        ClientUse made{&client, 0, 0};
        for (const Client& old : before.clients) {
            if (old.client_id != client.client_id) continue;
            made.compute_percent =
                percent(value_of(old.engine_ns, "compute"), value_of(client.engine_ns, "compute"),
                        use.seconds, engines.compute);
            made.copy_percent =
                percent(value_of(old.engine_ns, "copy"), value_of(client.engine_ns, "copy"),
                        use.seconds, engines.copy);
        }
        use.clients.push_back(made);
    }
    std::stable_sort(
        use.clients.begin(), use.clients.end(), [](const ClientUse& a, const ClientUse& b) {
            return a.compute_percent + a.copy_percent > b.compute_percent + b.copy_percent;
        });
    return use;
}

nlohmann::ordered_json sample_json(const Sampler& sampler, const Sample& sample, const Use& use) {
    using Json = nlohmann::ordered_json;
    auto optional = [](const auto& value) { return value ? Json(*value) : Json(); };
    Json events = Json::object(), clients = Json::array();
    for (const auto& [name, value] : sample.events) events[name] = value;
    for (const ClientUse& one : use.clients) {
        clients.push_back({{"pid", one.client->pid},
                           {"command", one.client->command},
                           {"client_id", one.client->client_id},
                           {"compute_percent", one.compute_percent},
                           {"copy_percent", one.copy_percent},
                           {"engine_ns", one.client->engine_ns},
                           {"memory_bytes", one.client->memory}});
    }
    return {{"device", "/dev/accel/" + sampler.device().node},
            {"pci", sampler.device().address},
            {"monotonic_ns", sample.monotonic_ns},
            {"interval_seconds", use.seconds},
            {"engines", {{"compute", sampler.engines().compute}, {"copy", sampler.engines().copy}}},
            {"busy_percent", use.percent},
            {"busy_ns", sample.busy_ns},
            {"memory",
             {{"local_total", optional(sample.memory_total)},
              {"local_used", optional(sample.memory_used)}}},
            {"jobs_in_queues", optional(sample.queued)},
            {"events", events},
            {"sensors",
             {{"emulated", true},
              {"celsius", optional(sample.celsius)},
              {"watt", optional(sample.watt)},
              {"megahertz", optional(sample.megahertz)}}},
            {"clients", clients}};
}

}  // namespace enpu::tools
