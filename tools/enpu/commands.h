// SPDX-License-Identifier: MIT
// The subcommands, one file each. A new one is a file enpu/NAME.cpp with `void add_NAME(App&,
// int*)`, a line here and a line in the table of main.cpp.
#pragma once

#include <CLI/CLI.hpp>

namespace enpu::tools {

// Adds the subcommand to `app`. Its callback runs it and stores the exit status (enum Exit); a
// tools::Failure or enpu::Error may be thrown instead, main prints it.
using AddCommand = void (*)(CLI::App& app, int* status);

void add_bench(CLI::App& app, int* status);
void add_bringup(CLI::App& app, int* status);
void add_doctor(CLI::App& app, int* status);
void add_dump(CLI::App& app, int* status);
void add_fault(CLI::App& app, int* status);
void add_info(CLI::App& app, int* status);
void add_reg(CLI::App& app, int* status);
void add_replay(CLI::App& app, int* status);
void add_smi(CLI::App& app, int* status);
void add_top(CLI::App& app, int* status);
void add_trace(CLI::App& app, int* status);
void add_validate(CLI::App& app, int* status);

// The option that most commands have; `spec` stays "" (libenpu's default) when it is not given.
inline void add_device_option(CLI::App* command, std::string* spec) {
    command->add_option(
        "-d,--device", *spec,
        "npu, /dev/accel/accelN, or sim[:OPTIONS]; default: $ENPU_DEVICE, else npu");
}

}  // namespace enpu::tools
