// SPDX-License-Identifier: MIT
// Jobs from ring to completion.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "test/pattern.h"

using namespace enpu::test;

TEST_CASE("A job of a NOP completes") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    auto queue = rig.queue(3, 0);
    const uint64_t fence = rig.push(queue, Commands().nop());
    REQUIRE(rig.wait_fence(queue, fence));
    const enpu_completion record = rig.completion(queue, 0);
    CHECK(record.fence == fence);
    CHECK(record.status == ENPU_STATUS_OK);
    CHECK(record.start_ns != 0);
    CHECK(record.end_ns >= record.start_ns);
    CHECK(rig.header(queue).head == 1);
    CHECK(rig.wait_for([&] { return rig.irqs[1] == 1; }));
    CHECK(rig.read32(ENPU_REG_IRQ_PENDING) == 2);
    CHECK(rig.wait_state(3, ENPU_QUEUE_STATE_IDLE));
    CHECK(rig.read64(ENPU_REG_QUEUE_FENCE(3)) == fence);
    CHECK(rig.read64(ENPU_REG_ENGINE_JOBS(0)) == 1);
    CHECK(rig.counter(ENPU_COUNTER_JOBS) == 1);
    CHECK(rig.counter(ENPU_OPCODE_NOP) == 1);
    CHECK(rig.read32(ENPU_REG_ERR_COUNT) == 0);
}

TEST_CASE("The interrupt of a job does not wait for the jobs behind it") {
    Rig rig(mode(false));
    rig.set_up();
    auto queue = rig.queue(0, rig.copy_engine());
    const uint64_t bytes = 9 << 20;
    const uint64_t source = rig.buffer(bytes), target = rig.local_buffer(bytes);
    std::atomic<uint64_t> done_at_first{0};
    rig.on_irq = [&](uint32_t) {
        uint64_t none = 0;
        done_at_first.compare_exchange_strong(none, rig.fence(queue));
    };
    const auto copies = [&] {
        Commands commands;
        for (int i = 0; i < 8; ++i) commands.copy(target, source, bytes);
        return commands;
    };
    uint64_t fence = 0;
    for (int job = 0; job < 4; ++job) fence = rig.push(queue, copies());
    REQUIRE(rig.wait_fence(queue, fence));
    CHECK(rig.wait_for([&] { return done_at_first != 0; }));
    CHECK(done_at_first == 1);
}

TEST_CASE("COPY between guest and local memory, across pages") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    auto queue = rig.queue(0, rig.copy_engine());
    const uint64_t bytes = 9 << 20;
    const uint64_t source = rig.buffer(bytes), local = rig.local_buffer(bytes);
    const uint64_t target = rig.buffer(bytes);
    put_pattern(rig, source, bytes);
    rig.push(queue, Commands().copy(local + 5, source + 3, bytes - 100));
    const uint64_t fence = rig.push(queue, Commands().copy(target + 1, local + 5, bytes - 100));
    REQUIRE(rig.wait_fence(queue, fence));
    CHECK(has_pattern(rig, target + 1, bytes - 100, 3));
    CHECK(*rig.host(target) == std::byte{0});
    CHECK(*rig.host(target + 1 + bytes - 100) == std::byte{0});
    CHECK(rig.counter(ENPU_OPCODE_COPY) == 2);
    CHECK(rig.counter(ENPU_COUNTER_COPY_BYTES) == 2 * (bytes - 100));
}

TEST_CASE("COPY in two dimensions, and FILL with each pattern") {
    Rig rig(mode(true));
    rig.set_up();
    auto queue = rig.queue(0, rig.copy_engine());
    const uint64_t source = rig.buffer(64 << 10), target = rig.local_buffer(64 << 10);
    put_pattern(rig, source, 64 << 10);
    rig.push(queue, Commands().copy_2d(target + 3, 300, source + 1, 500, 200, 100));
    REQUIRE(rig.fence(queue) == 1);
    for (uint64_t row = 0; row < 100; ++row) {
        CHECK(has_pattern(rig, target + 3 + row * 300, 200, 1 + row * 500));
        CHECK(*rig.host(target + 3 + row * 300 + 200) == std::byte{0});
    }
    for (uint32_t size : {1u, 2u, 4u, 8u}) {
        const uint64_t pattern = 0x8877665544332211;
        rig.push(queue, Commands().fill(source + 4096 - size, 3 * size, pattern, size));
        REQUIRE(rig.fence(queue) == queue.tail);
        for (uint64_t i = 0; i < 3 * size; ++i)
            CHECK(*rig.host(source + 4096 - size + i) == std::byte(pattern >> (8 * (i % size))));
    }
    CHECK(rig.counter(ENPU_OPCODE_FILL) == 4);
}

TEST_CASE("Packets of a job run in order, SIGNAL and TIMESTAMP write words") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    const uint64_t words = rig.local_buffer(4096);
    const uint64_t before = rig.read64(ENPU_REG_TIMESTAMP);
    const uint64_t fence = rig.push(queue, Commands()
                                               .signal(words, 11)
                                               .copy(words + 64, words, 8)
                                               .barrier()
                                               .signal(words, 12)
                                               .timestamp(words + 8));
    REQUIRE(rig.wait_fence(queue, fence));
    uint64_t values[9];
    std::memcpy(values, rig.host(words), sizeof(values));
    CHECK(values[0] == 12);
    CHECK(values[8] == 11);
    CHECK(values[1] >= before);
    CHECK(values[1] <= rig.read64(ENPU_REG_TIMESTAMP));
    CHECK(rig.counter(ENPU_COUNTER_PACKETS) == 5);
    rig.write32(ENPU_REG_AS_CTRL(Rig::kAs), ENPU_AS_CTRL_CLEAR);
    CHECK(rig.counter(ENPU_COUNTER_PACKETS) == 0);
}

TEST_CASE("A packet that breaks a rule fails its job with a full record") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    auto queue = rig.queue(5, rig.copy_engine());
    const uint64_t va = rig.buffer(4096);
    Commands commands;
    commands.nop();
    enpu_copy_packet bad{};
    bad.header = {ENPU_OPCODE_COPY, 0, sizeof(bad), 0xabcdef};
    bad.dst = va;
    bad.src = 1ull << 48;
    bad.width = 16;
    bad.height = 1;
    commands.raw(&bad, sizeof(bad));
    rig.push(queue, commands);
    REQUIRE(rig.wait_state(5, ENPU_QUEUE_STATE_FAULTED));
    CHECK(rig.error(5) == ENPU_STATUS_BAD_OPERAND);
    CHECK(rig.fence(queue) == 0);
    const enpu_completion completion = rig.completion(queue, 0);
    CHECK(completion.status == ENPU_STATUS_BAD_OPERAND);
    CHECK(completion.packet == 16);
    CHECK(rig.header(queue).status == ENPU_STATUS_BAD_OPERAND);
    CHECK(rig.wait_for([&] { return rig.irqs[0] == 1; }));
    CHECK(rig.irqs[1 + rig.copy_engine()] == 0);
    REQUIRE(rig.read32(ENPU_REG_ERR_COUNT) == 1);
    const enpu_error_record record = rig.error_record();
    CHECK(record.kind == ENPU_STATUS_BAD_OPERAND);
    CHECK(record.engine == rig.copy_engine());
    CHECK(record.queue == 5);
    CHECK(record.as_id == Rig::kAs);
    CHECK(record.packet == 16);
    CHECK(record.opcode == ENPU_OPCODE_COPY);
    CHECK(record.cause == 1);
    CHECK(record.rule != 0);
    CHECK(record.tag == 0xabcdef);
    CHECK(record.fence == 1);
    CHECK(record.job_id == 1001);
    CHECK(record.detail == 1ull << 48);
    CHECK(record.time_ns != 0);
    rig.pop_error();
    CHECK(rig.read32(ENPU_REG_ERR_COUNT) == 0);
    CHECK(rig.error_record().kind == 0);
    CHECK(rig.counter(ENPU_COUNTER_JOBS_FAILED) == 1);

    // Another queue of the engine goes on.
    auto other = rig.queue(6, rig.copy_engine());
    CHECK(rig.wait_fence(other, rig.push(other, Commands().nop())));
}

TEST_CASE("Kinds of bad packets have their own status") {
    Rig rig(mode(true));
    rig.set_up();
    const auto status = [&](const enpu_packet& packet, uint32_t engine) {
        auto queue = rig.queue(0, engine);
        rig.push(queue, Commands().raw(&packet, sizeof(packet)));
        const enpu_status error = rig.error(0);
        rig.write32(ENPU_REG_QUEUE_CTRL(0), 0);
        return error;
    };
    CHECK(status({200, 0, 16, 0}, 0) == ENPU_STATUS_ILLEGAL_PACKET);
    CHECK(status({ENPU_OPCODE_NOP, 1, 16, 0}, 0) == ENPU_STATUS_ILLEGAL_PACKET);
    CHECK(status({ENPU_OPCODE_NOP, 0, 32, 0}, 0) == ENPU_STATUS_ILLEGAL_PACKET);
    CHECK(status({ENPU_OPCODE_NOP, 0, 0, 0}, 0) == ENPU_STATUS_ILLEGAL_PACKET);
    CHECK(status({ENPU_OPCODE_COPY, 0, 64, 0}, 0) == ENPU_STATUS_ILLEGAL_PACKET);
    CHECK(status({ENPU_OPCODE_UNARY, 0, 320, 0}, 0) == ENPU_STATUS_ILLEGAL_PACKET);
}

TEST_CASE("Many short rows are no long tile") {
    Rig rig(mode(true));
    rig.set_up();
    auto queue = rig.queue(0, rig.copy_engine());
    const uint64_t source = rig.buffer(128 << 10), target = rig.local_buffer(256 << 10);
    put_pattern(rig, source, 128 << 10);
    rig.push(queue, Commands().copy_2d(target, 2, source, 1, 1, 100'000));
    REQUIRE(rig.fence(queue) == 1);
    CHECK(rig.counter(ENPU_COUNTER_TILES) >= 6);
    for (uint64_t row = 0; row < 100'000; ++row)
        REQUIRE(*rig.host(target + 2 * row) == *rig.host(source + row));
}

TEST_CASE("What the guest changes under a running job does not reach the checked copy") {
    Rig rig(mode(true));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    const uint64_t va = rig.buffer(4096), word = rig.buffer(4096);
    Commands commands;
    commands.signal(word, 1).copy(va + 64, va, 8);
    // The first write of the job is the SIGNAL: from there on the command buffer is rubbish.
    const uint64_t target = GuestRam::kBase + (rig.host(va) - rig.ram.data());
    std::byte* buffer = nullptr;
    rig.ram.watch_reads([&](uint64_t bus) {
        if (bus == target && buffer) std::memset(buffer, 0xff, commands.bytes().size());
    });
    enpu_ring_entry entry{};
    entry.cmd_va = rig.buffer(4096);
    buffer = rig.host(entry.cmd_va);
    std::memcpy(buffer, commands.bytes().data(), commands.bytes().size());
    entry.cmd_bytes = static_cast<uint32_t>(commands.bytes().size());
    entry.fence = 1;
    rig.push_entry(queue, entry);
    CHECK(rig.fence(queue) == 1);
    CHECK(buffer[0] == std::byte{0xff});
}
