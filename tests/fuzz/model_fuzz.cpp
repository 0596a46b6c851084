// SPDX-License-Identifier: MIT
// The functional model against everything that a guest can do to it: registers, doorbells, rings,
// packets, page tables, resets, damaged saved state.
#include "model_machine.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static enpu::fuzz::Machine machine;
    machine.start();
    enpu::fuzz::Bytes bytes(data, size);
    for (int steps = 0; !bytes.empty() && steps < 64; ++steps) machine.step(bytes);
    return 0;
}
