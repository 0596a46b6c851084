// SPDX-License-Identifier: MIT
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "kernel_device.h"

namespace enpu::test {
namespace {

TEST_CASE("a NOP job runs on every engine") {
    Fixture f;
    const auto info = f.device.info();
    for (uint32_t engine = 0; engine < info.compute_engines + info.copy_engines; engine++)
        f.run(engine, Commands().nop());
    const auto status = f.device.status(f.ctx);
    CHECK(status.error == 0);
    CHECK(status.guilty == 0);
    CHECK(status.submitted == info.compute_engines + info.copy_engines);
    CHECK(status.completed == status.submitted);
}

TEST_CASE("a COPY and a FILL job move the right bytes") {
    Fixture f;
    Buffer a(f.device, 4 * kPage), b(f.device, 4 * kPage);
    a.at(kVa);
    b.at(kVa + kLargePage);
    for (size_t i = 0; i < a.size(); i++) a.data()[i] = static_cast<uint8_t>(i * 7 + 3);
    memset(b.data(), 0xee, b.size());
    f.run(f.copy, Commands().copy(kVa + kLargePage + 100, kVa + 33, 3 * kPage + 5));
    CHECK(b.data()[99] == 0xee);
    CHECK(memcmp(b.data() + 100, a.data() + 33, 3 * kPage + 5) == 0);
    CHECK(b.data()[100 + 3 * kPage + 5] == 0xee);

    f.run(0, Commands().fill(kVa + 8, 64, 0x1122334455667788, 8));
    uint64_t word;
    memcpy(&word, a.data() + 64, 8);
    CHECK(word == 0x1122334455667788);
    CHECK(a.data()[7] == static_cast<uint8_t>(7 * 7 + 3));
    CHECK(a.data()[72] == static_cast<uint8_t>(72 * 7 + 3));
}

TEST_CASE("more jobs than a ring has entries run in order") {
    Fixture f;
    Buffer word(f.device, kPage);
    word.at(kVa);
    constexpr uint64_t kJobs = 400;
    for (uint64_t i = 0; i < kJobs; i++) {
        const auto offset = (i % 500) * 32;
        Submit submit(f.ctx, 0, Fixture::kCmdVa + offset,
                      Commands().signal(kVa, i + 1).write_to(f.commands.data() + offset));
        if (i + 1 == kJobs) submit.signal(f.done);
        REQUIRE(submit.send(f.device) == 0);
        CHECK(submit.args.seqno == i + 1);
    }
    REQUIRE(f.device.syncobj_wait(f.done) == 0);
    uint64_t value;
    memcpy(&value, word.data(), 8);
    CHECK(value == kJobs);
    CHECK(f.device.status(f.ctx).completed == kJobs);
}

TEST_CASE("SUBMIT checks every argument") {
    Fixture f;
    const auto info = f.device.info();
    const uint32_t bytes = Commands().nop().write_to(f.commands.data());
    const auto send = [&](auto change) {
        Submit submit(f.ctx, 0, Fixture::kCmdVa, bytes);
        change(submit);
        return submit.send(f.device);
    };
    CHECK(send([](Submit& s) { s.args.ctx_id = 0; }) == -ENOENT);
    CHECK(send([](Submit& s) { s.args.ctx_id = 63; }) == -ENOENT);
    CHECK(send([&](Submit& s) { s.args.engine = info.compute_engines + info.copy_engines; }) ==
          -EINVAL);
    CHECK(send([](Submit& s) { s.args.engine = ~0u; }) == -EINVAL);
    CHECK(send([](Submit& s) { s.args.cmd_va += 8; }) == -EINVAL);
    CHECK(send([](Submit& s) { s.args.cmd_va = 0; }) == -EINVAL);
    CHECK(send([](Submit& s) {
              s.args.cmd_va = ENPU_VA_END - 16;
              s.args.cmd_bytes = 32;
          }) == -EINVAL);
    CHECK(send([](Submit& s) { s.args.cmd_va = ~0ull - 15; }) == -EINVAL);
    CHECK(send([](Submit& s) { s.args.cmd_bytes = 0; }) == -EINVAL);
    CHECK(send([](Submit& s) { s.args.cmd_bytes = 17; }) == -EINVAL);
    CHECK(send([&](Submit& s) { s.args.cmd_bytes = info.max_command_bytes + 16; }) == -EINVAL);
    CHECK(send([](Submit& s) { s.args.flags = 1; }) == -EINVAL);
    CHECK(send([](Submit& s) { s.args.pad = 1; }) == -EINVAL);
    CHECK(send([](Submit& s) { s.args.seqno = 1; }) == -EINVAL);
    CHECK(f.device.status(f.ctx).submitted == 0);
}

TEST_CASE("SUBMIT checks its arrays") {
    Fixture f;
    Buffer buffer(f.device, kPage);
    const uint32_t bytes = Commands().nop().write_to(f.commands.data());
    const auto send = [&](auto change) {
        Submit submit(f.ctx, 0, Fixture::kCmdVa, bytes);
        submit.signal(f.done);
        submit.uses(buffer.handle(), DRM_ENPU_SUBMIT_BO_READ);
        change(submit);
        return submit.send(f.device);
    };
    const auto raw = [&](auto change) {
        Submit submit(f.ctx, 0, Fixture::kCmdVa, bytes);
        submit.signal(f.done);
        submit.args.syncs = reinterpret_cast<uintptr_t>(submit.syncs.data());
        submit.args.sync_count = 1;
        change(submit.args);
        return f.device.call(DRM_IOCTL_ENPU_SUBMIT, &submit.args);
    };
    CHECK(send([](Submit& s) { s.args.sync_stride = 8; }) == -EINVAL);
    CHECK(send([](Submit& s) { s.args.sync_stride = 1u << 20; }) == -EINVAL);
    CHECK(send([](Submit& s) { s.syncs[0].flags = 2; }) == -EINVAL);
    CHECK(send([](Submit& s) { s.syncs[0].handle = 0x7777; }) == -ENOENT);
    CHECK(send([](Submit& s) { s.bos[0].flags = 0; }) == -EINVAL);
    CHECK(send([](Submit& s) { s.bos[0].flags = 4; }) == -EINVAL);
    CHECK(send([](Submit& s) { s.bos[0].handle = 0x7777; }) == -ENOENT);
    CHECK(raw([](auto& a) { a.sync_count = ENPU_MAX_SYNC_OPS + 1; }) == -EINVAL);
    CHECK(raw([](auto& a) { a.syncs = 16; }) == -EFAULT);
    CHECK(raw([](auto& a) {
              a.bo_count = 1;
              a.bos = 16;
          }) == -EFAULT);
    CHECK(raw([](auto& a) { a.bo_count = ENPU_MAX_SUBMIT_BOS + 1; }) == -EINVAL);
    CHECK(f.device.status(f.ctx).submitted == 0);

    SECTION("a larger stride is fine when what follows is zero") {
        struct Wide {
            drm_enpu_sync_op op;
            uint64_t more;
        } wide[2] = {};
        wide[0].op = wide[1].op = {f.done, DRM_ENPU_SYNC_SIGNAL, 0};
        const auto strided = [&](auto& a) {
            a.syncs = reinterpret_cast<uintptr_t>(wide);
            a.sync_count = 2;
            a.sync_stride = sizeof(Wide);
        };
        CHECK(raw(strided) == 0);
        wide[1].more = 1;
        CHECK(raw(strided) == -EINVAL);
        CHECK(f.device.syncobj_wait(f.done) == 0);
    }
    SECTION("a buffer may be named twice, for reading and for writing") {
        CHECK(send([&](Submit& s) { s.uses(buffer.handle(), DRM_ENPU_SUBMIT_BO_WRITE); }) == 0);
        CHECK(f.device.bo_wait(buffer.handle(), soon()) == 0);
    }
}

TEST_CASE("a context limits its unfinished jobs") {
    Fixture f;
    Buffer word(f.device, kPage);
    word.at(kVa);
    uint32_t ctx = 0;
    REQUIRE(f.device.context(&ctx, 0, 3) == 0);
    const uint32_t bytes = Commands().wait(kVa, 1, 30'000'000).write_to(f.commands.data());
    const auto send = [&] {
        return Submit(ctx, 0, Fixture::kCmdVa, bytes).signal(f.done).send(f.device);
    };
    for (int i = 0; i < 3; i++) REQUIRE(send() == 0);
    CHECK(send() == -EAGAIN);
    CHECK(f.device.status(ctx).submitted == 3);
    const uint64_t one = 1;
    memcpy(word.data(), &one, 8);
    // The device looks again at a parked wait when anything signals.
    Submit kick(f.ctx, f.copy, Fixture::kCmdVa + kPage,
                Commands().signal(kVa, 1).write_to(f.commands.data() + kPage));
    REQUIRE(kick.send(f.device) == 0);
    REQUIRE(f.device.syncobj_wait(f.done) == 0);
    CHECK(send() == 0);
    CHECK(f.device.context_destroy(ctx) == 0);
}

TEST_CASE("contexts are limited, checked and forgotten") {
    Device device;
    uint32_t id = 0;
    drm_enpu_ctx_create args{};
    const auto create = [&](auto change) {
        args = {};
        args.priority = DRM_ENPU_PRIORITY_NORMAL;
        change(args);
        return device.call(DRM_IOCTL_ENPU_CTX_CREATE, &args);
    };
    CHECK(create([](auto& a) { a.priority = 3; }) == -EINVAL);
    CHECK(create([](auto& a) { a.flags = 1; }) == -EINVAL);
    CHECK(create([](auto& a) { a.pad = 1; }) == -EINVAL);
    CHECK(create([](auto& a) { a.ctx_id = 1; }) == -EINVAL);
    CHECK(create([](auto& a) { a.timeout_ms = 600'001; }) == -EINVAL);
    CHECK(create([](auto& a) { a.max_jobs = ENPU_MAX_JOBS + 1; }) == -EINVAL);
    CHECK(create([](auto& a) { a.priority = DRM_ENPU_PRIORITY_LOW; }) == 0);
    CHECK(device.context_destroy(args.ctx_id) == 0);
    CHECK(device.context_destroy(args.ctx_id) == -ENOENT);
    drm_enpu_ctx_status status{};
    status.ctx_id = args.ctx_id;
    CHECK(device.call(DRM_IOCTL_ENPU_CTX_STATUS, &status) == -ENOENT);
    for (int i = 0; i < ENPU_MAX_CONTEXTS; i++) REQUIRE(device.context(&id) == 0);
    CHECK(device.context(&id) == -ENOSPC);
}

TEST_CASE("destroying a context cancels what is parked in the hardware") {
    Fixture f;
    Buffer word(f.device, kPage);
    word.at(kVa);
    uint32_t ctx = 0;
    REQUIRE(f.device.context(&ctx) == 0);
    const uint32_t bytes = Commands().wait(kVa, 1, 30'000'000).write_to(f.commands.data());
    REQUIRE(Submit(ctx, 0, Fixture::kCmdVa, bytes).signal(f.done).send(f.device) == 0);
    CHECK(f.device.syncobj_wait(f.done, 0, deadline(std::chrono::milliseconds(50))) == -ETIME);
    REQUIRE(f.device.context_destroy(ctx) == 0);
    CHECK(f.device.syncobj_wait(f.done) == 0);
    // The engine serves the next.
    f.run(0, Commands().nop());
}

}  // namespace
}  // namespace enpu::test
