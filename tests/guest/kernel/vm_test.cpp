// SPDX-License-Identifier: MIT
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "kernel_device.h"

namespace enpu::test {
namespace {

TEST_CASE("VM_MAP checks range, alignment, rights and overlap") {
    Device device;
    Buffer buffer(device, 4 * kPage);
    const uint32_t h = buffer.handle();
    CHECK(device.map(kVa, h, 0) == -EINVAL);
    CHECK(device.map(kVa + 1, h, kPage) == -EINVAL);
    CHECK(device.map(kVa, h, kPage + 1) == -EINVAL);
    CHECK(device.map(kVa, h, kPage, 1) == -EINVAL);
    CHECK(device.map(kVa, h, 5 * kPage) == -EINVAL);
    CHECK(device.map(kVa, h, kPage, 4 * kPage) == -EINVAL);
    CHECK(device.map(kVa, h, 2 * kPage, ~0ull - kPage + 1) == -EINVAL);
    CHECK(device.map(0, h, kPage) == -EINVAL);
    CHECK(device.map(ENPU_VA_START - kPage, h, kPage) == -EINVAL);
    CHECK(device.map(ENPU_VA_END, h, kPage) == -EINVAL);
    CHECK(device.map(ENPU_VA_END - kPage, h, 2 * kPage) == -EINVAL);
    CHECK(device.map(~0ull - kPage + 1, h, 2 * kPage) == -EINVAL);
    CHECK(device.map(kVa, h, kPage, 0, 0) == -EINVAL);
    CHECK(device.map(kVa, h, kPage, 0, 4) == -EINVAL);
    CHECK(device.map(kVa, 0x7777, kPage) == -ENOENT);

    REQUIRE(device.map(kVa, h, 2 * kPage) == 0);
    CHECK(device.map(kVa, h, kPage) == -EEXIST);
    CHECK(device.map(kVa + kPage, h, 2 * kPage) == -EEXIST);
    CHECK(device.map(kVa - kPage, h, 4 * kPage) == -EEXIST);
    // Neighbours are no overlap, and one buffer may be mapped more than once.
    CHECK(device.map(kVa + 2 * kPage, h, kPage) == 0);
    CHECK(device.map(kVa - kPage, h, kPage) == 0);
    CHECK(device.map(ENPU_VA_END - kPage, h, kPage) == 0);
    CHECK(device.map(ENPU_VA_START, h, kPage) == 0);
}

TEST_CASE("VM_UNMAP takes whole mappings only") {
    Device device;
    Buffer buffer(device, 4 * kPage);
    REQUIRE(device.map(kVa, buffer.handle(), 2 * kPage) == 0);
    REQUIRE(device.map(kVa + 2 * kPage, buffer.handle(), kPage) == 0);
    REQUIRE(device.map(kVa + 4 * kPage, buffer.handle(), kPage) == 0);
    CHECK(device.unmap(kVa, kPage) == -EINVAL);
    CHECK(device.unmap(kVa + kPage, kPage) == -EINVAL);
    CHECK(device.unmap(kVa, 4 * kPage) == -EINVAL);
    CHECK(device.unmap(kVa, 5 * kPage) == -EINVAL);
    CHECK(device.unmap(kVa, 0) == -EINVAL);
    CHECK(device.unmap(kVa + 1, kPage) == -EINVAL);
    drm_enpu_vm_unmap padded{kVa, 3 * kPage, soon(), 1};
    CHECK(device.call(DRM_IOCTL_ENPU_VM_UNMAP, &padded) == -EINVAL);
    CHECK(device.unmap(kVa, 3 * kPage) == 0);
    CHECK(device.unmap(kVa, 3 * kPage) == -EINVAL);
    CHECK(device.map(kVa, buffer.handle(), 4 * kPage) == 0);
    CHECK(device.unmap(kVa, 5 * kPage) == 0);
}

TEST_CASE("a mapping keeps its buffer alive") {
    Fixture f;
    Buffer result(f.device, kPage);
    result.at(kVa);
    {
        Buffer source(f.device, kPage);
        memset(source.data(), 0x42, kPage);
        source.at(kVa + kLargePage);
    }
    f.run(f.copy, Commands().copy(kVa, kVa + kLargePage, kPage));
    CHECK(result.data()[0] == 0x42);
    CHECK(result.data()[kPage - 1] == 0x42);
}

TEST_CASE("jobs see buffers of every placement and page size") {
    const uint32_t from = GENERATE(DRM_ENPU_BO_HOST, DRM_ENPU_BO_LOCAL);
    const uint32_t to = GENERATE(DRM_ENPU_BO_HOST, DRM_ENPU_BO_LOCAL);
    // With large pages; straddling small tables; a single page.
    const uint64_t size = GENERATE(2 * kLargePage, 9 * kPage, kPage);
    const uint64_t shift = GENERATE(uint64_t{0}, 510 * kPage);
    Fixture f;
    Buffer source(f.device, size, from), result(f.device, size, to);
    source.at(kVa + shift);
    result.at(kVa + 8 * kLargePage + shift);
    for (size_t i = 0; i < source.size(); i += 8) {
        const uint64_t word = i * 0x9e3779b97f4a7c15ull;
        memcpy(source.data() + i, &word, 8);
    }
    f.run(f.copy, Commands().copy(kVa + 8 * kLargePage + shift, kVa + shift, size));
    CHECK(memcmp(source.data(), result.data(), size) == 0);
}

TEST_CASE("part of a buffer can be mapped") {
    Fixture f;
    Buffer buffer(f.device, 8 * kPage);
    for (int page = 0; page < 8; page++)
        buffer.data()[page * kPage] = static_cast<uint8_t>(page + 1);
    REQUIRE(f.device.map(kVa, buffer.handle(), 2 * kPage, 5 * kPage) == 0);
    f.run(f.copy, Commands().copy(kVa, kVa + kPage, 1));
    CHECK(buffer.data()[5 * kPage] == 7);
}

TEST_CASE("a VA that was unmapped can be used anew, and shows the new memory") {
    Fixture f;
    Buffer result(f.device, kPage);
    result.at(kVa);
    for (uint8_t round = 1; round <= 4; round++) {
        // Large and small pages alternate at the same place.
        Buffer source(f.device, round % 2 ? kPage : kLargePage, DRM_ENPU_BO_LOCAL);
        source.data()[0] = round;
        source.at(kVa + kLargePage);
        f.run(f.copy, Commands().copy(kVa, kVa + kLargePage, 1));
        CHECK(result.data()[0] == round);
        REQUIRE(f.device.unmap(kVa + kLargePage, source.size()) == 0);
    }
}

TEST_CASE("VM_UNMAP waits for the jobs before it") {
    Fixture f;
    Buffer word(f.device, kPage);
    word.at(kVa);
    REQUIRE(f.submit(0, Commands().wait(kVa, 1, 30'000'000)) == 0);
    CHECK(f.device.unmap(kVa, kPage, 0) == -ETIME);
    CHECK(f.device.unmap(kVa, kPage, deadline(std::chrono::milliseconds(50))) == -ETIME);
    Submit signal(f.ctx, f.copy, Fixture::kCmdVa + kPage,
                  Commands().signal(kVa, 1).write_to(f.commands.data() + kPage));
    REQUIRE(signal.send(f.device) == 0);
    CHECK(f.device.unmap(kVa, kPage) == 0);
    CHECK(f.device.syncobj_wait(f.done, 0, 0) == 0);
}

TEST_CASE("many mappings come and go") {
    Device device;
    Buffer buffer(device, kPage);
    for (uint64_t i = 0; i < 600; i++)
        REQUIRE(device.map(kVa + i * (1ull << 21), buffer.handle(), kPage) == 0);
    for (uint64_t i = 0; i < 600; i += 2) REQUIRE(device.unmap(kVa + i * (1ull << 21), kPage) == 0);
    for (uint64_t i = 0; i < 600; i += 2)
        REQUIRE(device.map(kVa + i * (1ull << 21), buffer.handle(), kPage) == 0);
}

}  // namespace
}  // namespace enpu::test
