// SPDX-License-Identifier: MIT
// enpu doctor: from the PCI slot to the framework's plug-in, each step with what it means and the
// command that mends it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <enpu/enpu.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "doctor.h"
#include "lib/output.h"

namespace enpu::tools {
namespace {

void print_findings(const std::vector<Finding>& findings) {
    static constexpr Colour kColours[] = {Colour::kGood, Colour::kBad, Colour::kWarn, Colour::kDim};
    for (const Finding& finding : findings) {
        const std::string state = state_name(finding.state);
        std::printf(
            "%s%*s %-14s %s\n", paint(kColours[static_cast<int>(finding.state)], state).c_str(),
            static_cast<int>(5 - state.size()), "", finding.check.c_str(), finding.found.c_str());
        if (finding.state == State::kOk || finding.state == State::kSkipped) continue;
        std::printf("%21s%s\n", "", finding.means.c_str());
        if (!finding.mend.empty())
            std::printf("%21s%s %s\n", "", paint(Colour::kBold, "mend:").c_str(),
                        finding.mend.c_str());
    }
}

int run(const DoctorOptions& options, bool json) {
    const std::vector<Finding> findings = examine(options);
    nlohmann::ordered_json checks = nlohmann::json::array();
    int failed = 0;
    for (const Finding& finding : findings) {
        failed += finding.state == State::kFailed;
        checks.push_back({{"check", finding.check},
                          {"state", state_name(finding.state)},
                          {"found", finding.found},
                          {"means", finding.means},
                          {"mend", finding.mend}});
    }
    if (json) {
        print_json("doctor", {{"ok", failed == 0}, {"checks", checks}});
    } else {
        print_findings(findings);
        std::printf("%s\n", failed == 0 ? "all is well" : format("%d failed", failed).c_str());
    }
    return failed == 0 ? kOk : kCheckFailed;
}

}  // namespace

void add_doctor(CLI::App& app, int* status) {
    auto options = std::make_shared<DoctorOptions>();
    auto json = std::make_shared<bool>(false);
    CLI::App* command =
        app.add_subcommand("doctor", "why does it not work? From the PCI slot to the plug-in");
    command->add_flag("--json", *json, "as JSON");
    command->add_option("--root", options->root, "look at /sys, /proc and /dev below this folder")
        ->group("");
    command->callback([options, json, status] { *status = run(*options, *json); });
}

}  // namespace enpu::tools
