// SPDX-License-Identifier: MIT
// enpu validate: is the device well? Each check measures something and looks at a result.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "bringup/runner.h"
#include "commands.h"
#include "lib/failure.h"
#include "lib/measure.h"
#include "lib/output.h"

namespace enpu::tools {
namespace {

struct Options {
    std::string device;
    std::vector<std::string> tests;
    bool json = false, list = false;
};

// What a check found; throwing is failing.
struct Found {
    std::string text;
    nlohmann::ordered_json values;
};
struct Check {
    const char* name;
    const char* proves;
    Found (*run)(Measure& measure, const std::string& spec);
};

Found times(const Spread& spread) {
    return {time_text(spread.median) + format(" (%s to %s)", time_text(spread.lowest).c_str(),
                                              time_text(spread.highest).c_str()),
            {{"median_ns", spread.median}, {"samples", spread.samples}}};
}

Found rate(const Spread& spread) {
    return {bytes_text(static_cast<uint64_t>(spread.median)) + "/s",
            {{"bytes_per_second", spread.median}, {"samples", spread.samples}}};
}

// Stages of the bring-up harness that run on jobs, as one check.
Found stage(const std::string& spec, const char* name) {
    const auto machine = bringup::driver_machine(spec);
    bringup::RunOptions options;
    options.only = {name};
    const auto results = bringup::run_driver(*machine, options, "");
    if (results.at(0).verdict != bringup::Verdict::kPassed)
        throw Failure(kCheckFailed, results[0].reason);
    return {results[0].proves, {{"seconds", results[0].seconds}}};
}

const Check kChecks[] = {
    {"latency", "one job, submit to wait",
     [](Measure& m, const std::string&) { return times(m.latency(30)); }},
    {"throughput", "jobs a second, 16 in flight",
     [](Measure& m, const std::string&) {
         const double jobs = m.throughput(300, 16);
         return Found{format("%.0f jobs/s", jobs), {{"jobs_per_second", jobs}}};
     }},
    {"cmd-chain-latency", "one job of 100 packets",
     [](Measure& m, const std::string&) { return times(m.chain_latency(100, 10)); }},
    {"cmd-chain-throughput", "packets a second, 1000 in a job",
     [](Measure& m, const std::string&) {
         const double packets = 1000 / (m.chain_latency(1000, 5).median / 1e9);
         return Found{format("%.0f packets/s", packets), {{"packets_per_second", packets}}};
     }},
    {"irq", "completion to wake-up",
     [](Measure& m, const std::string&) { return times(m.wakeup(20)); }},
    {"df-bw", "DMA between host and local memory",
     [](Measure& m, const std::string&) {
         return rate(m.copy_rate(Place::kHost, Place::kLocal, 4 << 20, 2, 3));
     }},
    {"gemm", "f32 matmul of 256, and its result",
     [](Measure& m, const std::string&) {
         const Spread spread = m.gemm_rate(256, 3);
         return Found{format("%.2f GMAC/s", spread.median / 1e9),
                      {{"macs_per_second", spread.median}}};
     }},
    {"packets", "control packets",
     [](Measure&, const std::string& spec) { return stage(spec, "packets"); }},
    {"faults", "what fails is named, the rest goes on",
     [](Measure&, const std::string& spec) { return stage(spec, "faults"); }},
    {"operators", "each operator against its formula",
     [](Measure&, const std::string& spec) { return stage(spec, "operators"); }},
};

const Check& find_check(const std::string& name) {
    std::string names;
    for (const Check& check : kChecks) {
        if (name == check.name) return check;
        names += std::string(" ") + check.name;
    }
    throw Failure(kUsage, "no test is called '" + name + "'; there are:" + names);
}

int list() {
    Table table({"test", "proves"});
    for (const Check& check : kChecks) table.add({check.name, check.proves});
    table.print();
    return kOk;
}

int run(const Options& options) {
    if (options.list) return list();
    std::vector<const Check*> chosen;
    for (const std::string& name : options.tests) chosen.push_back(&find_check(name));
    if (chosen.empty())
        for (const Check& check : kChecks) chosen.push_back(&check);
    Measure measure(options.device);
    const std::string spec = measure.device().info().spec;
    nlohmann::ordered_json results = nlohmann::json::array();
    bool good = true;
    for (const Check* check : chosen) {
        const auto begin = std::chrono::steady_clock::now();
        bool passed = true;
        Found found;
        try {
            found = check->run(measure, options.device);
        } catch (const std::exception& error) {
            passed = good = false;
            found = {error.what(), {}};
        }
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        results.push_back({{"test", check->name},
                           {"passed", passed},
                           {"found", found.text},
                           {"values", found.values},
                           {"seconds", seconds}});
        if (options.json) continue;
        std::printf(
            "%s %-22s %5.2f s  %s\n",
            paint(passed ? Colour::kGood : Colour::kBad, passed ? "passed" : "FAILED").c_str(),
            check->name, seconds, found.text.c_str());
        std::fflush(stdout);
    }
    if (options.json)
        print_json("validate", {{"device", spec}, {"ok", good}, {"tests", results}});
    else
        std::printf("%s\n", good ? "the device is well" : "the device is NOT well");
    return good ? kOk : kCheckFailed;
}

}  // namespace

void add_validate(CLI::App& app, int* status) {
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("validate", "is the device well? A check of under 10 s");
    add_device_option(command, &options->device);
    command->add_option("-r,--run", options->tests, "only these tests");
    command->add_flag("-l,--list", options->list, "the tests");
    command->add_flag("--json", options->json, "as JSON");
    command->callback([options, status] { *status = run(*options); });
}

}  // namespace enpu::tools
