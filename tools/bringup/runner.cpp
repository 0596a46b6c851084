// SPDX-License-Identifier: MIT
#include "runner.h"

#include <algorithm>
#include <chrono>
#include <enpu/enpu.hpp>

#include "bench.h"
#include "lib/failure.h"
#include "lib/output.h"
#include "lib/registers.h"

namespace enpu::bringup {
namespace {

bool wanted(const Stage& stage, const RunOptions& options) {
    return options.only.empty() ||
           std::find(options.only.begin(), options.only.end(), stage.name) != options.only.end();
}

// Registers of a failure: what is in use and not zero. A device that does not answer has none.
std::string evidence_of(tools::BareDevice& device) {
    std::string text;
    try {
        for (const tools::Register& reg : tools::registers_of(device, true)) {
            if (!reg.readable() || reg.name().rfind("CAP_", 0) == 0 ||
                reg.name().rfind("ERR_RECORD", 0) == 0)
                continue;
            const uint64_t value = device.read(reg);
            if (value == 0) continue;
            const std::string fields = tools::decode(reg, value);
            text += reg.name() + " = " + tools::hex(value) + (fields.empty() ? "" : "  " + fields) +
                    "\n";
        }
    } catch (const tools::Failure& failure) {
        text += failure.what();
    }
    return text;
}

// Runs one stage in one lane; whatever goes wrong in it is its result.
StageResult run_stage(const Stage& stage, const std::string& lane,
                      const std::function<void()>& steps,
                      const std::function<std::string()>& evidence) {
    StageResult result{stage.name, lane, Verdict::kPassed, "", "", stage.proves, stage.causes, 0};
    const auto begin = std::chrono::steady_clock::now();
    try {
        steps();
    } catch (const StageSkipped& skipped) {
        result.verdict = Verdict::kSkipped;
        result.reason = skipped.what();
    } catch (const std::exception& error) {
        result.verdict = Verdict::kFailed;
        result.reason = error.what();
        result.evidence = evidence();
    }
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
}

// The stages of a lane in order; `steps` gives what to run, or nothing with a reason.
using Choose = std::function<std::function<void()>(const Stage&, std::string* why_not)>;
std::vector<StageResult> run_lane(const std::string& lane, const RunOptions& options,
                                  const Choose& choose,
                                  const std::function<std::string()>& evidence) {
    std::vector<StageResult> results;
    std::string broken;
    for (const Stage& stage : stages()) {
        if (!wanted(stage, options)) continue;
        std::string why;
        const std::function<void()> steps = choose(stage, &why);
        if (!broken.empty() && !options.keep_going) why = "stage '" + broken + "' failed";
        if (options.begins && why.empty()) options.begins(stage, lane);
        if (why.empty())
            results.push_back(run_stage(stage, lane, steps, evidence));
        else
            results.push_back(
                {stage.name, lane, Verdict::kSkipped, why, "", stage.proves, stage.causes, 0});
        if (options.ended) options.ended(results.back());
        if (results.back().verdict == Verdict::kFailed && broken.empty()) broken = stage.name;
    }
    return results;
}

}  // namespace

const char* verdict_name(Verdict verdict) {
    static constexpr const char* kNames[] = {"passed", "failed", "skipped"};
    return kNames[static_cast<int>(verdict)];
}

std::vector<StageResult> run_bare(tools::BareDevice& device, const RunOptions& options) {
    Bench bench(device, options.wait_ms);
    const Choose choose = [&](const Stage& stage, std::string*) {
        return [&bench, &stage] {
            if (stage.bare) stage.bare(bench);
            if (stage.jobs) stage.jobs(*bare_machine(bench));
        };
    };
    return run_lane("bare", options, choose, [&] { return evidence_of(device); });
}

std::vector<StageResult> run_driver(Machine& machine, const RunOptions& options,
                                    const std::string& why_not_bare) {
    const Choose choose = [&](const Stage& stage, std::string* why) {
        if (!stage.jobs) *why = why_not_bare.empty() ? "it looks below the driver" : why_not_bare;
        return [&machine, &stage] { stage.jobs(machine); };
    };
    return run_lane("driver", options, choose, [] { return std::string(); });
}

std::vector<StageResult> skip_all(const std::string& lane, const RunOptions& options,
                                  const std::string& why) {
    const Choose choose = [&](const Stage&, std::string* out) {
        *out = why;
        return std::function<void()>();
    };
    return run_lane(lane, options, choose, [] { return std::string(); });
}

bool failed(const std::vector<StageResult>& results) {
    return std::any_of(results.begin(), results.end(),
                       [](const StageResult& r) { return r.verdict == Verdict::kFailed; });
}

}  // namespace enpu::bringup
