// SPDX-License-Identifier: MIT
#include <catch2/catch_test_macros.hpp>

#include "kernel_device.h"

namespace enpu::test {
namespace {

constexpr auto kShort = std::chrono::milliseconds(60);

uint64_t word_at(const Buffer& buffer) {
    uint64_t value;
    memcpy(&value, buffer.data(), 8);
    return value;
}

TEST_CASE("a job waits for a binary syncobj of another engine") {
    Fixture f;
    Buffer words(f.device, kPage);
    words.at(kVa);
    const uint32_t first = f.device.syncobj();
    // The first job is parked until the word is 1; the second, on another engine, must not run
    // before it.
    const uint32_t wait = Commands().wait(kVa, 1, 30'000'000).write_to(f.commands.data());
    REQUIRE(Submit(f.ctx, 0, Fixture::kCmdVa, wait).signal(first).send(f.device) == 0);
    const uint32_t fill = Commands().fill(kVa + 64, 8, 5, 8).write_to(f.commands.data() + kPage);
    REQUIRE(Submit(f.ctx, f.copy, Fixture::kCmdVa + kPage, fill)
                .wait(first)
                .signal(f.done)
                .send(f.device) == 0);
    CHECK(f.device.syncobj_wait(f.done, 0, deadline(kShort)) == -ETIME);
    CHECK(words.data()[64] == 0);

    const uint32_t go = Commands().signal(kVa, 1).write_to(f.commands.data() + 2 * kPage);
    REQUIRE(Submit(f.ctx, f.copy + 1, Fixture::kCmdVa + 2 * kPage, go).send(f.device) == 0);
    REQUIRE(f.device.syncobj_wait(f.done) == 0);
    CHECK(words.data()[64] == 5);
    f.device.syncobj_destroy(first);
}

TEST_CASE("two contexts on one engine obey a syncobj") {
    Fixture f;
    Buffer words(f.device, kPage);
    words.at(kVa);
    uint32_t other = 0;
    REQUIRE(f.device.context(&other) == 0);
    const uint32_t first = f.device.syncobj();
    const uint32_t wait = Commands().wait(kVa, 1, 30'000'000).write_to(f.commands.data());
    REQUIRE(Submit(f.ctx, 0, Fixture::kCmdVa, wait).signal(first).send(f.device) == 0);
    const uint32_t fill = Commands().fill(kVa + 64, 8, 5, 8).write_to(f.commands.data() + kPage);
    REQUIRE(
        Submit(other, 0, Fixture::kCmdVa + kPage, fill).wait(first).signal(f.done).send(f.device) ==
        0);
    // Both are jobs of one scheduler: handing over the first does not release the second.
    CHECK(f.device.syncobj_wait(f.done, 0, deadline(kShort)) == -ETIME);
    CHECK(words.data()[64] == 0);
    const uint32_t go = Commands().signal(kVa, 1).write_to(f.commands.data() + 2 * kPage);
    REQUIRE(Submit(f.ctx, f.copy, Fixture::kCmdVa + 2 * kPage, go).send(f.device) == 0);
    REQUIRE(f.device.syncobj_wait(f.done) == 0);
    CHECK(words.data()[64] == 5);
    f.device.syncobj_destroy(first);
    f.device.context_destroy(other);
}

TEST_CASE("timeline points have 64 bits") {
    Fixture f;
    const uint32_t timeline = f.device.syncobj();
    constexpr uint64_t kHigh = 0x1'0000'0000ull;
    const uint32_t bytes = Commands().nop().write_to(f.commands.data());
    // Were a point cut to 32 bits, kHigh + 1 would be 1 and this wait already over.
    REQUIRE(Submit(f.ctx, 0, Fixture::kCmdVa, bytes).signal(timeline, 1).send(f.device) == 0);
    REQUIRE(f.device.syncobj_wait(timeline, 1) == 0);
    CHECK(Submit(f.ctx, 0, Fixture::kCmdVa, bytes).wait(timeline, kHigh + 1).send(f.device) ==
          -EINVAL);
    REQUIRE(Submit(f.ctx, 0, Fixture::kCmdVa, bytes).signal(timeline, kHigh + 1).send(f.device) ==
            0);
    REQUIRE(Submit(f.ctx, f.copy, Fixture::kCmdVa, bytes)
                .wait(timeline, kHigh + 1)
                .signal(timeline, kHigh + 2)
                .send(f.device) == 0);
    CHECK(f.device.syncobj_wait(timeline, kHigh + 2) == 0);
    f.device.syncobj_destroy(timeline);
}

TEST_CASE("a wait for what nobody has submitted is refused, and without effect") {
    Fixture f;
    const uint32_t empty = f.device.syncobj();
    const uint32_t bytes = Commands().nop().write_to(f.commands.data());
    CHECK(Submit(f.ctx, 0, Fixture::kCmdVa, bytes).signal(f.done).wait(empty).send(f.device) ==
          -EINVAL);
    CHECK(Submit(f.ctx, 0, Fixture::kCmdVa, bytes).wait(empty, 3).send(f.device) == -EINVAL);
    CHECK(f.device.syncobj_wait(f.done, 0, deadline(kShort)) == -ETIME);
    CHECK(f.device.status(f.ctx).submitted == 0);
    // The CPU signals a point, and then it counts as submitted.
    REQUIRE(f.device.syncobj_signal(empty, 3) == 0);
    CHECK(Submit(f.ctx, 0, Fixture::kCmdVa, bytes).wait(empty, 3).signal(f.done).send(f.device) ==
          0);
    CHECK(f.device.syncobj_wait(f.done) == 0);
    f.device.syncobj_destroy(empty);
}

TEST_CASE("as many sync operations as allowed work together") {
    Fixture f;
    const uint32_t timeline = f.device.syncobj();
    const uint32_t bytes = Commands().nop().write_to(f.commands.data());
    Submit submit(f.ctx, 0, Fixture::kCmdVa, bytes);
    for (uint64_t i = 1; i <= ENPU_MAX_SYNC_OPS; i++) submit.signal(timeline, i);
    REQUIRE(submit.send(f.device) == 0);
    CHECK(f.device.syncobj_wait(timeline, ENPU_MAX_SYNC_OPS) == 0);
    f.device.syncobj_destroy(timeline);
}

TEST_CASE("BO_WAIT knows readers and writers that SUBMIT named") {
    Fixture f;
    Buffer gate(f.device, kPage), read(f.device, kPage), unused(f.device, kPage);
    gate.at(kVa);
    const uint32_t bytes = Commands().wait(kVa, 1, 30'000'000).write_to(f.commands.data());
    REQUIRE(Submit(f.ctx, 0, Fixture::kCmdVa, bytes)
                .uses(read.handle(), DRM_ENPU_SUBMIT_BO_READ)
                .uses(gate.handle(), DRM_ENPU_SUBMIT_BO_WRITE)
                .signal(f.done)
                .send(f.device) == 0);
    CHECK(f.device.bo_wait(gate.handle(), deadline(kShort), 0) == -ETIME);
    CHECK(f.device.bo_wait(read.handle(), 0, 0) == 0);
    CHECK(f.device.bo_wait(read.handle(), 0, DRM_ENPU_BO_WAIT_WRITE) == -ETIME);
    CHECK(f.device.bo_wait(unused.handle(), 0) == 0);
    const uint32_t go = Commands().signal(kVa, 1).write_to(f.commands.data() + kPage);
    REQUIRE(Submit(f.ctx, f.copy, Fixture::kCmdVa + kPage, go).send(f.device) == 0);
    CHECK(f.device.bo_wait(read.handle(), soon()) == 0);
    CHECK(f.device.bo_wait(gate.handle(), soon()) == 0);
    CHECK(word_at(gate) == 1);
}

TEST_CASE("BO_WAIT of a private buffer waits for all jobs of the file") {
    Fixture f;
    Buffer gate(f.device, kPage, DRM_ENPU_BO_HOST | DRM_ENPU_BO_PRIVATE);
    gate.at(kVa);
    REQUIRE(f.submit(0, Commands().wait(kVa, 1, 30'000'000)) == 0);
    CHECK(f.device.bo_wait(gate.handle(), deadline(kShort)) == -ETIME);
    const uint32_t go = Commands().signal(kVa, 1).write_to(f.commands.data() + kPage);
    REQUIRE(Submit(f.ctx, f.copy, Fixture::kCmdVa + kPage, go).send(f.device) == 0);
    CHECK(f.device.bo_wait(gate.handle(), soon()) == 0);
}

TEST_CASE("a shared buffer orders jobs of two files by itself") {
    Fixture writer, reader;
    Buffer shared(writer.device, kPage), gate(writer.device, kPage), result(reader.device, kPage);
    gate.at(kVa);
    shared.at(kVa + kLargePage);
    result.at(kVa);
    int fd = -1;
    uint32_t imported = 0;
    REQUIRE(writer.device.export_fd(shared.handle(), &fd) == 0);
    REQUIRE(reader.device.import_fd(fd, &imported) == 0);
    REQUIRE(reader.device.map(kVa + kLargePage, imported, kPage) == 0);

    const uint32_t write = Commands()
                               .wait(kVa, 1, 30'000'000)
                               .fill(kVa + kLargePage, 16, 0x77)
                               .write_to(writer.commands.data());
    REQUIRE(Submit(writer.ctx, 0, Fixture::kCmdVa, write)
                .uses(shared.handle(), DRM_ENPU_SUBMIT_BO_WRITE)
                .send(writer.device) == 0);
    const uint32_t read =
        Commands().copy(kVa, kVa + kLargePage, 16).write_to(reader.commands.data());
    REQUIRE(Submit(reader.ctx, reader.copy, Fixture::kCmdVa, read)
                .uses(imported, DRM_ENPU_SUBMIT_BO_READ)
                .signal(reader.done)
                .send(reader.device) == 0);
    CHECK(reader.device.syncobj_wait(reader.done, 0, deadline(kShort)) == -ETIME);
    const uint32_t go = Commands().signal(kVa, 1).write_to(writer.commands.data() + kPage);
    REQUIRE(Submit(writer.ctx, writer.copy, Fixture::kCmdVa + kPage, go).send(writer.device) == 0);
    REQUIRE(reader.device.syncobj_wait(reader.done) == 0);
    CHECK(result.data()[0] == 0x77);
    CHECK(result.data()[15] == 0x77);
}

}  // namespace
}  // namespace enpu::test
