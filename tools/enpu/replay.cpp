// SPDX-License-Identifier: MIT
// enpu replay: records the jobs of a program with what they read and wrote, runs them again on a
// device, the simulator or another build, and finds the first packet whose output differs.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "lib/failure.h"
#include "lib/output.h"
#include "replay/replayer.h"

namespace enpu::tools {
namespace {

struct RecordOptions {
    std::string output = "enpu.rec";
    std::vector<std::string> program;
};
struct CheckOptions {
    std::string file, device;
    ReplayOptions replay;
    bool json = false;
};

int record(const RecordOptions& options) {
    std::vector<char*> arguments;
    for (const std::string& word : options.program)
        arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    unlink(options.output.c_str());
    const pid_t child = fork();
    if (child < 0) throw Failure(kInternal, std::string("fork: ") + std::strerror(errno));
    if (child == 0) {
        setenv("ENPU_RECORD", options.output.c_str(), 1);
        execvp(arguments[0], arguments.data());
        std::fprintf(stderr, "enpu: %s: %s\n", arguments[0], std::strerror(errno));
        _exit(127);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            throw Failure(kInternal, std::string("waitpid: ") + std::strerror(errno));
    }
    if (access(options.output.c_str(), R_OK) != 0)
        std::fprintf(stderr,
                     "enpu: nothing was recorded: the program opened no device by libenpu\n");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<std::byte> load(const std::string& name) {
    std::ifstream file(name, std::ios::binary | std::ios::ate);
    if (!file) throw Failure(kUsage, name + " cannot be read");
    std::vector<std::byte> bytes(static_cast<size_t>(file.tellg()));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file) throw Failure(kUsage, name + " cannot be read");
    return bytes;
}

void show(const Difference& difference) {
    std::printf("job %zu (id %s) on engine %u: ", difference.job, hex(difference.job_id).c_str(),
                difference.engine);
    if (difference.failed) {
        std::printf("%s\n", difference.what.c_str());
    } else if (difference.found_again) {
        const std::string operand =
            difference.operand.empty() ? "" : ", operand '" + difference.operand + "'";
        std::printf("packet +%s, %s%s: %s\n", hex(difference.packet).c_str(),
                    difference.opcode.c_str(), operand.c_str(), difference.what.c_str());
    } else {
        std::printf("%s; run again in parts it did not differ: it comes and goes\n",
                    difference.what.c_str());
    }
}

nlohmann::ordered_json to_json(const Recording& recording, const ReplayResult& result) {
    auto differences = nlohmann::ordered_json::array();
    for (const Difference& one : result.differences)
        differences.push_back({{"job", one.job},
                               {"job_id", one.job_id},
                               {"engine", one.engine},
                               {"failed", one.failed},
                               {"found_again", one.found_again},
                               {"packet", one.packet},
                               {"opcode", one.opcode},
                               {"operand", one.operand},
                               {"va", one.va},
                               {"bytes", one.bytes},
                               {"bytes_of", one.bytes_of},
                               {"what", one.what}});
    return {{"ok", result.differences.empty()},
            {"jobs", result.jobs},
            {"jobs_recorded", recording.jobs.size()},
            {"recording_stopped", recording.stopped},
            {"packets", result.packets},
            {"bytes", result.bytes},
            {"differences", differences}};
}

int check(CheckOptions& options) {
    const Recording recording = read_recording(load(options.file));
    const char* environment = std::getenv("ENPU_DEVICE");
    const std::string spec = !options.device.empty()       ? options.device
                             : environment && *environment ? environment
                                                           : "npu";
    if (!recording.stopped.empty())
        std::fprintf(stderr, "enpu: the recording ends early: %s\n", recording.stopped.c_str());
    const auto device = open_below(spec);
    const ReplayResult result = replay(recording, *device, options.replay);
    if (options.json) {
        print_json("replay", to_json(recording, result));
    } else {
        for (const Difference& difference : result.differences) show(difference);
        std::printf("%zu of %zu jobs, %zu packets, %s of outputs compared: %s\n", result.jobs,
                    recording.jobs.size(), result.packets, bytes_text(result.bytes).c_str(),
                    result.differences.empty() ? "all the same" : "they differ");
    }
    return result.differences.empty() ? kOk : kCheckFailed;
}

}  // namespace

void add_replay(CLI::App& app, int* status) {
    CLI::App* replay =
        app.add_subcommand("replay", "record a program's jobs; run them again and compare");
    replay->require_subcommand(1);
    auto recorded = std::make_shared<RecordOptions>();
    CLI::App* record_command = replay->add_subcommand(
        "record", "run a program and record what its jobs read and wrote; it runs slower");
    record_command->add_option("-o,--output", recorded->output, "file of the recording");
    record_command->add_option("program", recorded->program, "after --")->required();
    record_command->positionals_at_end();
    record_command->callback([recorded, status] { *status = record(*recorded); });
    auto checked = std::make_shared<CheckOptions>();
    CLI::App* check_command = replay->add_subcommand(
        "check", "run a recording; names the first packet whose output differs");
    add_device_option(check_command, &checked->device);
    check_command->add_option("file", checked->file, "what `replay record` wrote")->required();
    check_command->add_flag("-k,--keep-going", checked->replay.keep_going,
                            "check every job; each begins with what was recorded");
    check_command->add_flag("--json", checked->json, "as JSON on stdout");
    check_command->callback([checked, status] { *status = check(*checked); });
}

}  // namespace enpu::tools
