// SPDX-License-Identifier: MIT
// enpu trace record -- PROGRAM: runtime, ioctls, scheduler, fences, engines and interrupts on one
// clock, as a Perfetto file and as a page.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <enpu/enpu.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.h"
#include "lib/failure.h"
#include "lib/output.h"
#include "lib/sampler.h"
#include "lib/system.h"
#include "trace/timeline.h"

namespace enpu::tools {
namespace {
namespace fs = std::filesystem;

struct Options {
    std::string output = "trace.pftrace", page;
    std::vector<std::string> program;
};

constexpr int kCannotRun = 127;

// Runs the program to its end, with the runtime's recorder in front of it when that is there; its
// exit status.
int run_program(const Options& options, const std::string& runtime_file) {
    std::error_code code;
    // Beside the program in a build, in the folder of libraries where it is installed.
    const fs::path prefix = fs::read_symlink("/proc/self/exe", code).parent_path() / "..";
    fs::path preload = prefix / "lib/libenpu-trace-preload.so";
    if (!fs::exists(preload, code)) preload = prefix / ENPU_LIBDIR "/enpu/libenpu-trace-preload.so";
    std::vector<char*> arguments;
    for (const std::string& word : options.program)
        arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const pid_t child = fork();
    if (child < 0) throw Failure(kInternal, std::string("fork: ") + std::strerror(errno));
    if (child == 0) {
        if (fs::exists(preload, code)) {
            // Behind what the user has the program start with.
            const char* before = std::getenv("LD_PRELOAD");
            const std::string all =
                before && *before ? before + (":" + preload.string()) : preload.string();
            setenv("LD_PRELOAD", all.c_str(), 1);
            setenv("ENPU_TRACE_RUNTIME", runtime_file.c_str(), 1);
        }
        execvp(arguments[0], arguments.data());
        std::fprintf(stderr, "enpu: %s: %s\n", arguments[0], std::strerror(errno));
        _exit(kCannotRun);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            throw Failure(kInternal, std::string("waitpid: ") + std::strerror(errno));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void save(const std::string& name, const std::string& bytes) {
    std::ofstream out(name, std::ios::binary);
    out << bytes;
    if (!out.flush()) throw Failure(kUsage, name + " cannot be written");
}

// Of the first device; which engine copies is not in the events.
std::optional<uint32_t> compute_engines() {
    const System system;
    const std::vector<PciDevice> devices = system.npus();
    if (devices.empty() || devices[0].node.empty()) return std::nullopt;
    try {
        return Sampler(system, devices[0]).engines().compute;
    } catch (const Error&) {
        return std::nullopt;  // it cannot be asked any more; the trace stands without
    }
}

int record(const Options& options) {
    save(options.output, "");  // before the program has run for nothing
    const std::string runtime_file = options.output + ".runtime";
    KernelRecorder kernel;
    std::string why;
    const bool traced = kernel.start(&why);
    if (!traced) std::fprintf(stderr, "enpu: no events of the kernel: %s\n", why.c_str());
    for (const std::string& missing : kernel.missing())
        std::fprintf(stderr, "enpu: this kernel has no events %s\n", missing.c_str());
    const int status = run_program(options, runtime_file);
    const std::vector<KernelEvent> events = kernel.stop();
    const std::string runtime = read_bytes(runtime_file).value_or("");
    std::error_code code;
    fs::remove(runtime_file, code);
    if (status == kCannotRun && events.empty() && runtime.empty()) return kUsage;
    // A Perfetto trace is a list of packets: one behind the other is one trace.
    const std::string trace =
        runtime + (traced ? perfetto_trace(events, compute_engines()) : std::string());
    save(options.output, trace);
    if (!options.page.empty())
        save(options.page,
             timeline_page("enpu trace of " + options.program[0], analyse(read_trace(trace))));
    size_t jobs = 0;
    for (const auto& [engine, spans] : job_spans(events)) jobs += spans.size();
    std::fprintf(
        stderr, "enpu: %s: %zu events of the kernel, %zu jobs, %zu ioctls, %s of the runtime%s\n",
        options.output.c_str(), events.size(), jobs, ioctl_spans(events).size(),
        bytes_text(runtime.size()).c_str(),
        kernel.lost() ? format(", %llu events lost", (unsigned long long)kernel.lost()).c_str()
                      : "");
    if (!traced && runtime.empty())
        throw Failure(kUnsupported,
                      "nothing was recorded: neither kernel events nor a program of the runtime");
    return status;
}

struct ReportOptions {
    std::string file, page;
    bool json = false;
};

nlohmann::ordered_json rows_json(const std::vector<KernelRow>& rows) {
    auto out = nlohmann::ordered_json::array();
    for (const KernelRow& row : rows)
        out.push_back({{"name", row.name},
                       {"count", row.count},
                       {"total_ns", row.total_ns},
                       {"shortest_ns", row.shortest_ns},
                       {"longest_ns", row.longest_ns}});
    return out;
}

nlohmann::ordered_json report_json(const Analysis& analysis) {
    auto lanes = nlohmann::ordered_json::array(), series = lanes;
    for (const Lane& lane : analysis.lanes) {
        uint64_t waits[3] = {};
        for (const LaneGap& gap : lane.gaps)
            waits[static_cast<int>(gap.reason)] += gap.to_ns - gap.from_ns;
        lanes.push_back({{"name", lane.name}, {"spans", lane.slices.size()}, {"busy", lane.busy}});
        if (!lane.busy) continue;
        for (const Gap gap : {Gap::kHost, Gap::kCopy, Gap::kQueue})
            lanes.back()[std::string("waited_ns_") + gap_name(gap)] = waits[static_cast<int>(gap)];
    }
    for (const Series& one : analysis.series)
        series.push_back({{"name", one.name}, {"unit", one.unit}, {"samples", one.values.size()}});
    return {{"seconds", static_cast<double>(analysis.end_ns - analysis.begin_ns) / 1e9},
            {"lanes", lanes},
            {"kernels", rows_json(analysis.kernels)},
            {"calls", rows_json(analysis.calls)},
            {"series", series}};
}

int report(const ReportOptions& options) {
    const auto bytes = read_bytes(options.file);
    if (!bytes) throw Failure(kUsage, options.file + " cannot be read");
    const Analysis analysis = analyse(read_trace(*bytes));
    if (!options.page.empty()) save(options.page, timeline_page(options.file, analysis));
    if (options.json) {
        print_json("trace report", report_json(analysis));
    } else {
        Table table({"kernel or job", ">count", ">time", ">longest"});
        for (const KernelRow& row : analysis.kernels)
            table.add({row.name, std::to_string(row.count),
                       time_text(static_cast<double>(row.total_ns)),
                       time_text(static_cast<double>(row.longest_ns))});
        table.print();
    }
    return kOk;
}

void add_report(CLI::App& trace, int* status) {
    auto options = std::make_shared<ReportOptions>();
    CLI::App* command = trace.add_subcommand(
        "report", "what a recording says: kernels, gaps and why, memory; a page with -o");
    command->add_option("file", options->file, "what `trace record` wrote")->required();
    command->add_option("-o,--output", options->page, "page that needs no network");
    command->add_flag("--json", options->json, "as JSON on stdout");
    command->callback([options, status] { *status = report(*options); });
}

}  // namespace

void add_trace(CLI::App& app, int* status) {
    auto options = std::make_shared<Options>();
    CLI::App* trace = app.add_subcommand("trace", "one timeline from the runtime to the interrupt");
    trace->require_subcommand(1);
    add_report(*trace, status);
    CLI::App* command = trace->add_subcommand(
        "record", "run a program; needs root for the kernel's events. Its exit status comes back");
    command->add_option("-o,--output", options->output, "Perfetto file, for ui.perfetto.dev");
    command->add_option("--html", options->page, "also write a page that needs no network");
    command->add_option("program", options->program, "after --")->required();
    command->positionals_at_end();
    command->callback([options, status] { *status = record(*options); });
}

}  // namespace enpu::tools
