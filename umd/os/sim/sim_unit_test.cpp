// SPDX-License-Identifier: MIT
// Parts of the simulator that need no device.
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <optional>

#include "os/sim/host_memory.h"
#include "os/sim/options.h"
#include "os/sim/page_table.h"
#include "os/sim/timeline.h"

using namespace enpu;
using namespace enpu::sim;

namespace {

constexpr uint64_t kPage = ENPU_PAGE_SIZE;
constexpr uint64_t kLarge = ENPU_LARGE_PAGE_SIZE;

// Walks the tables as the data sheet says, from bus memory alone.
std::optional<uint64_t> translate(const HostMemory& memory, uint64_t root, uint64_t va) {
    uint64_t table = root;
    for (int level = 3; level >= 0; --level) {
        uint64_t entry = 0;
        if (memory.read(table + (va >> (12 + 9 * level) & 511) * 8, &entry, 8) != 0 ||
            (entry & ENPU_PTE_VALID) == 0)
            return std::nullopt;
        if ((entry & ENPU_PTE_LARGE) != 0) {
            REQUIRE(level == 1);
            return (entry & ENPU_PTE_ADDR) + (va & (kLarge - 1));
        }
        table = entry & ENPU_PTE_ADDR;
    }
    return table + (va & (kPage - 1));
}

}  // namespace

TEST_CASE("options are read, defaults kept") {
    Options options;
    REQUIRE(parse_options("cores=3,local-mem=64M,ram=1G,fault-injection=on", &options, nullptr) ==
            0);
    REQUIRE(options.cores == 3);
    REQUIRE(options.threads == 1);
    REQUIRE(options.local_bytes == uint64_t{64} << 20);
    REQUIRE(options.host_bytes == uint64_t{1} << 30);
    REQUIRE(options.fault_injection);
    for (const char* bad : {"cores=17", "cores=2x", "cores=", "local-mem=0",
                            "local-mem=99999999999G", "ram=1", "fault-injection=1", ","}) {
        CAPTURE(bad);
        REQUIRE(parse_options(bad, &options, nullptr) == -EINVAL);
    }
}

TEST_CASE("host memory: only what is exposed is RAM") {
    HostMemory memory;
    auto* a = static_cast<std::byte*>(HostMemory::allocate(3 * kPage));
    auto* large = static_cast<std::byte*>(HostMemory::allocate(kLarge));
    REQUIRE(reinterpret_cast<uint64_t>(large) % kLarge == 0);
    const uint64_t bus = memory.expose(a, 3 * kPage);
    const uint64_t large_bus = memory.expose(large, kLarge);
    REQUIRE(large_bus % kLarge == 0);
    uint64_t bytes = 4 * kPage;
    REQUIRE(memory.find(bus + kPage, &bytes) == a + kPage);
    REQUIRE(bytes == 2 * kPage);
    char text[8] = "npu";
    REQUIRE(memory.write(bus + 5, text, sizeof(text)) == 0);
    REQUIRE(std::memcmp(a + 5, text, sizeof(text)) == 0);
    REQUIRE(memory.read(bus - 4, text, 8) == -1);
    memory.hide(bus, 3 * kPage);
    bytes = 1;
    REQUIRE(memory.find(bus, &bytes) == nullptr);
    REQUIRE(memory.read(bus, text, 8) == -1);
    memory.hide(large_bus, kLarge);
    HostMemory::release(a, 3 * kPage);
    HostMemory::release(large, kLarge);
}

TEST_CASE("page table: small and large leaves, cleared and made again in another size") {
    HostMemory memory;
    PageTable tables(&memory);
    const uint64_t root = tables.root_bus();
    const uint64_t va = 5 * kLarge, address = 64 * kLarge;
    tables.map(va, address + kPage, 2 * kPage, ENPU_PTE_READ);
    REQUIRE(translate(memory, root, va + kPage + 9) == address + 2 * kPage + 9);
    REQUIRE_FALSE(translate(memory, root, va + 2 * kPage));
    REQUIRE_FALSE(translate(memory, root, va - 1));
    tables.unmap(va, 2 * kPage);
    REQUIRE_FALSE(translate(memory, root, va));
    tables.retire();
    // One large leaf takes the place of the emptied table.
    tables.map(va, address, kLarge + kPage, ENPU_PTE_READ | ENPU_PTE_WRITE);
    REQUIRE(translate(memory, root, va + 12345) == address + 12345);
    REQUIRE(translate(memory, root, va + kLarge + 7) == address + kLarge + 7);
    tables.unmap(va, kLarge + kPage);
    tables.retire();
    REQUIRE_FALSE(translate(memory, root, va));
    REQUIRE_FALSE(translate(memory, root, va + kLarge));
}

TEST_CASE("a timeline reaches a point when all before it are closed") {
    const auto timeline = Ref<Timeline>::adopt(new Timeline);
    timeline->add(2);
    timeline->add(5);
    REQUIRE(timeline->last() == 5);
    REQUIRE_FALSE(timeline->finish(5));
    REQUIRE(timeline->reached() == 0);
    REQUIRE(timeline->finish(2));
    REQUIRE(timeline->reached() == 5);
    REQUIRE(timeline->last() == 5);
}
