// SPDX-License-Identifier: MIT
#include "list.h"
#include "network.h"

namespace enpu::bringup {
namespace {

void jobs(Machine& machine) {
    machine.release();
    for (uint32_t engine = 0; engine < machine.compute_engines(); ++engine) {
        Network network(machine);
        network.input({1, 3, 12, 12}, 500);
        network.conv(8, 3, 1, 501);
        network.max_pool();
        network.flatten_matmul(10, 503);
        network.softmax();
        network.check("small graph", engine, 1e-4);
    }
    machine.release();
}

}  // namespace

const Stage kGraph = {
    "graph", "operators that feed each other in one job: results stay where they lie",
    "an operator that starts before the one in front of it has written", nullptr, jobs};

}  // namespace enpu::bringup
