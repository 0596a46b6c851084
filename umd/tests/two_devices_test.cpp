// SPDX-License-Identifier: MIT
// Two devices in one machine: each has its own memory, jobs and failures, and both are found.
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <enpu/enpu.hpp>
#include <string>
#include <vector>

namespace {

constexpr uint64_t kBytes = 1u << 20;
constexpr uint64_t kSecond = 1'000'000'000;

std::vector<std::string> real_devices() {
    enpu_device_entry entries[16];
    enpu_error error{};
    const int count = enpu_enumerate(entries, 16, &error);
    INFO(error.message);
    REQUIRE(count >= 0);
    std::vector<std::string> specs;
    for (int i = 0; i < count && i < 16; i++) {
        if (std::strncmp(entries[i].spec, "/dev/", 5) == 0) specs.emplace_back(entries[i].spec);
    }
    return specs;
}

// A device with a job under way that fills its local buffer with a byte of its own.
struct Worker {
    enpu::Device device;
    enpu::Buffer local;
    enpu::Buffer out;
    enpu::Context context;
    enpu::Timeline timeline;
    enpu::Command command;

    Worker(const std::string& spec, uint8_t value)
        : device(enpu::Device::open(spec.c_str())),
          local(enpu::Buffer::create(device, kBytes, ENPU_BUFFER_LOCAL)),
          out(enpu::Buffer::create(device, kBytes, ENPU_BUFFER_HOST)),
          context(enpu::Context::create(device)),
          timeline(enpu::Timeline::create(device)),
          command(fill(value)) {}

    enpu::Command fill(uint8_t value) {
        enpu::Builder builder(device, ENPU_ENGINE_KIND_COPY);
        enpu::check([&](enpu_error* e) {
            return enpu_build_fill(builder.get(), local.get(), 0, kBytes, value, 1, e);
        });
        enpu::check([&](enpu_error* e) {
            return enpu_build_copy(builder.get(), out.get(), 0, local.get(), 0, kBytes, e);
        });
        return builder.finish();
    }
    void submit() { context.submit(device.info().compute_engines, command, {}, {timeline.at(1)}); }
    void wait() { context.wait(timeline, 1, enpu_deadline_after(20 * kSecond)); }
    bool holds(uint8_t value) {
        for (const std::byte b : out.map()) {
            if (b != std::byte{value}) return false;
        }
        return true;
    }
};

TEST_CASE("two devices are found and work side by side on memory of their own") {
    const auto specs = real_devices();
    REQUIRE(specs.size() == 2);
    CHECK(specs[0] != specs[1]);
    Worker first(specs[0], 0x11);
    Worker second(specs[1], 0x22);
    first.submit();
    second.submit();
    first.wait();
    second.wait();
    CHECK(first.holds(0x11));
    CHECK(second.holds(0x22));
}

TEST_CASE("a buffer of one device is no operand of the other") {
    const auto specs = real_devices();
    REQUIRE(specs.size() == 2);
    Worker first(specs[0], 1);
    Worker second(specs[1], 2);
    enpu::Builder builder(first.device, ENPU_ENGINE_KIND_COPY);
    enpu_error error{};
    CHECK(enpu_build_copy(builder.get(), first.local.get(), 0, second.out.get(), 0, 16, &error) !=
          0);
    INFO(error.message);
    CHECK(std::string(error.message).find("device") != std::string::npos);
}

}  // namespace
