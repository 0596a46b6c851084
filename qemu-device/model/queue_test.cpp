// SPDX-License-Identifier: MIT
// Rings, turns, stopping and starting, and waiting for words.
#include <algorithm>
#include <thread>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "test/pattern.h"

using namespace enpu::test;

TEST_CASE("A ring goes round many times without a lost kick") {
    Options options = mode(GENERATE(true, false));
    Rig rig(options);
    rig.set_up();
    auto queue = rig.queue(0, 0, 0, 2);
    enpu_ring_entry entry{};
    entry.cmd_va = rig.buffer(4096);
    entry.cmd_bytes = 16;
    const auto nop = Commands().nop();
    std::memcpy(rig.host(entry.cmd_va), nop.bytes().data(), 16);
    for (uint64_t i = 1; i <= 2000; ++i) {
        if (i > 4) REQUIRE(rig.wait_fence(queue, i - 4));
        entry.fence = i;
        rig.push_entry(queue, entry);
    }
    REQUIRE(rig.wait_fence(queue, 2000));
    CHECK(rig.wait_for([&] { return rig.read64(ENPU_REG_QUEUE_HEAD(0)) == 2000; }));
    CHECK(rig.wait_for([&] { return rig.header(queue).no_doorbell == 0; }));
}

TEST_CASE("A ring that cannot be is refused") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    auto queue = rig.queue(0, 0, 0, 2);
    enpu_ring_entry entry{};
    entry.cmd_va = rig.buffer(4096);
    entry.fence = 1;
    uint64_t detail = 0;
    SECTION("tail too far") {
        queue.tail = 4;
        rig.push_entry(queue, entry);
        detail = 5;
    }
    SECTION("tail behind") {
        queue.tail = ~0ull - 1;
        rig.push_entry(queue, entry);
        detail = ~0ull;
    }
    SECTION("command buffer not aligned") {
        detail = entry.cmd_va += 8;
        rig.push_entry(queue, entry);
    }
    SECTION("size not a multiple of 16") {
        detail = entry.cmd_bytes = 24;
        rig.push_entry(queue, entry);
    }
    SECTION("too large") {
        detail = entry.cmd_bytes = ENPU_MAX_COMMAND_BYTES + 16;
        rig.push_entry(queue, entry);
    }
    SECTION("unknown flags") {
        detail = entry.flags = 6;
        rig.push_entry(queue, entry);
    }
    SECTION("a fence that does not grow") {
        entry.fence = detail = 0;
        rig.push_entry(queue, entry);
    }
    REQUIRE(rig.wait_state(0, ENPU_QUEUE_STATE_FAULTED));
    CHECK(rig.error(0) == ENPU_STATUS_RING_ERROR);
    CHECK(rig.error_record().kind == ENPU_STATUS_RING_ERROR);
    CHECK(rig.error_record().detail == detail);
    CHECK(rig.header(queue).status == ENPU_STATUS_RING_ERROR);
}

TEST_CASE("A queue that cannot be started is refused") {
    Rig rig(mode(true));
    rig.set_up();
    const auto refused = [&](uint64_t address, uint32_t ctrl) {
        rig.write64(ENPU_REG_QUEUE_ADDR(0), address);
        rig.write32(ENPU_REG_QUEUE_CTRL(0), ctrl | ENPU_QUEUE_CTRL_ENABLE);
        const bool faulted = rig.state(0) == ENPU_QUEUE_STATE_FAULTED;
        rig.write32(ENPU_REG_QUEUE_CTRL(0), 0);
        CHECK(rig.state(0) == ENPU_QUEUE_STATE_DISABLED);
        return faulted;
    };
    const uint32_t ring = ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_RING_LOG2, 2);
    const uint64_t good = rig.ram.allocate(8192);
    CHECK_FALSE(refused(good, ring | ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_AS, 1)));
    CHECK(refused(good + 8, ring));
    CHECK(refused(good, ring | ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_ENGINE, 2)));
    CHECK(refused(good, ring | ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_AS, 64)));
    CHECK(refused(good, ring | ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_PRIORITY, 4)));
    CHECK(refused(good, 0));
    CHECK(refused(good, ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_RING_LOG2, 13)));
    CHECK(refused(0x1000, ring));                       // a hole
    CHECK(refused(good, ring | ENPU_QUEUE_CTRL_VIRT));  // address space 0 has no root
}

TEST_CASE("Queue memory at a VA goes through the MMU") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    const uint64_t bus = rig.ram.allocate(8192), va = 0x123456000;
    const bool writable = GENERATE(true, false);
    rig.map(va, bus, 8192, ENPU_PTE_READ | (writable ? ENPU_PTE_WRITE : 0));
    Rig::Queue queue{7, 2, bus};
    rig.write64(ENPU_REG_QUEUE_ADDR(7), va);
    rig.write32(ENPU_REG_QUEUE_CTRL(7), ENPU_QUEUE_CTRL_ENABLE | ENPU_QUEUE_CTRL_VIRT |
                                            ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_RING_LOG2, 2) |
                                            ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_AS, Rig::kAs));
    rig.push(queue, Commands().nop());
    if (writable) {
        CHECK(rig.wait_fence(queue, 1));
    } else {
        REQUIRE(rig.wait_state(7, ENPU_QUEUE_STATE_FAULTED));
        CHECK(rig.error(7) == ENPU_STATUS_MMU_FAULT);
        CHECK(rig.error_record().access == ENPU_ACCESS_WRITE);
        CHECK(rig.error_record().cause == ENPU_MMU_CAUSE_PERMISSION);
    }
}

TEST_CASE("A completion that cannot be written fails the job") {
    Rig rig(mode(true));
    rig.set_up();
    const uint64_t bus = rig.ram.allocate(8192), va = 0x123456000;
    rig.map(va, bus, 4096, ENPU_PTE_READ | ENPU_PTE_WRITE);
    rig.map(va + 4096, bus + 4096, 4096, ENPU_PTE_READ);  // ring and records
    Rig::Queue queue{7, 2, bus};
    rig.write64(ENPU_REG_QUEUE_ADDR(7), va);
    rig.write32(ENPU_REG_QUEUE_CTRL(7), ENPU_QUEUE_CTRL_ENABLE | ENPU_QUEUE_CTRL_VIRT |
                                            ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_RING_LOG2, 2) |
                                            ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_AS, Rig::kAs));
    rig.push(queue, Commands().nop());
    CHECK(rig.state(7) == ENPU_QUEUE_STATE_FAULTED);
    CHECK(rig.error(7) == ENPU_STATUS_MMU_FAULT);
    CHECK(rig.fence(queue) == 0);
    CHECK(rig.error_record().fence == 1);
}

TEST_CASE("A completion that somebody waits for raises the vector, others do not") {
    Rig rig(mode(true));
    rig.set_up();
    const bool is_virtual = GENERATE(true, false);
    const uint64_t bus = rig.ram.allocate(8192), va = 0x123456000;
    rig.map(va, bus, 8192, ENPU_PTE_READ | ENPU_PTE_WRITE);
    Rig::Queue queue{7, 2, bus};
    rig.write64(ENPU_REG_QUEUE_ADDR(7), is_virtual ? va : bus);
    rig.write32(ENPU_REG_QUEUE_CTRL(7), ENPU_QUEUE_CTRL_ENABLE |
                                            (is_virtual ? ENPU_QUEUE_CTRL_VIRT : 0) |
                                            ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_RING_LOG2, 2) |
                                            ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_AS, Rig::kAs));
    const uint64_t kicks = rig.read64(ENPU_REG_KICKS);
    const auto raised_by_a_job = [&](uint32_t flags) {
        const uint32_t before = rig.irqs[1];
        rig.push(queue, Commands().nop(), true, flags);
        return rig.irqs[1] - before;
    };
    const uint64_t irq_fence = bus + offsetof(enpu_queue_header, irq_fence);
    CHECK(raised_by_a_job(0) == 0);  // fence 1
    rig.ram.set_word(irq_fence, 3);
    CHECK(raised_by_a_job(0) == 0);
    CHECK(raised_by_a_job(0) == 1);  // 3: once
    CHECK(raised_by_a_job(0) == 0);
    rig.ram.set_word(irq_fence, 4);  // too late
    CHECK(raised_by_a_job(0) == 0);
    CHECK(raised_by_a_job(ENPU_RING_FLAG_IRQ) == (is_virtual ? 0 : 1));
    CHECK(rig.read64(ENPU_REG_KICKS) == kicks + 6);
}

TEST_CASE("Higher priorities first, equal ones in turns") {
    Rig rig(mode(false));
    rig.set_up();
    const uint64_t log = rig.buffer(4096);
    rig.write32(ENPU_REG_ENGINE_CTRL(0), ENPU_ENGINE_CTRL_STOP);
    auto low = rig.queue(1, 0, 0), first = rig.queue(2, 0, 2), second = rig.queue(3, 0, 2);
    const auto stamp = [&](unsigned i) { return Commands().timestamp(log + 8 * i); };
    rig.push(low, stamp(0));
    rig.push(first, stamp(1));
    rig.push(first, stamp(2));
    rig.push(second, stamp(3));
    rig.push(second, stamp(4));
    CHECK(rig.read32(ENPU_REG_ENGINE_STATUS(0)) == ENPU_ENGINE_STATE_STOPPED);
    rig.write32(ENPU_REG_ENGINE_CTRL(0), 0);
    REQUIRE(rig.wait_fence(low, 1));
    uint64_t at[5];
    std::memcpy(at, rig.host(log), sizeof(at));
    CHECK(at[0] > std::max(at[2], at[4]));
    CHECK(std::max(at[1], at[3]) < std::min(at[2], at[4]));
}

TEST_CASE("Two engines really run side by side") {
    Options options;
    options.cores = 2;
    Rig rig(options);
    rig.set_up();
    auto one = rig.queue(0, 0), two = rig.queue(1, 1);
    const uint64_t words = rig.buffer(4096);
    // Each goes on only when the other has begun.
    rig.push(one, Commands().signal(words, 1).wait(words + 8, 1).signal(words + 16, 1));
    rig.push(two, Commands().signal(words + 8, 1).wait(words, 1).wait(words + 16, 1));
    CHECK(rig.wait_fence(one, 1));
    CHECK(rig.wait_fence(two, 1));
}

TEST_CASE("A WAIT lets other queues of its engine run, and goes on with a SIGNAL") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    auto waiter = rig.queue(0, 0, 3), other = rig.queue(1, 0);
    const uint64_t words = rig.local_buffer(4096);
    rig.push(waiter, Commands().nop().wait(words, 5).signal(words + 8, 77));
    REQUIRE(rig.wait_state(0, ENPU_QUEUE_STATE_WAITING));
    CHECK(rig.read64(ENPU_REG_QUEUE_RESUME(0)) == 16);
    CHECK(rig.read32(ENPU_REG_ENGINE_QUEUE(0)) == ~0u);
    REQUIRE(rig.wait_fence(other, rig.push(other, Commands().signal(words, 4))));
    CHECK(rig.fence(waiter) == 0);
    REQUIRE(rig.wait_fence(other, rig.push(other, Commands().signal(words, 6))));
    REQUIRE(rig.wait_fence(waiter, 1));
    CHECK(rig.counter(ENPU_OPCODE_WAIT) == 1);
    CHECK(rig.counter(ENPU_COUNTER_STALL_NS) > 0);
    CHECK(rig.completion(waiter, 0).status == ENPU_STATUS_OK);
}

TEST_CASE("A WAIT looks again when it is kicked, and gives up in time") {
    Rig rig(mode(false));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    const uint64_t word = rig.buffer(4096);
    const uint64_t bus = GuestRam::kBase + (rig.host(word) - rig.ram.data());
    rig.push(queue, Commands().wait(word, 1));
    REQUIRE(rig.wait_state(0, ENPU_QUEUE_STATE_WAITING));
    rig.ram.set_word(bus, 1);
    enpu_model_doorbell(rig.model, 0);
    REQUIRE(rig.wait_fence(queue, 1));
    rig.push(queue, Commands().nop(1).wait(word, 2, 2000));
    REQUIRE(rig.wait_state(0, ENPU_QUEUE_STATE_FAULTED));
    CHECK(rig.error(0) == ENPU_STATUS_WAIT_TIMEOUT);
    CHECK(rig.error_record().packet == 16);
    CHECK(rig.error_record().opcode == ENPU_OPCODE_WAIT);
    CHECK(rig.error_record().detail == 1);
    CHECK(rig.completion(queue, 1).status == ENPU_STATUS_WAIT_TIMEOUT);
}

TEST_CASE("In sync mode a WAIT gives up at the next access after its deadline") {
    Rig rig(mode(true));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    rig.push(queue, Commands().wait(rig.buffer(4096), 1, 60'000'000));
    CHECK(rig.state(0) == ENPU_QUEUE_STATE_WAITING);
    rig.clock_offset += 61'000'000'000;
    rig.read32(ENPU_REG_ID);
    CHECK(rig.state(0) == ENPU_QUEUE_STATE_FAULTED);
    CHECK(rig.error(0) == ENPU_STATUS_WAIT_TIMEOUT);
}

TEST_CASE("A queue stops between packets and goes on where it stopped") {
    Rig rig(mode(false));
    rig.set_up();
    const uint32_t engine = rig.copy_engine();
    auto queue = rig.queue(0, engine);
    const uint64_t words = rig.buffer(4096);
    Commands commands;
    for (uint64_t i = 0; i < 50; ++i) commands.signal(words + 8 * i, i + 1);
    slow(rig, engine, 2'000'000);
    rig.push(queue, commands);
    REQUIRE(rig.wait_for([&] { return rig.read32(ENPU_REG_ENGINE_PACKET(engine)) >= 64; }));
    rig.write32(ENPU_REG_QUEUE_CTRL(0), 0);
    REQUIRE(rig.wait_state(0, ENPU_QUEUE_STATE_DISABLED));
    const uint64_t resume = rig.read64(ENPU_REG_QUEUE_RESUME(0));
    CHECK(resume % 32 == 0);
    CHECK(resume >= 64);
    CHECK(resume < commands.bytes().size());
    CHECK(rig.fence(queue) == 0);
    const uint64_t bus = GuestRam::kBase + (rig.host(words) - rig.ram.data());
    CHECK(rig.ram.word(bus + resume / 32 * 8) == 0);
    CHECK(rig.ram.word(bus + resume / 32 * 8 - 8) == resume / 32);
    rig.ram.set_word(bus, 0);  // seen again if the job began anew
    rig.inject(ENPU_FAULT_KIND_NONE);

    rig.enable(queue, engine);
    REQUIRE(rig.wait_fence(queue, 1));
    CHECK(rig.ram.word(bus) == 0);
    CHECK(rig.ram.word(bus + 49 * 8) == 50);
    CHECK(rig.read64(ENPU_REG_QUEUE_RESUME(0)) == 0);
}

TEST_CASE("A driver drops the failed job and goes on behind it") {
    Rig rig(mode(true));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    rig.push(queue, Commands().copy(0x5000, 0x9000, 8));
    REQUIRE(rig.state(0) == ENPU_QUEUE_STATE_FAULTED);
    rig.push(queue, Commands().nop());
    CHECK(rig.fence(queue) == 0);
    rig.write32(ENPU_REG_QUEUE_CTRL(0), 0);
    rig.write64(ENPU_REG_QUEUE_HEAD(0), 1);
    rig.enable(queue, 0);
    CHECK(rig.fence(queue) == 2);
}

TEST_CASE("Engines fetch nothing while the device is not enabled") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    rig.write32(ENPU_REG_CTRL, 0);
    auto queue = rig.queue(0, 0);
    rig.push(queue, Commands().nop());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(rig.fence(queue) == 0);
    rig.write32(ENPU_REG_CTRL, ENPU_CTRL_ENABLE);
    CHECK(rig.wait_fence(queue, 1));
}

TEST_CASE("Many producers, queues and engines at once") {
    Options options;
    options.cores = 2;
    Rig rig(options);
    rig.set_up();
    constexpr uint64_t kJobs = 300;
    std::vector<Rig::Queue> queues;
    std::vector<enpu_ring_entry> entries;
    for (uint32_t i = 0; i < 6; ++i) {
        queues.push_back(rig.queue(i, i % 3, i % 4));
        enpu_ring_entry entry{};
        entry.cmd_va = rig.buffer(4096);
        entry.flags = ENPU_RING_FLAG_IRQ;
        const uint64_t from = rig.buffer(16384), to = rig.buffer(16384);
        const auto commands = Commands().fill(from, 16384, i + 1, 8).copy(to, from, 16384);
        std::memcpy(rig.host(entry.cmd_va), commands.bytes().data(), commands.bytes().size());
        entry.cmd_bytes = static_cast<uint32_t>(commands.bytes().size());
        entries.push_back(entry);
    }
    std::vector<std::thread> producers;
    std::atomic<int> late{0};
    for (uint32_t i = 0; i < 6; ++i)
        producers.emplace_back([&, i] {
            for (uint64_t n = 1; n <= kJobs; ++n) {
                if (n > 16 && !rig.wait_fence(queues[i], n - 16)) ++late;
                entries[i].fence = n;
                rig.push_entry(queues[i], entries[i]);
            }
            if (!rig.wait_fence(queues[i], kJobs)) ++late;
        });
    for (auto& producer : producers) producer.join();
    CHECK(late == 0);
    CHECK(rig.counter(ENPU_COUNTER_JOBS) == 6 * kJobs);
    CHECK(rig.read32(ENPU_REG_ERR_COUNT) == 0);
}
