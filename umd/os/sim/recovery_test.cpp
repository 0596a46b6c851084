// SPDX-License-Identifier: MIT
// Injected faults on the simulator: what hangs, gets lost or breaks, and how it is told.
#include <time.h>

#include <atomic>
#include <thread>

#include "tests/device_fixture.h"

using namespace enpu;
using namespace enpu::test;

namespace {

struct Faults {
    Device device =
        Device::open("sim:cores=2,threads=1,copy-engines=2,local-mem=64M,fault-injection=on");
    Context context = make();
    Timeline timeline = Timeline::create(device);
    Buffer buffer = Buffer::create(device, 4096, ENPU_BUFFER_HOST);
    uint64_t point = 0;

    Context make() const {
        const enpu_context_config config = {ENPU_PRIORITY_NORMAL, 600, 0, 0};
        return Context::create(device, &config);
    }
    void inject(const char* faults) {
        check([&](enpu_error* e) { return enpu_device_inject_faults(device.get(), faults, e); });
    }
    uint32_t fired(uint32_t kind) const {
        uint32_t count = 0;
        check([&](enpu_error* e) {
            return enpu_device_get_faults_fired(device.get(), kind, &count, nullptr, e);
        });
        return count;
    }
    Command fill(uint64_t offset, uint8_t value) const {
        Builder builder(device, ENPU_ENGINE_KIND_COMPUTE);
        check([&](enpu_error* e) {
            return enpu_build_fill(builder.get(), buffer.get(), offset, 64, value, 1, e);
        });
        return builder.finish();
    }
    int run(const Context& where, uint32_t engine, const Command& command, enpu_error* error) {
        where.submit(engine, command, {}, {timeline.at(++point)});
        return enpu_context_wait(where.get(), timeline.get(), point, soon(), error);
    }
};

}  // namespace

TEST_CASE_METHOD(Faults, "a hung engine is reset and only its context pays") {
    const auto other = make();
    inject("engine-hang:engine=0");
    const auto hung = fill(0, 1), good = fill(64, 2);
    const auto theirs = Timeline::create(device);
    context.submit(0, hung, {}, {timeline.at(++point)});
    // Once it occupies its engine, one job comes to wait behind it and one runs beside it.
    expect_failure(
        [&](enpu_error* e) {
            return enpu_timeline_wait(timeline.get(), point, enpu_deadline_after(150'000'000), e);
        },
        -ETIME, {"deadline"});
    other.submit(0, good, {}, {theirs.at(1)});
    other.submit(1, fill(128, 3), {}, {theirs.at(2)});
    expect_failure(
        [&](enpu_error* e) {
            return enpu_context_wait(context.get(), timeline.get(), point, soon(), e);
        },
        -ETIMEDOUT, {"no progress"});
    REQUIRE(context.status().guilty == 1);
    REQUIRE(context.status().reset_count == 1);
    other.wait(theirs, 2, soon());
    REQUIRE(other.status().code == 0);
    REQUIRE(take<uint8_t>(buffer, 64, 64) == std::vector<uint8_t>(64, 2));
    REQUIRE(take<uint8_t>(buffer, 64, 128) == std::vector<uint8_t>(64, 3));
    REQUIRE(run(make(), 0, hung, nullptr) == 0);
}

TEST_CASE_METHOD(Faults, "a lost interrupt delays a job but does not lose it") {
    inject("irq-lost:times=always");
    enpu_error error = {};
    REQUIRE(run(context, 0, fill(0, 7), &error) == 0);
    REQUIRE(take<uint8_t>(buffer, 64) == std::vector<uint8_t>(64, 7));
}

TEST_CASE_METHOD(Faults, "a lost doorbell is rung again") {
    inject("doorbell-ignored");
    enpu_error error = {};
    REQUIRE(run(context, 0, fill(0, 8), &error) == 0);
    REQUIRE(take<uint8_t>(buffer, 64) == std::vector<uint8_t>(64, 8));
}

TEST_CASE_METHOD(Faults, "memory errors fail the job with their own code") {
    inject("ecc-uncorrected");
    expect_failure([&](enpu_error* e) { return run(context, 0, fill(0, 9), e); }, -EREMOTEIO,
                   {"memory error"});
    enpu_error error = {};
    REQUIRE(run(make(), 0, fill(0, 9), &error) == 0);
}

TEST_CASE_METHOD(Faults, "a wrong fence word is not believed") {
    inject("fence-corrupted:arg=0xffff0000");
    enpu_error error = {};
    REQUIRE(run(context, 0, fill(0, 5), &error) == 0);
    REQUIRE(take<uint8_t>(buffer, 64) == std::vector<uint8_t>(64, 5));
    REQUIRE(fired(ENPU_FAULT_KIND_FENCE_CORRUPTED) == 1);
}

TEST_CASE("faults of the options and of the environment are armed from the start") {
    setenv("ENPU_SIM_FAULTS", "ecc-corrected:times=2", 1);
    const auto device =
        Device::open("sim:cores=1,faults=irq-lost:vector=0;ecc-uncorrected:after=9");
    unsetenv("ENPU_SIM_FAULTS");
    REQUIRE((device.info().features & ENPU_CAP_FEATURES_FAULT_INJECTION) != 0);
    const auto context = Context::create(device);
    const auto timeline = Timeline::create(device);
    Builder builder(device, ENPU_ENGINE_KIND_COMPUTE);
    const auto buffer = Buffer::create(device, 4096, ENPU_BUFFER_HOST);
    check([&](enpu_error* e) {
        return enpu_build_fill(builder.get(), buffer.get(), 0, 64, 1, 1, e);
    });
    const auto command = builder.finish();
    uint64_t point = 0;
    const auto run = [&](enpu_error* e) {
        context.submit(0, command, {}, {timeline.at(++point)});
        return enpu_context_wait(context.get(), timeline.get(), point, soon(), e);
    };
    for (int i = 0; i < 9; ++i) REQUIRE(run(nullptr) == 0);
    expect_failure(run, -EREMOTEIO, {"memory error"});
    uint32_t fired = 0;
    uint64_t last_ns = 0;
    check([&](enpu_error* e) {
        return enpu_device_get_faults_fired(device.get(), ENPU_FAULT_KIND_ECC_CORRECTED, &fired,
                                            &last_ns, e);
    });
    REQUIRE(fired == 2);
    REQUIRE(last_ns != 0);

    setenv("ENPU_SIM_FAULTS", "irq-lost:engine=0", 1);
    expect_failure(
        [](enpu_error* e) {
            enpu_device* opened = nullptr;
            return enpu_device_open("sim", &opened, e);
        },
        -EINVAL, {"no such key", "engine=0"});
    unsetenv("ENPU_SIM_FAULTS");
}

TEST_CASE_METHOD(Faults, "injection is checked, and refused where it is off") {
    const auto refused = [&](const char* faults, int code, const char* why) {
        CAPTURE(faults);
        expect_failure(
            [&](enpu_error* e) { return enpu_device_inject_faults(device.get(), faults, e); }, code,
            {why});
    };
    refused("", -EINVAL, "no kind");
    refused("engine-hang;bang", -EINVAL, "at 'bang'");
    refused("engine-hang:queue=1", -EINVAL, "no such key");
    refused("engine-hang:engine=4", -ENOSPC, "target 4");
    const auto plain = Device::open("sim");
    expect_failure([&](enpu_error* e) { return enpu_device_inject_faults(plain.get(), "none", e); },
                   -EOPNOTSUPP, {"fault-injection=on"});
}

TEST_CASE_METHOD(Faults, "a device closes with a hung job on it") {
    inject("engine-hang:engine=0");
    context.submit(0, fill(0, 1), {}, {timeline.at(++point)});
    expect_failure(
        [&](enpu_error* e) {
            return enpu_timeline_wait(timeline.get(), point, enpu_deadline_after(20'000'000), e);
        },
        -ETIME, {"deadline"});
    // Everything goes out of scope here, the job still on the engine.
}

TEST_CASE_METHOD(Faults, "a device that is pulled out is told as lost, at once") {
    const auto hung = fill(0, 1);
    inject("engine-hang:engine=0");
    context.submit(0, hung, {}, {timeline.at(++point)});
    context.submit(0, hung, {}, {timeline.at(++point)});
    const int64_t start = enpu_deadline_after(0);
    inject("removed");
    expect_failure(
        [&](enpu_error* e) {
            return enpu_context_wait(context.get(), timeline.get(), point, soon(), e);
        },
        -ENODEV, {"job 1", "the device was removed"});
    REQUIRE(enpu_deadline_after(0) - start < 5'000'000'000);
    enpu_error error = {};
    REQUIRE(enpu_submit(context.get(), 0, hung.get(), nullptr, 0, nullptr, 0, 0, nullptr, &error) ==
            -ENODEV);
    enpu_context* made = nullptr;
    REQUIRE(enpu_context_create(device.get(), nullptr, &made, &error) == -ENODEV);
    enpu_memory_info memory;
    REQUIRE(enpu_device_get_memory(device.get(), &memory, &error) == -ENODEV);
    REQUIRE(std::string(error.message).find("ENODEV") != std::string::npos);
}

TEST_CASE_METHOD(Faults, "a device that no reset brings back is lost") {
    inject("engine-hang:engine=0;reset-fails:times=always");
    expect_failure([&](enpu_error* e) { return run(context, 0, fill(0, 1), e); }, -EIO,
                   {"does not answer"});
    enpu_context* made = nullptr;
    enpu_error error = {};
    REQUIRE(enpu_context_create(device.get(), nullptr, &made, &error) == -EIO);
}

TEST_CASE_METHOD(Faults, "a context with a hung job ends long before the job's own time") {
    const enpu_context_config patient = {ENPU_PRIORITY_NORMAL, 60'000, 0, 0};
    inject("engine-hang:engine=0");
    const int64_t start = enpu_deadline_after(0);
    {
        const auto dying = Context::create(device, &patient);
        dying.submit(0, fill(0, 1), {}, {timeline.at(++point)});
        expect_failure(
            [&](enpu_error* e) {
                return enpu_timeline_wait(timeline.get(), point, enpu_deadline_after(50'000'000),
                                          e);
            },
            -ETIME, {"deadline"});
    }
    check([&](enpu_error* e) {
        return enpu_timeline_wait(timeline.get(), point, enpu_deadline_after(8'000'000'000), e);
    });
    REQUIRE(enpu_deadline_after(0) - start < 8'000'000'000);
    REQUIRE(run(context, 0, fill(0, 2), nullptr) == 0);  // the engine is free again
}

// The status of a job is in memory before its record is in the FIFO.
TEST_CASE("a record that comes after its job's status is waited for") {
    Fixture f;
    const auto command = f.host(64), busy = f.host(64);
    put(command, std::vector<enpu_packet>{{ENPU_OPCODE_NOP, 0, 16, 0}, {0x3f, 0, 16, 0}});
    put(busy, std::vector<enpu_packet>{{ENPU_OPCODE_NOP, 0, 16, 0}});
    std::atomic<bool> stop{false};
    // Interrupts of another engine make the scheduler look all the time.
    std::thread other([&] {
        const auto context = Context::create(f.device);
        const auto timeline = Timeline::create(f.device);
        for (uint64_t point = 1; !stop; ++point) {
            const enpu_point signal = timeline.at(point);
            enpu_submit_raw(context.get(), f.copy_engine(), busy.va(), 16, nullptr, 0, &signal, 1,
                            0, nullptr, nullptr);
            enpu_timeline_wait(timeline.get(), point, soon(), nullptr);
        }
    });
    uint32_t told = 0;
    constexpr uint32_t kJobs = 5000;
    for (uint32_t i = 0; i < kJobs; ++i) {
        enpu_error error = {};
        f.run_raw(0, command.va(), 32, &error);
        told += f.context.status().opcode == 0x3f && f.context.status().packet == 16;
        f.renew_context();
    }
    stop = true;
    other.join();
    CHECK(told == kJobs);
}

TEST_CASE("an idle simulator uses no CPU") {
    const auto device = Device::open("sim");
    const auto used = [] {
        timespec time;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
        return time.tv_sec * 1'000'000'000L + time.tv_nsec;
    };
    const auto before = used();
    timespec pause = {0, 300'000'000};
    nanosleep(&pause, nullptr);
    REQUIRE(used() - before < 15'000'000);
}
