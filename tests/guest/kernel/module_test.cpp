// SPDX-License-Identifier: MIT
// Loading and unloading, again and again, with work in between. Runs alone: it takes the module
// away from everybody.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "kernel_device.h"

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

std::filesystem::path pci_device() {
    return std::filesystem::canonical(sysfs_path(""));
}

// Makes the node that a PCI function has now the one of the test. A file that is still open keeps
// the old number.
bool find_node(const std::filesystem::path& device) {
    const int64_t until = soon();
    while (deadline({}) < until) {
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator(device / "accel", error)) {
            const std::string node = "/dev/accel/" + entry.path().filename().string();
            setenv("ENPU_DEVICE", node.c_str(), 1);
            if (node_appears()) return true;
        }
        usleep(10'000);
    }
    return false;
}

void write_sysfs(const std::filesystem::path& file, const std::string& text) {
    const int fd = open(file.c_str(), O_WRONLY | O_CLOEXEC);
    INFO(file.string());
    REQUIRE(fd >= 0);
    CHECK(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    close(fd);
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
    const auto device = pci_device();
    const std::string name = device.filename();
    auto f = std::make_unique<Fixture>();
    auto buffer = std::make_unique<Buffer>(f->device, kPage, DRM_ENPU_BO_HOST);
    buffer->at(kVa);
    REQUIRE(f->submit(0, Commands().wait(kVa, 1, 30'000'000)) == 0);
    write_sysfs("/sys/bus/pci/drivers/enpu/unbind", name);

    // The fence of the job in flight signals, and every call says that the device is away.
    drm_enpu_ctx_status status{};
    status.ctx_id = f->ctx;
    CHECK(f->device.call(DRM_IOCTL_ENPU_CTX_STATUS, &status) == -ENODEV);
    uint32_t handle = 0;
    CHECK(f->device.bo_create(kPage, DRM_ENPU_BO_HOST, &handle) == -ENODEV);
    write_sysfs("/sys/bus/pci/drivers/enpu/bind", name);
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
    write_sysfs(pci_device() / "reset", "1");
    const uint32_t go = Commands().signal(kVa, 1).write_to(f.commands.data() + kPage);
    REQUIRE(Submit(f.ctx, f.copy, Fixture::kCmdVa + kPage, go).send(f.device) == 0);
    REQUIRE(f.device.syncobj_wait(f.done) == 0);
    CHECK(f.device.status(f.ctx).error == 0);
    CHECK(words.data()[64] == 3);
}

}  // namespace
}  // namespace enpu::test
