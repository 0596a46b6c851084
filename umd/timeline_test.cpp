// SPDX-License-Identifier: MIT
#include "tests/device_fixture.h"

#include <thread>

using namespace enpu;
using namespace enpu::test;

namespace {

Command nop(const Fixture& f, uint32_t kind) {
    Builder builder(f.device, kind);
    check([&](enpu_error* e) { return enpu_build_nop(builder.get(), e); });
    return builder.finish();
}

}  // namespace

TEST_CASE("timeline goes up only") {
    Fixture f;
    const auto timeline = Timeline::create(f.device, 5);
    REQUIRE(timeline.query() == 5);
    timeline.wait(5, 0);
    timeline.signal(0x1'0000'0007);
    REQUIRE(timeline.query() == 0x1'0000'0007);
    expect_failure([&](enpu_error* e) { return enpu_timeline_signal(timeline.get(), 7, e); },
                   -EINVAL, {"7 is not larger"});
    expect_failure(
        [&](enpu_error* e) { return enpu_timeline_signal(timeline.get(), 0x1'0000'0007, e); },
        -EINVAL, {"not larger"});
}

TEST_CASE("a wait ends at its deadline, and not before") {
    Fixture f;
    const auto timeline = Timeline::create(f.device);
    expect_failure([&](enpu_error* e) { return enpu_timeline_wait(timeline.get(), 1, 0, e); },
                   -ETIME, {"deadline", "reached 1"});
    // Of all lengths: a clock that counts ticks may be wrong about some only.
    for (uint64_t ns = 300'000; ns < 50'000'000; ns += 1'700'000) {
        const int64_t deadline = enpu_deadline_after(ns);
        expect_failure(
            [&](enpu_error* e) { return enpu_timeline_wait(timeline.get(), 1, deadline, e); },
            -ETIME, {"deadline"});
        REQUIRE(enpu_deadline_after(0) >= deadline);
    }
    REQUIRE(enpu_deadline_after(UINT64_MAX) == INT64_MAX);
}

TEST_CASE("threads wait for points that others signal later") {
    Fixture f;
    const auto timeline = Timeline::create(f.device);
    std::vector<std::thread> threads;
    std::atomic<int> woken{0};
    for (uint64_t value = 1; value <= 4; ++value) {
        threads.emplace_back([&, value] {
            timeline.wait(value * 10, soon());
            if (timeline.query() >= value * 10) ++woken;
        });
    }
    for (uint64_t value = 1; value <= 4; ++value) timeline.signal(value * 10);
    for (auto& thread : threads) thread.join();
    REQUIRE(woken == 4);
}

TEST_CASE("any of several points tells which") {
    Fixture f;
    const auto a = Timeline::create(f.device);
    const auto b = Timeline::create(f.device);
    const enpu_point points[] = {a.at(1), b.at(1)};
    size_t first = 9;
    expect_failure(
        [&](enpu_error* e) { return enpu_timelines_wait(points, 2, true, 0, &first, e); }, -ETIME,
        {"2 timelines"});
    b.signal(1);
    check([&](enpu_error* e) { return enpu_timelines_wait(points, 2, true, soon(), &first, e); });
    REQUIRE(first == 1);
    expect_failure(
        [&](enpu_error* e) { return enpu_timelines_wait(points, 2, false, 0, &first, e); }, -ETIME,
        {"2 timelines"});
    a.signal(3);
    check([&](enpu_error* e) { return enpu_timelines_wait(points, 2, false, soon(), &first, e); });
    expect_failure(
        [&](enpu_error* e) { return enpu_timelines_wait(points, 0, false, 0, &first, e); }, -EINVAL,
        {"0 points"});
}

TEST_CASE("jobs on different engines run in the order of their points") {
    Fixture f;
    const auto word = f.host(64);
    const auto timeline = Timeline::create(f.device);
    const auto other = Context::create(f.device);
    // Each step copies the sum of what came before one word further: any reordering breaks the
    // chain.
    constexpr uint64_t kSteps = 32;
    put(word, std::vector<uint64_t>{0x1234, 0, 0, 0, 0, 0, 0, 0});
    for (uint64_t step = 1; step <= kSteps; ++step) {
        const bool copy = step % 2 == 0;
        Builder builder(f.device, copy ? ENPU_ENGINE_KIND_COPY : ENPU_ENGINE_KIND_COMPUTE);
        check([&](enpu_error* e) {
            return enpu_build_copy(builder.get(), word.get(), step % 8 * 8, word.get(),
                                   (step - 1) % 8 * 8, 8, e);
        });
        check([&](enpu_error* e) {
            return enpu_build_fill(builder.get(), word.get(), (step - 1) % 8 * 8, 8, 0, 8, e);
        });
        const auto command = builder.finish();
        const auto& context = copy ? f.context : other;
        const uint32_t engine = copy ? f.copy_engine(step / 2 % f.device.info().copy_engines) : 0;
        if (step == 1) {
            context.submit(engine, command, {}, {timeline.at(step)});
        } else {
            context.submit(engine, command, {timeline.at(step - 1)}, {timeline.at(step)});
        }
    }
    f.context.wait(timeline, kSteps, soon());
    auto expected = std::vector<uint64_t>(8);
    expected[kSteps % 8] = 0x1234;
    REQUIRE(take<uint64_t>(word, 8) == expected);
}

TEST_CASE("a point that nobody has submitted cannot be waited for by a job") {
    Fixture f;
    const auto command = nop(f, ENPU_ENGINE_KIND_COMPUTE);
    const auto never = Timeline::create(f.device);
    const enpu_point wait = never.at(1);
    const enpu_point signal = f.timeline.at(1);
    const auto submit = [&](uint32_t engine, enpu_error* error) {
        return enpu_submit(f.context.get(), engine, command.get(), &wait, 1, &signal, 1, 0, nullptr,
                           error);
    };
    expect_failure([&](enpu_error* e) { return submit(0, e); }, -EINVAL, {"nobody has submitted"});
    expect_failure([&](enpu_error* e) { return submit(99, e); }, -EINVAL, {"engine 99"});
    expect_failure([&](enpu_error* e) { return submit(f.copy_engine(), e); }, -EINVAL,
                   {"copy engine"});
    // The failed calls left no trace.
    f.run(0, command);
    REQUIRE(f.timeline.query() == 1);
    expect_failure(
        [&](enpu_error* e) {
            return enpu_submit(f.context.get(), 0, command.get(), nullptr, 0, &signal, 1, 0,
                               nullptr, e);
        },
        -EINVAL, {"signals[0]", "before"});
}

TEST_CASE("many threads submit at once") {
    Fixture f;
    constexpr int kThreads = 4;
    constexpr uint64_t kJobs = 50;
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    const auto before = f.device.counters();
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
            const auto context = Context::create(f.device);
            const auto timeline = Timeline::create(f.device);
            const bool copy = i % 2 != 0;
            const auto command = nop(f, copy ? ENPU_ENGINE_KIND_COPY : ENPU_ENGINE_KIND_COMPUTE);
            for (uint64_t job = 1; job <= kJobs; ++job) {
                context.submit(copy ? f.copy_engine() : 0, command, {}, {timeline.at(job)});
                if (job % 10 == 0) context.wait(timeline, job, soon());
            }
            if (context.status().completed == kJobs) ++good;
        });
    }
    for (auto& thread : threads) thread.join();
    REQUIRE(good == kThreads);
    REQUIRE(f.device.counters()[ENPU_COUNTER_JOBS] - before[ENPU_COUNTER_JOBS] == kThreads * kJobs);
}
