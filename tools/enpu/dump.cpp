// SPDX-License-Identifier: MIT
// enpu dump: a device coredump as a page that says what hung, where, with which packet, whose job,
// and what the page tables said.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "lib/dump_report.h"
#include "lib/failure.h"
#include "lib/output.h"
#include "lib/system.h"

namespace enpu::tools {
namespace {
namespace fs = std::filesystem;

struct Options {
    std::string file, save;
    bool json = false, keep = false;
};

// The dump that waits in the kernel; it is read whole, since a second read may find another one.
fs::path waiting_dump() {
    std::error_code code;
    for (const auto& entry : fs::directory_iterator("/sys/class/devcoredump", code)) {
        const fs::path file = entry.path() / "data";
        const auto driver = fs::read_symlink(entry.path() / "failing_device/driver", code);
        if (!code && driver.filename() == "enpu") return file;
    }
    throw Failure(kNoDevice,
                  "no dump of an NPU waits in /sys/class/devcoredump; the kernel drops one five "
                  "minutes after the event");
}

int run(const Options& options) {
    const bool waiting = options.file.empty();
    const fs::path file = waiting ? waiting_dump() : fs::path(options.file);
    const auto bytes = read_bytes(file);
    if (!bytes)
        throw Failure(fs::exists(file) ? kNoPermission : kNoDevice,
                      file.string() + " cannot be read");
    if (!options.save.empty()) {
        std::ofstream out(options.save, std::ios::binary);
        out << *bytes;
        if (!out.flush()) throw Failure(kUsage, options.save + " cannot be written");
    }
    const DeviceDump dump = DeviceDump::parse(*bytes);
    if (options.json)
        print_json("dump", report_json(dump));
    else
        std::fputs(report_text(dump).c_str(), stdout);
    if (waiting && !options.keep && !options.save.empty()) std::ofstream(file) << "1";
    return kOk;
}

}  // namespace

void add_dump(CLI::App& app, int* status) {
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("dump", "what a device coredump says");
    command->add_option("file", options->file,
                        "a saved dump; default: the one that waits in the kernel");
    command->add_option(
        "-s,--save", options->save,
        "keep its bytes in a file; the kernel's copy is then freed for the next one");
    command->add_flag("--keep", options->keep, "leave the kernel's copy where it is");
    command->add_flag("--json", options->json, "as JSON");
    command->callback([options, status] { *status = run(*options); });
}

}  // namespace enpu::tools
