// SPDX-License-Identifier: MIT
// What a device may reach of a program's memory ends with the driver's hold on it, while the program
// still has the file open. The driver counts what is mapped, and tells the kernel log what is left
// at the end; a kernel with CONFIG_DMA_API_DEBUG counts for itself. The log is read by the runner.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "foreign_buffer.h"
#include "recovery.h"
#include "user_queue.h"

namespace enpu::test {
namespace {

const std::string kDriver = "/sys/bus/pci/drivers/enpu/";

// What the driver has mapped but for page tables, whose number follows from the addresses.
long mapped() {
    const auto live = live_objects();
    return live.at("dma") - live.at("tables");
}

// Mappings of a PCI function by the kernel's own list, 0 where it keeps none.
long mapped_by_kernel(const std::string& function) {
    std::ifstream dump("/sys/kernel/debug/dma-api/dump");
    long count = 0;
    for (std::string line; std::getline(dump, line);)
        count += line.find(function) != std::string::npos;
    return count;
}

bool nothing_is_left() {
    return eventually([] {
        for (const auto& [name, count] : live_objects())
            if (count != 0) return false;
        return true;
    });
}

uint8_t* anonymous(size_t bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(p != MAP_FAILED);
    return static_cast<uint8_t*>(p);
}

uint32_t import(const Device& device, int fd) {
    uint32_t handle = 0;
    REQUIRE(device.import_fd(fd, &handle) == 0);
    return handle;
}

// A device with every kind of memory in its reach.
struct Loaded : QueueRig {
    static constexpr uint64_t kHostVa = kVa, kUserVa = 2 * kVa, kForeignVa = 4 * kVa,
                              kPeerVa = 5 * kVa;
    Buffer host;
    uint8_t* own = anonymous(2 * kPage);

    Loaded(const ForeignBuffer& foreign, int peer) : host(device, 4 * kPage) {
        const long before = mapped();
        host.at(kHostVa);
        CHECK(mapped() == before + 1);
        drm_enpu_bo_userptr pin{reinterpret_cast<uintptr_t>(own), 2 * kPage, 0, 0};
        REQUIRE(device.call(DRM_IOCTL_ENPU_BO_USERPTR, &pin) == 0);
        REQUIRE(device.map(kUserVa, pin.handle, 2 * kPage) == 0);
        REQUIRE(device.map(kForeignVa, import(device, foreign.fd()), foreign.size()) == 0);
        CHECK(mapped() == before + 3);
        REQUIRE(device.map(kPeerVa, import(device, peer), kPage) == 0);
        CHECK(mapped() == before + 4);
        run(copy, Commands()
                      .fill(kHostVa, 4 * kPage, 0x11)
                      .fill(kUserVa, 2 * kPage, 0x22)
                      .fill(kForeignVa, foreign.size(), 0x33)
                      .fill(kPeerVa, kPage, 0x44));
        CHECK(mapped() == before + 5);  // the ring of a queue
        CHECK(queue.wait(kick(Commands().nop())) == 0);
    }
    ~Loaded() { munmap(own, 2 * kPage); }
};

TEST_CASE("a device that is let go of reaches nothing of those who have it open") {
    REQUIRE(setenv("ENPU_DEVICE", "/dev/accel/accel1", 1) == 0);
    auto peer = std::make_unique<Fixture>();
    Buffer shared(peer->device, kPage);
    int fd = -1;
    REQUIRE(peer->device.export_fd(shared.handle(), &fd) == 0);
    REQUIRE(setenv("ENPU_DEVICE", "/dev/accel/accel0", 1) == 0);
    const std::string device = pci_path(), name = std::filesystem::path(device).filename().string();

    ForeignBuffer foreign(3 * kPage);
    for (int round = 0; round < 2; round++) {
        INFO("round " << round);
        auto old = std::make_unique<Loaded>(foreign, fd);
        // One that waits for a word of host memory is in flight.
        REQUIRE(old->submit(0, Commands().wait(Loaded::kHostVa, 1, 30'000'000)) == 0);
        if (access("/sys/kernel/debug/dma-api/dump", R_OK) == 0) CHECK(mapped_by_kernel(name) > 0);
        REQUIRE(write_file(kDriver + "unbind", name) == 0);
        CHECK(mapped_by_kernel(name) == 0);

        // The memory is still the program's.
        CHECK(old->host.data()[4 * kPage - 1] == 0x11);
        CHECK(old->own[2 * kPage - 1] == 0x22);
        CHECK(foreign.data()[3 * kPage - 1] == 0x33);
        CHECK(shared.data()[kPage - 1] == 0x44);
        memset(old->host.data(), 0, 4 * kPage);
        old->queue.store_doorbell();
        CHECK(old->queue.fence() == 1);
        CHECK(old->device.unmap(Loaded::kHostVa, 4 * kPage) == -ENODEV);
        CHECK(old->device.map(Loaded::kHostVa, old->host.handle(), 4 * kPage) == -ENODEV);

        REQUIRE(write_file(kDriver + "bind", name) == 0);
        REQUIRE(find_node(device));
        {
            Fixture fresh;
            fresh.run(fresh.copy, Commands().nop());
        }
        old.reset();
        CHECK(nothing_is_left());
    }
    // Its part in a buffer is no concern of the one that exported it.
    shared.at(kVa);
    peer->run(peer->copy, Commands().fill(kVa, kPage, 0x55));
    CHECK(shared.data()[0] == 0x55);
    close(fd);
}

// Takes every kind of memory and gives it back, until the device has gone. The exit status: 0, or
// the line of a call that said something else.
int use_until_gone(int fd, int lane) {
    Device device;
    uint8_t* own = anonymous(kPage);
    const uint64_t va = kVa + lane * kLargePage;
    for (;;) {
        uint32_t handle = 0, ctx = 0;
        drm_enpu_bo_userptr pin{reinterpret_cast<uintptr_t>(own), kPage, 0, 0};
        int ret = 0;
        if (lane == 0) ret = device.bo_create(kPage, DRM_ENPU_BO_HOST, &handle);
        if (lane == 1) ret = device.call(DRM_IOCTL_ENPU_BO_USERPTR, &pin), handle = pin.handle;
        if (lane == 2) ret = device.import_fd(fd, &handle);
        if (lane < 3) {
            if (!ret) ret = device.map(va, handle, kPage);
            if (!ret) ret = device.unmap(va, kPage);
            if (!ret) ret = device.close_handle(handle);
        } else {
            ret = device.context(&ctx);
            if (!ret) ret = Submit(ctx, 0, Fixture::kCmdVa, 64).send(device);
            if (!ret) ret = device.context_destroy(ctx);
        }
        if (ret == -ENODEV) return 0;
        if (ret) return -ret;
    }
}

TEST_CASE("programs in the middle of their calls meet the end of the device") {
    const std::string device = pci_path(), name = std::filesystem::path(device).filename().string();
    ForeignBuffer foreign(kPage);
    for (int round = 0; round < 6; round++) {
        INFO("round " << round);
        std::vector<pid_t> children;
        for (int lane = 0; lane < 4; lane++) {
            children.push_back(fork());
            REQUIRE(children.back() >= 0);
            if (children.back() != 0) continue;
            try {
                _exit(use_until_gone(foreign.fd(), lane));
            } catch (...) {  // a REQUIRE
                _exit(255);
            }
        }
        REQUIRE(eventually([] { return live_objects().at("files") >= 4; }));
        usleep(20'000 + 7'000 * round);
        REQUIRE(write_file(kDriver + "unbind", name) == 0);
        CHECK(mapped_by_kernel(name) == 0);
        for (size_t lane = 0; lane < children.size(); lane++) {
            int status = -1;
            INFO("lane " << lane);
            if (!eventually([&] { return waitpid(children[lane], &status, WNOHANG) != 0; })) {
                kill(children[lane], SIGKILL);
                waitpid(children[lane], &status, 0);
            }
            CHECK(status == 0);
        }
        REQUIRE(write_file(kDriver + "bind", name) == 0);
        REQUIRE(find_node(device));
        CHECK(nothing_is_left());
    }
}

}  // namespace
}  // namespace enpu::test
