// SPDX-License-Identifier: MIT
// device-bench WHAT [--device SPEC] [--runs N] [--quick] [--no-peer] [--only NAME]: measures the device through libenpu,
// beside a peer in the same process where there is one. Results go to stdout as JSON.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "stand.h"

int main(int argc, char** argv) {
    using namespace enpu::bench;
    const std::map<std::string, std::vector<Result> (*)(const Options&)> parts = {
        {"copies", bench_copies},     {"operators", bench_operators}, {"cores", bench_cores},
        {"fairness", bench_fairness}, {"growth", bench_growth},       {"idle", bench_idle}};
    Options options;
    bool no_peer = false;
    CLI::App app("measures the device through libenpu");
    std::vector<std::string> names;
    for (const auto& [name, part] : parts) names.push_back(name);
    app.add_option("what", options.what, "what is measured")
        ->required()
        ->check(CLI::IsMember(names));
    app.add_option("--device", options.device, "device spec of libenpu");
    app.add_option("--runs", options.runs, "samples of each figure")->check(CLI::Range(3, 1000));
    app.add_flag("--quick", options.quick, "fewer sizes");
    app.add_option("--only", options.only, "operators whose names hold this");
    app.add_flag("--no-peer", no_peer, "the device alone");
    CLI11_PARSE(app, argc, argv);
    options.peer = !no_peer;
    try {
        print(parts.at(options.what)(options));
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "device-bench %s: %s\n", options.what.c_str(), error.what());
        return 1;
    }
}
