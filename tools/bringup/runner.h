// SPDX-License-Identifier: MIT
// Runs the stages in order and tells what came of them.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lib/bare_device.h"
#include "machine.h"
#include "stage.h"

namespace enpu::bringup {

enum class Verdict { kPassed, kFailed, kSkipped };
const char* verdict_name(Verdict verdict);

struct StageResult {
    std::string stage;
    std::string lane;  // "bare" or "driver"
    Verdict verdict = Verdict::kPassed;
    std::string reason;    // the step that failed, or why it was skipped
    std::string evidence;  // registers at the failure, a line each
    std::string proves, causes;
    double seconds = 0;
};

struct RunOptions {
    std::vector<std::string> only;  // names of stages; empty: all
    bool keep_going = false;        // after a failure too
    unsigned wait_ms = 10'000;      // bound of each wait for a bare device
    // Called when a stage begins and when it has ended.
    std::function<void(const Stage&, const std::string& lane)> begins;
    std::function<void(const StageResult&)> ended;
};

// Below any driver. Jobs stages run on the bench's own rings.
std::vector<StageResult> run_bare(tools::BareDevice& device, const RunOptions& options);
// Through a driver: the stages of jobs; those of registers are skipped with `why_not_bare`, unless
// that is empty.
std::vector<StageResult> run_driver(Machine& machine, const RunOptions& options,
                                    const std::string& why_not_bare);
// Every stage skipped in a lane for one reason.
std::vector<StageResult> skip_all(const std::string& lane, const RunOptions& options,
                                  const std::string& why);

bool failed(const std::vector<StageResult>& results);
nlohmann::ordered_json results_json(const std::string& device,
                                    const std::vector<StageResult>& results);
std::string results_tap(const std::vector<StageResult>& results);
std::string results_junit(const std::vector<StageResult>& results);
std::string results_html(const std::string& device, const std::vector<StageResult>& results);

}  // namespace enpu::bringup
