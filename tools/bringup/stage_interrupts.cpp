// SPDX-License-Identifier: MIT
#include <chrono>
#include <thread>

#include "bench.h"
#include "lib/output.h"
#include "list.h"

namespace enpu::bringup {
namespace {

using tools::format;

// Long enough for a message that must not come.
void quiet() {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void check_vector(Bench& bench, uint32_t vector) {
    const uint32_t bit = 1u << vector;
    const uint64_t before = bench.device().interrupts(vector);
    const uint64_t raised = bench.read64(ENPU_REG_IRQ_RAISED);
    bench.write32(ENPU_REG_IRQ_TRIGGER, bit);
    require_equal(format("IRQ_PENDING of vector %u after a trigger", vector),
                  bench.read32(ENPU_REG_IRQ_PENDING) & bit, bit);
    quiet();
    require_equal(format("messages of vector %u that is not enabled", vector),
                  bench.device().interrupts(vector), before);
    bench.write32(ENPU_REG_IRQ_ENABLE, bit);
    bench.await(format("message of vector %u, enabled while pending", vector),
                [&] { return bench.device().interrupts(vector) == before + 1; });
    bench.write32(ENPU_REG_IRQ_PENDING, bit);
    require_equal(format("IRQ_PENDING of vector %u after clearing", vector),
                  bench.read32(ENPU_REG_IRQ_PENDING) & bit, 0);
    bench.write32(ENPU_REG_IRQ_TRIGGER, bit);
    bench.await(format("message of vector %u after a trigger", vector),
                [&] { return bench.device().interrupts(vector) == before + 2; });
    // Each assertion sends a message, whether the bit was set or not.
    bench.write32(ENPU_REG_IRQ_TRIGGER, bit);
    bench.await(format("second message of vector %u while it is pending", vector),
                [&] { return bench.device().interrupts(vector) == before + 3; });
    quiet();
    require_equal(format("messages of vector %u in all", vector), bench.device().interrupts(vector),
                  before + 3);
    require_equal("IRQ_RAISED", bench.read64(ENPU_REG_IRQ_RAISED), raised + 3);
    bench.write32(ENPU_REG_IRQ_PENDING, bit);
    bench.write32(ENPU_REG_IRQ_ENABLE, 0);
}

void run(Bench& bench) {
    bench.start_over();
    const uint32_t vectors = bench.engines() + 1;
    for (uint32_t vector = 0; vector < vectors; ++vector) check_vector(bench, vector);
    // No vector answers for another.
    std::vector<uint64_t> before;
    for (uint32_t vector = 0; vector < vectors; ++vector)
        before.push_back(bench.device().interrupts(vector));
    bench.write32(ENPU_REG_IRQ_ENABLE, (1u << vectors) - 1);
    for (uint32_t vector = 0; vector < vectors; ++vector) {
        bench.write32(ENPU_REG_IRQ_TRIGGER, 1u << vector);
        bench.await(format("message of vector %u", vector),
                    [&] { return bench.device().interrupts(vector) == before[vector] + 1; });
        for (uint32_t other = vector + 1; other < vectors; ++other)
            require_equal(
                format("messages of vector %u after a trigger of vector %u", other, vector),
                bench.device().interrupts(other), before[other]);
    }
}

}  // namespace

const Stage kInterrupts = {
    "interrupts", "each MSI-X vector by itself: trigger, enable, pending, clear",
    "MSI-X table not programmed, vectors swapped, pending bit without a message, edges lost", run,
    nullptr};

}  // namespace enpu::bringup
