// SPDX-License-Identifier: MIT
// Stopping engines, resetting engines and the device, stopping the machine.
#include <chrono>
#include <thread>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "test/pattern.h"

using namespace enpu::test;

namespace {

constexpr uint64_t kBytes = 16 << 20;  // four tiles
constexpr uint64_t kTileNs = 20'000'000;

struct LongCopy : Rig {
    explicit LongCopy(const Options& options = {}) : Rig(options) {
        set_up();
        engine = copy_engine();
        source = buffer(kBytes);
        target = buffer(kBytes);
        put_pattern(*this, source, kBytes);
        job = queue(0, engine);
    }
    // Its engine is inside the copy.
    void begin() {
        slow(*this, engine, kTileNs);
        push(job, Commands().nop().copy(target, source, kBytes));
        REQUIRE(wait_for([&] { return read64(ENPU_REG_ENGINE_PROGRESS(engine)) >= 3; }));
    }
    void quick() { inject(ENPU_FAULT_KIND_NONE); }
    uint32_t engine;
    uint64_t source, target;
    Queue job;
};

}  // namespace

TEST_CASE("An engine reset tears a packet that is half way") {
    LongCopy rig;
    rig.begin();
    auto other = rig.queue(1, rig.engine);
    rig.push(other, Commands().nop());
    rig.write32(ENPU_REG_ENGINE_CTRL(rig.engine), ENPU_ENGINE_CTRL_RESET);
    CHECK(
        ENPU_FIELD_GET(ENPU_ENGINE_STATUS_STATE, rig.read32(ENPU_REG_ENGINE_STATUS(rig.engine))) ==
        ENPU_ENGINE_STATE_RESETTING);
    REQUIRE(rig.wait_reg(ENPU_REG_ENGINE_CTRL(rig.engine), ENPU_ENGINE_CTRL_RESET, 0));
    CHECK(rig.state(0) == ENPU_QUEUE_STATE_FAULTED);
    CHECK(rig.error(0) == ENPU_STATUS_TORN);
    CHECK(rig.completion(rig.job, 0).status == ENPU_STATUS_TORN);
    CHECK(rig.completion(rig.job, 0).packet == 16);
    CHECK(rig.error_record().kind == ENPU_STATUS_TORN);
    CHECK(rig.error_record().fence == 1);
    CHECK(rig.fence(rig.job) == 0);
    CHECK(pattern_length(rig, rig.target, kBytes) < kBytes);
    CHECK(rig.wait_fence(other, 1));
}

TEST_CASE("An engine reset between packets aborts the job") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    const uint64_t word = rig.buffer(4096);
    rig.inject(ENPU_FAULT_KIND_ENGINE_HANG, 0, 1);
    rig.push(queue, Commands().nop().signal(word, 1));
    REQUIRE(rig.wait_reg(ENPU_REG_FAULT_FIRED(ENPU_FAULT_KIND_ENGINE_HANG), ~0u, 1));
    CHECK(rig.read32(ENPU_REG_ENGINE_QUEUE(0)) == 0);
    CHECK(rig.read32(ENPU_REG_ENGINE_PACKET(0)) == 16);
    CHECK(rig.read64(ENPU_REG_ENGINE_FENCE(0)) == 1);
    CHECK(ENPU_FIELD_GET(ENPU_ENGINE_STATUS_STATE, rig.read32(ENPU_REG_ENGINE_STATUS(0))) ==
          ENPU_ENGINE_STATE_RUNNING);
    CHECK(rig.read32(ENPU_REG_STATUS) & ENPU_STATUS_BUSY);
    const uint64_t progress = rig.read64(ENPU_REG_ENGINE_PROGRESS(0));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(rig.read64(ENPU_REG_ENGINE_PROGRESS(0)) == progress);
    rig.write32(ENPU_REG_ENGINE_CTRL(0), ENPU_ENGINE_CTRL_RESET);
    REQUIRE(rig.wait_reg(ENPU_REG_ENGINE_CTRL(0), ENPU_ENGINE_CTRL_RESET, 0));
    CHECK(rig.error(0) == ENPU_STATUS_ABORTED);
    CHECK(rig.error_record().packet == 16);
    // It works again.
    auto next = rig.queue(1, 0);
    CHECK(rig.wait_fence(next, rig.push(next, Commands().nop())));
}

TEST_CASE("A hung job can be stopped by a disabled queue and a reset") {
    Rig rig(mode(false));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    rig.inject(ENPU_FAULT_KIND_ENGINE_HANG, 0, 0);
    rig.push(queue, Commands().nop());
    REQUIRE(rig.wait_reg(ENPU_REG_FAULT_FIRED(ENPU_FAULT_KIND_ENGINE_HANG), ~0u, 1));
    rig.write32(ENPU_REG_ENGINE_CTRL(0), ENPU_ENGINE_CTRL_RESET);
    REQUIRE(rig.wait_state(0, ENPU_QUEUE_STATE_FAULTED));
    rig.write32(ENPU_REG_QUEUE_CTRL(0), 0);
    CHECK(rig.state(0) == ENPU_QUEUE_STATE_DISABLED);
}

TEST_CASE("A queue whose job hangs stops with the reset of the engine, which then works again") {
    Rig rig(mode(false));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    rig.inject(ENPU_FAULT_KIND_ENGINE_HANG, 0, 0);
    rig.push(queue, Commands().nop());
    REQUIRE(rig.wait_reg(ENPU_REG_FAULT_FIRED(ENPU_FAULT_KIND_ENGINE_HANG), ~0u, 1));
    rig.write32(ENPU_REG_QUEUE_CTRL(0), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(rig.state(0) == ENPU_QUEUE_STATE_STOPPING);
    CHECK(rig.read32(ENPU_REG_ENGINE_QUEUE(0)) == 0);  // the watchdog sees who hangs
    rig.write32(ENPU_REG_ENGINE_CTRL(0), ENPU_ENGINE_CTRL_RESET);
    REQUIRE(rig.wait_reg(ENPU_REG_ENGINE_CTRL(0), ENPU_ENGINE_CTRL_RESET, 0));
    REQUIRE(rig.wait_state(0, ENPU_QUEUE_STATE_DISABLED));
    auto next = rig.queue(1, 0);
    CHECK(rig.wait_fence(next, rig.push(next, Commands().nop())));
}

TEST_CASE("A hang ends with its fault and the job goes on") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    rig.inject(ENPU_FAULT_KIND_ENGINE_HANG, 0, 0);
    rig.push(queue, Commands().nop());
    REQUIRE(rig.wait_reg(ENPU_REG_FAULT_FIRED(ENPU_FAULT_KIND_ENGINE_HANG), ~0u, 1));
    rig.write32(ENPU_REG_FAULT_ARM, 0);
    CHECK(rig.wait_fence(queue, 1));
}

TEST_CASE("STOP keeps the job at a packet boundary") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    rig.write32(ENPU_REG_ENGINE_CTRL(0), ENPU_ENGINE_CTRL_STOP);
    rig.push(queue, Commands().nop());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(rig.fence(queue) == 0);
    CHECK(rig.read32(ENPU_REG_ENGINE_CTRL(0)) == ENPU_ENGINE_CTRL_STOP);
    CHECK(rig.read32(ENPU_REG_ENGINE_STATUS(0)) == ENPU_ENGINE_STATE_STOPPED);
    rig.write32(ENPU_REG_ENGINE_CTRL(0), 0);
    CHECK(rig.wait_fence(queue, 1));
}

TEST_CASE("STOP in the middle of a packet lets it end first") {
    LongCopy rig;
    rig.begin();
    rig.write32(ENPU_REG_ENGINE_CTRL(rig.engine), ENPU_ENGINE_CTRL_STOP);
    rig.quick();
    REQUIRE(rig.wait_for([&] {
        return ENPU_FIELD_GET(ENPU_ENGINE_STATUS_STATE,
                              rig.read32(ENPU_REG_ENGINE_STATUS(rig.engine))) ==
               ENPU_ENGINE_STATE_STOPPED;
    }));
    CHECK(rig.read32(ENPU_REG_ENGINE_QUEUE(rig.engine)) == 0);
    CHECK(has_pattern(rig, rig.target, kBytes));
    CHECK(rig.fence(rig.job) == 0);
    // Its queue can be taken away meanwhile.
    rig.write32(ENPU_REG_QUEUE_CTRL(0), 0);
    REQUIRE(rig.wait_state(0, ENPU_QUEUE_STATE_DISABLED));
    CHECK(rig.read64(ENPU_REG_QUEUE_RESUME(0)) == 16 + sizeof(enpu_copy_packet));
    CHECK(rig.read32(ENPU_REG_ENGINE_QUEUE(rig.engine)) == ~0u);
    rig.enable(rig.job, rig.engine);
    rig.write32(ENPU_REG_ENGINE_CTRL(rig.engine), 0);
    CHECK(rig.wait_fence(rig.job, 1));
    CHECK(rig.counter(ENPU_OPCODE_COPY) == 1);
}

TEST_CASE("After a device reset nothing touches guest memory, and the device is new") {
    const bool power_on = GENERATE(true, false);
    LongCopy rig;
    rig.begin();
    rig.write64(ENPU_REG_SCRATCH, 1);
    if (power_on)
        enpu_model_reset(rig.model);
    else
        rig.reset_device();
    CHECK(rig.read32(ENPU_REG_STATUS) == ENPU_STATUS_READY);
    const uint64_t reads = rig.ram.reads, writes = rig.ram.writes;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK(rig.ram.reads == reads);
    CHECK(rig.ram.writes == writes);
    CHECK(rig.read64(ENPU_REG_SCRATCH) == 0);
    CHECK(rig.read32(ENPU_REG_QUEUE_CTRL(0)) == 0);
    CHECK(rig.state(0) == ENPU_QUEUE_STATE_DISABLED);
    CHECK(rig.read64(ENPU_REG_AS_ROOT(Rig::kAs)) == 0);
    CHECK(rig.read32(ENPU_REG_CTRL) == 0);
    CHECK(rig.read32(ENPU_REG_ERR_COUNT) == 0);
    CHECK(rig.counter(ENPU_COUNTER_PACKETS) == 0);
    CHECK(rig.read32(ENPU_REG_RESET_COUNT) == 1);
    // Power-on counters stay.
    CHECK(rig.read32(ENPU_REG_FAULT_FIRED(ENPU_FAULT_KIND_ENGINE_SLOW)) > 0);

    rig.quick();
    rig.set_up();
    rig.enable(rig.job, rig.engine);  // the tables and the ring are still in guest memory
    rig.write64(ENPU_REG_QUEUE_ADDR(1), 0);
    auto queue = rig.queue(2, rig.engine);
    REQUIRE(
        rig.wait_fence(queue, rig.push(queue, Commands().copy(rig.target, rig.source, kBytes))));
    CHECK(has_pattern(rig, rig.target, kBytes));
}

TEST_CASE("Resets again and again while queues are busy") {
    Options options;
    options.cores = 2;
    Rig rig(options);
    const uint64_t from = rig.buffer(1 << 20);
    const uint64_t to[] = {rig.buffer(1 << 20), rig.buffer(1 << 20), rig.buffer(1 << 20)};
    for (int round = 0; round < 50; ++round) {
        rig.set_up();
        for (uint32_t i = 0; i < 3; ++i) {
            auto queue = rig.queue(i, i);
            rig.push(queue, Commands().copy(to[i], from, 1 << 20).fill(to[i], 1 << 20, 1, 1));
        }
        if (round % 3 == 0)
            enpu_model_reset(rig.model);
        else
            rig.reset_device();
        CHECK(rig.read32(ENPU_REG_QUEUE_CTRL(0)) == 0);
    }
    rig.set_up();
    auto queue = rig.queue(0, 0);
    CHECK(rig.wait_fence(queue, rig.push(queue, Commands().nop())));
}

TEST_CASE("A reset can fail, and a harder one helps") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    rig.inject(ENPU_FAULT_KIND_ENGINE_HANG, 0);
    rig.inject(ENPU_FAULT_KIND_RESET_FAILS, ~0u, 0, 2);
    rig.push(queue, Commands().nop());
    REQUIRE(rig.wait_reg(ENPU_REG_FAULT_FIRED(ENPU_FAULT_KIND_ENGINE_HANG), ~0u, 1));
    rig.write32(ENPU_REG_ENGINE_CTRL(0), ENPU_ENGINE_CTRL_RESET);
    rig.write32(ENPU_REG_CTRL, ENPU_CTRL_RESET);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(rig.read32(ENPU_REG_ENGINE_CTRL(0)) & ENPU_ENGINE_CTRL_RESET);
    CHECK((rig.read32(ENPU_REG_STATUS) & (ENPU_STATUS_READY | ENPU_STATUS_RESETTING)) ==
          ENPU_STATUS_RESETTING);
    CHECK(rig.read32(ENPU_REG_FAULT_FIRED(ENPU_FAULT_KIND_RESET_FAILS)) == 2);
    if (GENERATE(true, false))
        enpu_model_reset(rig.model);
    else
        rig.reset_device();
    CHECK(rig.read32(ENPU_REG_STATUS) == ENPU_STATUS_READY);
    rig.set_up();
    auto next = rig.queue(1, 0);
    CHECK(rig.wait_fence(next, rig.push(next, Commands().nop())));
}

TEST_CASE("While the machine is stopped guest memory does not change") {
    LongCopy rig;
    auto waiter = rig.queue(1, 0);
    rig.push(waiter, Commands().wait(rig.buffer(4096), 1, 1000));
    rig.begin();
    enpu_model_stop(rig.model);
    const uint64_t writes = rig.ram.writes, reads = rig.ram.reads;
    const uint64_t progress = rig.read64(ENPU_REG_ENGINE_PROGRESS(rig.engine));
    auto late = rig.queue(2, 0);
    rig.push(late, Commands().nop());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK(rig.ram.writes == writes);
    CHECK(rig.ram.reads == reads);
    CHECK(rig.read64(ENPU_REG_ENGINE_PROGRESS(rig.engine)) == progress);
    CHECK(rig.read32(ENPU_REG_ENGINE_QUEUE(rig.engine)) == 0);
    enpu_model_start(rig.model);
    CHECK(rig.wait_fence(rig.job, 1));
    CHECK(rig.wait_fence(late, 1));
    CHECK(has_pattern(rig, rig.target, kBytes));
}

TEST_CASE("Stopping does not wait for a hang, a reset works while stopped") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    rig.inject(ENPU_FAULT_KIND_ENGINE_HANG, 0);
    rig.push(queue, Commands().nop());
    REQUIRE(rig.wait_reg(ENPU_REG_FAULT_FIRED(ENPU_FAULT_KIND_ENGINE_HANG), ~0u, 1));
    enpu_model_stop(rig.model);
    CHECK(rig.read32(ENPU_REG_ENGINE_QUEUE(0)) == 0);
    enpu_model_reset(rig.model);
    CHECK(rig.read32(ENPU_REG_ENGINE_QUEUE(0)) == ~0u);
    enpu_model_start(rig.model);
    rig.set_up();
    auto next = rig.queue(1, 0);
    CHECK(rig.wait_fence(next, rig.push(next, Commands().nop())));
}

TEST_CASE("A device can go away in the middle of its work") {
    for (int round = 0; round < 20; ++round) {
        Options options;
        options.cores = 2;
        options.ram_bytes = 8 << 20;
        options.local_bytes = 2 << 20;
        Rig rig(options);
        rig.set_up();
        const uint64_t from = rig.buffer(1 << 20), to = rig.buffer(1 << 20);
        const uint64_t other = rig.buffer(1 << 20);
        auto one = rig.queue(0, 0), two = rig.queue(1, 2), three = rig.queue(2, 1);
        rig.inject(ENPU_FAULT_KIND_ENGINE_HANG, 1);
        rig.push(three, Commands().nop());
        rig.push(one, Commands().copy(to, from, 1 << 20).wait(from, 1));
        rig.push(two, Commands().copy(other, from, 1 << 20));
    }
}
