// SPDX-License-Identifier: MIT
// VM_MAP of a buffer nearly as large as memory: it takes long to find and clear so much, and nobody
// else may have to wait for that, nor the process that is to end.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "recovery.h"

namespace enpu::test {
namespace {

constexpr uint64_t kBigVa = 0x10'0000'0000;

// More than half of what is free.
uint64_t big_size() {
    std::ifstream file("/proc/meminfo");
    std::string name, unit;
    for (uint64_t kib = 0; file >> name >> kib >> unit;)
        if (name == "MemAvailable:") return kib * 1024 * 6 / 10 / kLargePage * kLargePage;
    FAIL("/proc/meminfo has no MemAvailable");
    return 0;
}

int64_t now() {
    return deadline({});
}

// Maps a big buffer that shares the reservation of the address space, the worst case. The time, or
// -errno. Asserts nothing, as it may be called beside other threads.
int64_t map_big(const Device& device, uint64_t size) {
    uint32_t handle = 0;
    if (int ret = device.bo_create(size, DRM_ENPU_BO_HOST | DRM_ENPU_BO_PRIVATE, &handle))
        return ret;
    const int64_t start = now();
    if (int ret = device.map(kBigVa, handle, size)) return ret;
    return now() - start;
}

TEST_CASE("others of the same file go on while VM_MAP finds a lot of memory") {
    const uint64_t size = big_size();
    Fixture f;
    Buffer small(f.device, kPage);
    std::atomic<int64_t> took{0};
    std::thread mapper([&] { took = map_big(f.device, size); });
    int rounds = 0;
    int64_t longest = 0;
    while (took == 0) {
        const int64_t start = now();
        REQUIRE(f.device.map(kVa, small.handle(), kPage) == 0);
        f.run(f.copy, Commands().fill(kVa, 64, 7));
        REQUIRE(f.device.unmap(kVa, kPage) == 0);
        if (took != 0) break;
        longest = std::max(longest, now() - start);
        rounds++;
    }
    mapper.join();
    REQUIRE(took > 0);
    printf(
        "# %llu MiB mapped in %.0f ms; meanwhile %d rounds of map, job and unmap, the longest %.0f "
        "ms\n",
        static_cast<unsigned long long>(size >> 20), static_cast<double>(took) / 1e6, rounds,
        static_cast<double>(longest) / 1e6);
    CHECK(rounds >= 3);
    CHECK(longest < took / 2);
    // All of it is there.
    REQUIRE(f.device.map(kVa, small.handle(), kPage) == 0);
    memset(small.data(), 0xff, kPage);
    f.run(f.copy, Commands()
                      .copy(kVa, kBigVa + size - 64, 32)
                      .fill(kBigVa + size - 64, 64, 0x3c)
                      .copy(kVa + 64, kBigVa + size - 64, 32));
    CHECK(f.device.status(f.ctx).error == 0);
    CHECK(small.data()[31] == 0);
    CHECK(small.data()[64 + 31] == 0x3c);
}

void on_alarm(int) {}

TEST_CASE("signals interrupt a VM_MAP that takes long, and it gets on between them") {
    const uint64_t size = big_size();
    Device device;
    uint32_t handle = 0;
    REQUIRE(device.bo_create(size, DRM_ENPU_BO_HOST, &handle) == 0);
    struct sigaction action {};
    action.sa_handler = on_alarm;  // without SA_RESTART: it is told
    struct sigaction before {};
    REQUIRE(sigaction(SIGALRM, &action, &before) == 0);
    const itimerval often{{0, 10'000}, {0, 10'000}};
    REQUIRE(setitimer(ITIMER_REAL, &often, nullptr) == 0);
    int interrupted = 0, error = 0;
    const int64_t until = deadline(std::chrono::seconds(60) * slower());
    do {
        drm_enpu_vm_map args{kBigVa, 0, size, handle, DRM_ENPU_MAP_READ};
        error = ioctl(device.fd(), DRM_IOCTL_ENPU_VM_MAP, &args) ? errno : 0;
        interrupted += error == EINTR;
    } while (error == EINTR && now() < until);
    const itimerval never{};
    REQUIRE(setitimer(ITIMER_REAL, &never, nullptr) == 0);
    REQUIRE(sigaction(SIGALRM, &before, nullptr) == 0);
    printf("# interrupted %d times\n", interrupted);
    CHECK(error == 0);
    CHECK(interrupted >= 3);
    CHECK(device.unmap(kBigVa, size) == 0);
}

TEST_CASE("a process that is killed in VM_MAP ends at once") {
    const uint64_t size = big_size();
    const int64_t whole = map_big(Device(), size);
    REQUIRE(whole > 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        Device device;
        uint32_t handle = 0;
        if (device.bo_create(size, DRM_ENPU_BO_HOST, &handle)) _exit(1);
        device.map(kBigVa, handle, size);
        _exit(2);
    }
    usleep(static_cast<useconds_t>(whole / 8000));
    const int64_t start = now();
    REQUIRE(kill(child, SIGKILL) == 0);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    const int64_t took = now() - start;
    printf("# %.0f ms to map, %.0f ms to end\n", static_cast<double>(whole) / 1e6,
           static_cast<double>(took) / 1e6);
    CHECK(WIFSIGNALED(status));
    CHECK(took < whole / 2);
    CHECK(eventually([] { return live_objects().at("bos") == 0; }));
}

}  // namespace
}  // namespace enpu::test
