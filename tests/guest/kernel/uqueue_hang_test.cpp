// SPDX-License-Identifier: MIT
// User-mode queues when things go wrong: hangs, resets, lost messages, sleep, removal.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <memory>
#include <thread>

#include "recovery.h"
#include "user_queue.h"

namespace enpu::test {
namespace {

using std::chrono::milliseconds;

TEST_CASE("a user-mode queue that hangs is blamed, reset and contained") {
    QueueRig guilty(0, kTimeoutMs), innocent(0);
    Fixture kernel_path;
    const auto hangs = counter("hangs"), resets = counter("engine_resets");
    inject(ENPU_FAULT_KIND_ENGINE_HANG, 0);
    const uint64_t fence = guilty.kick(Commands().nop());
    wait_until_busy();
    // Behind it: another process's queue, and a job of the kernel's path.
    const uint64_t behind = innocent.kick(Commands().nop());
    REQUIRE(kernel_path.submit(0, Commands().nop()) == 0);

    CHECK(guilty.queue.wait(fence) == -ETIMEDOUT);
    const auto status = guilty.device.status(guilty.ctx);
    CHECK(status.error == -ETIMEDOUT);
    CHECK(status.guilty == 1);
    CHECK(status.failed_seqno == fence);
    CHECK(guilty.submit(0, Commands().nop()) == -ENOTRECOVERABLE);
    CHECK(innocent.queue.wait(behind) == 0);
    CHECK(kernel_path.device.syncobj_wait(kernel_path.done) == 0);
    CHECK(innocent.device.status(innocent.ctx).error == 0);
    CHECK(kernel_path.device.status(kernel_path.ctx).error == 0);
    CHECK(counter("hangs") == hangs + 1);
    CHECK(counter("engine_resets") == resets + 1);
    // What it stores now goes nowhere.
    guilty.push(Commands().nop());
    guilty.queue.store_doorbell();
    CHECK(guilty.queue.wait(fence + 1) == -ETIMEDOUT);
    CHECK(innocent.queue.wait(innocent.kick(Commands().nop())) == 0);
}

TEST_CASE("a hang that an engine reset does not end spares other user-mode queues") {
    QueueRig guilty(0, kTimeoutMs), parked(1), copying(guilty.copy);
    Buffer words(parked.device, kPage);
    words.at(kVa);
    const auto resets = counter("device_resets");
    const uint64_t waiting = parked.kick(Commands().wait(kVa, 1, 60'000'000));
    inject(ENPU_FAULT_KIND_RESET_FAILS, 0);
    inject(ENPU_FAULT_KIND_ENGINE_HANG, 0);
    const uint64_t fence = guilty.kick(Commands().nop());
    CHECK(guilty.queue.wait(fence) == -ETIMEDOUT);
    CHECK(counter("device_resets") == resets + 1);
    *reinterpret_cast<volatile uint64_t*>(words.data()) = 1;
    parked.queue.store_doorbell();
    CHECK(parked.queue.wait(waiting) == 0);
    CHECK(copying.queue.wait(copying.kick(Commands().nop())) == 0);
    CHECK(parked.device.status(parked.ctx).error == 0);
    clear_faults();
}

TEST_CASE("an entry torn by the reset of its engine is told, and the queue goes on") {
    QueueRig rig(0);
    Buffer big(rig.device, 16 * kLargePage, DRM_ENPU_BO_LOCAL);
    big.at(kVa);
    inject(ENPU_FAULT_KIND_ENGINE_SLOW, 0, ~0u, 20'000'000);
    const uint64_t torn = rig.kick(Commands().fill(kVa, big.size(), 0x11));
    const uint64_t after = rig.push(Commands().nop());
    wait_until_busy();
    std::this_thread::sleep_for(milliseconds(50));
    REQUIRE(debugfs_write("force_reset", "0") == 0);
    clear_faults();
    const int result = rig.queue.wait(torn);
    CHECK((result == -ESTALE || result == 0));  // 0: the next one was quicker than this thread
    CHECK(rig.queue.wait(after) == 0);
    const auto status = rig.device.status(rig.ctx);
    CHECK(status.error == -ESTALE);
    CHECK(status.failed_seqno == torn);
    CHECK(status.failed_jobs == 1);
    CHECK(status.guilty == 0);
    CHECK(rig.queue.wait(rig.kick(Commands().nop())) == 0);
}

TEST_CASE("resets under a user-mode queue with mapped doorbell lose nothing") {
    QueueRig rig(0);
    Buffer words(rig.device, kPage);
    words.at(kVa);
    std::atomic<bool> stop{false};
    std::thread resets([&] {
        for (int i = 0; i < 10; i++) {
            debugfs_write("force_reset", i % 2 ? "device" : "0");
            std::this_thread::sleep_for(milliseconds(20));
        }
        stop = true;
    });
    uint64_t done = 0, failed = 0;
    for (uint64_t i = 1; !stop || done < 20; i++) {
        if (stop) done++;
        const uint64_t fence = rig.kick(Commands().signal(kVa, i));
        const int result = rig.queue.wait(fence);
        if (result == -ESTALE)
            failed++;
        else if (result != 0)
            FAIL("wait " << fence << " ended with " << result);
        else if (__atomic_load_n(reinterpret_cast<uint64_t*>(words.data()), __ATOMIC_ACQUIRE) != i)
            failed++;  // torn, and overtaken by nothing: the next one is pushed after it
    }
    resets.join();
    const auto status = rig.device.status(rig.ctx);
    CHECK(status.guilty == 0);
    CHECK(status.failed_jobs == failed);
}

TEST_CASE("a function-level reset under a mapped doorbell") {
    QueueRig rig(0);
    Buffer words(rig.device, kPage);
    words.at(kVa);
    const uint64_t parked = rig.kick(Commands().wait(kVa, 1, 60'000'000));
    for (int round = 0; round < 3; round++) {
        std::atomic<bool> stop{false};
        // Rings all the while.
        std::thread ringer([&] {
            while (!stop) rig.queue.store_doorbell();
        });
        CHECK(write_file(sysfs_path("reset"), "1") == 0);
        stop = true;
        ringer.join();
        CHECK(rig.queue.wait(parked, deadline(milliseconds(20))) == -ETIME);
    }
    *reinterpret_cast<volatile uint64_t*>(words.data()) = 1;
    rig.queue.store_doorbell();
    CHECK(rig.queue.wait(parked) == 0);
    CHECK(rig.queue.wait(rig.kick(Commands().nop())) == 0);
    CHECK(rig.device.status(rig.ctx).error == 0);
}

TEST_CASE("lost kicks and lost interrupts of a user-mode queue") {
    QueueRig rig(0);
    Buffer words(rig.device, kPage);
    words.at(kVa);
    SECTION("a kick") {
        inject(ENPU_FAULT_KIND_DOORBELL_IGNORED, ~0u);
        const auto lost = counter("lost_doorbells");
        CHECK(rig.queue.wait(rig.kick(Commands().nop())) == 0);
        CHECK(counter("lost_doorbells") == lost + 1);
    }
    SECTION("an interrupt") {
        const auto lost = counter("lost_interrupts");
        const uint64_t fence = rig.kick(Commands().wait(kVa, 1, 30'000'000));
        int result = 1;
        std::thread waiter([&] { result = rig.queue.wait(fence); });
        CHECK(rig.queue.sleeps_for(fence));
        inject(ENPU_FAULT_KIND_IRQ_LOST, 1);
        *reinterpret_cast<volatile uint64_t*>(words.data()) = 1;
        rig.queue.store_doorbell();
        waiter.join();
        CHECK(result == 0);
        CHECK(counter("lost_interrupts") == lost + 1);
    }
    clear_faults();
}

TEST_CASE("a wrong fence word of a user-mode queue is noticed at the next looks") {
    QueueRig rig(0);
    const auto bad = counter("bad_fences");
    // The fence word becomes 0 again.
    inject(ENPU_FAULT_KIND_FENCE_CORRUPTED, ~0u, 1, 1);
    // Eight looks long: who is woken by a look is still waiting for the same look.
    CHECK(rig.queue.wait(rig.kick(Commands().nop()), deadline(milliseconds(2000) * slower())) == 0);
    CHECK(counter("bad_fences") == bad + 1);
    CHECK(rig.queue.wait(rig.kick(Commands().nop())) == 0);
    clear_faults();
}

TEST_CASE("interrupts that a process asks for and does not wait for throttle nobody") {
    QueueRig rig(0);
    const auto storms = counter("irq_storms");
    for (int i = 0; i < 300; i++) {
        const uint64_t fence = rig.push(Commands().nop());
        rig.queue.header()->irq_fence = fence;
        rig.queue.ring();
        while (rig.queue.fence() < fence) {
        }
        rig.queue.header()->fence = 0;  // as if nothing had happened
        if (rig.device.status(rig.ctx).error) FAIL("the queue failed");
        rig.queue.header()->fence = fence;
    }
    CHECK(counter("irq_storms") == storms);
}

TEST_CASE("a device that sleeps stops a queue whose doorbell nobody has mapped") {
    QueueRig rig(0);
    // Mapped: awake for longer than the delay.
    usleep(3'000'000);
    CHECK(sysfs("power/runtime_status").find("active") == 0);
    rig.queue.unmap_doorbell();
    REQUIRE(eventually([] { return sysfs("power/runtime_status").find("suspended") == 0; }));
    const uint64_t fence = rig.push(Commands().nop());
    // The wait wakes it, and it looks at the ring.
    CHECK(rig.queue.wait(fence) == 0);
}

TEST_CASE("a device that is pulled out from under a user-mode queue") {
    const std::string device = pci_path();
    auto rig = std::make_unique<QueueRig>(0);
    Buffer words(rig->device, kPage);
    words.at(kVa);
    const uint64_t fence = rig->kick(Commands().wait(kVa, 1, 60'000'000));
    int result = 1;
    std::thread waiter([&] { result = rig->queue.wait(fence); });
    CHECK(rig->queue.sleeps_for(fence));
    std::atomic<bool> stop{false};
    std::thread ringer([&] {
        while (!stop) rig->queue.store_doorbell();
    });
    REQUIRE(write_file(device + "/remove", "1") == 0);
    waiter.join();
    CHECK(result == -ENODEV);
    usleep(10'000);
    stop = true;
    ringer.join();
    CHECK(rig->queue.wait(fence) == -ENODEV);
    volatile uint32_t* page = nullptr;
    CHECK(rig->queue.map_doorbell(&page, MAP_SHARED) == -ENODEV);
    REQUIRE(write_file("/sys/bus/pci/rescan", "1") == 0);
    REQUIRE(find_node(device));
    QueueRig fresh(0);
    CHECK(fresh.queue.wait(fresh.kick(Commands().nop())) == 0);
}

}  // namespace
}  // namespace enpu::test
