// SPDX-License-Identifier: MIT
// The checks of `enpu doctor`.
#pragma once

#include <string>
#include <vector>

#include "lib/failure.h"

namespace enpu::tools {

enum class State { kOk, kFailed, kWarning, kSkipped };
const char* state_name(State state);

struct Finding {
    std::string check;
    State state = State::kOk;
    std::string found;  // what is there
    std::string means;  // why that matters; for what is not ok
    std::string mend;   // a command, or what to do
};

struct DoctorOptions {
    std::string root;  // before /sys, /proc and /dev; with one, no device is opened
};

// All checks, in order from the hardware up. One that cannot be made because an earlier one failed
// is skipped and says so.
std::vector<Finding> examine(const DoctorOptions& options);

}  // namespace enpu::tools
