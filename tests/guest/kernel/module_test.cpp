// SPDX-License-Identifier: MIT
// Loading and unloading, again and again, with work in between. Runs alone: it takes the module
// away from everybody.
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "recovery.h"

namespace enpu::test {
namespace {

int unload() {
    return syscall(SYS_delete_module, "enpu", O_NONBLOCK) ? -errno : 0;
}

int load() {
    const char* named = getenv("ENPU_MODULE");
    const int fd = open(named ? named : "/enpu/enpu.ko", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -errno;
    const int ret = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
    close(fd);
    return ret;
}

// The node appears a little after the module.
bool node_appears() {
    const char* named = getenv("ENPU_DEVICE");
    const int64_t until = soon();
    while (deadline({}) < until) {
        if (access(named ? named : "/dev/accel/accel0", R_OK | W_OK) == 0) return true;
        usleep(10'000);
    }
    return false;
}

TEST_CASE("the module can be unloaded and loaded again") {
    for (int round = 0; round < 3; round++) {
        {
            Fixture f;
            f.run(0, Commands().nop());
            CHECK(unload() == -EAGAIN);  // an open file holds it
        }
        const int64_t until = soon();
        int ret;
        while ((ret = unload()) == -EAGAIN && deadline({}) < until) usleep(10'000);
        REQUIRE(ret == 0);
        REQUIRE(load() == 0);
        REQUIRE(node_appears());
    }
}

TEST_CASE("a device that is unbound under its users fails cleanly") {
    const std::string device = pci_path(), name = std::filesystem::path(device).filename().string();
    auto f = std::make_unique<Fixture>();
    auto buffer = std::make_unique<Buffer>(f->device, kPage, DRM_ENPU_BO_HOST);
    buffer->at(kVa);
    REQUIRE(f->submit(0, Commands().wait(kVa, 1, 30'000'000)) == 0);
    REQUIRE(write_file("/sys/bus/pci/drivers/enpu/unbind", name) == 0);

    // The fence of the job in flight signals, and every call says that the device is away.
    drm_enpu_ctx_status status{};
    status.ctx_id = f->ctx;
    CHECK(f->device.call(DRM_IOCTL_ENPU_CTX_STATUS, &status) == -ENODEV);
    uint32_t handle = 0;
    CHECK(f->device.bo_create(kPage, DRM_ENPU_BO_HOST, &handle) == -ENODEV);
    REQUIRE(write_file("/sys/bus/pci/drivers/enpu/bind", name) == 0);
    REQUIRE(find_node(device));
    {
        Fixture fresh;
        fresh.run(0, Commands().nop());
    }
    // The old file goes last.
    buffer.reset();
    f.reset();
    Fixture fresh;
    fresh.run(0, Commands().nop());
}

TEST_CASE("a function-level reset by the bus lets parked jobs go on") {
    Fixture f;
    Buffer words(f.device, kPage);
    words.at(kVa);
    REQUIRE(f.submit(0, Commands().wait(kVa, 1, 30'000'000).fill(kVa + 64, 8, 3)) == 0);
    REQUIRE(write_file(pci_path() + "/reset", "1") == 0);
    const uint32_t go = Commands().signal(kVa, 1).write_to(f.commands.data() + kPage);
    REQUIRE(Submit(f.ctx, f.copy, Fixture::kCmdVa + kPage, go).send(f.device) == 0);
    REQUIRE(f.device.syncobj_wait(f.done) == 0);
    CHECK(f.device.status(f.ctx).error == 0);
    CHECK(words.data()[64] == 3);
}

// Unloads as soon as the last reference has gone. 0 or -errno.
int unload_eventually() {
    int ret = -EAGAIN;
    eventually([&] { return (ret = unload()) != -EAGAIN; });
    return ret;
}

TEST_CASE("the module cannot be unloaded under load, and can when the load was killed") {
    const std::string device = pci_path();
    std::vector<pid_t> children;
    for (int i = 0; i < 3; i++) {
        children.push_back(fork());
        REQUIRE(children.back() >= 0);
        if (children.back() == 0) {
            try {
                for (Fixture f;;) f.run(i % 2 ? 0 : f.copy, Commands().nop().nop());
            } catch (...) {  // a REQUIRE; the parent tells
            }
            _exit(1);
        }
    }
    REQUIRE(eventually([] { return std::stol(sysfs("npu_busy_time_us")) > 0; }));
    for (int i = 0; i < 100; i++) {
        CHECK(unload() == -EAGAIN);
        usleep(2'000);
    }
    for (pid_t child : children) {
        int status = 0;
        CHECK(waitpid(child, &status, WNOHANG) == 0);  // still at work
        kill(child, SIGKILL);
        REQUIRE(waitpid(child, &status, 0) == child);
    }
    REQUIRE(unload_eventually() == 0);
    REQUIRE(load() == 0);
    REQUIRE(find_node(device));
}

TEST_CASE("a fence that somebody still holds keeps the module") {
    const std::string device = pci_path();
    int fence = -1;
    {
        Fixture f;
        f.run(0, Commands().nop());
        drm_syncobj_handle args{};
        args.handle = f.done;
        args.flags = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE;
        REQUIRE(f.device.call(DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &args) == 0);
        fence = args.fd;
    }
    usleep(200'000);
    CHECK(unload() == -EAGAIN);
    close(fence);
    REQUIRE(unload_eventually() == 0);
    REQUIRE(load() == 0);
    REQUIRE(find_node(device));
}

TEST_CASE("a probe that fails at any step leaves nothing behind") {
    const std::string device = pci_path(), driver = "/sys/bus/pci/drivers/enpu/",
                      name = std::filesystem::path(device).filename().string(),
                      parameter = "/sys/module/enpu/parameters/fail_probe";
    int failed = 0;
    for (int step = 1;; step++) {
        REQUIRE(step < 50);
        REQUIRE(write_file(driver + "unbind", name) == 0);
        REQUIRE(write_file(parameter, std::to_string(step)) == 0);
        const int ret = write_file(driver + "bind", name);
        REQUIRE(write_file(parameter, "0") == 0);
        if (ret == 0) break;
        CHECK(ret == -ENOMEM);
        failed++;
        CHECK_FALSE(std::filesystem::exists(device + "/accel"));
        // The next one works, on what the failed one left.
        REQUIRE(write_file(driver + "bind", name) == 0);
        REQUIRE(find_node(device));
    }
    REQUIRE(find_node(device));
    // Every step of the driver and every vector was met.
    CHECK(failed >= 12);
    Fixture f;
    f.run(0, Commands().nop());
    f.run(f.copy, Commands().nop());
}

}  // namespace
}  // namespace enpu::test
