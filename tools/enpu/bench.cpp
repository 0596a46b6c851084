// SPDX-License-Identifier: MIT
// enpu bench: launch latency, copies and matmul. Copies are queued behind a gate on the device and
// timed by its clock, so that what the host does meanwhile is not in the figure.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "lib/failure.h"
#include "lib/measure.h"
#include "lib/output.h"

namespace enpu::tools {
namespace {

struct Options {
    std::string device;
    uint64_t bytes = 8 << 20;
    unsigned samples = 5;
    bool json = false, csv = false;
};

struct Row {
    std::string name, unit;
    Spread spread;
    double scale;
};

std::vector<Row> measure_all(Measure& m, const Options& options) {
    const unsigned n = options.samples;
    const uint64_t bytes = options.bytes;
    std::vector<Row> rows = {
        {"launch latency", "us", m.latency(10 * n), 1e-3},
        {"job of 100 packets", "us", m.chain_latency(100, 2 * n), 1e-3},
        {"completion to wake-up", "us", m.wakeup(4 * n), 1e-3},
    };
    const double jobs = m.throughput(100 * n, 32);
    rows.push_back({"jobs of one packet", "1/s", {jobs, jobs, jobs, 1}, 1});
    using P = Place;
    const struct {
        const char* name;
        Place from, to;
    } copies[] = {{"host to local", P::kHost, P::kLocal},
                  {"local to host", P::kLocal, P::kHost},
                  {"local to local", P::kLocal, P::kLocal},
                  {"host to host", P::kHost, P::kHost}};
    for (const auto& copy : copies)
        rows.push_back({std::string("copy ") + copy.name, "MB/s",
                        m.copy_rate(copy.from, copy.to, bytes, 2, n), 1e-6});
    if (m.device().info().copy_engines > 1)
        rows.push_back({"copy both ways", "MB/s", m.duplex_rate(bytes, n), 1e-6});
    for (const uint32_t size : {64u, 128u, 256u, 512u})
        rows.push_back({format("matmul f32 %u", size), "GMAC/s", m.gemm_rate(size, n), 1e-9});
    return rows;
}

int run(const Options& options) {
    Measure measure(options.device);
    const std::vector<Row> rows = measure_all(measure, options);
    nlohmann::ordered_json results = nlohmann::json::array();
    Table table({"measurement", ">median", ">lowest", ">highest", "unit", ">samples"});
    if (options.csv) std::printf("measurement,unit,median,lowest,highest,samples\n");
    for (const Row& row : rows) {
        const double median = row.spread.median * row.scale, low = row.spread.lowest * row.scale,
                     high = row.spread.highest * row.scale;
        table.add({row.name, format("%.2f", median), format("%.2f", low), format("%.2f", high),
                   row.unit, std::to_string(row.spread.samples)});
        results.push_back({{"name", row.name},
                           {"unit", row.unit},
                           {"median", median},
                           {"lowest", low},
                           {"highest", high},
                           {"samples", row.spread.samples}});
        if (options.csv)
            std::printf("%s,%s,%.6g,%.6g,%.6g,%u\n", csv(row.name).c_str(), row.unit.c_str(),
                        median, low, high, row.spread.samples);
    }
    if (options.json)
        print_json("bench", {{"device", measure.device().info().spec},
                             {"copy_bytes", options.bytes},
                             {"results", results}});
    else if (!options.csv)
        table.print();
    return kOk;
}

}  // namespace

void add_bench(CLI::App& app, int* status) {
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("bench", "latency, copies and matmul in figures");
    add_device_option(command, &options->device);
    command->add_option("-b,--bytes", options->bytes, "of a copy")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(uint64_t{64}, uint64_t{1} << 30));
    command->add_option("-n,--samples", options->samples, "of each figure; the median counts")
        ->check(CLI::Range(3, 1000));
    auto* json = command->add_flag("--json", options->json, "as JSON");
    command->add_flag("--csv", options->csv, "as CSV")->excludes(json);
    command->callback([options, status] { *status = run(*options); });
}

}  // namespace enpu::tools
