// SPDX-License-Identifier: MIT
// What fails, how it is told, and that the next job runs.
#include "tests/device_fixture.h"

using namespace enpu;
using namespace enpu::test;

namespace {

// A command buffer that no check of the library has seen.
Buffer forged_copy(const Fixture& f, uint64_t dst, uint64_t src, uint64_t bytes) {
    const auto buffer = f.host(sizeof(enpu_copy_packet));
    const enpu_copy_packet copy = {
        {ENPU_OPCODE_COPY, 0, sizeof(copy), 42}, dst, src, bytes, 1, 0, bytes, bytes};
    put(buffer, std::vector<enpu_copy_packet>{copy});
    return buffer;
}

void expect_healthy(Fixture& f) {
    f.renew_context();
    const auto in = f.host(64), out = f.host(64);
    put(in, std::vector<uint64_t>(8, 0x5a5a));
    f.copy(out, 0, in, 0, 64, f.copy_engine());
    REQUIRE(take<uint64_t>(out, 8) == std::vector<uint64_t>(8, 0x5a5a));
}

}  // namespace

TEST_CASE("a forged VA faults its job only, and says where") {
    Fixture f;
    const auto target = f.host(4096);
    const uint64_t hole = uint64_t{1} << 45;
    const auto command = forged_copy(f, target.va(), hole, 64);
    expect_failure(
        [&](enpu_error* e) {
            return f.run_raw(f.copy_engine(), command.va(), sizeof(enpu_copy_packet), e);
        },
        -EFAULT, {"0x200000000000", "copy", "byte 0", "id 77"});
    const auto status = f.context.status();
    REQUIRE(status.code == -EFAULT);
    REQUIRE(status.guilty == 1);
    REQUIRE(status.fault_va == hole);
    REQUIRE(status.failed_seqno == 1);
    REQUIRE(status.failed_job_id == 77);
    REQUIRE(status.hw_status == ENPU_STATUS_MMU_FAULT);
    REQUIRE(status.opcode == ENPU_OPCODE_COPY);
    REQUIRE(status.failed_jobs == 1);

    Builder builder(f.device, ENPU_ENGINE_KIND_COPY);
    check([&](enpu_error* e) { return enpu_build_nop(builder.get(), e); });
    const auto nop = builder.finish();
    expect_failure(
        [&](enpu_error* e) {
            return enpu_submit(f.context.get(), f.copy_engine(), nop.get(), nullptr, 0, nullptr, 0,
                               0, nullptr, e);
        },
        -ENOTRECOVERABLE, {"takes no more jobs", "0x200000000000"});
    expect_healthy(f);
}

TEST_CASE("the page behind a buffer is never mapped") {
    Fixture f;
    const auto in = f.host(4096), out = f.host(8192);
    const auto command = forged_copy(f, out.va(), in.va() + 4096 - 8, 16);
    expect_failure(
        [&](enpu_error* e) {
            return f.run_raw(f.copy_engine(), command.va(), sizeof(enpu_copy_packet), e);
        },
        -EFAULT, {"VA"});
    REQUIRE(f.context.status().fault_va == in.va() + 4096);
    expect_healthy(f);
}

TEST_CASE("a packet that only the device has seen is refused by the same rule") {
    Fixture f;
    const auto buffer = f.host(4096);
    const enpu_fill_packet fill = {
        {ENPU_OPCODE_FILL, 0, sizeof(fill), 0}, buffer.va(), 62, 0, 4, 0};
    const auto command = f.host(64);
    put(command, std::vector<enpu_fill_packet>{fill});
    expect_failure(
        [&](enpu_error* e) { return f.run_raw(f.copy_engine(), command.va(), sizeof(fill), e); },
        -EBADMSG, {"refused", "fill", "rule"});
    REQUIRE(f.context.status().rule != 0);
    f.renew_context();

    put(command, std::vector<enpu_packet>{{0x3f, 0, 16, 0}});
    expect_failure([&](enpu_error* e) { return f.run_raw(0, command.va(), 16, e); }, -EBADMSG,
                   {"opcode 63"});
    f.renew_context();

    // A command buffer that is not mapped.
    expect_failure([&](enpu_error* e) { return f.run_raw(0, uint64_t{1} << 44, 16, e); }, -EFAULT,
                   {"0x100000000000"});
    expect_healthy(f);
}

TEST_CASE("an address and a size that no command buffer has") {
    Fixture f;
    const auto command = f.host(64);
    expect_failure([&](enpu_error* e) { return f.run_raw(0, command.va() + 8, 16, e); }, -EINVAL,
                   {"submit"});
    expect_failure([&](enpu_error* e) { return f.run_raw(0, command.va(), 0, e); }, -EINVAL,
                   {"submit"});
    expect_failure([&](enpu_error* e) { return f.run_raw(0, command.va(), 24, e); }, -EINVAL,
                   {"submit"});
    expect_failure([&](enpu_error* e) { return f.run_raw(0, command.va(), 0xfffffff0u, e); },
                   -EINVAL, {"submit"});
}

TEST_CASE("jobs behind a failed one are cancelled, those of other contexts are not") {
    Fixture f;
    const auto other = Context::create(f.device);
    const auto out = f.host(64), flag = f.host(8);
    const auto gate = Timeline::create(f.device), theirs = Timeline::create(f.device);
    // The first job waits until everything is queued.
    Builder builder(f.device, ENPU_ENGINE_KIND_COPY);
    check([&](enpu_error* e) {
        return enpu_build_wait(builder.get(), flag.get(), 0, 1, 10'000'000, e);
    });
    f.context.submit(f.copy_engine(), builder.finish(), {}, {gate.at(1)});
    const auto bad = forged_copy(f, out.va(), uint64_t{1} << 45, 64);
    const enpu_point signal = gate.at(2);
    check([&](enpu_error* e) {
        return enpu_submit_raw(f.context.get(), f.copy_engine(), bad.va(), sizeof(enpu_copy_packet),
                               nullptr, 0, &signal, 1, 5, nullptr, e);
    });
    check([&](enpu_error* e) {
        return enpu_build_fill(builder.get(), out.get(), 0, 64, 0xee, 1, e);
    });
    const auto fill = builder.finish();
    f.context.submit(f.copy_engine(), fill, {}, {gate.at(3)});
    other.submit(f.copy_engine(), fill, {gate.at(3)}, {theirs.at(1)});
    Builder kick(f.device, ENPU_ENGINE_KIND_COMPUTE);
    check([&](enpu_error* e) { return enpu_build_signal(kick.get(), flag.get(), 0, 1, e); });
    other.submit(0, kick.finish(), {}, {theirs.at(2)});

    expect_failure(
        [&](enpu_error* e) { return enpu_context_wait(f.context.get(), gate.get(), 3, soon(), e); },
        -EFAULT, {"id 5"});
    REQUIRE(f.context.status().failed_jobs == 2);
    REQUIRE(f.context.status().failed_seqno == 2);
    // A point is reached even when its job was cancelled: the other context went on and did its
    // work.
    other.wait(theirs, 2, soon());
    REQUIRE(take<uint8_t>(out, 64) == std::vector<uint8_t>(64, 0xee));
    expect_healthy(f);
}

TEST_CASE("a WAIT packet runs out of time") {
    Fixture f;
    const auto flag = f.host(8);
    Builder builder(f.device, ENPU_ENGINE_KIND_COPY);
    check(
        [&](enpu_error* e) { return enpu_build_wait(builder.get(), flag.get(), 0, 1, 20'000, e); });
    const auto command = builder.finish();
    f.context.submit(f.copy_engine(), command, {}, {f.timeline.at(++f.point)});
    expect_failure(
        [&](enpu_error* e) {
            return enpu_context_wait(f.context.get(), f.timeline.get(), f.point, soon(), e);
        },
        -ETIMEDOUT, {"wait", "out of time"});
    expect_healthy(f);
}

TEST_CASE("contexts: limits and bad configurations") {
    Fixture f;
    const auto create = [&](enpu_context_config config) {
        return [&f, config](enpu_error* error) {
            enpu_context* context = nullptr;
            const int result = enpu_context_create(f.device.get(), &config, &context, error);
            enpu_context_release(context);
            return result;
        };
    };
    expect_failure(create({3, 0, 0, 0}), -EINVAL, {"priority 3"});
    expect_failure(create({1, 700'000, 0, 0}), -EINVAL, {"700000"});
    expect_failure(create({1, 0, 20'000, 0}), -EINVAL, {"20000"});
    std::vector<Context> contexts;
    int code = 0;
    while (code == 0 && contexts.size() < 100) {
        try {
            contexts.push_back(Context::create(f.device));
        } catch (const Error& error) {
            code = error.code();
        }
    }
    REQUIRE(code == -ENOSPC);
    REQUIRE(contexts.size() == 63);  // and the fixture's own

    contexts.clear();
    const enpu_context_config small = {ENPU_PRIORITY_LOW, 0, 2, 0};
    const auto context = Context::create(f.device, &small);
    const auto flag = f.host(8);
    Builder builder(f.device, ENPU_ENGINE_KIND_COPY);
    check([&](enpu_error* e) {
        return enpu_build_wait(builder.get(), flag.get(), 0, 1, 10'000'000, e);
    });
    const auto command = builder.finish();
    const auto timeline = Timeline::create(f.device);
    context.submit(f.copy_engine(), command, {}, {timeline.at(1)});
    context.submit(f.copy_engine(), command, {}, {timeline.at(2)});
    const enpu_point third = timeline.at(3);
    expect_failure(
        [&](enpu_error* e) {
            return enpu_submit(context.get(), f.copy_engine(), command.get(), nullptr, 0, &third, 1,
                               0, nullptr, e);
        },
        -EAGAIN, {"maximum of unfinished jobs"});
    Builder kick(f.device, ENPU_ENGINE_KIND_COMPUTE);
    check([&](enpu_error* e) { return enpu_build_signal(kick.get(), flag.get(), 0, 1, e); });
    f.run(0, kick.finish());
    context.wait(timeline, 2, soon());
    context.submit(f.copy_engine(), command, {}, {timeline.at(3)});
    context.wait(timeline, 3, soon());
}

TEST_CASE("a released context lets go of its jobs") {
    Fixture f;
    const auto flag = f.host(8);
    const auto timeline = Timeline::create(f.device);
    {
        const auto context = Context::create(f.device);
        Builder builder(f.device, ENPU_ENGINE_KIND_COPY);
        check([&](enpu_error* e) {
            return enpu_build_wait(builder.get(), flag.get(), 0, 1, 60'000'000, e);
        });
        context.submit(f.copy_engine(), builder.finish(), {}, {timeline.at(1)});
    }
    timeline.wait(1, soon());
    expect_healthy(f);
}
