// SPDX-License-Identifier: MIT
#include "bench.h"
#include "list.h"

namespace enpu::bringup {
namespace {

void run(Bench& bench) {
    bench.start_over();
    const uint32_t before = bench.read32(ENPU_REG_RESET_COUNT);
    bench.write64(ENPU_REG_SCRATCH, 0x5555);
    bench.write32(ENPU_REG_IRQ_COALESCE, 7);
    bench.write64(ENPU_REG_AS_ROOT(1), bench.root(1) | ENPU_AS_ROOT_VALID);
    const Bench::Queue queue = bench.queue(0, 0);
    bench.reset_device();
    require_equal("SCRATCH after CTRL.RESET", bench.read64(ENPU_REG_SCRATCH), 0);
    require_equal("IRQ_COALESCE after CTRL.RESET", bench.read32(ENPU_REG_IRQ_COALESCE), 0);
    require_equal("AS_ROOT[1] after CTRL.RESET", bench.read64(ENPU_REG_AS_ROOT(1)), 0);
    require_equal("QUEUE_CTRL[0] after CTRL.RESET", bench.read32(ENPU_REG_QUEUE_CTRL(0)), 0);
    require_equal("state of queue 0 after CTRL.RESET", bench.state(queue),
                  ENPU_QUEUE_STATE_DISABLED);
    require_equal("CTRL after CTRL.RESET", bench.read32(ENPU_REG_CTRL), 0);
    require_equal("RESET_COUNT", bench.read32(ENPU_REG_RESET_COUNT), before + 1);
    // Function-level reset comes to the same.
    bench.write64(ENPU_REG_SCRATCH, 0xaaaa);
    bench.device().function_reset();
    bench.await("STATUS.READY after a function-level reset",
                [&] { return bench.read32(ENPU_REG_STATUS) & ENPU_STATUS_READY; });
    require_equal("SCRATCH after a function-level reset", bench.read64(ENPU_REG_SCRATCH), 0);
    require_equal("ID after a function-level reset", bench.read32(ENPU_REG_ID), ENPU_MAGIC);
}

}  // namespace

const Stage kReset = {"reset", "the device goes back to its power-on state and says when it has",
                      "state that a reset forgets; READY too early or never; FLR not wired", run,
                      nullptr};

}  // namespace enpu::bringup
