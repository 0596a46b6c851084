// SPDX-License-Identifier: MIT
#include "system.h"

#include <time.h>
#include <unistd.h>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "failure.h"
#include "fake_tree.h"
#include "monitor.h"
#include "output.h"
#include "sampler.h"

namespace enpu::tools {
namespace {

std::string fdinfo(unsigned client, uint64_t compute_ns) {
    return "pos:\t0\ndrm-driver:\tenpu\ndrm-client-id:\t" + std::to_string(client) +
           "\ndrm-pdev:\t0000:01:00.0\ndrm-engine-compute:\t" + std::to_string(compute_ns) +
           " ns\ndrm-engine-capacity-compute:\t2\ndrm-engine-copy:\t5 ns\n"
           "drm-total-local:\t12 MiB\ndrm-total-host:\t4 KiB\ndrm-resident-local:\t12 MiB\n";
}

}  // namespace

TEST_CASE("fdinfo: engines, capacity and memory; other drivers are left out") {
    const auto client = parse_fdinfo(fdinfo(7, 123));
    REQUIRE(client);
    REQUIRE(client->client_id == 7);
    REQUIRE(client->engine_ns.at("compute") == 123);
    REQUIRE(client->capacity.at("compute") == 2);
    REQUIRE(client->engine_ns.count("capacity-compute") == 0);
    REQUIRE(client->memory.at("local") == 12u << 20);
    REQUIRE(client->memory.at("host") == 4096);
    REQUIRE_FALSE(parse_fdinfo("drm-driver:\tamdgpu\ndrm-client-id:\t1\n"));
    REQUIRE_FALSE(parse_fdinfo("garbage\n:\n"));
}

TEST_CASE("devices, clients and their use are read from a tree") {
    FakeTree tree;
    tree.device();
    const System system(tree.root());
    const auto devices = system.npus();
    REQUIRE(devices.size() == 1);
    REQUIRE(devices[0].node == "accel0");
    REQUIRE(devices[0].driver == "enpu");
    REQUIRE(devices[0].bar_bytes[0] == 0x40000);

    tree.write("/proc/42/comm", "worker\n");
    tree.link("/proc/42/fd/3", "/dev/accel/accel0");
    tree.link("/proc/42/fd/4", "/dev/accel/accel0");  // a duplicate of the same file
    tree.write("/proc/42/fdinfo/3", fdinfo(1, 1'000'000'000));
    tree.write("/proc/42/fdinfo/4", fdinfo(1, 1'000'000'000));
    const Sampler sampler(system, devices[0]);
    Sample before = sampler.take();
    REQUIRE(before.clients.size() == 1);
    REQUIRE(before.clients[0].pid == 42);
    REQUIRE(before.clients[0].command == "worker");
    REQUIRE(before.busy_ns == 1'500'000'000);

    tree.write("/proc/42/fdinfo/3", fdinfo(1, 1'800'000'000));
    tree.write("/proc/42/fdinfo/4", fdinfo(1, 1'800'000'000));
    Sample after = sampler.take();
    after.monotonic_ns = before.monotonic_ns + 1'000'000'000;
    after.busy_ns = before.busy_ns + 600'000'000;
    const Use use = use_between(before, after, {2, 1});
    REQUIRE(use.clients[0].compute_percent == Catch::Approx(40));
    REQUIRE(use.percent == Catch::Approx(20));
    const auto json = sample_json(sampler, after, use);
    REQUIRE(json["sensors"]["emulated"] == true);
    REQUIRE(json["sensors"]["celsius"] == 41.5);
    REQUIRE(json["events"]["hangs"] == 3);
    REQUIRE(json["jobs_in_queues"] == 4);
    REQUIRE(json["clients"][0]["memory_bytes"]["local"] == 12u << 20);
}

TEST_CASE("a client that is new counts from nothing, one that shrank as idle") {
    Sample before, after;
    after.monotonic_ns = 1'000'000'000;
    after.clients.push_back({1, "a", 5, "", {{"compute", 900'000'000}}, {}, {}});
    REQUIRE(use_between(before, after, {1, 1}).clients[0].compute_percent == 0);
    before.clients.push_back({1, "a", 5, "", {{"compute", 950'000'000}}, {}, {}});
    REQUIRE(use_between(before, after, {1, 1}).clients[0].compute_percent == 0);
}

TEST_CASE("the monitor shows every device, and refuses one that is not there") {
    FakeTree tree;
    tree.device();
    Monitor monitor(tree.root(), "");
    monitor.read();
    const std::string text = reading_text(monitor, monitor.read()[0]);
    INFO(text);
    REQUIRE(text.find("/dev/accel/accel0") != std::string::npos);
    REQUIRE(text.find("(emulated)") != std::string::npos);
    REQUIRE(text.find("3 hangs") != std::string::npos);
    REQUIRE_THROWS_AS(Monitor(tree.root(), "/dev/accel/accel7"), Failure);
    REQUIRE_THROWS_AS(Monitor(FakeTree().root(), ""), Failure);
}

TEST_CASE("tables line up and sparklines scale") {
    Table table({"name", ">n"});
    table.add({"a", "1"});
    table.add({"long", "200"});
    REQUIRE(table.text() == "name    n\na       1\nlong  200\n");
    REQUIRE(sparkline({0, 50, 100}, 100) == "▁▅█");
    REQUIRE(visible_width("\033[31mé\033[0m") == 1);
    REQUIRE(csv("a,\"b\"") == "\"a,\"\"b\"\"\"");
    REQUIRE(bytes_text(1536) == "1.5 KiB");
}

TEST_CASE("a look costs under 1 % of a core at one a second, on a busy system") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SKIP("what a sanitizer adds is no cost of the tool");
#endif
    FakeTree tree;
    tree.device();
    for (unsigned pid = 100; pid < 300; ++pid) {
        const std::string folder = "/proc/" + std::to_string(pid);
        tree.write(folder + "/comm", "busy\n");
        for (unsigned fd = 0; fd < 20; ++fd)
            tree.link(folder + "/fd/" + std::to_string(fd), "/dev/null");
        if (pid % 10 != 0) continue;
        tree.link(folder + "/fd/20", "/dev/accel/accel0");
        tree.write(folder + "/fdinfo/20", fdinfo(pid, 1000 * pid));
    }
    Monitor monitor(tree.root(), "");
    monitor.read();
    const auto cpu_ns = [] {
        timespec now{};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        return double(now.tv_sec) * 1e9 + double(now.tv_nsec);
    };
    constexpr unsigned kRounds = 20;
    const double before = cpu_ns();
    for (unsigned round = 0; round < kRounds; ++round) {
        const auto& readings = monitor.read();
        REQUIRE(readings.at(0).sample.clients.size() == 20);
        REQUIRE_FALSE(reading_text(monitor, readings[0]).empty());
    }
    const double ms = (cpu_ns() - before) / kRounds / 1e6;
    std::printf("a look at 200 processes with 4000 files: %.2f ms, %.2f %% of a core at 1 Hz\n", ms,
                ms / 10);
    CHECK(ms < 10);
}

}  // namespace enpu::tools
