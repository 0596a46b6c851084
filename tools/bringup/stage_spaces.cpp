// SPDX-License-Identifier: MIT
#include "bench.h"
#include "lib/output.h"
#include "list.h"

namespace enpu::bringup {
namespace {

using tools::format;

// The same VA in two address spaces is different memory, for jobs at the same time on one engine.
void run(Bench& bench) {
    bench.set_up();
    constexpr uint64_t kVa = 0x5000'0000;
    const uint32_t spaces[2] = {2, 3};
    uint64_t pages[2];
    Bench::Queue queues[2];
    for (unsigned i = 0; i < 2; ++i) {
        pages[i] = bench.pages(4096);
        bench.map(kVa, pages[i], 4096, ENPU_PTE_READ | ENPU_PTE_WRITE, spaces[i]);
        bench.write64(ENPU_REG_AS_ROOT(spaces[i]), bench.root(spaces[i]) | ENPU_AS_ROOT_VALID);
        queues[i] = bench.queue(i, bench.compute_engines(), 6, spaces[i]);
        bench.write32(ENPU_REG_AS_CTRL(spaces[i]), ENPU_AS_CTRL_CLEAR);
    }
    constexpr uint64_t kRounds = 40;
    for (uint64_t round = 1; round <= kRounds; ++round)
        for (unsigned i = 0; i < 2; ++i)
            bench.push(queues[i], Stream().signal(kVa + 8 * round, round * 10 + i));
    for (unsigned i = 0; i < 2; ++i)
        bench.await_fence(queues[i], kRounds, "jobs of two address spaces");
    for (uint64_t round = 1; round <= kRounds; ++round)
        for (unsigned i = 0; i < 2; ++i)
            require_equal(
                format("word %llu of address space %u", (unsigned long long)round, spaces[i]),
                bench.word(pages[i] + 8 * round), round * 10 + i);
    for (unsigned i = 0; i < 2; ++i)
        require_equal(format("COUNTER JOBS of address space %u", spaces[i]),
                      bench.read64(ENPU_REG_COUNTER(spaces[i], ENPU_COUNTER_JOBS)), kRounds);
    // An invalidation of one leaves the other alone, and works.
    const uint64_t moved = bench.pages(4096);
    bench.map(kVa, moved, 4096, ENPU_PTE_READ | ENPU_PTE_WRITE, spaces[0]);
    bench.invalidate(spaces[0]);
    for (unsigned i = 0; i < 2; ++i)
        bench.await_fence(queues[i], bench.push(queues[i], Stream().signal(kVa, 77 + i)),
                          "after a move");
    require_equal("word of the address space that moved", bench.word(moved), 77);
    require_equal("word of the other address space", bench.word(pages[1]), 78);
    require_equal("old page of the address space that moved", bench.word(pages[0]), 0);
}

}  // namespace

const Stage kSpaces = {"spaces", "address spaces are kept apart, in memory and in counters",
                       "TLB entries without the address space, counters of the wrong one, an "
                       "invalidation that takes the wrong one",
                       run, nullptr};

}  // namespace enpu::bringup
