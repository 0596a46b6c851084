// SPDX-License-Identifier: MIT
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

#include "kernel_device.h"

namespace enpu::test {
namespace {

std::string fdinfo(const Device& device) {
    std::ifstream file("/proc/self/fdinfo/" + std::to_string(device.fd()));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

uint64_t fdinfo_value(const Device& device, const std::string& key) {
    const std::string text = fdinfo(device);
    const size_t at = text.find("\n" + key + ":");
    INFO(text);
    REQUIRE(at != std::string::npos);
    return std::stoull(text.substr(at + key.size() + 2));
}

// Copies with a pattern of its own and checks it, many times. False at the first wrong byte.
bool work(uint8_t pattern, int rounds) {
    Fixture f;
    Buffer a(f.device, 16 * kPage), b(f.device, 16 * kPage, DRM_ENPU_BO_LOCAL);
    a.at(kVa);
    b.at(kVa + kLargePage);
    for (int round = 0; round < rounds; round++) {
        memset(a.data(), pattern + round, a.size());
        f.run(round % 2 ? 0 : f.copy, Commands().copy(kVa + kLargePage, kVa, a.size()));
        if (memcmp(a.data(), b.data(), a.size()) != 0) return false;
    }
    return f.device.status(f.ctx).error == 0;
}

// A size in fdinfo, in KiB: kernels choose the unit themselves.
uint64_t fdinfo_kib(const Device& device, const std::string& key) {
    const std::string text = fdinfo(device);
    std::stringstream line(text.substr(text.find("\n" + key + ":") + key.size() + 2));
    uint64_t value = 0;
    std::string unit;
    line >> value >> unit;
    INFO(key << ": " << value << " " << unit);
    REQUIRE((unit == "KiB" || unit == "MiB" || value == 0));
    return unit == "MiB" ? value * 1024 : value;
}

TEST_CASE("two processes use the device at once") {
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        REQUIRE(children[i] >= 0);
        if (children[i] == 0) {
            bool good = false;
            try {
                good = work(static_cast<uint8_t>(0x40 * i + 1), 20);
            } catch (...) {  // a REQUIRE; the parent tells
            }
            _exit(good ? 0 : 1);
        }
    }
    for (pid_t child : children) {
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == 0);
    }
}

TEST_CASE("threads share a context") {
    Fixture f;
    Buffer words(f.device, kPage);
    words.at(kVa);
    constexpr int kThreads = 4, kJobs = 25;
    std::vector<std::thread> threads;
    std::vector<int> failures(kThreads, 0);
    std::vector<uint32_t> ends;
    for (int t = 0; t < kThreads; t++) ends.push_back(f.device.syncobj());
    // No assertion in the threads: Catch2 takes them from one thread only.
    for (int t = 0; t < kThreads; t++)
        threads.emplace_back([&, t] {
            const uint32_t end = ends[static_cast<size_t>(t)];
            uint8_t* where = f.commands.data() + t * kPage;
            const uint32_t bytes =
                Commands()
                    .fill(kVa + 64u * static_cast<uint32_t>(t), 8, 0xa0u + static_cast<uint32_t>(t))
                    .write_to(where);
            for (int i = 0; i < kJobs; i++) {
                Submit submit(f.ctx, static_cast<uint32_t>(i % 2) ? 0 : f.copy,
                              Fixture::kCmdVa + static_cast<uint64_t>(t) * kPage, bytes);
                if (submit.signal(end).send(f.device) || f.device.syncobj_wait(end))
                    failures[static_cast<size_t>(t)]++;
            }
        });
    for (auto& thread : threads) thread.join();
    for (int t = 0; t < kThreads; t++) {
        CHECK(failures[static_cast<size_t>(t)] == 0);
        CHECK(words.data()[64 * t] == 0xa0 + t);
    }
    const auto status = f.device.status(f.ctx);
    CHECK(status.submitted == kThreads * kJobs);
    CHECK(status.completed == kThreads * kJobs);
}

// The scheduler takes a job of a context at the very moment that the context ends.
TEST_CASE("contexts end while the scheduler takes their jobs") {
    Fixture f;
    const uint32_t bytes = Commands().nop().write_to(f.commands.data());
    constexpr int kThreads = 3, kContexts = 60, kJobs = 40;
    std::vector<std::thread> threads;
    std::vector<int> failures(kThreads, 0);
    for (int t = 0; t < kThreads; t++)
        threads.emplace_back([&, t] {
            int& failed = failures[static_cast<size_t>(t)];
            for (int i = 0; i < kContexts; i++) {
                uint32_t ctx = 0;
                failed += f.device.context(&ctx) != 0;
                for (int job = 0; job < kJobs; job++)
                    failed += Submit(ctx, f.copy, Fixture::kCmdVa, bytes).send(f.device) != 0;
                failed += f.device.context_destroy(ctx) != 0;
            }
        });
    for (auto& thread : threads) thread.join();
    for (const int failed : failures) CHECK(failed == 0);
    f.run(f.copy, Commands().nop());
}

TEST_CASE("a file that is closed with jobs in flight leaves no trace") {
    const uint64_t free_before = Device().memory().local_free;
    for (int round = 0; round < 3; round++) {
        auto f = std::make_unique<Fixture>();
        Buffer* gate = new Buffer(f->device, kLargePage, DRM_ENPU_BO_LOCAL);
        gate->at(kVa);
        const uint32_t first = f->device.syncobj();
        const uint32_t park = Commands().wait(kVa, 1, 30'000'000).write_to(f->commands.data());
        // Parked in hardware, queued behind it, and waiting in the scheduler.
        REQUIRE(Submit(f->ctx, 0, Fixture::kCmdVa, park).signal(first).send(f->device) == 0);
        REQUIRE(Submit(f->ctx, 0, Fixture::kCmdVa, park).send(f->device) == 0);
        REQUIRE(Submit(f->ctx, f->copy, Fixture::kCmdVa, park).wait(first).send(f->device) == 0);
        const pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) _exit(0);
        waitpid(child, nullptr, 0);
        delete gate;
        f.reset();
    }
    Fixture f;
    f.run(0, Commands().nop());
    f.run(f.copy, Commands().nop());
    CHECK(f.device.memory().local_free == free_before);
}

TEST_CASE("a process that is killed with jobs in flight leaves no trace") {
    const uint64_t free_before = Device().memory().local_free;
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        Fixture f;
        Buffer gate(f.device, kLargePage, DRM_ENPU_BO_LOCAL);
        gate.at(kVa);
        if (f.submit(0, Commands().wait(kVa, 1, 30'000'000))) _exit(1);
        if (write(ready[1], "x", 1) != 1) _exit(2);
        pause();
    }
    char byte;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    kill(child, SIGKILL);
    REQUIRE(waitpid(child, nullptr, 0) == child);
    Fixture f;
    f.run(0, Commands().nop());
    // The last reference goes with a worker of the scheduler.
    const int64_t until = soon();
    while (f.device.memory().local_free != free_before && deadline({}) < until) usleep(1000);
    CHECK(f.device.memory().local_free == free_before);
    close(ready[0]);
    close(ready[1]);
}

TEST_CASE("fdinfo tells engines and memory") {
    Fixture f;
    Buffer local(f.device, kLargePage, DRM_ENPU_BO_LOCAL), host(f.device, kLargePage);
    local.at(kVa);
    host.at(kVa + 2 * kLargePage);
    const std::string text = fdinfo(f.device);
    INFO(text);
    CHECK(text.find("drm-driver:\tenpu\n") != std::string::npos);
    CHECK(text.find("drm-client-id:") != std::string::npos);
    CHECK(text.find("drm-pdev:") != std::string::npos);
    const auto info = f.device.info();
    CHECK(fdinfo_value(f.device, "drm-engine-capacity-compute") == info.compute_engines);
    CHECK(fdinfo_value(f.device, "drm-engine-capacity-copy") == info.copy_engines);
    CHECK(fdinfo_kib(f.device, "drm-total-local") == kLargePage / 1024);
    CHECK(fdinfo_kib(f.device, "drm-total-host") == (kLargePage + 16 * kPage) / 1024);

    CHECK(fdinfo_value(f.device, "drm-engine-copy") == 0);
    const uint64_t busy = std::stoull(sysfs("npu_busy_time_us"));
    f.run(f.copy, Commands().copy(kVa, kVa + 2 * kLargePage, kLargePage));
    const uint64_t once = fdinfo_value(f.device, "drm-engine-copy");
    CHECK(once > 0);
    CHECK(fdinfo_value(f.device, "drm-engine-compute") == 0);
    f.run(f.copy, Commands().copy(kVa, kVa + 2 * kLargePage, kLargePage));
    CHECK(fdinfo_value(f.device, "drm-engine-copy") > once);
    CHECK(std::stoull(sysfs("npu_busy_time_us")) >= busy);
    // The first look begins a window, the second tells of it.
    (void)sysfs("npu_busy_percent");
    usleep(150'000);
    CHECK(std::stoul(sysfs("npu_busy_percent")) <= 100);
    // One job: between many the engine would rest, on a slow kernel nearly all the time.
    Commands copies;
    for (int i = 0; i < 100; i++) copies.copy(kVa, kVa + 2 * kLargePage, kLargePage);
    f.run(f.copy, copies);
    usleep(110'000);
    CHECK(std::stoul(sysfs("npu_busy_percent")) > 0);
}

}  // namespace
}  // namespace enpu::test
