// SPDX-License-Identifier: MIT
// Graphs as bytes: what a framework's context cache keeps, weights included. Not for exchange:
// another version of the library refuses it.
#ifndef ENPU_LOWERING_GRAPH_FILE_H
#define ENPU_LOWERING_GRAPH_FILE_H

#include "graph.h"

namespace enpu::lowering {

std::string save_graph(const Graph& graph);
// Throws Error for bytes that save_graph of this version did not write: cut off, changed, foreign.
Graph load_graph(const std::string& bytes);
// Makes the checksum right again, for tests of what it would hide.
void seal_graph(std::string& bytes);

}  // namespace enpu::lowering
#endif
