// SPDX-License-Identifier: MIT
// Sleep of the whole system, by the kernel's own test mode: all devices go through their paces, the
// processor stays on. Runs in a guest of its own, whose shares are lost by it.
#include <unistd.h>

#include <catch2/catch_session.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>

#include "own_copy.h"
#include "recovery.h"
#include "user_queue.h"

namespace enpu::test {
namespace {

// Lets a job that waits for the word at kVa go on, by a job on the copy engine.
void let_go(const Fixture& f) {
    const uint32_t go = Commands().signal(kVa, 1).write_to(f.commands.data() + kPage);
    REQUIRE(Submit(f.ctx, f.copy, Fixture::kCmdVa + kPage, go).send(f.device) == 0);
}

TEST_CASE("jobs in flight go on after the system slept") {
    if (access("/sys/power/pm_test", W_OK) != 0) SKIP("the kernel has no pm_test");
    Fixture f;
    Buffer words(f.device, kPage), big(f.device, 8 * kLargePage, DRM_ENPU_BO_LOCAL);
    words.at(kVa);
    big.at(kVa + kLargePage);
    for (int round = 0; round < 2; round++) {
        memset(words.data(), 0, words.size());
        const uint32_t copied = f.device.syncobj();
        REQUIRE(f.submit(0, Commands().wait(kVa, 1, 60'000'000).fill(kVa + 64, 8, 3)) == 0);
        // And many that may be anywhere: done, running, in the ring, in the scheduler.
        const uint32_t fill = Commands()
                                  .fill(kVa + kLargePage, big.size(), 0x11)
                                  .fill(kVa + 128, 8, 0x22)
                                  .write_to(f.commands.data() + 2 * kPage);
        for (int i = 0; i < 10; i++)
            REQUIRE(Submit(f.ctx, f.copy, Fixture::kCmdVa + 2 * kPage, fill)
                        .signal(copied)
                        .send(f.device) == 0);
        REQUIRE(sleep_devices(round ? "freeze" : "mem") == 0);
        REQUIRE(f.device.syncobj_wait(copied) == 0);
        let_go(f);
        REQUIRE(f.device.syncobj_wait(f.done) == 0);
        CHECK(f.device.status(f.ctx).error == 0);
        CHECK(words.data()[64] == 3);
        CHECK(words.data()[128] == 0x22);
        CHECK(big.data()[big.size() - 1] == 0x11);
        f.device.syncobj_destroy(copied);
    }
}

TEST_CASE("user-mode queues with their doorbells mapped go on after the system slept") {
    if (access("/sys/power/pm_test", W_OK) != 0) SKIP("the kernel has no pm_test");
    QueueRig parked(0), busy(Device().copy_engine());
    Buffer words(parked.device, kPage), results(busy.device, kPage);
    Buffer big(busy.device, 8 * kLargePage, DRM_ENPU_BO_LOCAL);
    words.at(kVa);
    results.at(kVa);
    big.at(kVa + kLargePage);
    for (int round = 0; round < 2; round++) {
        memset(words.data(), 0, words.size());
        // One waits inside a packet; of many others some are done, some in the ring.
        const uint64_t waiting =
            parked.kick(Commands().wait(kVa, 1, 60'000'000).fill(kVa + 64, 8, 3));
        uint64_t last = 0;
        for (int i = 0; i < 10; i++)
            last = busy.kick(Commands()
                                 .fill(kVa + kLargePage, big.size(), 0x11)
                                 .fill(kVa + 8 * static_cast<uint64_t>(i), 8, 0x22));
        REQUIRE(sleep_devices(round ? "freeze" : "mem") == 0);
        // The page of the device is back under the same address.
        const uint64_t after = busy.kick(Commands().fill(kVa + 128, 8, 0x33));
        CHECK(busy.queue.wait(last) == 0);
        CHECK(busy.queue.wait(after) == 0);
        CHECK(parked.queue.wait(waiting, deadline(std::chrono::milliseconds(20))) == -ETIME);
        *reinterpret_cast<volatile uint64_t*>(words.data()) = 1;
        parked.queue.store_doorbell();
        CHECK(parked.queue.wait(waiting) == 0);
        CHECK(words.data()[64] == 3);
        for (int i = 0; i < 10; i++) CHECK(results.data()[8 * i] == 0x22);
        CHECK(results.data()[128] == 0x33);
        CHECK(big.data()[big.size() - 1] == 0x11);
        CHECK(parked.device.status(parked.ctx).error == 0);
        CHECK(busy.device.status(busy.ctx).error == 0);
        memset(results.data(), 0, results.size());
    }
}

}  // namespace
}  // namespace enpu::test

int main(int argc, char** argv) {
    if (!enpu::test::is_own_copy(argv[0])) return enpu::test::run_own_copy(argc, argv);
    return Catch::Session().run(argc, argv);
}
