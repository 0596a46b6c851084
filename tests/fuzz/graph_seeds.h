// SPDX-License-Identifier: MIT
// Sound graphs that fuzzing of the lowering starts from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "enpu_hal_ops.h"

namespace enpu::fuzz {

struct SeedTensor {
    std::vector<uint8_t> dims;
    uint8_t dtype = ENPU_OP_F32;
    std::vector<int64_t> integers = {};  // of I64
    std::vector<float> floats = {};      // of F32; neither: ones
};
struct SeedAttribute {
    const char* name;
    std::vector<int8_t> integers;         // one: a number, several: a list
    std::vector<float> floats = {};       // likewise
    std::vector<const char*> texts = {};  // likewise
    bool list = false;                    // of one
};
// Values are numbered: inputs, constants, then the outputs of each node. -1: left out.
struct SeedNode {
    const char* op;
    std::vector<int> inputs;
    std::vector<SeedAttribute> attributes = {};
    std::vector<uint8_t> outputs = {ENPU_OP_F32};  // types
    uint8_t opset = 0;
};
struct SeedGraph {
    std::string name;
    std::vector<SeedTensor> inputs, constants;
    std::vector<SeedNode> nodes;
};

// In graph_cases.cpp: one node each, and groups of nodes that the passes know.
std::vector<SeedGraph> seed_graphs();

// Writes them, and each operator with plain operands, into a folder, a file a graph.
void save_graphs(const std::string& folder);

}  // namespace enpu::fuzz
