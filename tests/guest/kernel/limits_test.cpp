// SPDX-License-Identifier: MIT
// What one program can take, what it gets when memory runs out or a pointer is bad, and that
// nothing of it stays behind.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "every_call.h"
#include "recovery.h"

namespace enpu::test {
namespace {

bool all_zero(const std::map<std::string, long>& objects) {
    for (const auto& [name, count] : objects)
        if (count != 0) return false;
    return true;
}

// Calls again and again, and each time one allocation or copy further into it fails, until none
// does. A call that failed has had no effect.
void fail_everywhere(const Call& call) {
    INFO(call.name);
    for (int n = 1; n < 200; n++) {
        const auto before = live_objects();
        REQUIRE(debugfs_write("fail_nth", std::to_string(n)) == 0);
        const int ret = call.call();
        const bool fired = debugfs_read("fail_nth") == "0\n";
        REQUIRE(debugfs_write("fail_nth", "0") == 0);
        INFO("failure " << n << ", returned " << ret);
        if (!fired) {
            CHECK(ret == 0);
            CHECK(n - 1 >= call.hooks);
            return;
        }
        CHECK((ret == -ENOMEM || ret == -EFAULT));
        CHECK(difference(live_objects(), before, call.kept) == "");
    }
    FAIL("it never succeeds");
}

TEST_CASE("a failure anywhere in a call leaves no trace") {
    REQUIRE(eventually([] { return all_zero(live_objects()); }));
    every_call(fail_everywhere);
    REQUIRE(eventually([] { return all_zero(live_objects()); }));
}

TEST_CASE("caps of an open file are told by -ENOSPC, and give way again") {
    Device device;
    uint32_t handle = 0;
    SECTION("contexts") {
        std::vector<uint32_t> ids(ENPU_MAX_CONTEXTS);
        for (auto& id : ids) REQUIRE(device.context(&id) == 0);
        uint32_t extra = 0;
        CHECK(device.context(&extra) == -ENOSPC);
        REQUIRE(device.context_destroy(ids[5]) == 0);
        CHECK(device.context(&extra) == 0);
    }
    SECTION("buffer objects") {
        for (int i = 0; i < ENPU_MAX_BOS; i++)
            REQUIRE(device.bo_create(kPage, DRM_ENPU_BO_HOST, &handle) == 0);
        uint32_t extra = 0;
        CHECK(device.bo_create(kPage, DRM_ENPU_BO_HOST, &extra) == -ENOSPC);
        CHECK(device.bo_create(kPage, DRM_ENPU_BO_LOCAL, &extra) == -ENOSPC);
        REQUIRE(device.close_handle(handle) == 0);
        CHECK(device.bo_create(kPage, DRM_ENPU_BO_HOST, &extra) == 0);
        // Another file has its own.
        CHECK(Device().bo_create(kPage, DRM_ENPU_BO_HOST, &extra) == 0);
    }
    SECTION("mappings") {
        REQUIRE(device.bo_create(kPage, DRM_ENPU_BO_LOCAL, &handle) == 0);
        for (uint64_t i = 0; i < ENPU_MAX_MAPPINGS; i++)
            REQUIRE(device.map(kVa + i * kPage, handle, kPage) == 0);
        CHECK(device.map(kVa + ENPU_MAX_MAPPINGS * kPage, handle, kPage) == -ENOSPC);
        REQUIRE(device.unmap(kVa, kPage) == 0);
        CHECK(device.map(kVa + ENPU_MAX_MAPPINGS * kPage, handle, kPage) == 0);
    }
    SECTION("jobs") {
        Fixture f;
        uint32_t ctx = 0;
        REQUIRE(f.device.context(&ctx, 0, 3) == 0);
        Buffer word(f.device, kPage);
        word.at(kVa);
        const uint32_t bytes = Commands().wait(kVa, 1, 30'000'000).write_to(f.commands.data());
        for (int i = 0; i < 3; i++)
            REQUIRE(Submit(ctx, 0, Fixture::kCmdVa, bytes).send(f.device) == 0);
        CHECK(Submit(ctx, 0, Fixture::kCmdVa, bytes).send(f.device) == -EAGAIN);
    }
}

TEST_CASE("what is pinned counts as long as it is") {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const rlimit limit{64 * kPage, 64 * kPage};
        int fd = open(getenv("ENPU_DEVICE"), O_RDWR | O_CLOEXEC);
        void* memory =
            mmap(nullptr, 128 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        // Root may pin what it likes; nobody else.
        if (fd < 0 || memory == MAP_FAILED || setrlimit(RLIMIT_MEMLOCK, &limit) || setuid(1000))
            _exit(10);
        const auto pin = [&](uint64_t pages, uint32_t* handle) {
            drm_enpu_bo_userptr args{reinterpret_cast<uintptr_t>(memory), pages * kPage, 0, 0};
            const int ret = ioctl(fd, DRM_IOCTL_ENPU_BO_USERPTR, &args) ? -errno : 0;
            *handle = args.handle;
            return ret;
        };
        uint32_t first = 0, second = 0;
        if (pin(65, &first) != -ENOMEM) _exit(11);
        if (pin(40, &first) != 0) _exit(12);
        if (pin(25, &second) != -ENOMEM) _exit(13);
        if (pin(24, &second) != 0) _exit(14);
        drm_gem_close args{first, 0};
        if (ioctl(fd, DRM_IOCTL_GEM_CLOSE, &args) || pin(40, &first)) _exit(15);
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

// A value of memory.stat of a control group.
long group_stat(const std::string& group, const std::string& key) {
    std::ifstream file(group + "/memory.stat");
    std::string name;
    for (long value = 0; file >> name >> value;)
        if (name == key) return value;
    return -1;
}

TEST_CASE("memory of the kernel for a program counts in its control group") {
    const std::string root = "/tmp/cgroup", group = root + "/enpu";
    mkdir(root.c_str(), 0755);
    if (mount("cgroup2", root.c_str(), "cgroup2", 0, nullptr) != 0) SKIP("no cgroup2");
    if (write_file(root + "/cgroup.subtree_control", "+memory") != 0) {
        umount(root.c_str());
        SKIP("no memory controller");
    }
    mkdir(group.c_str(), 0755);
    REQUIRE(write_file(group + "/cgroup.procs", std::to_string(getpid())) == 0);
    constexpr uint64_t kMappings = 300;
    long before = 0, after = 0;
    {
        Device device;
        uint32_t handle = 0;
        REQUIRE(device.bo_create(kPage, DRM_ENPU_BO_LOCAL, &handle) == 0);
        before = group_stat(group, "kernel");
        // Two page tables for each.
        for (uint64_t i = 1; i <= kMappings; i++) REQUIRE(device.map(i << 30, handle, kPage) == 0);
        after = group_stat(group, "kernel");
    }
    REQUIRE(write_file(root + "/cgroup.procs", std::to_string(getpid())) == 0);
    CHECK(eventually([&] { return rmdir(group.c_str()) == 0; }));
    CHECK(umount(root.c_str()) == 0);
    REQUIRE(before >= 0);
    // The counters of a group are exact to some pages a processor.
    CHECK(after - before >= static_cast<long>(kMappings * 2 * kPage) * 3 / 4);
}

// Lines of the kernel log from now on.
class KernelLog {
  public:
    KernelLog() : fd_(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
        REQUIRE(fd_ >= 0);
        REQUIRE(lseek(fd_, 0, SEEK_END) >= 0);
    }
    ~KernelLog() { close(fd_); }
    KernelLog(const KernelLog&) = delete;
    KernelLog& operator=(const KernelLog&) = delete;
    std::vector<std::string> lines() const {
        std::vector<std::string> all;
        char text[8192];
        for (ssize_t n; (n = read(fd_, text, sizeof(text))) > 0 || errno == EPIPE;)
            if (n > 0) all.emplace_back(text, static_cast<size_t>(n));
        return all;
    }

  private:
    int fd_;
};

TEST_CASE("errors of programs leave no line in the log") {
    Fixture f;
    KernelLog log;
    for (int i = 0; i < 2'000; i++) {
        uint32_t handle = 0;
        REQUIRE(f.device.bo_create(0, DRM_ENPU_BO_HOST, &handle) == -EINVAL);
        REQUIRE(f.device.map(kVa + 1, f.commands.handle(), kPage) == -EINVAL);
        REQUIRE(f.device.unmap(0x7000'0000'0000, kPage) == -EINVAL);
        REQUIRE(Submit(f.ctx, 99, Fixture::kCmdVa, 16).send(f.device) == -EINVAL);
        REQUIRE(Submit(f.ctx + 100, 0, Fixture::kCmdVa, 16).send(f.device) == -ENOENT);
        drm_enpu_query query{DRM_ENPU_QUERY_DEVICE, 64, 8};
        REQUIRE(f.device.call(DRM_IOCTL_ENPU_QUERY, &query) == -EFAULT);
    }
    // And jobs that the device refuses.
    for (int i = 0; i < 50; i++) {
        f.run(i % 2 ? 0 : f.copy, Commands().fill(0x7000'0000'0000, 64, 1));
        REQUIRE(f.device.context_destroy(f.ctx) == 0);
        REQUIRE(f.device.context(&f.ctx) == 0);
    }
    for (const auto& line : log.lines()) {
        INFO(line);
        CHECK(line.find("enpu") == std::string::npos);
    }
}

TEST_CASE("what programs bring about again and again is told now and then only") {
    constexpr int kResets = 80;
    Fixture f;
    KernelLog log;
    const int64_t started = deadline({});
    for (int i = 0; i < kResets; i++) REQUIRE(debugfs_write("force_reset", "0") == 0);
    const int64_t seconds = (deadline({}) - started) / 1'000'000'000;
    long told = 0;
    for (const auto& line : log.lines()) told += line.find("reset of engine") != line.npos;
    // Ten in five seconds.
    CHECK(told >= 1);
    CHECK(told <= 10 * (1 + seconds / 5 + 1));
    CHECK(told < kResets);
    f.run(0, Commands().nop());
}

}  // namespace
}  // namespace enpu::test
