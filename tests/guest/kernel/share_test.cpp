// SPDX-License-Identifier: MIT
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>

#include "foreign_buffer.h"
#include "kernel_device.h"

namespace enpu::test {
namespace {

uint8_t* anonymous(size_t bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(p != MAP_FAILED);
    return static_cast<uint8_t*>(p);
}

int wrap(const Device& device, const void* p, uint64_t bytes, uint32_t flags, uint32_t* handle) {
    drm_enpu_bo_userptr args{reinterpret_cast<uintptr_t>(p), bytes, flags, 0};
    const int ret = device.call(DRM_IOCTL_ENPU_BO_USERPTR, &args);
    *handle = args.handle;
    return ret;
}

TEST_CASE("jobs read and write memory of the process") {
    Fixture f;
    uint8_t* p = anonymous(64 * kPage);
    for (size_t i = 0; i < 32 * kPage; i++) p[i] = static_cast<uint8_t>(i * 13);
    uint32_t handle = 0;
    REQUIRE(wrap(f.device, p, 64 * kPage, 0, &handle) == 0);
    CHECK(f.device.memory().host_used >= 64 * kPage);
    REQUIRE(f.device.map(kVa, handle, 64 * kPage) == 0);
    f.run(f.copy, Commands().copy(kVa + 32 * kPage, kVa, 32 * kPage));
    CHECK(memcmp(p, p + 32 * kPage, 32 * kPage) == 0);
    REQUIRE(f.device.unmap(kVa, 64 * kPage) == 0);
    CHECK(f.device.close_handle(handle) == 0);
    munmap(p, 64 * kPage);
}

TEST_CASE("read-only memory is never mapped for writing") {
    Fixture f;
    uint8_t* p = anonymous(kPage);
    p[0] = 0x31;
    REQUIRE(mprotect(p, kPage, PROT_READ) == 0);
    uint32_t handle = 0;
    CHECK(wrap(f.device, p, kPage, 0, &handle) == -EFAULT);
    REQUIRE(wrap(f.device, p, kPage, DRM_ENPU_USERPTR_READ_ONLY, &handle) == 0);
    CHECK(f.device.map(kVa, handle, kPage) == -EACCES);
    REQUIRE(f.device.map(kVa, handle, kPage, 0, DRM_ENPU_MAP_READ) == 0);
    Buffer result(f.device, kPage);
    result.at(kVa + kLargePage);
    f.run(f.copy, Commands().copy(kVa + kLargePage, kVa, 1));
    CHECK(result.data()[0] == 0x31);
    munmap(p, kPage);
}

TEST_CASE("memory of the process is wrapped as often as it likes") {
    Fixture f;
    uint8_t* p = anonymous(4 * kPage);
    memset(p, 0x77, 4 * kPage);
    // Whole, in part and only to be read: kernels that check DMA would have something to say.
    uint32_t whole = 0, part = 0, again = 0;
    REQUIRE(wrap(f.device, p, 4 * kPage, 0, &whole) == 0);
    REQUIRE(wrap(f.device, p + kPage, 2 * kPage, 0, &part) == 0);
    REQUIRE(wrap(f.device, p, 4 * kPage, DRM_ENPU_USERPTR_READ_ONLY, &again) == 0);
    REQUIRE(f.device.map(kVa, whole, 4 * kPage) == 0);
    REQUIRE(f.device.map(kVa + kLargePage, part, 2 * kPage) == 0);
    CHECK(f.device.close_handle(again) == 0);
    f.run(f.copy, Commands().fill(kVa + kLargePage, 2 * kPage, 0x11).fill(kVa, 8, 0x22));
    CHECK(p[0] == 0x22);
    CHECK(p[kPage] == 0x11);
    CHECK(p[3 * kPage] == 0x77);
    munmap(p, 4 * kPage);
}

TEST_CASE("BO_USERPTR checks its arguments") {
    Device device;
    uint8_t* p = anonymous(4 * kPage);
    uint32_t handle = 0;
    CHECK(wrap(device, p + 1, kPage, 0, &handle) == -EINVAL);
    CHECK(wrap(device, p, kPage + 1, 0, &handle) == -EINVAL);
    CHECK(wrap(device, p, 0, 0, &handle) == -EINVAL);
    CHECK(wrap(device, p, kPage, 2, &handle) == -EINVAL);
    CHECK(wrap(device, p, ~0ull - kPage + 1, 0, &handle) < 0);
    CHECK(wrap(device, reinterpret_cast<void*>(1ull << 62), kPage, 0, &handle) == -EFAULT);
    // More than there is: refused before anything is made ready for so many pages.
    void* low = reinterpret_cast<void*>(16 * kPage);
    CHECK(wrap(device, low, 1ull << 40, 0, &handle) == -ENOMEM);
    CHECK(wrap(device, low, 1ull << 46, 0, &handle) == -ENOMEM);
    munmap(p + kPage, kPage);
    CHECK(wrap(device, p, 4 * kPage, 0, &handle) == -EFAULT);
    // It can be neither mapped by the CPU nor shared.
    REQUIRE(wrap(device, p, kPage, 0, &handle) == 0);
    drm_enpu_bo_info info{};
    info.handle = handle;
    REQUIRE(device.call(DRM_IOCTL_ENPU_BO_INFO, &info) == 0);
    CHECK(info.mmap_offset == 0);
    CHECK(info.flags == DRM_ENPU_BO_HOST);
    int fd = -1;
    CHECK(device.export_fd(handle, &fd) < 0);
    munmap(p, kPage);
    munmap(p + 2 * kPage, 2 * kPage);
}

TEST_CASE("pinned memory counts against RLIMIT_MEMLOCK") {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        // Exit status: 0 when the limit held, else the step that failed.
        Device device;
        const rlimit limit{8 * kPage, 8 * kPage};
        if (setrlimit(RLIMIT_MEMLOCK, &limit)) _exit(1);
        uint8_t* p = anonymous(16 * kPage);
        // The capability to lock memory goes with the user id.
        if (setgid(65534) || setuid(65534)) _exit(2);
        uint32_t first = 0, second = 0;
        if (wrap(device, p, 9 * kPage, 0, &first) != -ENOMEM) _exit(3);
        if (wrap(device, p, 8 * kPage, 0, &first) != 0) _exit(4);
        if (wrap(device, p + 8 * kPage, kPage, 0, &second) != -ENOMEM) _exit(5);
        if (device.close_handle(first) != 0) _exit(6);
        if (wrap(device, p + 8 * kPage, kPage, 0, &second) != 0) _exit(7);
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("an exported buffer comes back as the same object") {
    for (uint32_t placement : {DRM_ENPU_BO_HOST, DRM_ENPU_BO_LOCAL}) {
        Device device, other;
        Buffer buffer(device, 2 * kPage, placement);
        buffer.data()[5] = 0x66;
        int fd = -1;
        REQUIRE(device.export_fd(buffer.handle(), &fd) == 0);
        uint32_t same = 0, imported = 0;
        REQUIRE(device.import_fd(fd, &same) == 0);
        CHECK(same == buffer.handle());
        REQUIRE(other.import_fd(fd, &imported) == 0);
        close(fd);
        drm_enpu_bo_info info{};
        info.handle = imported;
        REQUIRE(other.call(DRM_IOCTL_ENPU_BO_INFO, &info) == 0);
        CHECK(info.flags == placement);
        CHECK(info.size == 2 * kPage);
        void* p = mmap(nullptr, 2 * kPage, PROT_READ, MAP_SHARED, other.fd(),
                       static_cast<off_t>(info.mmap_offset));
        REQUIRE(p != MAP_FAILED);
        CHECK(static_cast<uint8_t*>(p)[5] == 0x66);
        munmap(p, 2 * kPage);
    }
}

TEST_CASE("a private buffer is not exported") {
    Device device;
    for (uint32_t placement : {DRM_ENPU_BO_HOST, DRM_ENPU_BO_LOCAL}) {
        Buffer buffer(device, kPage, placement | DRM_ENPU_BO_PRIVATE);
        int fd = -1;
        CHECK(device.export_fd(buffer.handle(), &fd) < 0);
    }
}

TEST_CASE("a dma-buf of another driver can be used") {
    ForeignBuffer foreign(4 * kPage);
    const uint8_t* p = foreign.data();
    Fixture f;
    uint32_t handle = 0;
    REQUIRE(f.device.import_fd(foreign.fd(), &handle) == 0);
    drm_enpu_bo_info info{};
    info.handle = handle;
    REQUIRE(f.device.call(DRM_IOCTL_ENPU_BO_INFO, &info) == 0);
    CHECK(info.flags == 0);
    CHECK(info.size == 4 * kPage);
    REQUIRE(f.device.map(kVa, handle, 4 * kPage) == 0);
    f.run(f.copy, Commands().fill(kVa + kPage, 3 * kPage, 0x24));
    CHECK(p[kPage - 1] == 0);
    CHECK(p[kPage] == 0x24);
    CHECK(p[4 * kPage - 1] == 0x24);
}

}  // namespace
}  // namespace enpu::test
