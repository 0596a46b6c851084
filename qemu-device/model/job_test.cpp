// SPDX-License-Identifier: MIT
// Jobs from ring to completion.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "test/rig.h"

using namespace enpu::test;

namespace {

Options mode(bool sync) {
    Options options;
    options.sync = sync;
    return options;
}

void put_pattern(Rig& rig, uint64_t va, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; ++i) *rig.host(va + i) = std::byte(i * 7 + (i >> 9));
}

bool has_pattern(Rig& rig, uint64_t va, uint64_t bytes, uint64_t from = 0) {
    for (uint64_t i = 0; i < bytes; ++i)
        if (*rig.host(va + i) != std::byte((from + i) * 7 + ((from + i) >> 9))) return false;
    return true;
}

}  // namespace

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
