// SPDX-License-Identifier: MIT
#include <cstring>

#include "bench.h"
#include "enpu_hw_tables.h"
#include "lib/output.h"
#include "list.h"

namespace enpu::bringup {
namespace {

using tools::format;

constexpr uint64_t kMark = 0x1122'3344'5566'7788ull;

// A copy that must fault, and what the record must say.
void expect_fault(Bench& bench, const std::string& step, uint64_t dst, uint64_t src, uint64_t va,
                  uint32_t access, uint32_t cause) {
    static uint32_t next = 0;
    Bench::Queue queue = bench.queue(16 + next++ % 32, bench.compute_engines());
    bench.push(queue, Stream().nop().copy(dst, src, 8));
    bench.await_faulted(queue, step);
    enpu_error_record record;
    require(bench.pop_error(&record), step + ": no error record");
    require_equal(step + ": kind of the record", record.kind, ENPU_STATUS_MMU_FAULT);
    require_equal(step + ": VA of the record", record.va & ~7ull, va & ~7ull);
    require_equal(step + ": access of the record", record.access, access);
    require_equal(step + ": cause of the record", record.cause, cause);
    require_equal(step + ": packet of the record", record.packet, 16);
    require_equal(step + ": address space of the record", record.as_id, Bench::kAs);
    require_equal(step + ": completed fence", bench.fence(queue), 0);
    bench.disable(queue);
}

void must_copy(Bench& bench, const std::string& step, uint64_t dst, uint64_t src) {
    Bench::Queue queue = bench.queue(8, bench.compute_engines());
    bench.await_fence(queue, bench.push(queue, Stream().copy(dst, src, 8)), step);
    bench.disable(queue);
}

void check_faults(Bench& bench) {
    bench.set_up();
    const Memory fine = bench.buffer(4096);
    const uint64_t nowhere = bench.free_va(4096);
    expect_fault(bench, "read of an unmapped page", fine.va, nowhere, nowhere, ENPU_ACCESS_READ,
                 ENPU_MMU_CAUSE_NOT_MAPPED);
    expect_fault(bench, "write of an unmapped page", nowhere, fine.va, nowhere, ENPU_ACCESS_WRITE,
                 ENPU_MMU_CAUSE_NOT_MAPPED);
    const uint64_t read_only = bench.free_va(4096), write_only = bench.free_va(4096);
    bench.map(read_only, bench.pages(4096), 4096, ENPU_PTE_READ);
    bench.map(write_only, bench.pages(4096), 4096, ENPU_PTE_WRITE);
    expect_fault(bench, "write of a page without WRITE", read_only, fine.va, read_only,
                 ENPU_ACCESS_WRITE, ENPU_MMU_CAUSE_PERMISSION);
    expect_fault(bench, "read of a page without READ", fine.va, write_only, write_only,
                 ENPU_ACCESS_READ, ENPU_MMU_CAUSE_PERMISSION);
    must_copy(bench, "from a page with READ to one with WRITE", write_only, read_only);
    const uint64_t table = bench.free_va(4096) + (uint64_t{1} << 40);
    bench.set_entry(table, 2, bench.pages(4096) | ENPU_PTE_VALID | ENPU_PTE_LARGE);
    expect_fault(bench, "LARGE in level 2", fine.va, table, table, ENPU_ACCESS_READ,
                 ENPU_MMU_CAUSE_TABLE);
}

// Every level of the walk: VAs that differ in one index only lead to different pages.
void check_walk(Bench& bench) {
    bench.set_up();
    const Memory out = bench.buffer(8);
    const uint64_t base = 0x0000'1234'5678'9000ull;
    uint64_t vas[6] = {base,
                       base ^ (1ull << 12),
                       base ^ (1ull << 21),
                       base ^ (1ull << 30),
                       base ^ (1ull << 39),
                       0x0000'7fff'ffff'f000ull};
    for (unsigned i = 0; i < std::size(vas); ++i) {
        const uint64_t page = bench.pages(4096);
        bench.map(vas[i], page, 4096, ENPU_PTE_READ | ENPU_PTE_WRITE);
        bench.set_word(page + 4088, kMark + i);
    }
    for (unsigned i = 0; i < std::size(vas); ++i) {
        must_copy(bench, format("read at VA 0x%llx", (unsigned long long)vas[i]), out.va,
                  vas[i] + 4088);
        require_equal(format("word at VA 0x%llx", (unsigned long long)vas[i]), *out.as<uint64_t>(),
                      kMark + i);
    }
}

void check_large_page(Bench& bench) {
    bench.set_up();
    const Memory out = bench.buffer(8);
    const uint64_t bus = bench.pages(ENPU_LARGE_PAGE_SIZE), va = 0x40'0000'0000ull;
    bench.map(va, bus, ENPU_LARGE_PAGE_SIZE, ENPU_PTE_READ);
    for (const uint64_t offset : {0ull, 4096ull, 0x12'3458ull, 0x1f'fff8ull}) {
        bench.set_word(bus + offset, kMark ^ offset);
        must_copy(bench, "read from a large page", out.va, va + offset);
        require_equal(format("word at %s of a large page", tools::hex(offset).c_str()),
                      *out.as<uint64_t>(), kMark ^ offset);
    }
}

// A page that moved is seen where it is now after TLB_INVALIDATE, and gone when it is unmapped.
void check_invalidate(Bench& bench) {
    bench.set_up();
    const Memory out = bench.buffer(8);
    const uint64_t va = bench.free_va(4096);
    for (uint64_t round = 0; round < 8; ++round) {
        const uint64_t page = bench.pages(4096);
        bench.set_word(page, kMark + round);
        bench.map(va, page, 4096, ENPU_PTE_READ);
        bench.invalidate();
        must_copy(bench, format("read of a page that moved, round %llu", (unsigned long long)round),
                  out.va, va);
        require_equal(format("word of a page that moved %llu times", (unsigned long long)round),
                      *out.as<uint64_t>(), kMark + round);
    }
    bench.set_entry(va, 0, 0);
    bench.invalidate();
    expect_fault(bench, "read of a page that was unmapped", out.va, va, va, ENPU_ACCESS_READ,
                 ENPU_MMU_CAUSE_NOT_MAPPED);
    bench.map(va, bench.pages(4096), 4096, ENPU_PTE_READ | ENPU_PTE_WRITE);
    must_copy(bench, "write of a page that was mapped again", va, out.va);
    bench.map(va, bench.pages(4096), 4096, ENPU_PTE_READ);
    bench.invalidate();
    expect_fault(bench, "write of a page that lost WRITE", va, out.va, va, ENPU_ACCESS_WRITE,
                 ENPU_MMU_CAUSE_PERMISSION);
}

void check_no_root(Bench& bench) {
    bench.set_up();
    const Memory fine = bench.buffer(4096);
    Bench::Queue queue = bench.queue(0, bench.compute_engines());
    bench.write64(ENPU_REG_AS_ROOT(Bench::kAs), 0);
    bench.invalidate();
    bench.push(queue, Stream().copy(fine.va, fine.va + 8, 8));
    bench.await_faulted(queue, "a job of an address space without a root");
    enpu_error_record record;
    require(bench.pop_error(&record), "no error record");
    require_equal("cause of the record", record.cause, ENPU_MMU_CAUSE_NO_ROOT);
    require_equal("access of the record", record.access, ENPU_ACCESS_FETCH);
}

void run(Bench& bench) {
    check_walk(bench);
    check_large_page(bench);
    check_faults(bench);
    check_invalidate(bench);
    check_no_root(bench);
}

}  // namespace

const Stage kMmu = {
    "mmu", "page walks, permissions, large pages, invalidation, and what a fault record says",
    "wrong index bits of a level, permission looked at in the wrong entry, stale TLB, fault "
    "address "
    "or access wrong",
    run, nullptr};

}  // namespace enpu::bringup
