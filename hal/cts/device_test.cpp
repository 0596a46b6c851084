// SPDX-License-Identifier: MIT
// Drivers and devices: finding, opening, describing and closing them.
#include <atomic>
#include <thread>

#include "fixture.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;

namespace {

template <size_t kSize>
bool terminated(const char (&text)[kSize]) {
    return std::memchr(text, 0, kSize) != nullptr;
}

}  // namespace

TEST_CASE("driver: has a name and a version, and keeps the ABI", "[device]") {
    const enpu_hal_plugin& hal = *plugin();
    CHECK(hal.abi_major == ENPU_HAL_ABI_MAJOR);
    CHECK(std::string(hal.name).size() > 0);
    CHECK(std::string(hal.version).size() > 0);
    CHECK(check_plugin(&hal) == "");
}

TEST_CASE("driver: enumerates to an end, and what it lists is described", "[device]") {
    const enpu_hal_plugin& hal = *plugin();
    enpu_hal_status status{};
    uint32_t index = 0;
    for (; index < 64; ++index) {
        auto info = with_header<enpu_hal_device_info>(ENPU_HAL_TYPE_DEVICE_INFO);
        const uint32_t code = hal.driver->enumerate(index, &info, &status);
        if (code == ENPU_HAL_NOT_FOUND) break;
        REQUIRE(code == ENPU_HAL_OK);
        CHECK(info.spec[0] != 0);
        CHECK(hal.driver->accepts(info.spec));
        CHECK((info.caps & ~hal.caps) == 0);
        CHECK(terminated(info.spec));
        CHECK(terminated(info.name));
        CHECK(terminated(info.driver));
    }
    CHECK(index < 64);
    auto info = with_header<enpu_hal_device_info>(ENPU_HAL_TYPE_DEVICE_INFO);
    HAL_FAILS(hal.driver->enumerate(UINT32_MAX, &info, &status), ENPU_HAL_NOT_FOUND);
}

TEST_CASE("driver: enumerate refuses a structure of another kind", "[device][errors]") {
    const enpu_hal_plugin& hal = *plugin();
    enpu_hal_status status{};
    auto info = with_header<enpu_hal_device_info>(ENPU_HAL_TYPE_DEVICE_INFO);
    info.header.type = ENPU_HAL_TYPE_COUNTERS;
    if (hal.driver->enumerate(0, &info, &status) == ENPU_HAL_NOT_FOUND)
        SKIP("unsupported: the driver lists no device here");
    HAL_FAILS(hal.driver->enumerate(0, &info, &status), ENPU_HAL_INVALID_ARGUMENT);
    HAL_FAILS(hal.driver->enumerate(0, nullptr, &status), ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("driver: takes its own specs alone", "[device]") {
    const enpu_hal_plugin& hal = *plugin();
    CHECK(hal.driver->accepts(device_spec()) == 1);
    for (const char* spec : {"", "no such device", "x"}) CHECK(hal.driver->accepts(spec) == 0);
    CHECK(hal.driver->accepts(nullptr) == 0);
}

TEST_CASE("driver: a spec that is not its own cannot be opened", "[device][errors]") {
    const enpu_hal_plugin& hal = *plugin();
    enpu_hal_status status{};
    enpu_hal_device* device = nullptr;
    HAL_FAILS(hal.driver->open("no such device", &device, &status), ENPU_HAL_INVALID_ARGUMENT);
    CHECK(device == nullptr);
}

TEST_CASE("device: opens again by the spec it tells", "[device]") {
    Fixture f;
    auto& status = f.status;
    enpu_hal_device* again = nullptr;
    HAL_OK(f.hal->driver->open(f.info.spec, &again, &status));
    auto info = with_header<enpu_hal_device_info>(ENPU_HAL_TYPE_DEVICE_INFO);
    HAL_OK(f.hal->device->info(again, &info, &status));
    CHECK(std::string(info.name) == f.info.name);
    f.hal->device->close(again);
}

TEST_CASE("device: two openings are two worlds", "[device]") {
    Fixture a, b;
    NEEDS(a, ENPU_HAL_CAP_FILL);
    auto* x = a.make_buffer(64);
    auto* y = b.make_buffer(64);
    a.run({a.fill(x, 0, 64, 1, 1)});
    b.run({b.fill(y, 0, 64, 2, 1)});
    CHECK(a.host<char>(x)[0] == 1);
    CHECK(b.host<char>(y)[0] == 2);
}

TEST_CASE("device: opens and closes many times", "[device][stress]") {
    const enpu_hal_plugin& hal = *plugin();
    enpu_hal_status status{};
    for (int i = 0; i < 25; ++i) {
        enpu_hal_device* device = nullptr;
        HAL_OK(hal.driver->open(device_spec(), &device, &status));
        hal.device->close(device);
    }
}

TEST_CASE("device: opened from several threads at once", "[device][threads]") {
    const enpu_hal_plugin& hal = *plugin();
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 5; ++i) {
                enpu_hal_device* device = nullptr;
                if (hal.driver->open(device_spec(), &device, nullptr) != ENPU_HAL_OK)
                    ++wrong;
                else
                    hal.device->close(device);
            }
        });
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
}

TEST_CASE("device: its limits are what the header promises", "[device]") {
    Fixture f;
    CHECK(f.info.max_commands >= 16);
    CHECK(f.info.max_points >= 16);
    CHECK(f.info.max_alignment >= 4096);
    CHECK(f.info.buffer_alignment >= 1);
    CHECK(f.info.buffer_alignment <= 64);
    CHECK((f.info.buffer_alignment & (f.info.buffer_alignment - 1)) == 0);
    CHECK(f.info.clock_hz > 0);
    CHECK(f.info.class_id <= ENPU_HAL_CLASS_NULL);
}

TEST_CASE("device: info leaves alone what a smaller structure does not have", "[device][abi]") {
    Fixture f;
    auto& status = f.status;
    auto info = with_header<enpu_hal_device_info>(ENPU_HAL_TYPE_DEVICE_INFO);
    info.header.size = ENPU_HAL_DEVICE_INFO_BYTES_1_0;
    info.max_points = 0xabcdef;
    HAL_OK(f.hal->device->info(f.device, &info, &status));
    CHECK(info.max_points == 0xabcdef);
    CHECK(info.max_commands == f.info.max_commands);
    CHECK(info.header.size == ENPU_HAL_DEVICE_INFO_BYTES_1_0);
}

TEST_CASE("device: info fills a structure of a later ABI as far as it knows", "[device][abi]") {
    Fixture f;
    auto& status = f.status;
    struct {
        enpu_hal_device_info info;
        uint64_t later;
    } grown{with_header<enpu_hal_device_info>(ENPU_HAL_TYPE_DEVICE_INFO), 77};
    grown.info.header.size = sizeof(grown);
    HAL_OK(f.hal->device->info(f.device, &grown.info, &status));
    CHECK(grown.later == 77);
    CHECK(std::string(grown.info.name) == f.info.name);
}

TEST_CASE("device: info refuses a structure of another type", "[device][errors]") {
    Fixture f;
    auto& status = f.status;
    auto info = with_header<enpu_hal_device_info>(ENPU_HAL_TYPE_BUFFER_INFO);
    HAL_FAILS(f.hal->device->info(f.device, &info, &status), ENPU_HAL_INVALID_ARGUMENT);
    HAL_FAILS(f.hal->device->info(f.device, nullptr, &status), ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("device: a failing call without a status is safe", "[device][errors]") {
    Fixture f;
    CHECK(f.hal->device->info(f.device, nullptr, nullptr) == ENPU_HAL_INVALID_ARGUMENT);
    CHECK(f.hal->driver->open("no such device", nullptr, nullptr) != ENPU_HAL_OK);
}

TEST_CASE("device: counts what lives, and nothing when all is gone", "[device][profile]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_PROFILE);
    const auto before = f.counters();
    auto* buffer = f.make_buffer(64);
    auto* queue = f.make_queue();
    f.make_fence(0);
    const auto during = f.counters();
    CHECK(during.live_buffers == before.live_buffers + 1);
    CHECK(during.live_queues == before.live_queues + 1);
    CHECK(during.live_fences >= before.live_fences + 1);
    f.drop_buffer(buffer);
    f.drop_queue(queue);
    CHECK(f.counters().live_buffers == before.live_buffers);
    CHECK(f.counters().live_queues == before.live_queues);
}

TEST_CASE("device: counters refuse a wrong structure and keep an old one", "[device][profile]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_PROFILE);
    auto& status = f.status;
    HAL_FAILS(f.hal->profile->counters(f.device, nullptr, &status), ENPU_HAL_INVALID_ARGUMENT);
    auto counters = with_header<enpu_hal_counters>(ENPU_HAL_TYPE_DEVICE_INFO);
    HAL_FAILS(f.hal->profile->counters(f.device, &counters, &status), ENPU_HAL_INVALID_ARGUMENT);
    counters.header = {ENPU_HAL_COUNTERS_BYTES_1_0, ENPU_HAL_TYPE_COUNTERS, nullptr};
    counters.live_fences = 4242;
    HAL_OK(f.hal->profile->counters(f.device, &counters, &status));
    CHECK(counters.live_fences == 4242);
}

TEST_CASE("device: its clock runs with the host's", "[device][profile]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_PROFILE);
    auto& status = f.status;
    uint64_t ticks[2], host[2];
    HAL_OK(f.hal->profile->clock(f.device, &ticks[0], &host[0], &status));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    HAL_OK(f.hal->profile->clock(f.device, &ticks[1], &host[1], &status));
    const double device_ns = double(ticks[1] - ticks[0]) * 1e9 / double(f.info.clock_hz);
    const double host_ns = double(host[1] - host[0]);
    CHECK(device_ns > 0.5 * host_ns);
    CHECK(device_ns < 2 * host_ns);
    CHECK(host[0] <= now_ns());
}
