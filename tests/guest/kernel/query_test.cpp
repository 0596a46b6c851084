// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>

#include "recovery.h"

namespace enpu::test {
namespace {

int query(const Device& device, uint32_t type, uint32_t* size, void* data) {
    drm_enpu_query args{type, *size, reinterpret_cast<uintptr_t>(data)};
    const int ret = device.call(DRM_IOCTL_ENPU_QUERY, &args);
    *size = args.size;
    return ret;
}

TEST_CASE("device information is complete and sane") {
    Device device;
    const auto info = device.info();
    CHECK(info.hw_version >> 16 == ENPU_HW_VERSION_MAJOR);
    CHECK(info.compute_engines >= 1);
    CHECK(info.copy_engines >= 1);
    CHECK(info.max_command_bytes >= kPage);
    CHECK(info.max_command_bytes <= ENPU_MAX_COMMAND_BYTES);
    CHECK(info.local_bytes % kLargePage == 0);
    CHECK(info.va_start == ENPU_VA_START);
    CHECK(info.va_end == ENPU_VA_END);
    CHECK(info.page_size == kPage);
    CHECK(info.large_page_size == kLargePage);
    CHECK(info.default_timeout_ms > 0);
    CHECK(info.pad == 0);
}

TEST_CASE("the device clock moves with the monotonic clock") {
    Device device;
    const auto first = device.info();
    const int64_t until = deadline(std::chrono::milliseconds(50));
    while (deadline(std::chrono::milliseconds(0)) < until) {
    }
    const auto second = device.info();
    CHECK(second.timestamp_ns > first.timestamp_ns);
    CHECK(second.monotonic_ns >= first.monotonic_ns + 50'000'000);
}

TEST_CASE("a query negotiates its size") {
    Device device;
    uint32_t size = 0;
    REQUIRE(query(device, DRM_ENPU_QUERY_DEVICE, &size, nullptr) == 0);
    CHECK(size == sizeof(drm_enpu_device_info));

    SECTION("a smaller buffer gets a prefix, and no byte more") {
        uint32_t words[4] = {0, 0, 0, 0xdeadbeef};
        size = 12;
        REQUIRE(query(device, DRM_ENPU_QUERY_DEVICE, &size, words) == 0);
        CHECK(size == sizeof(drm_enpu_device_info));
        CHECK(words[0] == device.info().hw_version);
        CHECK(words[3] == 0xdeadbeef);
    }
    SECTION("a larger buffer is filled with zeros") {
        std::vector<uint8_t> bytes(sizeof(drm_enpu_device_info) + 32, 0xaa);
        size = static_cast<uint32_t>(bytes.size());
        REQUIRE(query(device, DRM_ENPU_QUERY_DEVICE, &size, bytes.data()) == 0);
        CHECK(size == sizeof(drm_enpu_device_info));
        for (size_t i = sizeof(drm_enpu_device_info); i < bytes.size(); i++) CHECK(bytes[i] == 0);
    }
    SECTION("an unknown type and a bad pointer are refused") {
        CHECK(query(device, 4, &size, nullptr) == -EINVAL);
        size = 8;
        CHECK(query(device, DRM_ENPU_QUERY_DEVICE, &size, reinterpret_cast<void*>(16)) == -EFAULT);
    }
}

TEST_CASE("opcodes that the tests need exist") {
    Device device;
    drm_enpu_opcode_info info{};
    uint32_t size = sizeof(info);
    REQUIRE(query(device, DRM_ENPU_QUERY_OPCODES, &size, &info) == 0);
    for (auto opcode : {ENPU_OPCODE_NOP, ENPU_OPCODE_COPY, ENPU_OPCODE_FILL, ENPU_OPCODE_WAIT,
                        ENPU_OPCODE_SIGNAL})
        CHECK((info.opcodes >> opcode & 1) == 1);
}

TEST_CASE("counters are those of this file and start at zero") {
    Fixture f;
    const auto before = f.device.counters();
    for (uint64_t word : before) CHECK(word == 0);
    f.run(0, Commands().nop().nop().nop());
    const auto after = f.device.counters();
    CHECK(after[ENPU_OPCODE_NOP] == 3);
    CHECK(after[ENPU_COUNTER_PACKETS] == 3);
    CHECK(after[ENPU_COUNTER_JOBS] == 1);

    Fixture other;
    CHECK(other.device.counters()[ENPU_COUNTER_JOBS] == 0);
}

TEST_CASE("memory use is counted for each file and for the device") {
    Device device, other;
    const auto before = device.memory();
    CHECK(before.local_total == device.info().local_bytes);
    CHECK(before.local_used == 0);
    {
        Buffer local(device, 4 * kLargePage, DRM_ENPU_BO_LOCAL);
        Buffer host(device, 3 * kPage);
        const auto during = device.memory();
        CHECK(during.local_used == 4 * kLargePage);
        CHECK(during.host_used == 3 * kPage);
        CHECK(during.local_free == before.local_free - 4 * kLargePage);
        CHECK(during.local_largest <= during.local_free);
        CHECK(other.memory().local_used == 0);
        CHECK(std::stoull(sysfs("npu_memory_utilization")) >= 4 * kLargePage);
    }
    CHECK(device.memory().local_free == before.local_free);
    CHECK(device.memory().host_used == 0);
}

// A file of the sensors, or an empty text.
std::string sensor(const std::string& name) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(sysfs_path("hwmon"), error)) {
        std::ifstream file(entry.path() / name);
        std::string text;
        std::getline(file, text);
        return text;
    }
    return {};
}

TEST_CASE("the sensors have the names that monitors read, and say that they are emulated") {
    if (access("/sys/class/hwmon", F_OK) != 0) SKIP("the kernel has no hwmon");
    CHECK(sensor("name") == "enpu");
    for (const char* label : {"temp1_label", "power1_label", "freq1_label"})
        CHECK(sensor(label) == "emulated");
    Fixture f;
    const long idle = std::stol(sensor("temp1_input"));
    const long idle_power = std::stol(sensor("power1_input"));
    // Millidegrees, microwatts, hertz.
    CHECK(idle >= 20'000);
    CHECK(idle <= 110'000);
    CHECK(idle_power >= 100'000);
    CHECK(std::stol(sensor("freq1_input")) >= 100'000'000);
    // An engine at work warms it.
    Buffer big(f.device, 8 * kLargePage, DRM_ENPU_BO_LOCAL);
    big.at(kVa);
    Commands packets;
    for (int i = 0; i < 16; i++) packets.fill(kVa, big.size(), 1);
    CHECK(eventually([&] {
        REQUIRE(f.submit(f.copy, packets) == 0);
        const bool warm = std::stol(sensor("temp1_input")) > idle &&
                          std::stol(sensor("power1_input")) > idle_power;
        REQUIRE(f.device.syncobj_wait(f.done) == 0);
        return warm;
    }));
}

}  // namespace
}  // namespace enpu::test
