// SPDX-License-Identifier: MIT
// enpu: one tool for what driver and device do. Only the table of subcommands is here.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <enpu/enpu.hpp>
#include <new>

#include "commands.h"
#include "lib/failure.h"

using namespace enpu::tools;

namespace {

constexpr AddCommand kCommands[] = {add_doctor,  add_info,  add_smi,      add_top,
                                    add_reg,     add_dump,  add_validate, add_bench,
                                    add_bringup, add_trace, add_replay,   add_fault};

constexpr const char* kFooter =
    "Exit status: 0 done, 1 a check failed, 2 usage, 3 no device, 4 no permission, 5 device lost,\n"
    "6 unsupported here. 'enpu COMMAND --help' says more; docs/tools.md shows each command.";

int complain(int status, const char* message) {
    std::fflush(stdout);
    std::fprintf(stderr, "enpu: %s\n", message);
    return status;
}

// Runs the command line: CLI11 calls the subcommand from parse().
int run(CLI::App& app, int argc, char** argv, int* status) {
    try {
        app.parse(argc, argv);
        return *status;
    } catch (const CLI::ParseError& error) {
        const int code = app.exit(error);
        return code == 0 ? kOk : kUsage;
    } catch (const Failure& failure) {
        return complain(failure.exit(), failure.what());
    } catch (const enpu::Error& error) {
        return complain(exit_of(error.code()), error.what());
    } catch (const std::bad_alloc&) {
        return complain(kInternal, "out of memory");
    } catch (const std::exception& error) {
        return complain(kInternal, error.what());
    }
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("enpu: see, check and bring up an NPU and its driver", "enpu");
    app.footer(kFooter);
    app.require_subcommand(1);
    app.set_version_flag("--version", ENPU_TOOLS_VERSION);
    int status = kOk;
    for (const AddCommand add : kCommands) add(app, &status);
    return run(app, argc, argv, &status);
}
