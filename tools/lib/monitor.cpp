// SPDX-License-Identifier: MIT
#include "monitor.h"

#include <signal.h>
#include <time.h>

#include <cerrno>

#include "failure.h"
#include "output.h"

namespace enpu::tools {
namespace {

volatile sig_atomic_t interrupted = 0;

uint64_t value_of(const std::map<std::string, uint64_t>& values, const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? 0 : found->second;
}

std::string sensors_text(const Sample& sample) {
    std::string text;
    if (sample.celsius) text += format("%.1f C  ", *sample.celsius);
    if (sample.watt) text += format("%.2f W  ", *sample.watt);
    if (sample.megahertz) text += format("%.0f MHz  ", *sample.megahertz);
    return text.empty() ? "none" : text + "(emulated)";
}

std::string events_text(const Sample& sample) {
    std::string text;
    for (const auto& [name, value] : sample.events) {
        if (value == 0) continue;
        std::string words = name;
        for (char& c : words)
            if (c == '_') c = ' ';
        text += (text.empty() ? "" : ", ") + std::to_string(value) + " " + words;
    }
    return text.empty() ? "no reset, hang, fault or lost interrupt" : text;
}

std::string memory_text(const Sample& sample) {
    if (!sample.memory_total || !sample.memory_used) return "not known";
    return "local " + bytes_text(*sample.memory_used) + " of " + bytes_text(*sample.memory_total);
}

}  // namespace

void catch_interrupts() {
    struct sigaction action = {};
    action.sa_handler = [](int) { interrupted = 1; };
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

bool pause_ms(unsigned milliseconds) {
    const timespec pause = {milliseconds / 1000,
                            static_cast<long>(milliseconds % 1000) * 1'000'000};
    if (interrupted == 0) nanosleep(&pause, nullptr);
    return interrupted == 0;
}

Monitor::Monitor(const std::string& root, const std::string& node)
    : system_(std::make_unique<System>(root)) {
    for (PciDevice& device : system_->npus()) {
        if (device.node.empty()) continue;
        if (!node.empty() && node != "npu" && node != "/dev/accel/" + device.node) continue;
        samplers_.push_back(std::make_unique<Sampler>(*system_, std::move(device)));
    }
    if (samplers_.empty())
        throw Failure(kNoDevice, node.empty() ? "no NPU with a driver; 'enpu doctor' says why"
                                              : node + " is no NPU of this machine");
    for (const auto& sampler : samplers_) readings_.push_back({sampler.get(), {}, {}, {}});
}

const std::vector<Monitor::Reading>& Monitor::read() {
    for (Reading& reading : readings_) {
        Sample now = reading.sampler->take();
        const bool first = reading.sample.monotonic_ns == 0;
        const Sample& before = first ? now : reading.sample;
        // The use points into the sample that the reading keeps: made after the sample has moved.
        const Sample old = before;
        reading.sample = std::move(now);
        reading.use = use_between(old, reading.sample, reading.sampler->engines());
        if (first) continue;
        reading.history.push_back(reading.use.percent);
        if (reading.history.size() > kHistory) reading.history.erase(reading.history.begin());
        for (const ClientUse& one : reading.use.clients) {
            auto& history = clients_[one.client->client_id];
            history.push_back(one.compute_percent + one.copy_percent);
            if (history.size() > kHistory) history.pop_front();
        }
    }
    return readings_;
}

std::vector<double> Monitor::client_history(uint64_t client_id) const {
    const auto found = clients_.find(client_id);
    if (found == clients_.end()) return {};
    return {found->second.begin(), found->second.end()};
}

std::string reading_text(const Monitor& monitor, const Monitor::Reading& reading) {
    const Sampler& sampler = *reading.sampler;
    const Sample& sample = reading.sample;
    Table table({"", ""});
    table.add({"device", "/dev/accel/" + sampler.device().node + "  " + sampler.device().address +
                             format("  %u compute, %u copy engines", sampler.engines().compute,
                                    sampler.engines().copy)});
    table.add({"busy", format("%5.1f %%  %s", reading.use.percent,
                              sparkline(reading.history, 100).c_str())});
    table.add({"memory", memory_text(sample)});
    table.add({"queues", sample.queued ? format("%llu jobs", (unsigned long long)*sample.queued)
                                       : "not known (needs root)"});
    table.add({"sensors", sensors_text(sample)});
    table.add({"events", events_text(sample)});
    Table clients({">pid", "process", ">compute", ">copy", ">host", ">local", "history"});
    for (const ClientUse& one : reading.use.clients)
        clients.add({std::to_string(one.client->pid), one.client->command,
                     format("%.1f %%", one.compute_percent), format("%.1f %%", one.copy_percent),
                     bytes_text(value_of(one.client->memory, "host")),
                     bytes_text(value_of(one.client->memory, "local")),
                     sparkline(monitor.client_history(one.client->client_id), 100)});
    return table.text() + (reading.use.clients.empty() ? "no process uses it\n" : clients.text(2));
}

}  // namespace enpu::tools
