// SPDX-License-Identifier: MIT
#include "list.h"
#include "network.h"

namespace enpu::bringup {
namespace {

// A residual network with fixed weights, a batch of two pictures, each run twice.
void jobs(Machine& machine) {
    for (unsigned round = 0; round < 2; ++round) {
        machine.release();
        Network network(machine);
        network.input({2, 3, 32, 32}, 600 + round);
        network.conv(16, 3, 1, 610);
        network.max_pool();
        const size_t first = network.layers() - 1;
        network.conv(16, 3, 1, 612);
        network.conv(16, 3, 1, 614);
        network.residual_add(first);
        network.conv(32, 3, 2, 616);
        const size_t second = network.layers() - 1;
        network.conv(32, 3, 1, 618);
        network.residual_add(second);
        network.conv(48, 1, 1, 620);
        network.max_pool();
        network.flatten_matmul(20, 622);
        network.softmax();
        network.check("residual network", round % machine.compute_engines(), 1e-3);
    }
    machine.release();
}

}  // namespace

const Stage kModel = {"model", "a whole network gives the right answer, layer by layer",
                      "errors that only sizes, reuse of memory or many packets in a job bring out",
                      nullptr, jobs};

}  // namespace enpu::bringup
