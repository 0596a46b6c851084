// SPDX-License-Identifier: MIT
// Hangs and lost interrupts, injected into the device (fault-injection=on) through the driver's
// debugfs.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "recovery.h"

namespace enpu::test {
namespace {

TEST_CASE("a hung job is blamed, and nobody else") {
    Fixture guilty(kTimeoutMs), innocent;
    const auto resets = counter("engine_resets");
    inject(ENPU_FAULT_KIND_ENGINE_HANG, 0);
    REQUIRE(guilty.submit(0, Commands().nop(), 77) == 0);
    // Behind the hung job on the engine, in a queue of its own.
    wait_until_busy();
    REQUIRE(innocent.submit(0, Commands().nop()) == 0);
    REQUIRE(guilty.device.syncobj_wait(guilty.done) == 0);
    const auto status = guilty.device.status(guilty.ctx);
    CHECK(status.error == -ETIMEDOUT);
    CHECK(status.failed_job_id == 77);
    CHECK(status.guilty == 1);
    CHECK(guilty.submit(0, Commands().nop()) == -ENOTRECOVERABLE);

    REQUIRE(innocent.device.syncobj_wait(innocent.done) == 0);
    CHECK(innocent.device.status(innocent.ctx).error == 0);
    CHECK(counter("engine_resets") == resets + 1);
    CHECK(innocent.device.info().reset_count >= 1);
    clear_faults();
    innocent.run(0, Commands().nop());
}

TEST_CASE("a client that keeps submitting does not put off the end of a hung job") {
    Fixture guilty(kTimeoutMs), eager;
    inject(ENPU_FAULT_KIND_ENGINE_HANG, 0);
    REQUIRE(guilty.submit(0, Commands().nop()) == 0);
    wait_until_busy();
    const uint32_t bytes = Commands().nop().write_to(eager.commands.data());
    const int64_t until = deadline(std::chrono::seconds(8));
    // Each job that begins starts the scheduler's own timeout anew.
    while (guilty.device.status(guilty.ctx).error == 0 && deadline({}) < until) {
        const int ret =
            Submit(eager.ctx, 0, Fixture::kCmdVa, bytes).signal(eager.done).send(eager.device);
        REQUIRE((ret == 0 || ret == -EAGAIN));
        usleep(50'000);
    }
    CHECK(guilty.device.status(guilty.ctx).error == -ETIMEDOUT);
    REQUIRE(eager.device.syncobj_wait(eager.done) == 0);
    CHECK(eager.device.status(eager.ctx).error == 0);
    clear_faults();
}

TEST_CASE("jobs behind a hung one of the same context are cancelled") {
    Fixture f(kTimeoutMs);
    inject(ENPU_FAULT_KIND_ENGINE_HANG, f.copy);
    const uint32_t bytes = Commands().nop().write_to(f.commands.data());
    for (int i = 0; i < 5; i++)
        REQUIRE(Submit(f.ctx, f.copy, Fixture::kCmdVa, bytes).signal(f.done).send(f.device) == 0);
    REQUIRE(f.device.syncobj_wait(f.done) == 0);
    const auto status = f.device.status(f.ctx);
    CHECK(status.error == -ETIMEDOUT);
    CHECK(status.failed_seqno == 1);
    CHECK(status.failed_jobs == 5);
    clear_faults();
}

TEST_CASE("closing the file of a hung job frees the engine") {
    {
        Fixture f(60'000);
        inject(ENPU_FAULT_KIND_ENGINE_HANG, 0);
        REQUIRE(f.submit(0, Commands().nop()) == 0);
        usleep(100'000);
    }
    clear_faults();
    Fixture next;
    next.run(0, Commands().nop());
}

TEST_CASE("a lost interrupt delays a job, but does not fail it") {
    Fixture f;
    const auto lost = counter("lost_interrupts");
    inject(ENPU_FAULT_KIND_IRQ_LOST, 1);
    f.run(0, Commands().nop());
    CHECK(f.device.status(f.ctx).error == 0);
    CHECK(counter("lost_interrupts") == lost + 1);
    clear_faults();
}

TEST_CASE("a lost doorbell delays a job, but does not fail it") {
    Fixture f;
    inject(ENPU_FAULT_KIND_DOORBELL_IGNORED, ~0u);
    f.run(0, Commands().nop());
    CHECK(f.device.status(f.ctx).error == 0);
    clear_faults();
}

TEST_CASE("a lost doorbell is noticed though others keep the engine busy") {
    Fixture lost, eager;
    lost.run(0, Commands().nop());
    eager.run(0, Commands().nop());
    usleep(50'000);  // nobody polls the rings any more
    const auto before = counter("lost_doorbells");
    inject(ENPU_FAULT_KIND_DOORBELL_IGNORED, ~0u);
    REQUIRE(lost.submit(0, Commands().nop()) == 0);
    const int64_t until = deadline(std::chrono::seconds(10));
    while (lost.device.syncobj_wait(lost.done, 0, deadline({})) != 0 && deadline({}) < until)
        eager.run(0, Commands().nop());
    CHECK(lost.device.syncobj_wait(lost.done, 0, deadline({})) == 0);
    CHECK(counter("lost_doorbells") == before + 1);
    CHECK(lost.device.status(lost.ctx).error == 0);
    clear_faults();
}

TEST_CASE("memory errors fail the job that met them") {
    Fixture f;
    Buffer buffer(f.device, kPage, DRM_ENPU_BO_LOCAL);
    buffer.at(kVa);
    inject(ENPU_FAULT_KIND_ECC_UNCORRECTED, ~0u);
    f.run(f.copy, Commands().fill(kVa, kPage, 1).copy(kVa + 64, kVa, 16));
    CHECK(f.device.status(f.ctx).error == -EREMOTEIO);
    clear_faults();
}

TEST_CASE("a forced engine reset lets queued jobs go on") {
    Fixture f;
    Buffer word(f.device, kPage);
    word.at(kVa);
    const uint32_t bytes = Commands().nop().write_to(f.commands.data());
    REQUIRE(debugfs_write("force_reset", "0") == 0);
    for (int i = 0; i < 20; i++)
        REQUIRE(Submit(f.ctx, 0, Fixture::kCmdVa, bytes).signal(f.done).send(f.device) == 0);
    REQUIRE(f.device.syncobj_wait(f.done) == 0);
    CHECK(debugfs_write("force_reset", "99") == -EINVAL);
    CHECK(debugfs_write("force_reset", "nonsense") == -EINVAL);
}

TEST_CASE("a device reset keeps address spaces, parked jobs and memory") {
    Fixture f;
    Buffer words(f.device, kPage), local(f.device, kLargePage, DRM_ENPU_BO_LOCAL);
    words.at(kVa);
    local.at(kVa + kLargePage);
    memset(local.data(), 0x3c, local.size());
    REQUIRE(f.submit(0, Commands().wait(kVa, 1, 30'000'000).fill(kVa + 64, 8, 3)) == 0);
    const auto resets = counter("device_resets");
    REQUIRE(debugfs_write("force_reset", "device") == 0);
    CHECK(counter("device_resets") == resets + 1);

    const uint32_t go = Commands()
                            .copy(kVa + 128, kVa + kLargePage, 8)
                            .signal(kVa, 1)
                            .write_to(f.commands.data() + kPage);
    REQUIRE(Submit(f.ctx, f.copy, Fixture::kCmdVa + kPage, go).send(f.device) == 0);
    REQUIRE(f.device.syncobj_wait(f.done) == 0);
    CHECK(f.device.status(f.ctx).error == 0);
    CHECK(words.data()[64] == 3);
    CHECK(words.data()[128] == 0x3c);
}

TEST_CASE("an engine reset that fails becomes a device reset") {
    Fixture guilty(kTimeoutMs), innocent;
    const auto resets = counter("device_resets");
    inject(ENPU_FAULT_KIND_RESET_FAILS, 0);
    inject(ENPU_FAULT_KIND_ENGINE_HANG, 0);
    REQUIRE(guilty.submit(0, Commands().nop()) == 0);
    wait_until_busy();
    REQUIRE(innocent.submit(0, Commands().nop()) == 0);
    REQUIRE(guilty.device.syncobj_wait(guilty.done) == 0);
    CHECK(guilty.device.status(guilty.ctx).error == -ETIMEDOUT);
    REQUIRE(innocent.device.syncobj_wait(innocent.done) == 0);
    CHECK(innocent.device.status(innocent.ctx).error == 0);
    CHECK(counter("device_resets") == resets + 1);
    clear_faults();
    innocent.run(0, Commands().nop());
}

// What a child and its parent share.
struct Shared {
    std::atomic<bool> stop;
    std::atomic<int> done;
};

// Jobs until told to stop; how many went wrong beyond what a reset may do to a job.
int work_through_resets(Shared& shared, uint32_t engine) {
    Fixture f;
    Buffer a(f.device, 4 * kPage), b(f.device, 4 * kPage, DRM_ENPU_BO_LOCAL);
    a.at(kVa);
    b.at(kVa + kLargePage);
    int wrong = 0;
    for (uint8_t round = 1; !shared.stop; round++) {
        memset(a.data(), round, a.size());
        const uint32_t before = f.device.status(f.ctx).failed_jobs;
        if (f.submit(engine, Commands().copy(kVa + kLargePage, kVa, a.size())) ||
            f.device.syncobj_wait(f.done))
            return wrong + 1;
        const auto status = f.device.status(f.ctx);
        // Torn by somebody's reset: it must be told, and the context goes on.
        if (status.failed_jobs != before)
            wrong += status.error != -ESTALE || status.guilty;
        else
            wrong += memcmp(a.data(), b.data(), a.size()) != 0;
        shared.done++;
    }
    return wrong;
}

TEST_CASE("resets under load lose no job and corrupt none") {
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    auto& shared = *new (memory) Shared{};
    const uint32_t copy = Device().copy_engine();
    std::vector<pid_t> children;
    for (uint32_t engine : {0u, 0u, 1u, copy, copy + 1}) {
        children.push_back(fork());
        REQUIRE(children.back() >= 0);
        if (children.back() == 0) {
            int wrong = 99;
            try {
                wrong = work_through_resets(shared, engine);
            } catch (...) {  // a REQUIRE; the parent tells
            }
            _exit(std::min(wrong, 99));
        }
    }
    for (int i = 0; i < 12; i++) {
        CHECK(debugfs_write("force_reset", i % 3 ? std::to_string(i % 4) : "device") == 0);
        usleep(20'000);
    }
    const int at_last_reset = shared.done;
    const int64_t until = soon();
    while (shared.done < at_last_reset + 20 && deadline({}) < until) usleep(10'000);
    CHECK(shared.done >= at_last_reset + 20);
    shared.stop = true;
    for (pid_t child : children) {
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == 0);
    }
    munmap(memory, sizeof(Shared));
}

TEST_CASE("a device that no reset helps is wedged until the bus resets it") {
    {
        Fixture f;
        Uevents events;
        REQUIRE(f.submit(0, Commands().nop()) == 0);
        REQUIRE(f.device.syncobj_wait(f.done) == 0);
        inject(ENPU_FAULT_KIND_RESET_FAILS, ~0u, ~0u);
        REQUIRE(debugfs_write("force_reset", "device") == 0);
        CHECK(events.comes("WEDGED="));
        drm_enpu_query query{DRM_ENPU_QUERY_DEVICE, 0, 0};
        CHECK(f.device.call(DRM_IOCTL_ENPU_QUERY, &query) == -EIO);
        CHECK(f.submit(0, Commands().nop()) == -EIO);
        uint32_t handle = 0;
        CHECK(f.device.bo_create(kPage, DRM_ENPU_BO_HOST, &handle) == -EIO);
        // Closing works, and takes no longer than without the fault.
    }
    clear_faults();
    const int fd = open(sysfs_path("reset").c_str(), O_WRONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    CHECK(write(fd, "1", 1) == 1);
    close(fd);
    Fixture f;
    f.run(0, Commands().nop());
    f.run(f.copy, Commands().nop());
}

}  // namespace
}  // namespace enpu::test
