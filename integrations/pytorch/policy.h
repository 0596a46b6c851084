// SPDX-License-Identifier: MIT
// What happens when an operation fails on the device, or the device disappears.
#ifndef ENPU_PYTORCH_POLICY_H
#define ENPU_PYTORCH_POLICY_H

#include "rt.h"

namespace enpu::pytorch {

// With ENPU_TORCH_ON_FAILURE=SPEC a failed operation is tried again, then runs on that device of the
// runtime, which also takes over when the device is lost. Each operation is waited for then. Without
// the variable nothing is repaired. Before memory is allocated or streams are made; throws c10::Error.
void apply_policy(rt_device device);

// Whether a policy is in force.
bool has_policy();
rt_policy_report policy_report(rt_device device);

}  // namespace enpu::pytorch
#endif
