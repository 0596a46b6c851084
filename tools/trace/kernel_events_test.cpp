// SPDX-License-Identifier: MIT
#include "kernel_events.h"

#include <catch2/catch_test_macros.hpp>

#include "timeline.h"

namespace enpu::tools {
namespace {

std::vector<KernelEvent> parse(std::initializer_list<const char*> lines) {
    std::vector<KernelEvent> events;
    for (const char* line : lines) {
        KernelEvent event;
        if (parse_event(line, &event)) events.push_back(event);
    }
    return events;
}

const std::vector<KernelEvent> kEvents = parse({
    "# tracer: nop",
    "         my app-229   [000] ...1.    10.000000: sys_ioctl(fd: 4, cmd: c048644a, arg: "
    "7ffd44dab720)",
    "         my app-229   [000] .....    10.000100: enpu_submit: ctx=1 engine=0 seqno=1 "
    "job_id=0x7 cmd_va=0x10000 cmd_bytes=16",
    "         my app-229   [000] ...1.    10.000200: sys_ioctl -> 0x0",
    "   kworker/u8:2-37    [001] d..1.    10.000300: enpu_job_run: ctx=1 engine=0 queue=0 seqno=1 "
    "fence=1",
    "         my app-229   [000] .....    10.000400: enpu_submit: ctx=1 engine=0 seqno=2 "
    "job_id=0x8 cmd_va=0x10000 cmd_bytes=16",
    "   kworker/u8:2-37    [001] d..1.    10.000500: enpu_job_run: ctx=1 engine=0 queue=0 seqno=2 "
    "fence=2",
    "          <idle>-0    [000] dNH2.    10.001000: enpu_job_done: ctx=1 engine=0 seqno=1 error=0",
    "          <idle>-0    [000] dNH2.    10.001000: enpu_irq: vector=1 completed=1",
    "   kworker/u8:2-37    [001] .....    10.001100: enpu_job_done: ctx=1 engine=0 seqno=1 "
    "error=-125",
    "          <idle>-0    [000] dNH2.    10.002000: enpu_job_done: ctx=1 engine=0 seqno=2 "
    "error=-14",
    "         my app-229   [000] .....    10.005000: enpu_submit: ctx=1 engine=0 seqno=3 "
    "job_id=0x9 cmd_va=0x10000 cmd_bytes=16",
    "   kworker/u8:2-37    [001] d..1.    10.006000: enpu_job_run: ctx=1 engine=0 queue=0 seqno=3 "
    "fence=3",
    "          <idle>-0    [000] dNH2.    10.007000: enpu_job_done: ctx=1 engine=0 seqno=3 error=0",
    "         my app-229   [000] ...1.    10.008000: sys_ioctl(fd: 4, cmd: 5401, arg: 0)",
    "         my app-229   [000] ...1.    10.008100: sys_ioctl -> 0xffffffffffffffe7",
});

}  // namespace

TEST_CASE("trace: lines of the kernel") {
    REQUIRE(kEvents.size() == 15);
    REQUIRE(kEvents[0].task == "my app-229");
    REQUIRE(kEvents[0].tid == 229);
    REQUIRE(kEvents[0].ns == 10'000'000'000);
    REQUIRE(kEvents[1].name == "enpu_submit");
    REQUIRE(kEvents[1].number("job_id") == 7);
    REQUIRE(kEvents[1].number("nothing", 5) == 5);
    KernelEvent event;
    for (const char* line :
         {"", "#", "garbage", "a-1 [0", "a-1 [000] ... 1.5: x: y", "-  [000]  : : :"})
        REQUIRE_FALSE(parse_event(line, &event));
}

TEST_CASE("trace: jobs follow each other on an engine") {
    const auto engines = job_spans(kEvents);
    REQUIRE(engines.size() == 1);
    const auto& jobs = engines.at(0);
    REQUIRE(jobs.size() == 3);
    REQUIRE(jobs[0].begin_ns == 10'000'300'000);
    REQUIRE(jobs[1].begin_ns == 10'001'000'000);  // not before the one in front of it had ended
    REQUIRE(jobs[1].error == -14);
    REQUIRE(jobs[2].job_id == 9);
}

TEST_CASE("trace: ioctls of the driver have names, others are left out") {
    const auto spans = ioctl_spans(kEvents);
    REQUIRE(spans.size() == 1);
    REQUIRE(spans[0].name == "SUBMIT");
    REQUIRE(spans[0].to_ns - spans[0].from_ns == 200'000);
}

TEST_CASE("trace: the Perfetto file holds what the kernel told, and is read back") {
    const Trace trace = read_trace(perfetto_trace(kEvents, 0));
    const Analysis analysis = analyse(trace);
    REQUIRE(analysis.begin_ns == 10'000'000'000);
    const Lane& engine = analysis.lanes.at(0);
    REQUIRE(engine.name == "enpu, seen by the kernel: engine 0 (copy)");
    REQUIRE(engine.slices.size() == 3);
    REQUIRE(engine.slices[1].name == "failed job 2");
    REQUIRE(engine.gaps.size() == 2);
    REQUIRE(engine.gaps[0].reason == Gap::kHost);
    REQUIRE(engine.gaps[0].to_ns - engine.gaps[0].from_ns == 3'000'000);
    REQUIRE(engine.gaps[1].reason == Gap::kQueue);
    REQUIRE(engine.gaps[1].to_ns - engine.gaps[1].from_ns == 1'000'000);
    REQUIRE(analysis.calls.at(0).name == "SUBMIT");
    REQUIRE(analysis.calls.at(0).total_ns == 200'000);
    REQUIRE(analysis.series.at(0).name == "jobs in flight");
    REQUIRE(analyse(read_trace(perfetto_trace(kEvents, {}))).lanes[0].name ==
            "enpu, seen by the kernel: engine 0");
}

}  // namespace enpu::tools
