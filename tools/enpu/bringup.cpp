// SPDX-License-Identifier: MIT
// enpu bringup: the harness, from the register BAR to a whole model.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <enpu/enpu.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bringup/runner.h"
#include "commands.h"
#include "lib/failure.h"
#include "lib/output.h"

namespace enpu::tools {
namespace {

using bringup::StageResult;
using bringup::Verdict;

struct Options {
    std::string device, lane, tap, junit, html, json_file, kernel;
    bringup::RunOptions run;
    bool json = false, list = false, quiet = false, no_results = false;
};

constexpr const char* kDriverHolds =
    "the kernel module holds the device; unbind it and use vfio:ADDRESS";

int list() {
    Table table({"stage", "bare", "driver", "proves"});
    for (const bringup::Stage& stage : bringup::stages())
        table.add({stage.name, "yes", stage.jobs ? "yes" : "no", stage.proves});
    table.print();
    return kOk;
}

void show(const StageResult& result) {
    static constexpr Colour kColours[] = {Colour::kGood, Colour::kBad, Colour::kDim};
    std::printf("%s %-11s %-7s %6.2f s  %s\n",
                paint(kColours[static_cast<int>(result.verdict)],
                      format("%-7s", bringup::verdict_name(result.verdict)))
                    .c_str(),
                result.stage.c_str(), result.lane.c_str(), result.seconds,
                result.verdict == Verdict::kPassed ? result.proves.c_str() : result.reason.c_str());
    if (result.verdict == Verdict::kFailed) {
        std::printf("        likely: %s\n", result.causes.c_str());
        if (!result.evidence.empty()) std::printf("%s", result.evidence.c_str());
    }
    std::fflush(stdout);
}

// Where the results of the last run are kept: $ENPU_RESULTS, or results/ beside bin/ of a build tree.
std::string results_file() {
    namespace fs = std::filesystem;
    const char* environment = std::getenv("ENPU_RESULTS");
    if (environment && *environment) return fs::path(environment) / "bringup.json";
    std::error_code code;
    const fs::path build = fs::read_symlink("/proc/self/exe", code).parent_path().parent_path();
    if (code || !fs::exists(build / "CMakeCache.txt", code)) return "";
    fs::create_directories(build / "results", code);
    return build / "results" / "bringup.json";
}

void write_file(const std::string& name, const std::string& text) {
    if (name.empty()) return;
    std::ofstream out(name);
    out << text;
    if (!out.flush()) throw Failure(kUsage, name + " cannot be written");
}

bool is_sim(const std::string& spec) {
    return spec == "sim" || spec.rfind("sim:", 0) == 0;
}

// A function in the hands of vfio-pci.
bool is_vfio(const std::string& spec) {
    return spec.rfind("vfio:", 0) == 0;
}

std::unique_ptr<BareDevice> open_bare(const std::string& spec) {
    return is_vfio(spec) ? open_vfio(spec.substr(5))
                         : open_model(spec == "sim" ? "" : spec.substr(4));
}

std::vector<StageResult> run_stages(const Options& options, const std::string& spec) {
    std::vector<StageResult> all;
    const std::string& lane = options.lane;
    auto append = [&](std::vector<StageResult> results) {
        all.insert(all.end(), results.begin(), results.end());
    };
    if (is_vfio(spec) && lane == "driver")
        throw Failure(kUsage, spec + " has no driver: its lane is 'bare'");
    if ((is_sim(spec) || is_vfio(spec)) && lane != "driver") {
        const auto device = open_bare(spec);
        append(bringup::run_bare(*device, options.run));
        if (bringup::failed(all) && !options.run.keep_going) {
            if (lane.empty())
                append(bringup::skip_all("driver", options.run, "the device below it failed"));
            return all;
        }
    } else if (lane == "bare") {
        throw Failure(kUnsupported, std::string("bare stages on ") + spec + ": " + kDriverHolds);
    }
    if (lane == "bare" || is_vfio(spec)) {
        if (lane.empty())
            append(bringup::skip_all("driver", options.run, "vfio-pci holds the device"));
        return all;
    }
    const auto machine = bringup::driver_machine(spec);
    append(bringup::run_driver(*machine, options.run, is_sim(spec) ? "it ran bare" : kDriverHolds));
    return all;
}

// The harness in a guest that boots another kernel: the work of a script of the checkout.
[[noreturn]] void run_on_kernel(const Options& options) {
    namespace fs = std::filesystem;
    const fs::path script =
        fs::read_symlink("/proc/self/exe").parent_path() / "../../scripts/bringup";
    if (!fs::exists(script))
        throw Failure(kUnsupported,
                      "--kernel builds the module and boots a guest: it needs a checkout, and this "
                      "program is not in its build/bin");
    std::vector<std::string> words = {script, options.kernel};
    for (const std::string& stage : options.run.only) words.insert(words.end(), {"-s", stage});
    if (options.run.keep_going) words.push_back("-k");
    if (options.json) words.push_back("--json");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    throw Failure(kInternal, script.string() + ": " + std::strerror(errno));
}

int run(Options& options) {
    if (options.list) return list();
    for (const std::string& name : options.run.only) {
        bool known = false;
        for (const auto& stage : bringup::stages()) known |= name == stage.name;
        if (!known) throw Failure(kUsage, "no stage is called '" + name + "'; --list shows them");
    }
    if (!options.kernel.empty()) run_on_kernel(options);
    const char* environment = std::getenv("ENPU_DEVICE");
    const std::string spec = !options.device.empty()       ? options.device
                             : environment && *environment ? environment
                                                           : "npu";
    if (!options.json && !options.quiet) options.run.ended = show;
    const std::vector<StageResult> results = run_stages(options, spec);
    write_file(options.tap, bringup::results_tap(results));
    write_file(options.junit, bringup::results_junit(results));
    write_file(options.html, bringup::results_html(spec, results));
    const std::string document = bringup::results_json(spec, results).dump(1) + "\n";
    write_file(options.json_file, document);
    if (!options.no_results) write_file(results_file(), document);
    if (options.json) print_json("bringup", bringup::results_json(spec, results));
    return bringup::failed(results) ? kCheckFailed : kOk;
}

}  // namespace

void add_bringup(CLI::App& app, int* status) {
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand(
        "bringup", "the harness: from the first register to a whole model; stops where it breaks");
    command->add_option(
        "-d,--device", options->device,
        "npu, /dev/accel/accelN, sim[:OPTIONS], or vfio:ADDRESS (below any driver); "
        "default: $ENPU_DEVICE, else npu");
    command->add_option("-s,--stage", options->run.only, "only these stages");
    command->add_option("--lane", options->lane, "only 'bare' (below a driver) or 'driver'")
        ->check(CLI::IsMember({"bare", "driver"}));
    command->add_option("--kernel", options->kernel,
                        "through the module in a guest with the kernel in this folder (vmlinux, "
                        "release, lib/modules, headers)");
    command->add_flag("-k,--keep-going", options->run.keep_going, "after a failure too");
    command->add_flag("-l,--list", options->list, "the stages and what they prove");
    command->add_flag("--json", options->json, "as JSON on stdout");
    command->add_flag("-q,--quiet", options->quiet, "no lines on stdout");
    command->add_option("--tap", options->tap, "write TAP to a file");
    command->add_option("--junit", options->junit, "write JUnit XML to a file");
    command->add_option("--html", options->html, "write a report page to a file");
    command->add_option("--output", options->json_file, "write JSON to a file");
    command->add_flag("--no-results", options->no_results,
                      "leave build/results/bringup.json, the last run's results, as it is");
    command->callback([options, status] { *status = run(*options); });
}

}  // namespace enpu::tools
