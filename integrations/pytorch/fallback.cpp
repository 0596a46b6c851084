// SPDX-License-Identifier: MIT
#include "fallback.h"

#include <ATen/ATen.h>
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <cstdlib>
#include <mutex>

namespace enpu::pytorch {
namespace {

Fallback parse(const std::string& mode) {
    if (mode == "allow") return Fallback::kAllow;
    if (mode == "warn") return Fallback::kWarn;
    TORCH_CHECK_VALUE(mode == "forbid", "enpu: fallback is 'allow', 'warn' or 'forbid', not '",
                      mode, "'");
    return Fallback::kForbid;
}

struct State {
    std::mutex lock;
    std::map<std::string, uint64_t> counts;
    Fallback mode;

    State() {
        const char* given = std::getenv("ENPU_TORCH_FALLBACK");
        mode = parse(given && *given ? given : "warn");
    }
};

State& state() {
    static auto* made = new State;
    return *made;
}

// Counts a call; whether it is the first of its operator.
bool count(const std::string& name, Fallback& mode) {
    const std::lock_guard guard(state().lock);
    mode = state().mode;
    return mode != Fallback::kForbid && ++state().counts[name] == 1;
}

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const std::string name = c10::toString(op.operator_name());
    Fallback mode = Fallback::kForbid;
    const bool first = count(name, mode);
    TORCH_CHECK_NOT_IMPLEMENTED(mode != Fallback::kForbid, "enpu: ", name,
                                " has no kernel on the NPU, and running it on the CPU is forbidden "
                                "(ENPU_TORCH_FALLBACK, torch.enpu.set_fallback)");
    if (first && mode == Fallback::kWarn)
        TORCH_WARN("enpu: ", name, " has no kernel on the NPU and runs on the CPU");
    at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
    m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

}  // namespace

void set_fallback(const std::string& mode) {
    const Fallback parsed = parse(mode);
    const std::lock_guard guard(state().lock);
    state().mode = parsed;
}

std::string fallback_mode() {
    const std::lock_guard guard(state().lock);
    switch (state().mode) {
        case Fallback::kAllow:
            return "allow";
        case Fallback::kWarn:
            return "warn";
        default:
            return "forbid";
    }
}

std::map<std::string, uint64_t> fallback_counts() {
    const std::lock_guard guard(state().lock);
    return state().counts;
}

void reset_fallback_counts() {
    const std::lock_guard guard(state().lock);
    state().counts.clear();
}

}  // namespace enpu::pytorch
