// SPDX-License-Identifier: MIT
// The recovery ladder: what is noticed before any reset, who is blamed, how it rises, how it ends.
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <memory>

#include "recovery.h"

namespace enpu::test {
namespace {

unsigned long resets() {
    return counter("engine_resets") + counter("device_resets");
}

TEST_CASE("a storm of interrupts is throttled, and jobs go on meanwhile") {
    Fixture f;
    Uevents events;
    const auto storms = counter("irq_storms"), before = resets();
    // The device repeats itself; the guest sees what its interrupt controller lets through.
    inject(ENPU_FAULT_KIND_IRQ_STORM, 1, ~0u, 100'000);
    // Jobs one close after the other would be no storm: interrupts that bring something interrupt it.
    // How many of them a guest sees is up to how much of a processor it gets.
    for (const int64_t until = soon(); counter("irq_storms") == storms && deadline({}) < until;) {
        f.run(0, Commands().nop());
        usleep(10'000);
    }
    CHECK(counter("irq_storms") > storms);
    CHECK(events.comes("ENPU_STEP=irq-storm"));
    clear_faults();
    for (int i = 0; i < 20; i++) f.run(0, Commands().nop());
    CHECK(f.device.status(f.ctx).error == 0);
    // The vector is let through again: no completion waits for a tick of the watchdog.
    usleep(600'000);
    CHECK(eventually([] { return register32(ENPU_REG_IRQ_ENABLE) & 2; }));
    const auto lost = counter("lost_interrupts");
    for (int i = 0; i < 20; i++) f.run(0, Commands().nop());
    CHECK(counter("lost_interrupts") == lost);
    CHECK(resets() == before);
}

TEST_CASE("interrupts that come twice or for nothing do no harm") {
    Fixture f;
    const auto before = resets();
    for (auto kind : {ENPU_FAULT_KIND_IRQ_REPEATED, ENPU_FAULT_KIND_IRQ_SPURIOUS}) {
        inject(kind, ~0u, 10);
        for (int i = 0; i < 10; i++) f.run(i % 2 ? 0 : f.copy, Commands().nop());
        clear_faults();
    }
    CHECK(f.device.status(f.ctx).error == 0);
    CHECK(resets() == before);
}

TEST_CASE("lost interrupts are noticed before any reset") {
    Fixture f(kTimeoutMs);
    const auto lost = counter("lost_interrupts"), before = resets();
    inject(ENPU_FAULT_KIND_IRQ_LOST, 1, 3);
    for (int i = 0; i < 3; i++) f.run(0, Commands().nop());
    clear_faults();
    CHECK(counter("lost_interrupts") == lost + 3);
    CHECK(resets() == before);
    CHECK(f.device.status(f.ctx).error == 0);
}

TEST_CASE("a completion that comes late is late, not lost") {
    Fixture f(kTimeoutMs);
    const auto before = resets();
    SECTION("far later than the timeout, while the engine says that it goes on") {
        inject(ENPU_FAULT_KIND_COMPLETION_DELAYED, ~0u, 1, 2'000'000'000);
        f.run(0, Commands().nop());
    }
    SECTION("around the tick of the watchdog") {
        // The tick comes 250 ms after the job began: before, at and behind it.
        for (uint64_t ms = 235; ms <= 265; ms += 3) {
            inject(ENPU_FAULT_KIND_COMPLETION_DELAYED, ~0u, 1, ms * 1'000'000);
            f.run(0, Commands().nop());
        }
    }
    SECTION("a slow engine, tile by tile") {
        inject(ENPU_FAULT_KIND_ENGINE_SLOW, 0, 6, 300'000'000);
        Commands packets;
        for (int i = 0; i < 6; i++) packets.nop();
        f.run(0, packets);
    }
    clear_faults();
    CHECK(f.device.status(f.ctx).error == 0);
    CHECK(resets() == before);
}

TEST_CASE("a completion that says nonsense fails its job only") {
    Fixture f, innocent;
    inject(ENPU_FAULT_KIND_COMPLETION_CORRUPTED, ~0u, 1, 0xff);
    f.run(0, Commands().nop());
    clear_faults();
    CHECK(f.device.status(f.ctx).error == -EREMOTEIO);
    CHECK(f.submit(0, Commands().nop()) == -ENOTRECOVERABLE);
    innocent.run(0, Commands().nop());
    CHECK(innocent.device.status(innocent.ctx).error == 0);
}

TEST_CASE("each context has a timeout of its own") {
    Fixture patient(4'000), hasty(kTimeoutMs);
    inject(ENPU_FAULT_KIND_ENGINE_HANG, 0);
    inject(ENPU_FAULT_KIND_ENGINE_HANG, patient.copy);
    const int64_t started = deadline({});
    REQUIRE(patient.submit(0, Commands().nop()) == 0);
    REQUIRE(hasty.submit(hasty.copy, Commands().nop()) == 0);
    REQUIRE(hasty.device.syncobj_wait(hasty.done) == 0);
    CHECK(hasty.device.status(hasty.ctx).error == -ETIMEDOUT);
    CHECK(patient.device.syncobj_wait(patient.done, 0, deadline({})) == -ETIME);
    REQUIRE(patient.device.syncobj_wait(patient.done) == 0);
    CHECK(patient.device.status(patient.ctx).error == -ETIMEDOUT);
    CHECK(deadline({}) - started >= 4'000'000'000);
    clear_faults();
}

TEST_CASE("a job torn by the reset of another fails with its own errno, and its context goes on") {
    Fixture f, parked;
    Buffer from(f.device, 8 * kLargePage, DRM_ENPU_BO_LOCAL), words(parked.device, kPage);
    from.at(kVa);
    words.at(kVa);
    // On another engine, between two packets: it goes on where it was.
    REQUIRE(parked.submit(1, Commands().wait(kVa, 1, 30'000'000).fill(kVa + 64, 8, 3)) == 0);
    // Half way in a packet of many tiles.
    inject(ENPU_FAULT_KIND_ENGINE_SLOW, f.copy, 1, 900'000'000, 1);
    REQUIRE(f.submit(f.copy, Commands().fill(kVa, from.size(), 7)) == 0);
    wait_until_busy("copy0");
    SECTION("engine") {
        REQUIRE(debugfs_write("force_reset", std::to_string(f.copy)) == 0);
    }
    SECTION("device") {
        REQUIRE(debugfs_write("force_reset", "device") == 0);
    }
    REQUIRE(f.device.syncobj_wait(f.done) == 0);
    clear_faults();
    const auto status = f.device.status(f.ctx);
    // A device on a fast host may have finished it first.
    CHECK((status.error == -ESTALE || status.error == 0));
    CHECK(status.guilty == 0);
    f.run(f.copy, Commands().nop());

    const uint32_t go = Commands().signal(kVa, 1).write_to(parked.commands.data() + kPage);
    REQUIRE(Submit(parked.ctx, parked.copy, Fixture::kCmdVa + kPage, go).send(parked.device) == 0);
    REQUIRE(parked.device.syncobj_wait(parked.done) == 0);
    CHECK(parked.device.status(parked.ctx).error == 0);
    CHECK(words.data()[64] == 3);
}

TEST_CASE("a device reset that fails once is asked for again") {
    Fixture f;
    f.run(0, Commands().nop());
    const auto failed = counter("failed_resets");
    inject(ENPU_FAULT_KIND_RESET_FAILS, ~0u, 1);
    REQUIRE(debugfs_write("force_reset", "device") == 0);
    CHECK(counter("failed_resets") == failed + 1);
    clear_faults();
    f.run(0, Commands().nop());
    CHECK(f.device.status(f.ctx).error == 0);
}

TEST_CASE("a wedged device works again after it is bound anew") {
    const std::string device = pci_path(), name = std::filesystem::path(device).filename().string();
    {
        Fixture f;
        Uevents events;
        inject(ENPU_FAULT_KIND_RESET_FAILS, ~0u, ~0u);
        REQUIRE(debugfs_write("force_reset", "device") == 0);
        CHECK(events.comes("WEDGED=bus-reset"));
        CHECK(f.submit(0, Commands().nop()) == -EIO);
    }
    clear_faults();
    REQUIRE(write_file("/sys/bus/pci/drivers/enpu/unbind", name) == 0);
    REQUIRE(write_file("/sys/bus/pci/drivers/enpu/bind", name) == 0);
    REQUIRE(find_node(device));
    Fixture f;
    f.run(0, Commands().nop());
    f.run(f.copy, Commands().nop());
}

TEST_CASE("a device that reads as all ones is given up, and comes back with its link") {
    const std::string device = pci_path(), name = std::filesystem::path(device).filename().string();
    drop_dump();
    auto f = std::make_unique<Fixture>();
    Buffer* word = new Buffer(f->device, kPage);
    word->at(kVa);
    REQUIRE(f->submit(0, Commands().wait(kVa, 1, 60'000'000)) == 0);
    Uevents events;
    inject(ENPU_FAULT_KIND_REMOVED, ~0u, 1, 3'000'000'000);
    // The job in flight does not wait for its own end.
    REQUIRE(f->device.syncobj_wait(f->done) == 0);
    CHECK(events.comes("ENPU_STEP=gone"));
    CHECK(f->submit(0, Commands().nop()) == -EIO);
    CHECK_FALSE(read_dump().empty());
    drop_dump();

    // Its link comes back by itself, but nobody knows what the device has forgotten.
    REQUIRE(eventually([&] {
        // The device looks at its clock when somebody looks at it.
        (void)debugfs_read("engines");
        std::ifstream config(device + "/config", std::ios::binary);
        uint32_t id = ~0u;
        config.read(reinterpret_cast<char*>(&id), sizeof(id));
        return id != ~0u;
    }));
    CHECK(f->submit(0, Commands().nop()) == -EIO);
    SECTION("a reset by the bus ends it") {
        REQUIRE(write_file(device + "/reset", "1") == 0);
        CHECK(events.comes("ENPU_STEP=recovered"));
        delete word;
        f.reset();
    }
    SECTION("and so does binding anew") {
        REQUIRE(write_file("/sys/bus/pci/drivers/enpu/unbind", name) == 0);
        REQUIRE(write_file("/sys/bus/pci/drivers/enpu/bind", name) == 0);
        delete word;
        f.reset();
        REQUIRE(find_node(device));
    }
    Fixture fresh;
    fresh.run(0, Commands().nop());
    fresh.run(fresh.copy, Commands().nop());
}

}  // namespace
}  // namespace enpu::test
