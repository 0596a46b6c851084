// SPDX-License-Identifier: MIT
// Faults made on purpose, and interrupts, which many of them are about.
#include <algorithm>
#include <chrono>
#include <thread>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "test/pattern.h"

using namespace enpu::test;

namespace {

uint32_t fired(Rig& rig, enpu_fault_kind kind) {
    return rig.read32(ENPU_REG_FAULT_FIRED(kind));
}

// The status with which a copy on queue 0 ends. `arm` is called when the queue rests before it.
enpu_status run_copy(Rig& rig, const std::function<void()>& arm = nullptr) {
    auto queue = rig.queue(0, rig.copy_engine());
    REQUIRE(rig.wait_for([&] {
        return rig.state(0) == ENPU_QUEUE_STATE_IDLE || rig.state(0) == ENPU_QUEUE_STATE_FAULTED;
    }));
    if (arm) arm();
    const uint64_t from = rig.buffer(4096), to = rig.buffer(4096);
    rig.push(queue, Commands().copy(to, from, 4096));
    REQUIRE(rig.wait_for(
        [&] { return rig.fence(queue) == 1 || rig.state(0) == ENPU_QUEUE_STATE_FAULTED; }));
    const enpu_status error = rig.error(0);
    rig.write32(ENPU_REG_QUEUE_CTRL(0), 0);
    REQUIRE(rig.wait_state(0, ENPU_QUEUE_STATE_DISABLED));
    return error;
}

}  // namespace

TEST_CASE("The fault block arms what is written there, after and as often as it says") {
    Rig rig(mode(true));
    rig.set_up();
    rig.write32(ENPU_REG_FAULT_KIND, ENPU_FAULT_KIND_ILLEGAL_PACKET);
    rig.write32(ENPU_REG_FAULT_TARGET, rig.copy_engine());
    rig.write32(ENPU_REG_FAULT_AFTER, 2);
    rig.write32(ENPU_REG_FAULT_TIMES, 2);
    rig.write32(ENPU_REG_FAULT_ARM, 1);
    auto other = rig.queue(1, 0);  // not the target
    rig.push(other, Commands().nop().nop().nop());
    CHECK(rig.fence(other) == 1);
    const enpu_status expected[] = {ENPU_STATUS_OK, ENPU_STATUS_OK, ENPU_STATUS_ILLEGAL_PACKET,
                                    ENPU_STATUS_ILLEGAL_PACKET, ENPU_STATUS_OK};
    for (enpu_status status : expected) CHECK(run_copy(rig) == status);
    CHECK(fired(rig, ENPU_FAULT_KIND_ILLEGAL_PACKET) == 2);
    CHECK(rig.read64(ENPU_REG_FAULT_LAST_NS) != 0);
    CHECK(rig.read64(ENPU_REG_FAULT_LAST_NS) <= rig.read64(ENPU_REG_TIMESTAMP));
    CHECK(rig.read64(ENPU_REG_FAULT_FIRED_NS(ENPU_FAULT_KIND_ILLEGAL_PACKET)) ==
          rig.read64(ENPU_REG_FAULT_LAST_NS));
    CHECK(rig.read64(ENPU_REG_FAULT_FIRED_NS(ENPU_FAULT_KIND_MMU_FAULT)) == 0);
}

TEST_CASE("Random faults follow their seed and their rate") {
    const auto run = [](uint64_t seed) {
        Rig rig(mode(true));
        rig.set_up();
        rig.write32(ENPU_REG_FAULT_KIND, ENPU_FAULT_KIND_ECC_CORRECTED);
        rig.write32(ENPU_REG_FAULT_TARGET, ~0u);
        rig.write32(ENPU_REG_FAULT_TIMES, ~0u);
        rig.write32(ENPU_REG_FAULT_EVERY, 4);
        rig.write64(ENPU_REG_FAULT_SEED, seed);
        rig.write32(ENPU_REG_FAULT_ARM, 1);
        auto queue = rig.queue(0, 0);
        std::vector<uint32_t> fired;
        for (int i = 0; i < 400; ++i) {
            rig.push(queue, Commands().nop());
            fired.push_back(rig.read32(ENPU_REG_FAULT_FIRED(ENPU_FAULT_KIND_ECC_CORRECTED)));
        }
        return fired;
    };
    const auto first = run(1);
    CHECK(first == run(1));
    CHECK(first != run(2));
    CHECK(first.back() > 60);  // 100 expected
    CHECK(first.back() < 140);
}

TEST_CASE("Only faults that exist can be armed, and only so many") {
    Rig rig(mode(true));
    CHECK_FALSE(rig.inject(static_cast<enpu_fault_kind>(ENPU_FAULT_KINDS)));
    CHECK_FALSE(rig.inject(ENPU_FAULT_KIND_ENGINE_HANG, 2));  // there are two engines
    CHECK_FALSE(rig.inject(ENPU_FAULT_KIND_IRQ_LOST, 32));
    CHECK_FALSE(rig.inject(ENPU_FAULT_KIND_ENGINE_HANG, ~0u, 0, 0));
    int armed = 0;
    while (rig.inject(ENPU_FAULT_KIND_ENGINE_HANG, 0, 1000) && armed < 1000) ++armed;
    CHECK(armed == 16);
    CHECK(rig.inject(ENPU_FAULT_KIND_NONE));  // clears them
    CHECK(rig.inject(ENPU_FAULT_KIND_ENGINE_HANG, 0, 1000));
}

TEST_CASE("Faults that fail a job") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    static const struct {
        enpu_fault_kind kind;
        enpu_status status;
        uint32_t after;
    } kKinds[] = {
        {ENPU_FAULT_KIND_ECC_UNCORRECTED, ENPU_STATUS_ECC_UNCORRECTED, 0},
        {ENPU_FAULT_KIND_ILLEGAL_PACKET, ENPU_STATUS_ILLEGAL_PACKET, 0},
        {ENPU_FAULT_KIND_LOCAL_EXHAUSTED, ENPU_STATUS_OUT_OF_MEMORY, 0},
        {ENPU_FAULT_KIND_MMU_FAULT, ENPU_STATUS_MMU_FAULT, 0},
        // Tail, entry and command buffer are read before the data, no_doorbell is written.
        {ENPU_FAULT_KIND_DMA_READ, ENPU_STATUS_DMA_ERROR, 3},
        {ENPU_FAULT_KIND_DMA_WRITE, ENPU_STATUS_DMA_ERROR, 1},
    };
    for (const auto& fault : kKinds) {
        INFO(fault.kind);
        CHECK(run_copy(rig, [&] {
                  REQUIRE(rig.inject(fault.kind, rig.copy_engine(), fault.after));
              }) == fault.status);
        CHECK(rig.error_record().kind == fault.status);
        CHECK(rig.error_record().job_id == 1001);
        CHECK(fired(rig, fault.kind) == 1);
        rig.pop_error();
        CHECK(run_copy(rig) == ENPU_STATUS_OK);
    }
}

TEST_CASE("A corrected error is told and harms nothing") {
    Rig rig(mode(true));
    rig.set_up();
    rig.inject(ENPU_FAULT_KIND_ECC_CORRECTED);
    CHECK(run_copy(rig) == ENPU_STATUS_OK);
    CHECK(rig.error_record().kind == ENPU_STATUS_ECC_CORRECTED);
    CHECK(rig.irqs[0] == 1);
}

TEST_CASE("A full FIFO counts what it loses") {
    Rig rig(mode(true));
    rig.set_up();
    rig.inject(ENPU_FAULT_KIND_ECC_CORRECTED, ~0u, 0, ~0u);
    for (int i = 0; i < 70; ++i) run_copy(rig);
    CHECK(rig.read32(ENPU_REG_ERR_COUNT) == 64);
    CHECK(rig.read32(ENPU_REG_ERR_LOST) == 6);
    for (int i = 0; i < 100; ++i) rig.pop_error();
    CHECK(rig.read32(ENPU_REG_ERR_COUNT) == 0);
}

TEST_CASE("Interrupts are lost, repeated, spurious and many") {
    Rig rig(mode(true));
    rig.set_up();
    const uint32_t vector = 1 + rig.copy_engine();
    const auto count = [&] { return rig.irqs[vector].exchange(0); };
    rig.inject(ENPU_FAULT_KIND_IRQ_LOST, vector);
    run_copy(rig);
    CHECK(count() == 0);
    CHECK(rig.read32(ENPU_REG_IRQ_PENDING) == 1u << vector);
    run_copy(rig);  // not silenced by it
    CHECK(count() == 1);
    rig.inject(ENPU_FAULT_KIND_IRQ_REPEATED, vector);
    run_copy(rig);
    CHECK(count() == 2);
    rig.inject(ENPU_FAULT_KIND_IRQ_SPURIOUS, vector);
    run_copy(rig);
    CHECK(count() == 2);
    rig.inject(ENPU_FAULT_KIND_IRQ_STORM, vector, 0, 1, 500);
    run_copy(rig);
    CHECK(count() == 500);
    CHECK(rig.read64(ENPU_REG_IRQ_RAISED) == 505);
}

TEST_CASE("Who touches off a storm of interrupts need not stay for all of it") {
    Rig rig(mode(false));
    rig.set_up();
    const auto caller = std::this_thread::get_id();
    std::atomic<uint32_t> in_call{0};
    rig.on_irq = [&](uint32_t) { in_call += std::this_thread::get_id() == caller; };
    rig.inject(ENPU_FAULT_KIND_IRQ_STORM, 5, 0, 1, 50'000);
    rig.write32(ENPU_REG_IRQ_TRIGGER, 1u << 5);
    CHECK(in_call <= 1000);
    CHECK(rig.wait_for([&] { return rig.irqs[5] == 50'000; }));
}

TEST_CASE("Vectors are masked, triggered and cleared") {
    Rig rig(mode(true));
    rig.write32(ENPU_REG_IRQ_TRIGGER, 0x80000003);
    CHECK(rig.read32(ENPU_REG_IRQ_PENDING) == 0x80000003);
    CHECK(rig.irqs[0] + rig.irqs[1] + rig.irqs[31] == 0);
    rig.write32(ENPU_REG_IRQ_ENABLE, 0x80000001);  // at once: they are pending
    CHECK(rig.irqs[0] == 1);
    CHECK(rig.irqs[1] == 0);
    CHECK(rig.irqs[31] == 1);
    rig.write32(ENPU_REG_IRQ_ENABLE, 0x80000003);
    CHECK(rig.irqs[0] == 1);
    CHECK(rig.irqs[1] == 1);
    rig.write32(ENPU_REG_IRQ_PENDING, 1);
    CHECK(rig.read32(ENPU_REG_IRQ_PENDING) == 0x80000002);
}

TEST_CASE("Completions are coalesced by count and by time") {
    Rig rig(mode(false));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    const auto run = [&](int jobs) {
        for (int i = 0; i < jobs; ++i)
            REQUIRE(rig.wait_fence(queue, rig.push(queue, Commands().nop())));
    };
    SECTION("by count") {
        rig.write32(ENPU_REG_IRQ_COALESCE, ENPU_FIELD_PREP(ENPU_IRQ_COALESCE_COUNT, 4));
        run(3);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        CHECK(rig.irqs[1] == 0);
        run(1);
        CHECK(rig.wait_for([&] { return rig.irqs[1] == 1; }));
        run(3);
        CHECK(rig.irqs[1] == 1);
        rig.write32(ENPU_REG_IRQ_COALESCE, 0);  // what was held back comes
        CHECK(rig.wait_for([&] { return rig.irqs[1] == 2; }));
    }
    SECTION("by time") {
        rig.write32(ENPU_REG_IRQ_COALESCE, ENPU_FIELD_PREP(ENPU_IRQ_COALESCE_COUNT, 1000) |
                                               ENPU_FIELD_PREP(ENPU_IRQ_COALESCE_USEC, 0xffff));
        run(3);  // in far less time than that, on a busy machine too
        CHECK(rig.wait_for([&] { return rig.irqs[1] == 1; }));
    }
    SECTION("errors do not wait, jobs that ask for no interrupt get none") {
        rig.write32(ENPU_REG_IRQ_COALESCE, ENPU_FIELD_PREP(ENPU_IRQ_COALESCE_COUNT, 1000));
        rig.push(queue, Commands().nop(), true, 0);
        rig.push(queue, Commands().copy(0, 1 << 20, 8));
        CHECK(rig.wait_for([&] { return rig.irqs[0] == 1; }));
        rig.write32(ENPU_REG_IRQ_COALESCE, 0);
        CHECK(rig.irqs[1] == 0);
    }
}

TEST_CASE("A completion comes late, or wrong") {
    Rig rig(mode(false));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    rig.inject(ENPU_FAULT_KIND_COMPLETION_DELAYED, 0, 0, 1, 30'000'000);
    const uint64_t before = rig.read64(ENPU_REG_TIMESTAMP);
    REQUIRE(rig.wait_fence(queue, rig.push(queue, Commands().nop())));
    CHECK(rig.read64(ENPU_REG_TIMESTAMP) - before >= 30'000'000);
    rig.inject(ENPU_FAULT_KIND_COMPLETION_CORRUPTED, 0, 0, 1, 0xff00);
    REQUIRE(rig.wait_fence(queue, rig.push(queue, Commands().nop())));
    CHECK(rig.completion(queue, 1).fence == (2 ^ 0xff00));
    CHECK(rig.fence(queue) == 2);
}

TEST_CASE("The fence word is wrong, the register and the record are not") {
    Rig rig(mode(true));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    rig.inject(ENPU_FAULT_KIND_FENCE_CORRUPTED, 0, 0, 1, 0xf0);
    rig.push(queue, Commands().nop());
    CHECK(rig.fence(queue) == (1 ^ 0xf0));
    CHECK(rig.read64(ENPU_REG_QUEUE_FENCE(0)) == 1);
    CHECK(rig.completion(queue, 0).fence == 1);
    rig.push(queue, Commands().nop());
    CHECK(rig.fence(queue) == 2);
}

TEST_CASE("An invalidation that never ends leaves nothing stale") {
    Rig rig(mode(true));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    const uint64_t from = rig.buffer(4096), to = rig.buffer(4096);
    rig.push(queue, Commands().copy(to, from, 4096));
    rig.inject(ENPU_FAULT_KIND_TLB_STUCK, Rig::kAs);
    const auto lag = [&] { return rig.read32(ENPU_REG_TLB_SEQ) - rig.read32(ENPU_REG_TLB_DONE); };
    rig.write32(ENPU_REG_TLB_INVALIDATE, Rig::kAs + 1);
    CHECK(lag() == 0);
    rig.set_pte(from, 0, 0);
    rig.write32(ENPU_REG_TLB_INVALIDATE, Rig::kAs);
    CHECK(lag() == 1);
    rig.write32(ENPU_REG_TLB_INVALIDATE, Rig::kAs);
    CHECK(lag() == 2);
    CHECK(fired(rig, ENPU_FAULT_KIND_TLB_STUCK) == 1);
    rig.push(queue, Commands().copy(to, from, 4096));
    CHECK(rig.error(0) == ENPU_STATUS_MMU_FAULT);
    if (GENERATE(true, false)) {
        rig.reset_device();
    } else {
        CHECK(rig.inject(ENPU_FAULT_KIND_NONE));
    }
    CHECK(lag() == 0);
}

TEST_CASE("A kick is ignored, the next one is not") {
    Rig rig(mode(true));
    rig.set_up();
    auto queue = rig.queue(4, 0);
    rig.inject(ENPU_FAULT_KIND_DOORBELL_IGNORED, 4);
    rig.push(queue, Commands().nop());
    CHECK(rig.fence(queue) == 0);
    rig.write32(ENPU_REG_QUEUE_KICK(4), 1);
    CHECK(rig.fence(queue) == 1);
}

TEST_CASE(
    "A queue that was kicked is not idle while its engine is busy; one whose kick was lost is") {
    Rig rig(mode(false));
    rig.set_up();
    auto busy = rig.queue(0, 0), kicked = rig.queue(1, 0), lost = rig.queue(2, 0);
    for (uint32_t q = 0; q < 3; q++) REQUIRE(rig.wait_state(q, ENPU_QUEUE_STATE_IDLE));
    rig.inject(ENPU_FAULT_KIND_ENGINE_HANG, 0);
    rig.push(busy, Commands().nop());
    REQUIRE(rig.wait_reg(ENPU_REG_FAULT_FIRED(ENPU_FAULT_KIND_ENGINE_HANG), ~0u, 1));
    rig.push(kicked, Commands().nop());
    CHECK(rig.state(1) == ENPU_QUEUE_STATE_ACTIVE);
    rig.inject(ENPU_FAULT_KIND_DOORBELL_IGNORED, 2);
    rig.push(lost, Commands().nop());
    CHECK(rig.state(2) == ENPU_QUEUE_STATE_IDLE);
    rig.inject(ENPU_FAULT_KIND_NONE);
    CHECK(rig.wait_fence(kicked, 1));
    CHECK(rig.state(2) == ENPU_QUEUE_STATE_IDLE);
}

TEST_CASE("A slow engine takes its time") {
    Rig rig(mode(false));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    slow(rig, 0, 10'000'000);
    const uint64_t before = rig.read64(ENPU_REG_TIMESTAMP);
    REQUIRE(rig.wait_fence(queue, rig.push(queue, Commands().nop().nop())));
    CHECK(rig.read64(ENPU_REG_TIMESTAMP) - before >= 30'000'000);  // two packets and the end
}

TEST_CASE("A device that was removed answers with ones until it is back") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    REQUIRE(rig.wait_state(0, ENPU_QUEUE_STATE_IDLE));
    rig.inject(ENPU_FAULT_KIND_REMOVED);
    CHECK(rig.read32(ENPU_REG_ID) == ~0u);
    CHECK(rig.read64(ENPU_REG_TIMESTAMP) == ~0ull);
    CHECK(rig.removed);
    rig.push(queue, Commands().nop());
    rig.write32(ENPU_REG_CTRL, 0);
    CHECK(rig.fence(queue) == 0);
    if (GENERATE(true, false)) {
        CHECK(rig.inject(ENPU_FAULT_KIND_NONE));
        CHECK(rig.read32(ENPU_REG_CTRL) == ENPU_CTRL_ENABLE);
        enpu_model_doorbell(rig.model, 0);
        CHECK(rig.wait_fence(queue, 1));
    } else {
        enpu_model_reset(rig.model);
        CHECK(rig.read32(ENPU_REG_CTRL) == 0);
    }
    CHECK_FALSE(rig.removed);
    CHECK(rig.read32(ENPU_REG_ID) == ENPU_MAGIC);
}

TEST_CASE(
    "A device without a link reaches neither memory nor processor, and comes back by itself") {
    Rig rig(mode(false));
    rig.set_up();
    auto queue = rig.queue(0, rig.copy_engine());
    const uint64_t to = rig.buffer(4096);
    // The job is on its engine when the link goes, and ends without one.
    rig.inject(ENPU_FAULT_KIND_ENGINE_SLOW, rig.copy_engine(), 0, 1, 30'000'000);
    rig.push(queue, Commands().fill(to, 4096, 0x55, 1));
    REQUIRE(rig.wait_reg(ENPU_REG_FAULT_FIRED(ENPU_FAULT_KIND_ENGINE_SLOW), ~0u, 1));
    rig.inject(ENPU_FAULT_KIND_REMOVED, ~0u, 0, 1, 150'000'000);
    CHECK(rig.read32(ENPU_REG_ID) == ~0u);
    const uint64_t writes = rig.ram.writes;
    CHECK(rig.wait_for([&] { return rig.read32(ENPU_REG_ID) == ENPU_MAGIC; }));
    CHECK(rig.ram.writes == writes);
    CHECK_FALSE(rig.removed);
    CHECK(std::all_of(rig.irqs.begin(), rig.irqs.end(), [](const auto& n) { return n == 0; }));
    CHECK(*rig.host(to) == std::byte{0});
    // A page table or the data itself could not be reached.
    CHECK(rig.state(0) == ENPU_QUEUE_STATE_FAULTED);
    CHECK(fired(rig, ENPU_FAULT_KIND_REMOVED) == 1);
    rig.write32(ENPU_REG_QUEUE_CTRL(0), 0);
    CHECK(run_copy(rig) == ENPU_STATUS_OK);
}

TEST_CASE("A link comes back though nobody looks at the device") {
    Rig rig(mode(false));
    rig.set_up();
    rig.inject(ENPU_FAULT_KIND_REMOVED, ~0u, 0, 1, 50'000'000);
    CHECK(rig.read32(ENPU_REG_ID) == ~0u);
    REQUIRE(rig.removed);
    CHECK(rig.wait_for([&] { return !rig.removed; }));
}

TEST_CASE("Without bus mastering every queue fails, and none hangs") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    rig.ram.bus_master = false;
    rig.push(queue, Commands().nop());
    REQUIRE(rig.wait_state(0, ENPU_QUEUE_STATE_FAULTED));
    CHECK(rig.error(0) == ENPU_STATUS_DMA_ERROR);
    rig.ram.bus_master = true;
    rig.write32(ENPU_REG_QUEUE_CTRL(0), 0);
    CHECK(run_copy(rig) == ENPU_STATUS_OK);
}
