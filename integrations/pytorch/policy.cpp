// SPDX-License-Identifier: MIT
#include "policy.h"

#include <cstdlib>

#include "device.h"

namespace enpu::pytorch {
namespace {

const char* spec_of_fallback() {
    const char* spec = std::getenv("ENPU_TORCH_ON_FAILURE");
    return spec && *spec ? spec : nullptr;
}

}  // namespace

bool has_policy() {
    return spec_of_fallback() != nullptr;
}

void apply_policy(rt_device device) {
    if (!has_policy()) return;
    rt_policy policy{};
    policy.struct_size = sizeof(policy);
    policy.retries = 1;
    policy.fallbacks[0] = spec_of_fallback();
    policy.retain = 1;
    check(rt_device_set_policy(device, &policy), "ENPU_TORCH_ON_FAILURE");
}

rt_policy_report policy_report(rt_device device) {
    rt_policy_report report{};
    report.struct_size = sizeof(report);
    check(rt_device_policy_report(device, &report), "policy");
    return report;
}

}  // namespace enpu::pytorch
