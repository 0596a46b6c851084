// SPDX-License-Identifier: MIT
#include <iterator>

#include "bench.h"
#include "driver.h"
#include "lib/output.h"
#include "list.h"

namespace enpu::bringup {
namespace {

using tools::format;

// One NOP through an engine, and everything that it must leave behind.
void check_engine(Bench& bench, uint32_t engine) {
    Bench::Queue queue = bench.queue(engine, engine);
    const std::string who = format("engine %u", engine);
    bench.await("IDLE state of a new queue",
                [&] { return bench.state(queue) == ENPU_QUEUE_STATE_IDLE; });
    const uint64_t jobs = bench.read64(ENPU_REG_ENGINE_JOBS(engine));
    const uint64_t messages = bench.device().interrupts(1 + engine);
    const uint64_t before = bench.read64(ENPU_REG_TIMESTAMP);
    const uint64_t fence = bench.push(queue, Stream().nop());
    bench.await_fence(queue, fence, "NOP on " + who);
    const uint64_t after = bench.read64(ENPU_REG_TIMESTAMP);
    const enpu_queue_header header = bench.header(queue);
    const enpu_completion record = bench.completion(queue, 0);
    require_equal("head of the queue of " + who, header.head, 1);
    require_equal("status word of the queue of " + who, header.status, ENPU_STATUS_OK);
    require_equal("fence of the completion record", record.fence, fence);
    require_equal("status of the completion record", record.status, ENPU_STATUS_OK);
    require(record.start_ns >= before && record.start_ns <= record.end_ns && record.end_ns <= after,
            format("times of the record are %llu to %llu, the job ran between %llu and %llu",
                   (unsigned long long)record.start_ns, (unsigned long long)record.end_ns,
                   (unsigned long long)before, (unsigned long long)after));
    require(header.start_ns == record.start_ns && header.end_ns == record.end_ns,
            "start_ns and end_ns of the header are not those of the record");
    bench.await(format("message of vector %u for a completion on %s", 1 + engine, who.c_str()),
                [&] { return bench.device().interrupts(1 + engine) == messages + 1; });
    bench.await("QUEUE_FENCE register",
                [&] { return bench.read64(ENPU_REG_QUEUE_FENCE(queue.id)) == fence; });
    bench.await("ENGINE_JOBS counting one more",
                [&] { return bench.read64(ENPU_REG_ENGINE_JOBS(engine)) == jobs + 1; });
    bench.await("ENGINE_QUEUE showing an idle engine",
                [&] { return bench.read32(ENPU_REG_ENGINE_QUEUE(engine)) == ~0u; });
    // Without the flag there is no interrupt.
    const uint64_t silent = bench.push(queue, Stream().nop(), true, 0);
    bench.await_fence(queue, silent, "NOP without RING_FLAG_IRQ");
    require_equal("messages for a job that asks for none", bench.device().interrupts(1 + engine),
                  messages + 1);
    bench.disable(queue);
}

void bare(Bench& bench) {
    bench.set_up();
    for (uint32_t engine = 0; engine < bench.engines(); ++engine) check_engine(bench, engine);
    // QUEUE_KICK does what the doorbell page does.
    Bench::Queue queue = bench.queue(0, 0);
    const uint64_t fence = bench.push(queue, Stream().nop(), false);
    bench.write32(ENPU_REG_QUEUE_KICK(0), 1);
    bench.await_fence(queue, fence, "NOP after QUEUE_KICK");
}

// Completions come by their interrupts, not late by the driver's watchdog. On a busy host a few are
// later than its tick.
void check_prompt(Machine& machine, const Driver& driver) {
    constexpr unsigned kJobs = 30, kLate = kJobs / 5;
    static constexpr const char* kEvents[] = {"lost_interrupts", "lost_doorbells", "bad_fences"};
    for (uint32_t engine = 0; engine < machine.engines(); ++engine) {
        uint64_t before[std::size(kEvents)];
        for (size_t i = 0; i < std::size(kEvents); ++i) before[i] = driver.event(kEvents[i]);
        for (unsigned job = 0; job < kJobs; ++job)
            machine.must_run(format("NOP on engine %u", engine), engine, Stream().nop());
        for (size_t i = 0; i < std::size(kEvents); ++i) {
            const uint64_t grown = driver.event(kEvents[i]) - before[i];
            require(grown <= kLate, format("the driver counts %llu %s in %u jobs on engine %u",
                                           (unsigned long long)grown, kEvents[i], kJobs, engine));
        }
    }
}

void jobs(Machine& machine) {
    for (uint32_t engine = 0; engine < machine.engines(); ++engine)
        machine.must_run(format("NOP on engine %u", engine), engine, Stream().nop().nop(7).nop());
    if (const auto* driver = dynamic_cast<const Driver*>(&machine)) check_prompt(machine, *driver);
}

}  // namespace

const Stage kQueue = {
    "queue", "a NOP through every engine: ring entry, doorbell, completion, fence, interrupt",
    "doorbell not wired, ring entry or tail in the wrong place, completion in the wrong order, "
    "interrupt of the wrong vector",
    bare, jobs};

}  // namespace enpu::bringup
