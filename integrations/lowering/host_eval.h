// SPDX-License-Identifier: MIT
// Operators computed on the host while a graph is compiled: shape arithmetic, and constants.
#ifndef ENPU_LOWERING_HOST_EVAL_H
#define ENPU_LOWERING_HOST_EVAL_H

#include "graph.h"

namespace enpu::lowering {

// Larger results are left to the device.
constexpr int64_t kMaxHostElements = 1 << 16;

// Shape is not one of them: it needs dims only.
bool host_evaluable(const std::string& op);

// One result an output, or none at all when a result would be too large. An input left out is NULL.
std::vector<HostTensorPtr> host_evaluate(const Node& node,
                                         const std::vector<HostTensorPtr>& inputs);

}  // namespace enpu::lowering
#endif
