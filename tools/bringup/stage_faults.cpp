// SPDX-License-Identifier: MIT
#include "bench.h"
#include "lib/output.h"
#include "list.h"

namespace enpu::bringup {
namespace {

using tools::format;

// Long enough to be met while it runs, in packets short enough to be stopped between.
Stream long_job(const Memory& m) {
    Stream stream;
    for (unsigned i = 0; i < 3000; ++i)
        stream.copy(m.va + m.host.size() / 2, m.va, m.host.size() / 2);
    return stream;
}

void check_stop(Bench& bench, uint32_t engine) {
    Bench::Queue queue = bench.queue(4 * engine, engine);
    bench.write32(ENPU_REG_ENGINE_CTRL(engine), ENPU_ENGINE_CTRL_STOP);
    const uint64_t fence = bench.push(queue, Stream().nop());
    require(!bench.soon([&] { return bench.fence(queue) >= fence; }, 20),
            format("engine %u ran a job though it was stopped", engine));
    bench.write32(ENPU_REG_ENGINE_CTRL(engine), 0);
    bench.await_fence(queue, fence, format("engine %u going on after STOP", engine));
}

// STOP holds a job between two packets; RESET drops it and blames its queue alone.
void check_reset(Bench& bench, uint32_t engine) {
    const std::string who = format("engine %u", engine);
    const Memory m = bench.buffer(128 << 10);
    Bench::Queue victim = bench.queue(4 * engine + 1, engine);
    Bench::Queue other = bench.queue(4 * engine + 2, engine);
    bench.push(victim, long_job(m));
    bench.await("ENGINE_QUEUE naming the queue of " + who,
                [&] { return bench.read32(ENPU_REG_ENGINE_QUEUE(engine)) == victim.id; });
    bench.write32(ENPU_REG_ENGINE_CTRL(engine), ENPU_ENGINE_CTRL_STOP);
    bench.await("ENGINE_STATUS.STATE of " + who + " becoming STOPPED", [&] {
        return ENPU_FIELD_GET(ENPU_ENGINE_STATUS_STATE,
                              bench.read32(ENPU_REG_ENGINE_STATUS(engine))) ==
               ENPU_ENGINE_STATE_STOPPED;
    });
    require(bench.fence(victim) == 0, "the long job of " + who + " had ended before STOP");
    const uint64_t progress = bench.read64(ENPU_REG_ENGINE_PROGRESS(engine));
    const uint64_t next = bench.push(other, Stream().nop());
    require(!bench.soon([&] { return bench.fence(other) >= next; }, 20),
            "a stopped " + who + " ran another queue's job");
    require_equal("ENGINE_PROGRESS of a stopped " + who,
                  bench.read64(ENPU_REG_ENGINE_PROGRESS(engine)), progress);
    bench.write32(ENPU_REG_ENGINE_CTRL(engine), ENPU_ENGINE_CTRL_RESET);
    bench.await("ENGINE_CTRL.RESET of " + who + " reading as 0", [&] {
        return !(bench.read32(ENPU_REG_ENGINE_CTRL(engine)) & ENPU_ENGINE_CTRL_RESET);
    });
    bench.await_faulted(victim, "reset of " + who);
    const uint32_t status = bench.status(victim);
    require(status == ENPU_STATUS_ABORTED || status == ENPU_STATUS_TORN,
            format("status of a job that was reset is %u", status));
    enpu_error_record record;
    require(bench.pop_error(&record), "no error record for a job that was reset");
    require_equal("queue of its record", record.queue, victim.id);
    require_equal("fence of a job that was reset", bench.fence(victim), 0);
    bench.await_fence(other, next, who + " going on with another queue after its reset");
}

void bare(Bench& bench) {
    for (uint32_t engine = 0; engine < bench.engines(); ++engine) {
        bench.set_up();
        check_stop(bench, engine);
        check_reset(bench, engine);
    }
}

// A job that fails leaves others alone, whoever runs them.
void jobs(Machine& machine) {
    machine.release();
    const Memory m = machine.allocate(4096, false);
    const uint64_t beyond = m.va + (1 << 20);
    for (uint32_t engine = 0; engine < machine.engines(); ++engine) {
        const Outcome outcome =
            machine.run(engine, Stream().nop().copy(beyond + (1ull << 44), m.va, 64));
        require_equal(format("status of a job on engine %u that writes unmapped memory", engine),
                      outcome.status, ENPU_STATUS_MMU_FAULT);
        require_equal("its fault address", outcome.va, beyond + (1ull << 44));
        require_equal("its packet", outcome.packet, 16);
        machine.must_run(format("a job on engine %u after a fault", engine), engine,
                         Stream().signal(m.va + 8 * engine, 9));
        require_equal("its word", m.as<uint64_t>()[engine], 9);
    }
    machine.release();
}

}  // namespace

const Stage kFaults = {
    "faults", "stop, engine reset, faults: what is hit is named, the rest goes on",
    "a reset that takes too much or nothing, a fault that blames another, an engine "
    "that does not come back",
    bare, jobs};

}  // namespace enpu::bringup
