// SPDX-License-Identifier: MIT
#include <sys/mman.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "kernel_device.h"

namespace enpu::test {
namespace {

bool all_zero(const Buffer& buffer) {
    const auto bytes = buffer.bytes();
    return std::all_of(bytes.begin(), bytes.end(), [](uint8_t b) { return b == 0; });
}

TEST_CASE("new buffers are zero and hold what is written") {
    const uint32_t placement = GENERATE(DRM_ENPU_BO_HOST, DRM_ENPU_BO_LOCAL);
    const uint32_t extra = GENERATE(0u, DRM_ENPU_BO_PRIVATE);
    Device device;
    Buffer buffer(device, 5 * kPage + 1, placement | extra);
    CHECK(buffer.size() == 6 * kPage);
    CHECK(all_zero(buffer));
    for (size_t i = 0; i < buffer.size(); i += 4096)
        buffer.data()[i] = static_cast<uint8_t>(i >> 12);
    for (size_t i = 0; i < buffer.size(); i += 4096) CHECK(buffer.data()[i] == i >> 12);

    drm_enpu_bo_info info{};
    info.handle = buffer.handle();
    REQUIRE(device.call(DRM_IOCTL_ENPU_BO_INFO, &info) == 0);
    CHECK(info.flags == (placement | extra));
    CHECK(info.mmap_offset != 0);
}

TEST_CASE("local memory that is used again is zero again") {
    Device device;
    for (int round = 0; round < 2; round++) {
        Buffer buffer(device, kLargePage, DRM_ENPU_BO_LOCAL);
        REQUIRE(all_zero(buffer));
        memset(buffer.data(), 0x5a, buffer.size());
    }
}

TEST_CASE("large local buffers are rounded up to large pages") {
    Device device;
    CHECK(Buffer(device, kLargePage + 1, DRM_ENPU_BO_LOCAL).size() == 2 * kLargePage);
    CHECK(Buffer(device, kLargePage - kPage, DRM_ENPU_BO_LOCAL).size() == kLargePage - kPage);
}

TEST_CASE("full local memory is -ENOSPC and can be used again") {
    Device device;
    uint32_t handle = 0;
    CHECK(device.bo_create(device.info().local_bytes + kLargePage, DRM_ENPU_BO_LOCAL, &handle) ==
          -ENOSPC);
    const uint64_t most = device.memory().local_largest / kLargePage * kLargePage;
    REQUIRE(device.bo_create(most, DRM_ENPU_BO_LOCAL, &handle) == 0);
    uint32_t more = 0;
    CHECK(device.bo_create(device.memory().local_free + kLargePage, DRM_ENPU_BO_LOCAL, &more) ==
          -ENOSPC);
    REQUIRE(device.close_handle(handle) == 0);
    REQUIRE(device.bo_create(most, DRM_ENPU_BO_LOCAL, &handle) == 0);
    CHECK(device.close_handle(handle) == 0);
}

TEST_CASE("BO_CREATE refuses what makes no sense") {
    Device device;
    uint32_t handle = 0;
    CHECK(device.bo_create(0, DRM_ENPU_BO_HOST, &handle) == -EINVAL);
    CHECK(device.bo_create(~0ull, DRM_ENPU_BO_HOST, &handle) == -EINVAL);
    CHECK(device.bo_create(~0ull - kPage, DRM_ENPU_BO_LOCAL, &handle) == -EINVAL);
    // What could be mapped but is not there is a matter of memory, not of the argument.
    CHECK(device.bo_create(1ull << 45, DRM_ENPU_BO_LOCAL, &handle) == -ENOSPC);
    CHECK(device.bo_create(1ull << 45, DRM_ENPU_BO_HOST, &handle) == -ENOMEM);
    CHECK(device.bo_create(kPage, 0, &handle) == -EINVAL);
    CHECK(device.bo_create(kPage, DRM_ENPU_BO_PRIVATE, &handle) == -EINVAL);
    CHECK(device.bo_create(kPage, DRM_ENPU_BO_HOST | DRM_ENPU_BO_LOCAL, &handle) == -EINVAL);
    CHECK(device.bo_create(kPage, DRM_ENPU_BO_HOST | 0x8, &handle) == -EINVAL);
    drm_enpu_bo_create with_handle{kPage, DRM_ENPU_BO_HOST, 1};
    CHECK(device.call(DRM_IOCTL_ENPU_BO_CREATE, &with_handle) == -EINVAL);
}

TEST_CASE("BO_INFO and BO_WAIT check their arguments") {
    Device device;
    Buffer buffer(device, kPage);
    drm_enpu_bo_info info{};
    info.handle = 0x7777;
    CHECK(device.call(DRM_IOCTL_ENPU_BO_INFO, &info) == -ENOENT);
    info = {buffer.handle(), 1, 0, 0};
    CHECK(device.call(DRM_IOCTL_ENPU_BO_INFO, &info) == -EINVAL);
    CHECK(device.bo_wait(0x7777, soon()) == -ENOENT);
    CHECK(device.bo_wait(buffer.handle(), soon(), 2) == -EINVAL);
    CHECK(device.bo_wait(buffer.handle(), 0) == 0);
}

TEST_CASE("a mapping cannot reach past its buffer") {
    Device device;
    Buffer buffer(device, 2 * kPage, DRM_ENPU_BO_LOCAL);
    drm_enpu_bo_info info{};
    info.handle = buffer.handle();
    REQUIRE(device.call(DRM_IOCTL_ENPU_BO_INFO, &info) == 0);
    void* p = mmap(nullptr, 3 * kPage, PROT_READ, MAP_SHARED, device.fd(),
                   static_cast<off_t>(info.mmap_offset));
    CHECK(p == MAP_FAILED);
    // Another file has no right to the offset.
    Device other;
    p = mmap(nullptr, 2 * kPage, PROT_READ, MAP_SHARED, other.fd(),
             static_cast<off_t>(info.mmap_offset));
    CHECK(p == MAP_FAILED);
    // A private mapping would be a copy that the device never sees.
    p = mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE, device.fd(),
             static_cast<off_t>(info.mmap_offset));
    CHECK(p == MAP_FAILED);
}

TEST_CASE("a handle of another file is unknown") {
    Device device, other;
    Buffer buffer(device, kPage);
    drm_enpu_bo_info info{};
    info.handle = buffer.handle();
    CHECK(other.call(DRM_IOCTL_ENPU_BO_INFO, &info) == -ENOENT);
    CHECK(other.bo_wait(buffer.handle(), 0) == -ENOENT);
    CHECK(other.map(kVa, buffer.handle(), kPage) == -ENOENT);
}

}  // namespace
}  // namespace enpu::test
