// SPDX-License-Identifier: MIT
#include <vector>

#include "lib/output.h"
#include "list.h"
#include "machine.h"

namespace enpu::bringup {
namespace {

using tools::format;

// Many jobs on all engines at once; each leaves a mark of its own in a place of its own.
void jobs(Machine& machine) {
    machine.release();
    constexpr uint32_t kJobs = 24;
    constexpr uint64_t kBytes = 64 << 10;
    const uint32_t engines = machine.engines();
    std::vector<Memory> blocks;
    for (uint32_t engine = 0; engine < engines; ++engine)
        blocks.push_back(machine.allocate(kBytes, false));
    std::vector<uint64_t> numbers;
    for (uint32_t i = 0; i < kJobs; ++i)
        for (uint32_t engine = 0; engine < engines; ++engine) {
            const Memory& block = blocks[engine];
            Stream stream;
            stream.fill(block.va, kBytes / 2, (i + 1) * 100 + engine, 8);
            stream.copy(block.va + kBytes / 2, block.va, kBytes / 2);
            numbers.push_back(machine.submit(engine, stream));
        }
    for (const uint64_t number : numbers) {
        const Outcome outcome = machine.wait(number);
        require(outcome.status == ENPU_STATUS_OK, "jobs on all engines: " + outcome.sentence);
    }
    for (uint32_t engine = 0; engine < engines; ++engine)
        for (uint64_t i = 0; i < kBytes / 8; ++i)
            require_equal(format("word %llu of engine %u after %u jobs", (unsigned long long)i,
                                 engine, kJobs),
                          blocks[engine].as<uint64_t>()[i], kJobs * 100 + engine);
    machine.release();
}

}  // namespace

const Stage kEngines = {
    "engines", "many jobs on all engines at the same time, in order on each",
    "engines that share state, completions given to the wrong queue, order lost", nullptr, jobs};

}  // namespace enpu::bringup
