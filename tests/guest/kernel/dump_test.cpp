// SPDX-License-Identifier: MIT
// What the module hands to devcoredump, read by the reader that tools use.
#include <sys/utsname.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "dump_reader.h"
#include "recovery.h"

namespace enpu::test {
namespace {

using dump::Dump;

// The dump that waits, decoded. Also throws it away.
Dump take_dump() {
    Dump dump;
    std::string error;
    const auto bytes = read_dump();
    REQUIRE_FALSE(bytes.empty());
    CHECK(bytes.size() <= ENPU_DUMP_MAX_BYTES);
    const bool parsed = Dump::parse(bytes, &dump, &error);
    INFO(error);
    REQUIRE(parsed);
    CHECK(dump.complete());
    UNSCOPED_INFO(dump::describe(dump));
    drop_dump();
    return dump;
}

template <typename T>
T structure(const Dump& dump, uint32_t type) {
    T out{};
    REQUIRE(dump.get(type, &out));
    return out;
}

// Packets of the command buffer as the dump has them.
void check_packets(const Dump& dump, const Buffer& commands, uint32_t bytes) {
    const auto* section = dump.find(ENPU_DUMP_PACKETS);
    REQUIRE(section);
    REQUIRE(section->index + section->payload.size() <= bytes);
    CHECK(memcmp(section->payload.data(), commands.data() + section->index,
                 section->payload.size()) == 0);
}

TEST_CASE("a hang leaves a dump of the device, the job and its process") {
    drop_dump();
    Fixture f(kTimeoutMs);
    Commands packets;
    for (int i = 0; i < 10; i++) packets.nop(i);
    inject(ENPU_FAULT_KIND_ENGINE_HANG, 0);
    REQUIRE(f.submit(0, packets, 0xfeed) == 0);
    REQUIRE(f.device.syncobj_wait(f.done) == 0);
    clear_faults();
    const Dump dump = take_dump();

    const auto info = structure<enpu_dump_info>(dump, ENPU_DUMP_INFO);
    CHECK(info.reason == ENPU_DUMP_REASON_HANG);
    CHECK(info.engine == 0);
    CHECK(info.hw_version == f.device.info().hw_version);
    utsname kernel{};
    REQUIRE(uname(&kernel) == 0);
    CHECK(std::string(reinterpret_cast<const char*>(info.kernel)) == kernel.release);
    CHECK(std::string(reinterpret_cast<const char*>(info.pci)) ==
          std::filesystem::path(pci_path()).filename());

    const auto job = structure<enpu_dump_job>(dump, ENPU_DUMP_JOB);
    CHECK(job.job_id == 0xfeed);
    CHECK(job.cmd_va == Fixture::kCmdVa);
    CHECK(job.cmd_bytes == packets.size());
    CHECK(job.running_ns >= kTimeoutMs * 1'000'000ull);
    check_packets(dump, f.commands, packets.size());

    const auto context = structure<enpu_dump_context>(dump, ENPU_DUMP_CONTEXT);
    CHECK(context.ctx_id == f.ctx);
    CHECK(context.pid == static_cast<uint32_t>(getpid()));
    CHECK(context.timeout_ms == kTimeoutMs);
    CHECK(std::string(reinterpret_cast<const char*>(context.comm)).find("kmod_dump") == 0);

    uint64_t value = 0;
    REQUIRE(dump.reg(ENPU_REG_ID, &value));
    CHECK(value == ENPU_MAGIC);
    REQUIRE(dump.reg(ENPU_REG_ENGINE_QUEUE(0), &value));
    CHECK(value == info.queue);
    REQUIRE(dump.reg(ENPU_REG_QUEUE_CTRL(info.queue), &value));
    CHECK(value & ENPU_QUEUE_CTRL_ENABLE);
    CHECK(dump.find(ENPU_DUMP_RING)->index == info.queue);
    const auto walk = structure<enpu_dump_walk>(dump, ENPU_DUMP_WALK);
    CHECK(walk.va == Fixture::kCmdVa);
    CHECK(walk.depth >= 3);
    CHECK(walk.levels[walk.depth - 1].entry & ENPU_PTE_VALID);
}

TEST_CASE("an MMU fault leaves a dump with the walk of its address") {
    drop_dump();
    Fixture f;
    usleep(600'000);  // dumps of mere faults come at most twice a second
    f.run(f.copy, Commands().nop().fill(0x7000'0000'0000, 64, 1));
    const Dump dump = take_dump();
    const auto info = structure<enpu_dump_info>(dump, ENPU_DUMP_INFO);
    CHECK(info.reason == ENPU_DUMP_REASON_FAULT);
    const auto walk = structure<enpu_dump_walk>(dump, ENPU_DUMP_WALK);
    CHECK(walk.va == 0x7000'0000'0000);
    REQUIRE(walk.depth == 1);
    CHECK(walk.levels[0].level == 3);
    CHECK(walk.levels[0].index == 0xe0);
    CHECK(walk.levels[0].entry == 0);
    CHECK(structure<enpu_dump_job>(dump, ENPU_DUMP_JOB).packet == 16);
    const auto errors = Dump::elements<enpu_error_record>(*dump.find(ENPU_DUMP_ERRORS));
    REQUIRE_FALSE(errors.empty());
    CHECK(errors.back().kind == ENPU_STATUS_MMU_FAULT);
    CHECK(errors.back().va == 0x7000'0000'0000);
}

TEST_CASE("of a long command buffer the part around the packet is kept") {
    drop_dump();
    Fixture f;
    Buffer local(f.device, kLargePage, DRM_ENPU_BO_LOCAL);
    local.at(kVa + kLargePage);
    Commands packets;
    for (int i = 0; i < 9'000; i++) packets.nop(i);
    packets.fill(0x7000'0000'0000, 64, 1);
    for (int i = 0; i < 1'000; i++) packets.nop(i);
    const uint32_t bytes = packets.write_to(local.data());
    usleep(600'000);
    REQUIRE(Submit(f.ctx, 0, kVa + kLargePage, bytes).signal(f.done).send(f.device) == 0);
    REQUIRE(f.device.syncobj_wait(f.done) == 0);
    const Dump dump = take_dump();
    const auto* section = dump.find(ENPU_DUMP_PACKETS);
    REQUIRE(section);
    CHECK(section->payload.size() == ENPU_DUMP_PACKET_BYTES);
    CHECK(section->index + section->payload.size() <= bytes);
    CHECK(section->index <= 9'000 * 16);
    check_packets(dump, local, bytes);
}

TEST_CASE("a forced device reset leaves a dump; the next is counted if it is dropped") {
    drop_dump();
    const auto made = counter("dumps"), dropped = counter("dumps_dropped");
    Fixture f;
    f.run(0, Commands().nop());
    REQUIRE(debugfs_write("force_reset", "device") == 0);
    REQUIRE_FALSE(read_dump().empty());
    REQUIRE(debugfs_write("force_reset", "device") == 0);
    f.run(0, Commands().nop());
    const Dump dump = take_dump();
    const auto info = structure<enpu_dump_info>(dump, ENPU_DUMP_INFO);
    CHECK(info.reason == ENPU_DUMP_REASON_REQUEST);
    CHECK(info.engine == ENPU_DUMP_NONE);
    // Dropped, or the next, if this one was taken within the moment that the driver waits for that.
    CHECK(eventually(
        [&] { return counter("dumps") + counter("dumps_dropped") == made + dropped + 2; }));
}

TEST_CASE("steps of recovery are told by uevents") {
    Uevents events;
    Fixture f(kTimeoutMs);
    inject(ENPU_FAULT_KIND_ENGINE_HANG, 0);
    REQUIRE(f.submit(0, Commands().nop()) == 0);
    CHECK(events.comes("ENPU_STEP=hang"));
    CHECK(events.comes("ENPU_STEP=engine-reset"));
    REQUIRE(debugfs_write("force_reset", "device") == 0);
    CHECK(events.comes("ENPU_STEP=device-reset"));
    clear_faults();
    drop_dump();
}

}  // namespace
}  // namespace enpu::test
