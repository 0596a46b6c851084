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
#include <functional>

#include "recovery.h"

namespace enpu::test {
namespace {

using Objects = std::map<std::string, long>;

// The first of them that is not as it was, or an empty text.
std::string difference(const Objects& now, const Objects& before,
                       const std::string& but = std::string()) {
    for (const auto& [name, count] : before)
        if (name != but && now.at(name) != count)
            return name + " " + std::to_string(count) + " -> " + std::to_string(now.at(name));
    return {};
}

bool all_zero(const Objects& objects) {
    for (const auto& [name, count] : objects)
        if (count != 0) return false;
    return true;
}

// Calls again and again, and each time one allocation or copy further into it fails, until none
// does. A call that failed has had no effect, but for objects that belong to another (`but`). The
// number of failures.
int fail_everywhere(const char* what, const std::function<int()>& call,
                    const std::string& but = std::string()) {
    INFO(what);
    for (int n = 1; n < 200; n++) {
        const Objects before = live_objects();
        REQUIRE(debugfs_write("fail_nth", std::to_string(n)) == 0);
        const int ret = call();
        const bool fired = debugfs_read("fail_nth") == "0\n";
        REQUIRE(debugfs_write("fail_nth", "0") == 0);
        INFO("failure " << n << ", returned " << ret);
        if (!fired) {
            CHECK(ret == 0);
            return n - 1;
        }
        CHECK((ret == -ENOMEM || ret == -EFAULT));
        CHECK(difference(live_objects(), before, but) == "");
    }
    FAIL("it never succeeds");
    return 0;
}

int open_and_close() {
    const int fd = open(getenv("ENPU_DEVICE"), O_RDWR | O_CLOEXEC);
    if (fd < 0) return -errno;
    return close(fd);
}

TEST_CASE("a failure anywhere in a call leaves no trace") {
    REQUIRE(eventually([] { return all_zero(live_objects()); }));
    CHECK(fail_everywhere("open", open_and_close) >= 5);
    {
        Device device;
        uint32_t host = 0, local = 0, ctx = 0, user = 0;
        CHECK(fail_everywhere("BO_CREATE host", [&] {
                  return device.bo_create(16 * kPage, DRM_ENPU_BO_HOST, &host);
              }) >= 2);
        CHECK(fail_everywhere("BO_CREATE local", [&] {
                  return device.bo_create(kPage, DRM_ENPU_BO_LOCAL, &local);
              }) >= 3);
        void* memory =
            mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        CHECK(fail_everywhere("BO_USERPTR", [&] {
                  drm_enpu_bo_userptr args{reinterpret_cast<uintptr_t>(memory), 4 * kPage, 0, 0};
                  const int ret = device.call(DRM_IOCTL_ENPU_BO_USERPTR, &args);
                  user = args.handle;
                  return ret;
              }) >= 5);
        CHECK(fail_everywhere("BO_INFO", [&] {
                  drm_enpu_bo_info args{};
                  args.handle = host;
                  return device.call(DRM_IOCTL_ENPU_BO_INFO, &args);
              }) >= 1);
        CHECK(fail_everywhere("VM_MAP host", [&] { return device.map(kVa, host, 16 * kPage); }) >=
              5);
        CHECK(fail_everywhere("VM_MAP local",
                              [&] { return device.map(0x40'0000'0000, local, kPage); }) >= 5);
        CHECK(fail_everywhere("CTX_CREATE", [&] { return device.context(&ctx); }) >= 2);
        CHECK(fail_everywhere("QUERY", [&] {
                  drm_enpu_memory_info info{};
                  drm_enpu_query query{DRM_ENPU_QUERY_MEMORY, sizeof(info),
                                       reinterpret_cast<uintptr_t>(&info)};
                  return device.call(DRM_IOCTL_ENPU_QUERY, &query);
              }) >= 2);

        const uint32_t timeline = device.syncobj(), before = device.syncobj(true),
                       done = device.syncobj();
        // Reads as NOPs: the memory is zero. What the call makes for its engine stays.
        CHECK(fail_everywhere(
                  "SUBMIT",
                  [&] {
                      return Submit(ctx, 0, kVa, kPage)
                          .wait(before)
                          .signal(timeline, 1)
                          .signal(done)
                          .uses(host, DRM_ENPU_SUBMIT_BO_READ)
                          .uses(user, DRM_ENPU_SUBMIT_BO_WRITE)
                          .send(device);
                  },
                  "queues") >= 14);
        CHECK(device.syncobj_wait(done) == 0);
        CHECK(device.status(ctx).submitted == 1);
        munmap(memory, 4 * kPage);

        uint32_t queue = 0, healthy = 0;
        REQUIRE(device.context(&healthy) == 0);
        CHECK(fail_everywhere("QUEUE_CREATE", [&] {
                  drm_enpu_queue_create args{healthy, 0, kVa, 4, 0, 0, 0, 0};
                  const int ret = device.call(DRM_IOCTL_ENPU_QUEUE_CREATE, &args);
                  queue = args.queue_id;
                  return ret;
              }) >= 5);
        drm_enpu_queue_wait wait{queue, 0, 1, 0};
        CHECK(device.call(DRM_IOCTL_ENPU_QUEUE_WAIT, &wait) == -ETIME);
    }
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
