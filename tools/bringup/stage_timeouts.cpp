// SPDX-License-Identifier: MIT
#include <enpu/enpu.h>

#include <cerrno>

#include "driver.h"
#include "lib/output.h"
#include "list.h"

namespace enpu::bringup {
namespace {

using tools::format;

constexpr const char* kWhy = "it needs a driver: on a bare device nobody watches the clock";
constexpr uint64_t kQuickNs = 5'000'000'000;

// A job that would wait for a minute, or run for long, ends when its context is closed.
void check_closed(Machine& machine, Driver& driver, uint32_t engine) {
    const Memory memory = machine.allocate(1 << 20, false);
    const uint64_t half = 512 << 10;
    Stream endless;
    endless.wait(memory.va, 1, 60'000'000).signal(memory.va + 8, 7);
    Stream busy;
    for (unsigned i = 0; i < 3000; ++i) busy.copy(memory.va + half, memory.va, half);
    busy.signal(memory.va + 16, 7);
    for (const Stream* stream : {&endless, &busy}) {
        const uint64_t ns = driver.abandon(engine, *stream);
        require(ns < kQuickNs, format("a job on engine %u ended %s after its context was closed",
                                      engine, tools::time_text(static_cast<double>(ns)).c_str()));
    }
    require_equal("the word behind a wait that never ended", memory.as<uint64_t>()[1], 0);
    machine.must_run(format("NOP on engine %u after a job was cancelled", engine), engine,
                     Stream().nop());
}

void timeouts(Machine& machine) {
    Driver& driver = driver_of(machine, kWhy);
    machine.release();
    for (uint32_t engine = 0; engine < machine.engines(); ++engine) {
        check_closed(machine, driver, engine);
        // A job that is slow but goes on is not hung.
        const Memory memory = machine.allocate(1 << 20, false);
        driver.limit(engine, 1000);
        const uint64_t waits = machine.submit(
            engine, Stream().wait(memory.va, 1, 30'000'000).signal(memory.va + 8, 9));
        const uint32_t other = (engine + 1) % machine.engines();
        Stream busy;
        for (unsigned i = 0; i < 200; ++i) busy.copy(memory.va + (512 << 10), memory.va, 256 << 10);
        machine.must_run("copies beside a job that waits", other, busy.signal(memory.va, 1));
        require_equal(format("errno of a job on engine %u that waited for another", engine),
                      static_cast<uint64_t>(driver.code(waits)), 0);
        require_equal("its word", memory.as<uint64_t>()[1], 9);
        driver.limit(engine, 0);
        machine.release();
    }
}

// An engine that stands still is reset; the job that hung is told, the rest goes on.
void resets(Machine& machine) {
    Driver& driver = driver_of(machine, kWhy);
    machine.release();
    const Memory memory = machine.allocate(4096, false);
    for (uint32_t engine = 0; engine < machine.engines(); ++engine) {
        const std::string who = format("engine %u", engine);
        std::string why;
        if (!driver.inject(format("engine-hang:engine=%u", engine), &why))
            throw StageSkipped("no engine can be made to hang: " + why);
        const uint64_t hangs = driver.event("hangs");
        driver.limit(engine, 500);
        const int64_t begin = enpu_deadline_after(0);
        const uint64_t hung =
            machine.submit(engine, Stream().nop().signal(memory.va + 8 * engine, 3));
        const uint32_t other = (engine + 1) % machine.engines();
        machine.must_run("a job beside " + who + ", which hangs", other,
                         Stream().signal(memory.va + 1024, engine + 1));
        require_equal("its word", memory.as<uint64_t>(1024)[0], engine + 1);
        const int code = driver.code(hung);
        require(code == -ETIMEDOUT,
                format("a job that hung on %s ended with errno %d, must be %d (timed out)",
                       who.c_str(), -code, ETIMEDOUT));
        const double seconds = static_cast<double>(enpu_deadline_after(0) - begin) / 1e9;
        require(seconds < 10, format("%s was reset after %.1f s, though its job may stand still "
                                     "for 0.5 s only",
                                     who.c_str(), seconds));
        require_equal("the word behind a hang", memory.as<uint64_t>()[engine], 0);
        if (!driver.pci().empty())
            require_equal("the driver's counter of hangs", driver.event("hangs"), hangs + 1);
        driver.limit(engine, 0);
        machine.must_run("a job on " + who + " after its reset", engine,
                         Stream().signal(memory.va + 8 * engine, 4));
        require_equal("its word", memory.as<uint64_t>()[engine], 4);
    }
    machine.release();
}

}  // namespace

const Stage kTimeouts = {
    "timeouts", "jobs end with their context, waiting and slow ones are not taken for hung",
    "a queue that is not stopped, an eviction that does not happen, a watchdog that looks at time "
    "and not at progress",
    nullptr, timeouts};

const Stage kResets = {
    "resets", "an engine that hangs is found in time and reset, its job told, others left alone",
    "a watchdog in the wrong unit, the wrong job blamed, an engine that does not come back",
    nullptr, resets};

}  // namespace enpu::bringup
