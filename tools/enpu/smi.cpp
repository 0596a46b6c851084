// SPDX-License-Identifier: MIT
// enpu smi: utilisation, memory, queues, events and sensors, once or in a loop, for people and for
// programs.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "lib/failure.h"
#include "lib/monitor.h"
#include "lib/output.h"

namespace enpu::tools {
namespace {

struct Options {
    std::string device, root;
    bool json = false, csv = false;
    double loop = 0;
    unsigned count = 0, window_ms = 200;
};

void print_csv(const Monitor::Reading& reading, bool head) {
    const Sample& sample = reading.sample;
    if (head)
        std::printf(
            "monotonic_ns,device,pid,process,busy_percent,compute_percent,copy_percent,"
            "local_used,jobs_in_queues,celsius,watt,megahertz\n");
    auto number = [](const auto& value) { return value ? format("%.15g", double(*value)) : ""; };
    auto line = [&](const std::string& pid, const std::string& process, double compute, double copy,
                    uint64_t local) {
        std::printf("%llu,%s,%s,%s,%.2f,%.2f,%.2f,%llu,%s,%s,%s,%s\n",
                    (unsigned long long)sample.monotonic_ns, reading.sampler->device().node.c_str(),
                    pid.c_str(), csv(process).c_str(), reading.use.percent, compute, copy,
                    (unsigned long long)local, number(sample.queued).c_str(),
                    number(sample.celsius).c_str(), number(sample.watt).c_str(),
                    number(sample.megahertz).c_str());
    };
    double compute = 0, copy = 0;
    for (const ClientUse& one : reading.use.clients) {
        compute += one.compute_percent;
        copy += one.copy_percent;
    }
    line("", "", compute, copy, sample.memory_used.value_or(0));
    for (const ClientUse& one : reading.use.clients) {
        const auto local = one.client->memory.find("local");
        line(std::to_string(one.client->pid), one.client->command, one.compute_percent,
             one.copy_percent, local == one.client->memory.end() ? 0 : local->second);
    }
}

void print(const Monitor& monitor, const std::vector<Monitor::Reading>& readings,
           const Options& options, bool first) {
    if (options.json) {
        nlohmann::ordered_json devices = nlohmann::json::array();
        for (const auto& reading : readings)
            devices.push_back(sample_json(*reading.sampler, reading.sample, reading.use));
        print_json("smi", {{"devices", devices}});
    }
    for (size_t i = 0; i < readings.size() && !options.json; ++i) {
        if (options.csv)
            print_csv(readings[i], first && i == 0);
        else
            std::printf("%s%s", i == 0 && first ? "" : "\n",
                        reading_text(monitor, readings[i]).c_str());
    }
    std::fflush(stdout);
}

int run(const Options& options) {
    catch_interrupts();
    Monitor monitor(options.root, options.device);
    monitor.read();
    if (!pause_ms(options.window_ms)) return kOk;
    const unsigned rounds = options.loop > 0 ? options.count : 1;
    for (unsigned round = 0; rounds == 0 || round < rounds; ++round) {
        if (round != 0 && !pause_ms(static_cast<unsigned>(options.loop * 1000))) break;
        print(monitor, monitor.read(), options, round == 0);
    }
    return kOk;
}

}  // namespace

void add_smi(CLI::App& app, int* status) {
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("smi", "utilisation, memory, queues, events, sensors");
    command->add_option("-d,--device", options->device, "/dev/accel/accelN; default: all");
    auto* json = command->add_flag("--json", options->json, "as JSON, one document a round");
    command->add_flag("--csv", options->csv, "as CSV: a line a device and one a process")
        ->excludes(json);
    command->add_option("-l,--loop", options->loop, "seconds between rounds; without: one round")
        ->check(CLI::Range(0.01, 86400.0));
    command->add_option("-c,--count", options->count, "rounds of --loop; 0: until interrupted");
    command->add_option("-w,--window", options->window_ms, "ms that the first round looks back")
        ->check(CLI::Range(10, 60000));
    command->add_option("--root", options->root, "look at /sys and /proc below this folder")
        ->group("");
    command->callback([options, status] { *status = run(*options); });
}

}  // namespace enpu::tools
