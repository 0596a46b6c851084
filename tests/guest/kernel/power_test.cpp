// SPDX-License-Identifier: MIT
// Sleep of the device and of the system, and functions that come and go, with jobs in flight.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>

#include "recovery.h"

namespace enpu::test {
namespace {

std::string power(const std::string& name) {
    std::string text = sysfs("power/" + name);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

bool falls_asleep() {
    if (!eventually([] { return power("runtime_status") == "suspended"; })) return false;
    std::string state;
    std::ifstream(pci_path() + "/power_state") >> state;
    CHECK(state == "D3hot");
    return true;
}

// 0 when a file can be read, or errno.
int read_error(const std::string& path) {
    char text[64];
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno;
    const int error = read(fd, text, sizeof(text)) < 0 ? errno : 0;
    close(fd);
    return error;
}

// Lets a job that waits for the word at kVa go on, by a job on the copy engine.
void let_go(const Fixture& f) {
    const uint32_t go = Commands().signal(kVa, 1).write_to(f.commands.data() + kPage);
    REQUIRE(Submit(f.ctx, f.copy, Fixture::kCmdVa + kPage, go).send(f.device) == 0);
}

TEST_CASE("an idle device falls asleep and wakes for work") {
    REQUIRE(write_file(sysfs_path("power/autosuspend_delay_ms"), "100") == 0);
    CHECK(power("control") == "auto");
    auto f = std::make_unique<Fixture>();
    auto local = std::make_unique<Buffer>(f->device, kLargePage, DRM_ENPU_BO_LOCAL);
    local->at(kVa + kLargePage);
    memset(local->data(), 0x5a, local->size());
    Buffer words(f->device, kPage);
    words.at(kVa);

    // Who can reach local memory keeps it awake, and so does a job.
    usleep(400'000);
    CHECK(power("runtime_status") == "active");
    munmap(local->data(), local->size());
    REQUIRE(falls_asleep());
    REQUIRE(f->submit(0, Commands().wait(kVa, 1, 30'000'000).copy(kVa + 64, kVa + kLargePage, 8)) ==
            0);
    usleep(400'000);
    CHECK(power("runtime_status") == "active");
    let_go(*f);
    REQUIRE(f->device.syncobj_wait(f->done) == 0);
    CHECK(f->device.status(f->ctx).error == 0);
    // Address spaces, queues and local memory are as they were.
    CHECK(words.data()[64] == 0x5a);
    REQUIRE(falls_asleep());
    SECTION("waking again and again") {
        for (int i = 0; i < 5; i++) {
            f->run(i % 2 ? 0 : f->copy, Commands().fill(kVa + 8, 8, i));
            CHECK(words.data()[8] == i);
            REQUIRE(falls_asleep());
        }
    }
    SECTION("what the device has counted is not lost in sleep or by a reset") {
        const auto before = f->device.counters();
        const auto counted = [&](uint32_t word) {
            return f->device.counters()[word] - before[word];
        };
        for (uint64_t jobs = 1; jobs <= 3; jobs++) {
            f->run(0, Commands().nop().nop());
            CHECK(counted(ENPU_COUNTER_JOBS) == jobs);
            CHECK(counted(ENPU_OPCODE_NOP) == 2 * jobs);
            REQUIRE(falls_asleep());
            CHECK(counted(ENPU_COUNTER_JOBS) == jobs);
            REQUIRE(write_file(sysfs_path("reset"), "1") == 0);
            CHECK(counted(ENPU_COUNTER_JOBS) == jobs);
            CHECK(counted(ENPU_OPCODE_NOP) == 2 * jobs);
        }
    }
    SECTION("what is opened and closed while it sleeps") {
        const auto resets = counter("device_resets");
        local.reset();
        f->device.context_destroy(f->ctx);
        REQUIRE(f->device.context(&f->ctx) == 0);
        REQUIRE(falls_asleep());
        {
            Device other;
            REQUIRE(other.memory().local_total > 0);
            REQUIRE(falls_asleep());
        }
        CHECK(counter("device_resets") == resets);
        f->run(0, Commands().nop());
    }
    SECTION("a program looks at it") {
        CHECK(debugfs_read("engines").find("enpu-compute0") != std::string::npos);
        CHECK(write_file(sysfs_path("reset"), "1") == 0);
        f->run(0, Commands().nop());
    }
    SECTION("a program looks at its sensors again and again") {
        const std::string folder = sysfs_path("hwmon");
        if (access(folder.c_str(), F_OK) != 0) SKIP("the kernel has no hwmon");
        const auto sensor = *std::filesystem::directory_iterator(folder);
        const std::string file = sensor.path() / "temp1_input";
        // Neither wakes it, nor keeps it awake, nor gets what a sleeping device reads as.
        CHECK(read_error(file) == ENODATA);
        CHECK(power("runtime_status") == "suspended");
        f->run(0, Commands().nop());
        CHECK(read_error(file) == 0);
        CHECK(eventually([&] { return read_error(file) == ENODATA; }));
    }
    SECTION("power/control holds it awake") {
        REQUIRE(write_file(sysfs_path("power/control"), "on") == 0);
        CHECK(power("runtime_status") == "active");
        usleep(400'000);
        CHECK(power("runtime_status") == "active");
        REQUIRE(write_file(sysfs_path("power/control"), "auto") == 0);
        REQUIRE(falls_asleep());
    }
    CHECK(f->device.status(f->ctx).error == 0);
    REQUIRE(write_file(sysfs_path("power/autosuspend_delay_ms"), "2000") == 0);
}

// What the device can do, as a program asks at its start.
std::vector<uint64_t> abilities(const Device& device) {
    drm_enpu_opcode_info opcodes{};
    drm_enpu_query query{DRM_ENPU_QUERY_OPCODES, sizeof(opcodes),
                         reinterpret_cast<uintptr_t>(&opcodes)};
    REQUIRE(device.call(DRM_IOCTL_ENPU_QUERY, &query) == 0);
    const auto info = device.info();
    std::vector<uint64_t> all{opcodes.opcodes, info.threads, info.max_tensor_bytes,
                              info.max_packet_work, info.features};
    all.insert(all.end(), std::begin(opcodes.dtypes), std::end(opcodes.dtypes));
    return all;
}

TEST_CASE("programs that come while the bus resets the function notice nothing") {
    const auto able = abilities(Device());
    const std::string file = pci_path() + "/reset";
    std::atomic<int> failures{0};
    std::atomic<bool> done{false};
    std::jthread resets([&] {
        for (int i = 0; i < 8; i++) failures += write_file(file, "1") != 0;
        done = true;
    });
    int rounds = 0;
    for (uint64_t clock = 0; !done; rounds++) {
        Fixture f;
        CHECK(abilities(f.device) == able);
        // The clock goes on, at about the pace of ours.
        const auto info = f.device.info();
        CHECK(info.timestamp_ns > clock);
        CHECK(info.timestamp_ns < clock + (clock ? 20'000'000'000 : ~0ull));
        clock = info.timestamp_ns;
        f.run(0, Commands().nop());
        f.run(f.copy, Commands().nop());
        CHECK(f.device.status(f.ctx).error == 0);
    }
    CHECK(rounds > 0);
    CHECK(failures == 0);
}

TEST_CASE("function-level resets with jobs in flight lose none") {
    Fixture f;
    Buffer words(f.device, kPage);
    words.at(kVa);
    const uint32_t bytes = Commands().fill(kVa + 8, 8, 1).nop().nop().write_to(f.commands.data());
    const auto before = f.device.status(f.ctx);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 30; i++)
            REQUIRE(Submit(f.ctx, i % 2 ? 0 : f.copy, Fixture::kCmdVa, bytes)
                        .signal(f.done)
                        .send(f.device) == 0);
        REQUIRE(write_file(pci_path() + "/reset", "1") == 0);
    }
    REQUIRE(eventually([&] { return f.device.status(f.ctx).completed == before.submitted + 150; }));
    const auto status = f.device.status(f.ctx);
    CHECK(status.guilty == 0);
    CHECK((status.error == 0 || status.error == -ESTALE));
    f.run(0, Commands().nop());
}

TEST_CASE("a function that is removed under its users and found again works") {
    const std::string device = pci_path();
    auto f = std::make_unique<Fixture>();
    auto local = std::make_unique<Buffer>(f->device, kLargePage, DRM_ENPU_BO_LOCAL);
    local->at(kVa);
    REQUIRE(f->submit(0, Commands().wait(kVa, 1, 30'000'000)) == 0);
    REQUIRE(write_file(device + "/remove", "1") == 0);
    uint32_t handle = 0;
    CHECK(f->device.bo_create(kPage, DRM_ENPU_BO_HOST, &handle) == -ENODEV);
    REQUIRE(write_file("/sys/bus/pci/rescan", "1") == 0);
    REQUIRE(find_node(device));
    {
        Fixture fresh;
        fresh.run(0, Commands().nop());
    }
    local.reset();
    f.reset();
    Fixture fresh;
    fresh.run(fresh.copy, Commands().nop());
}

}  // namespace
}  // namespace enpu::test
