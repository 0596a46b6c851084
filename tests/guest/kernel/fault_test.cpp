// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "kernel_device.h"

namespace enpu::test {
namespace {

TEST_CASE("an access to memory that is not mapped fails the job and fills the record") {
    Fixture f;
    Buffer good(f.device, kPage);
    good.at(kVa);
    // The record names the second packet.
    REQUIRE(f.submit(f.copy, Commands().nop().copy(kVa, kVa + 0x555000, 64), 0xabcdef) == 0);
    REQUIRE(f.device.syncobj_wait(f.done) == 0);
    const auto status = f.device.status(f.ctx);
    CHECK(status.error == -EFAULT);
    CHECK(status.failed_seqno == 1);
    CHECK(status.failed_job_id == 0xabcdef);
    CHECK(status.fault_va == kVa + 0x555000);
    CHECK(status.packet == 16);
    CHECK(status.hw_status == ENPU_STATUS_MMU_FAULT);
    CHECK(status.opcode == ENPU_OPCODE_COPY);
    CHECK(status.guilty == 1);
    CHECK(status.failed_jobs == 1);
    CHECK(status.completed == 1);
}

TEST_CASE("a guilty context stays guilty, others and new ones work") {
    Fixture f;
    uint32_t innocent = 0;
    REQUIRE(f.device.context(&innocent) == 0);
    f.run(0, Commands().fill(0x7000'0000'0000, 16, 1));
    CHECK(f.device.status(f.ctx).guilty == 1);
    CHECK(f.submit(0, Commands().nop()) == -ENOTRECOVERABLE);
    CHECK(f.submit(f.copy, Commands().nop()) == -ENOTRECOVERABLE);

    const uint32_t bytes = Commands().nop().write_to(f.commands.data());
    for (uint32_t engine : {0u, f.copy})
        REQUIRE(Submit(innocent, engine, Fixture::kCmdVa, bytes).signal(f.done).send(f.device) ==
                0);
    CHECK(f.device.syncobj_wait(f.done) == 0);
    CHECK(f.device.status(innocent).error == 0);

    REQUIRE(f.device.context_destroy(f.ctx) == 0);
    REQUIRE(f.device.context(&f.ctx) == 0);
    f.run(0, Commands().nop());
    CHECK(f.device.status(f.ctx).error == 0);
}

TEST_CASE("jobs behind a failed one are cancelled, and their fences signal") {
    Fixture f;
    Buffer words(f.device, kPage);
    words.at(kVa);
    const uint32_t bad = Commands()
                             .wait(kVa, 1, 30'000'000)
                             .fill(0x7000'0000'0000, 16, 1)
                             .write_to(f.commands.data());
    const uint32_t fill = Commands().fill(kVa + 64, 8, 9).write_to(f.commands.data() + kPage);
    REQUIRE(Submit(f.ctx, 0, Fixture::kCmdVa, bad).send(f.device) == 0);
    REQUIRE(Submit(f.ctx, 0, Fixture::kCmdVa + kPage, fill).signal(f.done).send(f.device) == 0);
    uint32_t other = 0;
    REQUIRE(f.device.context(&other) == 0);
    const uint32_t go = Commands().signal(kVa, 1).write_to(f.commands.data() + 2 * kPage);
    REQUIRE(Submit(other, f.copy, Fixture::kCmdVa + 2 * kPage, go).send(f.device) == 0);

    REQUIRE(f.device.syncobj_wait(f.done) == 0);
    const auto status = f.device.status(f.ctx);
    CHECK(status.error == -EFAULT);
    CHECK(status.failed_seqno == 1);
    CHECK(status.failed_jobs == 2);
    CHECK(status.completed == 2);
    CHECK(words.data()[64] == 0);
}

TEST_CASE("a packet that the device refuses is -EBADMSG") {
    Fixture f;
    SECTION("unknown opcode") {
        const enpu_packet packet{0x3f, 0, 16, 0};
        f.run(0, Commands().raw(&packet, sizeof(packet)));
        CHECK(f.device.status(f.ctx).opcode == 0x3f);
    }
    SECTION("a size that passes the command buffer") {
        const enpu_packet packet{ENPU_OPCODE_NOP, 0, 4096, 0};
        f.run(0, Commands().raw(&packet, sizeof(packet)));
    }
    SECTION("a size of zero") {
        const enpu_packet packet{ENPU_OPCODE_NOP, 0, 0, 0};
        f.run(0, Commands().raw(&packet, sizeof(packet)));
    }
    SECTION("flags that must be zero") {
        const enpu_packet packet{ENPU_OPCODE_NOP, 1, 16, 0};
        f.run(0, Commands().raw(&packet, sizeof(packet)));
    }
    const auto status = f.device.status(f.ctx);
    CHECK(status.error == -EBADMSG);
    CHECK(status.guilty == 1);
    CHECK(status.hw_status != ENPU_STATUS_OK);
}

TEST_CASE("a command buffer that is not mapped is an MMU fault") {
    Fixture f;
    REQUIRE(Submit(f.ctx, 0, 0x6000'0000'0000, 64).signal(f.done).send(f.device) == 0);
    REQUIRE(f.device.syncobj_wait(f.done) == 0);
    CHECK(f.device.status(f.ctx).error == -EFAULT);
    CHECK(f.device.status(f.ctx).fault_va == 0x6000'0000'0000);
}

TEST_CASE("the rights of a mapping hold for the device") {
    Fixture f;
    Buffer a(f.device, kPage), b(f.device, kPage);
    const bool write = GENERATE(false, true);
    REQUIRE(f.device.map(kVa, a.handle(), kPage, 0,
                         write ? DRM_ENPU_MAP_WRITE : DRM_ENPU_MAP_READ) == 0);
    b.at(kVa + kLargePage);
    // Write-only memory is not read, read-only memory is not written.
    if (write)
        f.run(f.copy, Commands().copy(kVa + kLargePage, kVa, 8));
    else
        f.run(f.copy, Commands().copy(kVa, kVa + kLargePage, 8));
    CHECK(f.device.status(f.ctx).error == -EFAULT);
    CHECK(f.device.status(f.ctx).fault_va == kVa);
}

TEST_CASE("memory that was unmapped is out of reach at once") {
    Fixture f;
    Buffer buffer(f.device, kLargePage, DRM_ENPU_BO_LOCAL), page(f.device, kPage);
    buffer.at(kVa);
    page.at(kVa + 2 * kLargePage);
    // Warm the TLB of the engine.
    f.run(f.copy,
          Commands().copy(kVa + 2 * kLargePage, kVa, kPage).copy(kVa, kVa + 2 * kLargePage, 8));
    REQUIRE(f.device.unmap(kVa, kLargePage) == 0);
    f.run(f.copy, Commands().copy(kVa + 2 * kLargePage, kVa, 8));
    CHECK(f.device.status(f.ctx).error == -EFAULT);
}

TEST_CASE("a forged address of another file faults that job only") {
    Fixture victim, attacker;
    Buffer secret(victim.device, kPage), loot(attacker.device, kPage);
    secret.at(kVa);
    loot.at(kVa + kLargePage);
    memset(secret.data(), 0x99, kPage);
    // kVa is mapped in the victim's address space only.
    attacker.run(attacker.copy, Commands().copy(kVa + kLargePage, kVa, kPage));
    CHECK(attacker.device.status(attacker.ctx).error == -EFAULT);
    attacker.device.context_destroy(attacker.ctx);
    REQUIRE(attacker.device.context(&attacker.ctx) == 0);
    attacker.run(attacker.copy, Commands().fill(kVa, kPage, 0));
    CHECK(attacker.device.status(attacker.ctx).error == -EFAULT);

    for (size_t i = 0; i < kPage; i++) {
        REQUIRE(loot.data()[i] == 0);
        REQUIRE(secret.data()[i] == 0x99);
    }
    victim.run(victim.copy, Commands().nop());
    CHECK(victim.device.status(victim.ctx).error == 0);
}

TEST_CASE("a WAIT that times out is -ETIMEDOUT") {
    Fixture f;
    Buffer word(f.device, kPage);
    word.at(kVa);
    f.run(0, Commands().wait(kVa, 1, 100'000));
    const auto status = f.device.status(f.ctx);
    CHECK(status.error == -ETIMEDOUT);
    CHECK(status.hw_status == ENPU_STATUS_WAIT_TIMEOUT);
}

TEST_CASE("more failures than the error FIFO holds are all reported") {
    Fixture f;
    std::vector<uint32_t> contexts;
    const uint32_t bytes = Commands().fill(0x7000'0000'0000, 16, 1).write_to(f.commands.data());
    // One failure each: a context takes no job after its first.
    for (int i = 0; i < 60; i++) {
        uint32_t ctx = 0;
        REQUIRE(f.device.context(&ctx) == 0);
        contexts.push_back(ctx);
    }
    std::vector<uint32_t> ends;
    for (uint32_t ctx : contexts)
        for (uint32_t engine : {0u, f.copy}) {
            const uint32_t end = f.device.syncobj();
            const int ret = Submit(ctx, engine, Fixture::kCmdVa, bytes).signal(end).send(f.device);
            // The second finds the context guilty already, or not yet.
            CHECK((ret == 0 || ret == -ENOTRECOVERABLE));
            if (ret == 0) ends.push_back(end);
        }
    for (uint32_t end : ends) CHECK(f.device.syncobj_wait(end) == 0);
    for (uint32_t ctx : contexts) {
        CHECK(f.device.status(ctx).error == -EFAULT);
        CHECK(f.device.context_destroy(ctx) == 0);
    }
    f.run(0, Commands().nop());
}

}  // namespace
}  // namespace enpu::test
