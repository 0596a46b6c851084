// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace enpu::fuzz {

// Writes what fuzzing of the lowering starts from into a folder, a file a graph.
void save_graphs(const std::string& folder);

}  // namespace enpu::fuzz
