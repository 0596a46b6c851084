// SPDX-License-Identifier: MIT
// The loader names the slot that breaks the contract.
#include "loader.h"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>

using namespace enpu::hal;

namespace {

bool contains(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

const enpu_hal_plugin& cpu() {
    for (const Backend& backend : backends().loaded)
        if (std::string(backend.plugin->name) == "cpu") return *backend.plugin;
    FAIL("the cpu backend was not found");
    std::abort();
}

}  // namespace

TEST_CASE("loader: the backends beside it are found and keep the contract") {
    CHECK(check_plugin(&cpu()) == "");
    CHECK(cpu().driver->accepts("cpu"));
    CHECK_FALSE(cpu().driver->accepts("cpux"));
}

TEST_CASE("loader: a broken table is refused with its slot") {
    CHECK(contains(check_plugin(nullptr), "null"));

    enpu_hal_plugin plugin = cpu();
    plugin.abi_major = ENPU_HAL_ABI_MAJOR + 1;
    CHECK(contains(check_plugin(&plugin), "HAL ABI 2"));

    plugin = cpu();
    plugin.queue = nullptr;
    CHECK(check_plugin(&plugin) == "plugin.queue is null, but required");

    plugin = cpu();
    enpu_hal_queue_table queue = *cpu().queue;
    queue.submit = nullptr;
    plugin.queue = &queue;
    CHECK(check_plugin(&plugin) == "queue.submit is null, but required");
    queue = *cpu().queue;
    queue.header.size = 8;
    CHECK(contains(check_plugin(&plugin), "queue table: header.size is 8"));
    queue = *cpu().queue;
    queue.header.type = ENPU_HAL_TYPE_FENCE_TABLE;
    CHECK(contains(check_plugin(&plugin), "queue table: header.type"));
}

TEST_CASE("loader: capability bits and slots must agree") {
    enpu_hal_plugin plugin = cpu();
    plugin.caps &= ~uint32_t{ENPU_HAL_CAP_GRAPH};
    CHECK(contains(check_plugin(&plugin), "plugin.graph is set, but capability bit"));

    plugin = cpu();
    plugin.caps |= ENPU_HAL_CAP_FENCE_SHARE;
    CHECK(contains(check_plugin(&plugin), "fence.export_fd is null, but capability bit"));

    plugin = cpu();
    enpu_hal_memory_table memory = *cpu().memory;
    memory.wrap = nullptr;
    plugin.memory = &memory;
    CHECK(contains(check_plugin(&plugin), "memory.wrap is null"));
}

TEST_CASE("loader: a file that is no backend is refused with the reason") {
    Backend backend;
    std::string reason;
    CHECK_FALSE(load_backend("/nonexistent/libenpu-hal-x.so", backend, reason));
    CHECK(contains(reason, "libenpu-hal-x.so"));
    CHECK_FALSE(load_backend("libm.so.6", backend, reason));
    CHECK(contains(reason, ENPU_HAL_QUERY_NAME));
}
