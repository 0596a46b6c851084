// SPDX-License-Identifier: MIT
// Translation: what may be reached, and what is said about what may not.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "test/pattern.h"

using namespace enpu::test;

namespace {

constexpr uint64_t kBad = 0x700000000000;
constexpr uint64_t kRw = ENPU_PTE_READ | ENPU_PTE_WRITE;

// The record of a copy that must fail; the queue is free again.
enpu_error_record fail_copy(Rig& rig, uint64_t dst, uint64_t src, uint64_t bytes = 8) {
    auto queue = rig.queue(9, rig.copy_engine());
    rig.push(queue, Commands().copy(dst, src, bytes));
    REQUIRE(rig.state(9) == ENPU_QUEUE_STATE_FAULTED);
    CHECK(rig.fence(queue) == 0);
    const enpu_error_record record = rig.error_record();
    rig.pop_error();
    rig.write32(ENPU_REG_QUEUE_CTRL(9), 0);
    REQUIRE(rig.state(9) == ENPU_QUEUE_STATE_DISABLED);
    return record;
}

}  // namespace

TEST_CASE("Each reason of a refused access is told") {
    Rig rig(mode(true));
    rig.set_up();
    const uint64_t good = rig.buffer(3 * 4096);
    const auto check = [&](uint64_t dst, uint64_t src, enpu_mmu_cause cause, enpu_access access,
                           uint64_t va) {
        const enpu_error_record record = fail_copy(rig, dst, src);
        CHECK(record.kind == ENPU_STATUS_MMU_FAULT);
        CHECK(record.cause == cause);
        CHECK(record.access == access);
        CHECK(record.va == va);
        CHECK(record.opcode == ENPU_OPCODE_COPY);
    };
    SECTION("not mapped, at each level") {
        check(good, kBad, ENPU_MMU_CAUSE_NOT_MAPPED, ENPU_ACCESS_READ, kBad);
        check(good, good + (1ull << 30), ENPU_MMU_CAUSE_NOT_MAPPED, ENPU_ACCESS_READ,
              good + (1ull << 30));
        check(kBad + 8, good, ENPU_MMU_CAUSE_NOT_MAPPED, ENPU_ACCESS_WRITE, kBad + 8);
        check(good + 3 * 4096, good, ENPU_MMU_CAUSE_NOT_MAPPED, ENPU_ACCESS_WRITE, good + 3 * 4096);
    }
    SECTION("permission") {
        rig.map(kBad, rig.ram.allocate(4096), 4096, ENPU_PTE_READ);
        rig.map(kBad + 4096, rig.ram.allocate(4096), 4096, ENPU_PTE_WRITE);
        check(kBad, good, ENPU_MMU_CAUSE_PERMISSION, ENPU_ACCESS_WRITE, kBad);
        check(good, kBad + 4096, ENPU_MMU_CAUSE_PERMISSION, ENPU_ACCESS_READ, kBad + 4096);
    }
    SECTION("tables that cannot be") {
        rig.set_pte(kBad, 0, GuestRam::kBase | kRw | ENPU_PTE_VALID | ENPU_PTE_LARGE);
        check(good, kBad, ENPU_MMU_CAUSE_TABLE, ENPU_ACCESS_READ, kBad);
        rig.set_pte(kBad + (1 << 21), 1,
                    (GuestRam::kBase + 4096) | kRw | ENPU_PTE_VALID | ENPU_PTE_LARGE);
        check(good, kBad + (1 << 21), ENPU_MMU_CAUSE_TABLE, ENPU_ACCESS_READ, kBad + (1 << 21));
        rig.set_pte(kBad + (1 << 30), 2, GuestRam::kBase | kRw | ENPU_PTE_VALID | ENPU_PTE_LARGE);
        check(good, kBad + (1 << 30), ENPU_MMU_CAUSE_TABLE, ENPU_ACCESS_READ, kBad + (1 << 30));
        rig.set_pte(kBad + (2u << 30), 2, GuestRam::kBase | ENPU_PTE_VALID | ENPU_PTE_LOCAL);
        check(good, kBad + (2u << 30), ENPU_MMU_CAUSE_TABLE, ENPU_ACCESS_READ, kBad + (2u << 30));
        rig.set_pte(kBad + (3u << 30), 2, (1ull << 50) | ENPU_PTE_VALID);  // no memory there
        check(good, kBad + (3u << 30), ENPU_MMU_CAUSE_TABLE, ENPU_ACCESS_READ, kBad + (3u << 30));
    }
    SECTION("local memory ends") {
        rig.map(kBad, rig.options.local_bytes - 4096, 4096, kRw | ENPU_PTE_LOCAL);
        rig.map(kBad + 4096, rig.options.local_bytes, 4096, kRw | ENPU_PTE_LOCAL);
        auto queue = rig.queue(0, 0);
        rig.push(queue, Commands().copy(kBad, good, 4096));
        CHECK(rig.fence(queue) == 1);
        check(kBad + 4096, good, ENPU_MMU_CAUSE_TABLE, ENPU_ACCESS_WRITE, kBad + 4096);
    }
    SECTION("no root") {
        rig.write64(ENPU_REG_AS_ROOT(Rig::kAs), 0);
        const enpu_error_record record = fail_copy(rig, good, good + 64);
        CHECK(record.cause == ENPU_MMU_CAUSE_NO_ROOT);
        CHECK(record.access == ENPU_ACCESS_FETCH);
    }
    SECTION("no RAM behind the page") {
        rig.map(kBad, 0xfee00000, 4096, kRw);
        enpu_error_record record = fail_copy(rig, good, kBad + 16);
        CHECK(record.kind == ENPU_STATUS_DMA_ERROR);
        CHECK(record.va == 0xfee00010);
        CHECK(record.access == ENPU_ACCESS_READ);
        record = fail_copy(rig, kBad, good);
        CHECK(record.kind == ENPU_STATUS_DMA_ERROR);
        CHECK(record.access == ENPU_ACCESS_WRITE);
    }
}

TEST_CASE("The command buffer needs the right to be read") {
    Rig rig(mode(true));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    rig.map(kBad, rig.ram.allocate(4096), 4096, ENPU_PTE_WRITE);
    enpu_ring_entry entry{};
    entry.cmd_va = kBad;
    entry.cmd_bytes = 16;
    entry.fence = 1;
    rig.push_entry(queue, entry);
    CHECK(rig.error_record().access == ENPU_ACCESS_FETCH);
    CHECK(rig.error_record().cause == ENPU_MMU_CAUSE_PERMISSION);
}

TEST_CASE("Pages of both sizes reach the same bytes, 4 KiB at a time and 2 MiB at a time") {
    Rig rig(mode(true));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    const uint64_t large = 2 << 20;
    const uint64_t bus = rig.ram.allocate(2 * large), target = rig.buffer(2 * large);
    rig.map(kBad, bus, 2 * large, kRw);
    for (uint64_t i = 0; i < 2 * large; i += 4096)  // upside down
        rig.set_pte(kBad + (1 << 30) + i, 0, (bus + 2 * large - 4096 - i) | kRw | ENPU_PTE_VALID);
    put_pattern(rig, kBad, 2 * large);
    rig.push(queue, Commands().copy(target, kBad + 100, 2 * large - 100));
    REQUIRE(rig.fence(queue) == 1);
    CHECK(has_pattern(rig, target, 2 * large - 100, 100));
    rig.push(queue, Commands().copy(target, kBad + (1 << 30), 2 * large));
    REQUIRE(rig.fence(queue) == 2);
    for (uint64_t i = 0; i < 2 * large; i += 4096)
        CHECK(has_pattern(rig, target + i, 4096, 2 * large - 4096 - i));
}

TEST_CASE("A copy into scattered pages looks up each page a few times") {
    Rig rig(mode(true));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    const uint64_t pages = 256, bytes = pages * 4096;
    const uint64_t source = rig.buffer(bytes), bus = rig.ram.allocate(bytes);
    for (uint64_t i = 0; i < bytes; i += 4096)  // upside down
        rig.set_pte(kBad + i, 0, (bus + bytes - 4096 - i) | kRw | ENPU_PTE_VALID);
    put_pattern(rig, source, bytes);
    const auto lookups = [&] {
        return rig.counter(ENPU_COUNTER_TLB_HITS) + rig.counter(ENPU_COUNTER_TLB_MISSES);
    };
    uint64_t before = lookups();
    uint64_t target = kBad, from = source;
    SECTION("out of one run") {}
    SECTION("into one run") {
        std::swap(target, from);
        put_pattern(rig, from, bytes);
    }
    for (uint64_t fence = 1; fence <= 2; ++fence) {
        rig.push(queue, Commands().copy(target, from, bytes));
        REQUIRE(rig.fence(queue) == fence);
        CHECK(lookups() - before < 4 * pages);
        before = lookups();
    }
    CHECK(has_pattern(rig, target, bytes, 0));
}

TEST_CASE("Address spaces do not see each other") {
    Rig rig(mode(true));
    rig.set_up();
    const uint64_t mine = rig.buffer(4096);
    rig.map(kBad, rig.ram.allocate(4096), 4096, kRw, 2);
    auto queue = rig.queue(0, 0);
    rig.push(queue, Commands().copy(mine, kBad, 8));
    CHECK(rig.error_record().cause == ENPU_MMU_CAUSE_NOT_MAPPED);
    CHECK(rig.error_record().as_id == Rig::kAs);
}

TEST_CASE("A translation is kept until it is invalidated") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    const uint64_t first = rig.ram.allocate(4096), second = rig.ram.allocate(4096);
    const uint64_t out = rig.buffer(4096);
    rig.ram.set_word(first, 1);
    rig.ram.set_word(second, 2);
    rig.map(kBad, first, 4096, kRw);
    REQUIRE(rig.wait_fence(queue, rig.push(queue, Commands().copy(out, kBad, 8))));
    rig.map(kBad, second, 4096, kRw);
    REQUIRE(rig.wait_fence(queue, rig.push(queue, Commands().copy(out + 8, kBad, 8))));
    const uint32_t seq = rig.read32(ENPU_REG_TLB_SEQ);
    SECTION("one address space") {
        rig.write32(ENPU_REG_TLB_INVALIDATE, Rig::kAs);
    }
    SECTION("all") {
        rig.write32(ENPU_REG_TLB_INVALIDATE, ENPU_TLB_INVALIDATE_ALL);
    }
    CHECK(rig.read32(ENPU_REG_TLB_SEQ) == seq + 1);
    REQUIRE(rig.wait_for([&] { return rig.read32(ENPU_REG_TLB_DONE) == seq + 1; }));
    REQUIRE(rig.wait_fence(queue, rig.push(queue, Commands().copy(out + 16, kBad, 8))));
    uint64_t words[3];
    std::memcpy(words, rig.host(out), sizeof(words));
    CHECK(words[0] == 1);
    CHECK(words[1] == 1);
    CHECK(words[2] == 2);
    CHECK(rig.counter(ENPU_COUNTER_TLB_HITS) > 0);
    CHECK(rig.counter(ENPU_COUNTER_TLB_MISSES) > 0);
}

TEST_CASE("An invalidation in the middle of a copy ends at its next tile") {
    Rig rig(mode(false));
    rig.set_up();
    auto queue = rig.queue(0, rig.copy_engine());
    const uint64_t bytes = 16 << 20;
    const uint64_t source = rig.buffer(bytes), target = rig.buffer(bytes);
    slow(rig, rig.copy_engine(), 30'000'000);
    rig.push(queue, Commands().copy(target, source, bytes));
    REQUIRE(rig.wait_for([&] { return rig.read64(ENPU_REG_ENGINE_PROGRESS(1)) >= 1; }));
    CHECK(rig.invalidate_tlb());
    CHECK(rig.wait_fence(queue, 1));
}
