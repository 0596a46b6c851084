// SPDX-License-Identifier: MIT
#include "tests/device_fixture.h"

using namespace enpu;
using namespace enpu::test;

TEST_CASE("enumeration lists nodes and then the simulator") {
    enpu_device_entry entries[16];
    const int count =
        check([&](enpu_error* e) { return enpu_enumerate(entries, std::size(entries), e); });
    REQUIRE(count >= 1);
    REQUIRE(count <= static_cast<int>(std::size(entries)));
    REQUIRE(std::string(entries[count - 1].spec) == "sim");
    for (int i = 0; i + 1 < count; ++i)
        REQUIRE(std::string(entries[i].spec).rfind("/dev/accel/accel", 0) == 0);
    // With no room the number is still told.
    REQUIRE(enpu_enumerate(nullptr, 0, nullptr) == count);
}

TEST_CASE("a device that cannot be opened is named with the reason") {
    const auto open = [](const char* name) {
        return [name](enpu_error* error) {
            auto* device = reinterpret_cast<enpu_device*>(1);
            const int result = enpu_device_open(name, &device, error);
            REQUIRE(device == nullptr);
            return result;
        };
    };
    expect_failure(open("/dev/accel/accel999"), -ENODEV, {"/dev/accel/accel999"});
    expect_failure(open("/dev/null"), -ENODEV, {"/dev/null", "DRM"});
    expect_failure(open("gpu"), -EINVAL, {"'gpu'", "sim"});
    expect_failure(open("sim:cores"), -EINVAL, {"'cores'", "option=value"});
    expect_failure(open("sim:cores=0"), -EINVAL, {"cores", "1 … 16"});
    expect_failure(open("sim:local-mem=3M"), -EINVAL, {"local-mem", "multiple of 2M"});
    expect_failure(open("sim:speed=9"), -EINVAL, {"'speed'", "local-mem"});
}

TEST_CASE("device tells what it is") {
    Fixture f;
    const auto& info = f.device.info();
    REQUIRE(ENPU_FIELD_GET(ENPU_VERSION_MAJOR, info.hw_version) == ENPU_HW_VERSION_MAJOR);
    REQUIRE(info.compute_engines >= 1);
    REQUIRE(info.copy_engines >= 1);
    REQUIRE(info.page_size == ENPU_PAGE_SIZE);
    REQUIRE(info.local_bytes >= ENPU_LARGE_PAGE_SIZE);
    REQUIRE((info.opcodes >> ENPU_OPCODE_CONV2D & 1) == 1);
    REQUIRE((info.dtypes[ENPU_OPCODE_CONV2D] >> ENPU_DTYPE_F32 & 1) == 1);

    enpu_memory_info before, after;
    check([&](enpu_error* e) { return enpu_device_get_memory(f.device.get(), &before, e); });
    const auto local = f.local(ENPU_LARGE_PAGE_SIZE + 1);
    const auto host = f.host(5000);
    check([&](enpu_error* e) { return enpu_device_get_memory(f.device.get(), &after, e); });
    REQUIRE(after.local_total == info.local_bytes);
    REQUIRE(after.local_used - before.local_used == 2 * ENPU_LARGE_PAGE_SIZE);
    REQUIRE(after.host_used - before.host_used == 8192);

    uint64_t first_ns, second_ns, monotonic_ns;
    check([&](enpu_error* e) {
        return enpu_device_get_clock(f.device.get(), &first_ns, &monotonic_ns, e);
    });
    check([&](enpu_error* e) {
        return enpu_device_get_clock(f.device.get(), &second_ns, &monotonic_ns, e);
    });
    REQUIRE(second_ns >= first_ns);
}

TEST_CASE("counters of the device count this address space's packets") {
    Fixture f;
    const auto before = f.device.counters();
    REQUIRE(before.size() > ENPU_COUNTER_COPY_BYTES);
    Builder builder(f.device, ENPU_ENGINE_KIND_COMPUTE);
    for (int i = 0; i < 3; ++i)
        check([&](enpu_error* e) { return enpu_build_nop(builder.get(), e); });
    f.run(0, builder.finish());
    const auto after = f.device.counters();
    REQUIRE(after[ENPU_COUNTER_JOBS] - before[ENPU_COUNTER_JOBS] == 1);
    REQUIRE(after[ENPU_COUNTER_PACKETS] - before[ENPU_COUNTER_PACKETS] == 3);
    REQUIRE(after[ENPU_OPCODE_NOP] - before[ENPU_OPCODE_NOP] == 3);
}
