// SPDX-License-Identifier: MIT
// enpu trace record -- PROGRAM: runtime, ioctls, scheduler, fences, engines and interrupts on one
// clock, as a Perfetto file and as a page.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "commands.h"
#include "lib/failure.h"
#include "lib/output.h"
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
    const fs::path preload =
        fs::read_symlink("/proc/self/exe", code).parent_path() / "../lib/libenpu-trace-preload.so";
    std::vector<char*> arguments;
    for (const std::string& word : options.program)
        arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const pid_t child = fork();
    if (child < 0) throw Failure(kInternal, std::string("fork: ") + std::strerror(errno));
    if (child == 0) {
        if (fs::exists(preload, code)) {
            setenv("LD_PRELOAD", preload.c_str(), 1);
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

int record(const Options& options) {
    save(options.output, "");  // before the program has run for nothing
    const std::string runtime_file = options.output + ".runtime";
    KernelRecorder kernel;
    std::string why;
    const bool traced = kernel.start(&why);
    if (!traced) std::fprintf(stderr, "enpu: no events of the kernel: %s\n", why.c_str());
    const int status = run_program(options, runtime_file);
    const std::vector<KernelEvent> events = kernel.stop();
    const std::string runtime = read_bytes(runtime_file).value_or("");
    std::error_code code;
    fs::remove(runtime_file, code);
    if (status == kCannotRun && events.empty() && runtime.empty()) return kUsage;
    // A Perfetto trace is a list of packets: one behind the other is one trace.
    save(options.output, runtime + (traced ? perfetto_trace(events) : ""));
    if (!options.page.empty())
        save(options.page, timeline_page("enpu trace of " + options.program[0], events));
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

}  // namespace

void add_trace(CLI::App& app, int* status) {
    auto options = std::make_shared<Options>();
    CLI::App* trace = app.add_subcommand("trace", "one timeline from the runtime to the interrupt");
    trace->require_subcommand(1);
    CLI::App* command = trace->add_subcommand(
        "record", "run a program; needs root for the kernel's events. Its exit status comes back");
    command->add_option("-o,--output", options->output, "Perfetto file, for ui.perfetto.dev");
    command->add_option("--html", options->page, "also write a page that needs no network");
    command->add_option("program", options->program, "after --")->required();
    command->positionals_at_end();
    command->callback([options, status] { *status = record(*options); });
}

}  // namespace enpu::tools
