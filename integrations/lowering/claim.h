// SPDX-License-Identifier: MIT
// Which nodes of a graph can be lowered, and into which subgraphs they go.
#ifndef ENPU_LOWERING_CLAIM_H
#define ENPU_LOWERING_CLAIM_H

#include <functional>

#include "emitter.h"

namespace enpu::lowering {

// Asks the device about one kernel; empty when it takes it, else why not. May be empty itself.
using KernelCheck = std::function<std::string(const Kernel&)>;

struct Claim {
    std::vector<std::string> reasons;  // one a node; empty: it can be lowered
    std::vector<int> groups;           // one a node: subgraph, from 0; -1 for one that is left out
    int group_count = 0;
};

// Groups are as large as they can be without a path that leaves a group and comes back into it.
// Constants of `graph` may have dims without data, save those of one element and shape operands.
Claim claim(const Graph& graph, const KernelCheck& check);

// The inputs whose values must be known while compiling: they become part of what a program is
// compiled for.
std::vector<bool> host_inputs(const Graph& graph);

}  // namespace enpu::lowering
#endif
