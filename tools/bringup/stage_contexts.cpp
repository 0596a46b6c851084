// SPDX-License-Identifier: MIT
#include <vector>

#include "driver.h"
#include "lib/output.h"
#include "list.h"

namespace enpu::bringup {
namespace {

using tools::format;

constexpr const char* kWhy =
    "it needs a driver: on a bare device there is one user; stage 'spaces' looks at address spaces";

// Two users do the same at the same time, each in memory of its own.
void check_apart(Machine& first, Machine& second) {
    constexpr uint64_t kRounds = 20, kBytes = 32 << 10;
    Machine* const users[2] = {&first, &second};
    std::vector<Memory> memory[2];
    std::vector<std::pair<Machine*, uint64_t>> jobs;
    for (unsigned user = 0; user < 2; ++user)
        for (uint32_t engine = 0; engine < first.engines(); ++engine)
            memory[user].push_back(users[user]->allocate(kBytes, engine % 2 != 0));
    for (uint64_t round = 1; round <= kRounds; ++round)
        for (uint32_t engine = 0; engine < first.engines(); ++engine)
            for (unsigned user = 0; user < 2; ++user) {
                const uint64_t va = memory[user][engine].va,
                               value = 1000 * round + 10 * engine + user;
                jobs.push_back(
                    {users[user],
                     users[user]->submit(engine, Stream()
                                                     .fill(va, kBytes / 2, value, 8)
                                                     .copy(va + kBytes / 2, va, kBytes / 2))});
            }
    for (const auto& [user, job] : jobs) {
        const Outcome outcome = user->wait(job);
        require(outcome.status == ENPU_STATUS_OK, "jobs of two users: " + outcome.sentence);
    }
    for (unsigned user = 0; user < 2; ++user)
        for (uint32_t engine = 0; engine < first.engines(); ++engine)
            for (uint64_t at = 0; at < kBytes / 8; at += 13)
                require_equal(
                    format("word %llu of user %u, engine %u", (unsigned long long)at, user, engine),
                    memory[user][engine].as<uint64_t>()[at], 1000 * kRounds + 10 * engine + user);
}

// A chain over all engines: each job reads what the one before has written, which takes its time.
void check_order(Machine& machine, Driver& driver) {
    constexpr uint64_t kBytes = 256 << 10;
    constexpr unsigned kLinks = 24;
    const Memory memory = machine.allocate(2 * kBytes + 8 * (kLinks + 1), false);
    const uint64_t cells = memory.va + 2 * kBytes;
    memory.as<uint64_t>(2 * kBytes)[0] = 0x5eed;
    std::vector<uint64_t> jobs;
    for (unsigned link = 0; link < kLinks; ++link) {
        Stream stream;
        // The later half of the chain is quick: it would overtake.
        for (unsigned i = 0; link < kLinks / 2 && i < 20; ++i)
            stream.copy(memory.va, memory.va + kBytes, kBytes);
        stream.copy(cells + 8 * (link + 1), cells + 8 * link, 8);
        const std::span<const uint64_t> after(jobs.data() + (link ? link - 1 : 0), link ? 1 : 0);
        jobs.push_back(driver.submit_after(link * 3 % machine.engines(), stream, after));
    }
    for (const uint64_t job : jobs) {
        const Outcome outcome = machine.wait(job);
        require(outcome.status == ENPU_STATUS_OK, "a chain over all engines: " + outcome.sentence);
    }
    for (unsigned link = 1; link <= kLinks; ++link)
        require_equal(format("cell %u of a chain over all engines", link),
                      memory.as<uint64_t>(2 * kBytes)[link], 0x5eed);
}

// What one user does wrong is not the other's loss.
void check_blame(Machine& bad, Machine& good) {
    const Memory memory = good.allocate(4096, false);
    for (uint32_t engine = 0; engine < good.engines(); ++engine) {
        const uint64_t wrong = bad.submit(engine, Stream().copy(1ull << 45, 1ull << 46, 64));
        const uint64_t right = good.submit(engine, Stream().signal(memory.va + 8 * engine, 5));
        const Outcome outcome = good.wait(right);
        require(outcome.status == ENPU_STATUS_OK,
                "a job beside another user's that fails: " + outcome.sentence);
        require_equal("its word", memory.as<uint64_t>()[engine], 5);
        require_equal(
            format("status of another user's job on engine %u that reads unmapped memory", engine),
            bad.wait(wrong).status, ENPU_STATUS_MMU_FAULT);
    }
}

// Memory that was given back is somebody else's, and empty, when it comes again.
void check_reuse(Machine& machine, bool local) {
    const char* const where = local ? "local" : "host";
    constexpr uint64_t kBytes = 4 << 20;
    for (uint64_t round = 1; round <= 3; ++round) {
        machine.release();
        const Memory memory = machine.allocate(kBytes, local);
        const Memory seen = machine.allocate(kBytes, false);
        machine.must_run(format("copy of fresh %s memory", where), machine.copy_engine(),
                         Stream().copy(seen.va, memory.va, kBytes));
        for (uint64_t at = 0; at < kBytes / 8; at += 61)
            require_equal(format("word %llu of fresh %s memory, seen by the device",
                                 (unsigned long long)at, where),
                          seen.as<uint64_t>()[at], 0);
        machine.must_run(format("fill of %s memory", where), machine.copy_engine(),
                         Stream().fill(memory.va, kBytes, round * 0x0101010101010101ull, 8));
        for (uint64_t at = 0; at < kBytes / 8; at += 1021)
            require_equal(
                format("word %llu of %s memory, seen by the host", (unsigned long long)at, where),
                memory.as<uint64_t>()[at], round * 0x0101010101010101ull);
    }
    machine.release();
}

void jobs(Machine& machine) {
    Driver& driver = driver_of(machine, kWhy);
    machine.release();
    {
        const auto other = driver.beside();
        check_apart(machine, *other);
        check_blame(*other, machine);
        // It leaves with work in flight.
        const Memory memory = other->allocate(1 << 20, false);
        for (uint32_t engine = 0; engine < machine.engines(); ++engine)
            other->submit(engine, Stream().fill(memory.va, 1 << 20, 1, 8));
    }
    check_order(machine, driver);
    check_reuse(machine, false);
    check_reuse(machine, true);
    for (uint32_t engine = 0; engine < machine.engines(); ++engine)
        machine.must_run(format("NOP on engine %u after a user has left", engine), engine,
                         Stream().nop());
}

}  // namespace

const Stage kContexts = {
    "contexts", "users kept apart, jobs that wait for jobs, memory that comes back empty",
    "all users in one address space, a dependency that is not waited for, a translation that "
    "outlives its mapping, memory not cleared, a failure that takes others along",
    nullptr, jobs};

}  // namespace enpu::bringup
