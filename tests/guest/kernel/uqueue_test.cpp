// SPDX-License-Identifier: MIT
// User-mode queues by raw ioctls: the rules of the interface, and what a process can do to its ring.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <memory>
#include <thread>

#include "recovery.h"
#include "user_queue.h"

namespace enpu::test {
namespace {

using std::chrono::milliseconds;

TEST_CASE("a job goes through a user-mode queue") {
    QueueRig rig;
    Buffer data(rig.device, kPage);
    data.at(kVa);
    for (uint64_t i = 1; i <= 200; i++) {
        const uint64_t fence = rig.kick(Commands().signal(kVa, i).nop());
        REQUIRE(fence == i);
        REQUIRE(rig.queue.wait(fence) == 0);
        CHECK(rig.queue.fence() == i);
        CHECK(*reinterpret_cast<uint64_t*>(data.data()) == i);
    }
    CHECK(rig.queue.wait(0) == 0);
    CHECK(rig.device.status(rig.ctx).error == 0);
    CHECK(rig.queue.destroy() == 0);
    CHECK(rig.queue.wait(1) == -ENOENT);
}

TEST_CASE("waits of a user-mode queue keep their deadline and miss no completion") {
    QueueRig rig;
    Buffer word(rig.device, kPage);
    word.at(kVa);
    const uint64_t fence = rig.kick(Commands().wait(kVa, 1, 30'000'000));
    CHECK(rig.queue.wait(fence, 0) == -ETIME);
    CHECK(rig.queue.wait(fence, -1) == -ETIME);
    const int64_t until = deadline(milliseconds(50));
    CHECK(rig.queue.wait(fence, until) == -ETIME);
    CHECK(deadline({}) >= until);

    // Several at once, for different values; each sleeps until its own.
    int results[3] = {1, 1, 1};
    std::vector<std::thread> waiters;
    rig.push(Commands().nop());
    rig.kick(Commands().nop());
    for (uint64_t i = 0; i < 3; i++)
        waiters.emplace_back([&, i] { results[i] = rig.queue.wait(fence + i); });
    CHECK(rig.queue.sleeps_for(fence));
    *reinterpret_cast<volatile uint64_t*>(word.data()) = 1;
    rig.queue.store_doorbell();
    for (auto& thread : waiters) thread.join();
    for (int result : results) CHECK(result == 0);
}

TEST_CASE("what QUEUE_CREATE refuses") {
    Fixture f;
    Buffer ring(f.device, 8 * kPage), local(f.device, 2 * kPage, DRM_ENPU_BO_LOCAL);
    ring.at(kRingVa);
    local.at(kRingVa + kLargePage);
    REQUIRE(f.device.map(kRingVa + 2 * kLargePage, ring.handle(), 2 * kPage, 0,
                         DRM_ENPU_MAP_READ) == 0);
    const auto create = [&](auto change) {
        drm_enpu_queue_create args{f.ctx, 0, kRingVa, 4, 0, 0, 0, 0};
        change(args);
        const int ret = f.device.call(DRM_IOCTL_ENPU_QUEUE_CREATE, &args);
        if (ret == 0) {
            drm_enpu_queue_destroy destroy{args.queue_id, 0};
            CHECK(f.device.call(DRM_IOCTL_ENPU_QUEUE_DESTROY, &destroy) == 0);
        }
        return ret;
    };
    using Args = drm_enpu_queue_create;
    CHECK(create([](Args&) {}) == 0);
    CHECK(create([](Args& a) { a.flags = 1; }) == -EINVAL);
    CHECK(create([](Args& a) { a.pad = 1; }) == -EINVAL);
    CHECK(create([](Args& a) { a.queue_id = 1; }) == -EINVAL);
    CHECK(create([](Args& a) { a.doorbell_offset = 1; }) == -EINVAL);
    CHECK(create([](Args& a) { a.ctx_id = 77; }) == -ENOENT);
    CHECK(create([](Args& a) { a.engine = 99; }) == -EINVAL);
    CHECK(create([](Args& a) { a.ring_log2 = 1; }) == -EINVAL);
    CHECK(create([](Args& a) { a.ring_log2 = 13; }) == -EINVAL);
    CHECK(create([](Args& a) { a.ring_log2 = ~0u; }) == -EINVAL);
    CHECK(create([](Args& a) { a.ring_log2 = 10; }) == -EINVAL);  // longer than the mapping
    CHECK(create([](Args& a) { a.ring_va += 8; }) == -EINVAL);
    CHECK(create([](Args& a) { a.ring_va = 0; }) == -EINVAL);
    CHECK(create([](Args& a) { a.ring_va = ~0ull & ~(kPage - 1); }) == -EINVAL);
    CHECK(create([](Args& a) { a.ring_va += 7 * kPage; }) == -EINVAL);   // its end is not mapped
    CHECK(create([](Args& a) { a.ring_va += kLargePage; }) == -EINVAL);  // local memory
    CHECK(create([](Args& a) { a.ring_va += 2 * kLargePage; }) == -EINVAL);  // read only

    drm_enpu_queue_wait wait{77, 0, 1, 0};
    CHECK(f.device.call(DRM_IOCTL_ENPU_QUEUE_WAIT, &wait) == -ENOENT);
    wait.pad = 1;
    CHECK(f.device.call(DRM_IOCTL_ENPU_QUEUE_WAIT, &wait) == -EINVAL);
    drm_enpu_queue_destroy destroy{77, 0};
    CHECK(f.device.call(DRM_IOCTL_ENPU_QUEUE_DESTROY, &destroy) == -ENOENT);
    destroy.pad = 1;
    CHECK(f.device.call(DRM_IOCTL_ENPU_QUEUE_DESTROY, &destroy) == -EINVAL);
}

TEST_CASE("a file has so many user-mode queues and no more") {
    Fixture f;
    std::vector<std::unique_ptr<UserQueue>> queues;
    for (uint64_t i = 0; i < ENPU_MAX_USER_QUEUES; i++)
        queues.push_back(std::make_unique<UserQueue>(f.device, f.ctx, i % 2 ? 0 : f.copy,
                                                     kRingVa + i * kLargePage));
    int ret = 0;
    { UserQueue one_more(f.device, f.ctx, 0, kRingVa + kLargePage * 100, &ret); }
    CHECK(ret == -ENOSPC);
    queues.pop_back();
    { UserQueue again(f.device, f.ctx, 0, kRingVa + kLargePage * 101, &ret); }
    CHECK(ret == 0);
    // All of them work side by side.
    const uint32_t bytes = Commands().nop().write_to(f.commands.data());
    for (auto& queue : queues) {
        queue->push(Fixture::kCmdVa, bytes);
        queue->ring();
    }
    for (auto& queue : queues) CHECK(queue->wait(1) == 0);
}

TEST_CASE("the doorbell page is mapped whole, shared and by its own file only") {
    QueueRig rig;
    volatile uint32_t* page = nullptr;
    CHECK(rig.queue.map_doorbell(&page, MAP_PRIVATE) == -EINVAL);
    REQUIRE(rig.queue.map_doorbell(&page, MAP_SHARED) == 0);
    // A kick without work changes nothing.
    for (int i = 0; i < 100; i++) page[i] = ~0u;
    CHECK(rig.queue.fence() == 0);

    QueueRig other;
    CHECK(mmap(nullptr, 2 * kPage, PROT_WRITE, MAP_SHARED, rig.device.fd(),
               rig.queue.doorbell_offset()) == MAP_FAILED);
    CHECK(errno == EINVAL);
    CHECK(mmap(nullptr, kPage, PROT_WRITE, MAP_SHARED, other.device.fd(),
               rig.queue.doorbell_offset()) == MAP_FAILED);
    CHECK(errno == EACCES);

    // It outlives the queue, and leads nowhere then; the number may be another's.
    CHECK(rig.queue.destroy() == 0);
    QueueRig next;
    const uint32_t bytes = Commands().nop().write_to(next.commands.data());
    next.queue.push(Fixture::kCmdVa, bytes);
    *page = 1;
    CHECK(*page == 1);  // memory
    munmap(const_cast<uint32_t*>(page), kPage);
    next.queue.ring();
    CHECK(next.queue.wait(1) == 0);
}

// The queue faults with this errno, nobody else is hurt, and the status record tells.
void faults(QueueRig& rig, QueueRig& other, int error) {
    CHECK(rig.queue.wait(rig.queue.fence() + 1) == error);
    CHECK(rig.queue.wait(~0ull) == error);
    const auto status = rig.device.status(rig.ctx);
    CHECK(status.error == error);
    CHECK(status.guilty == 1);
    CHECK(status.failed_jobs >= 1);
    CHECK(rig.submit(0, Commands().nop()) == -ENOTRECOVERABLE);
    int ret = 0;
    { UserQueue again(rig.device, rig.ctx, 0, kRingVa + kLargePage, &ret); }
    CHECK(ret == -ENOTRECOVERABLE);
    // Its doorbell rings nothing any more.
    rig.queue.store_doorbell();

    REQUIRE(other.queue.wait(other.kick(Commands().nop())) == 0);
    other.run(0, Commands().nop());
    CHECK(other.device.status(other.ctx).error == 0);
}

TEST_CASE("forged rings fault their own queue") {
    QueueRig rig, other;
    const uint32_t bytes = Commands().nop().write_to(rig.commands.data());
    int error = -EBADMSG;
    SECTION("tail far ahead") {
        rig.queue.set_tail(1ull << 40);
    }
    SECTION("tail all ones") {
        rig.queue.set_tail(~0ull);
    }
    SECTION("tail one more than there is room for") {
        rig.queue.set_tail((1u << UserQueue::kLog2) + 1);
    }
    SECTION("an entry of zeroes") {
        rig.queue.set_tail(1);
    }
    SECTION("an entry of ones") {
        memset(rig.queue.entry(0), 0xff, sizeof(enpu_ring_entry));
        rig.queue.set_tail(1);
    }
    SECTION("command buffer not aligned") {
        rig.queue.push(Fixture::kCmdVa + 8, bytes);
    }
    SECTION("too long") {
        rig.queue.push(Fixture::kCmdVa, 0xfffffff0);
    }
    SECTION("unknown flag") {
        rig.queue.write(Fixture::kCmdVa, bytes)->flags = 0x80;
        rig.queue.set_tail(1);
    }
    SECTION("a fence that goes back") {
        rig.queue.push(Fixture::kCmdVa, bytes);
        rig.queue.ring();
        REQUIRE(rig.queue.wait(1) == 0);
        rig.queue.write(Fixture::kCmdVa, bytes)->fence = 1;
        rig.queue.set_tail(2);
    }
    SECTION("commands that nobody mapped") {
        rig.queue.push(0x7fff'0000'0000, bytes);
        error = -EFAULT;
    }
    SECTION("commands at the end of the address space") {
        rig.queue.push(~0ull - 15, 4096);
        error = -EFAULT;
    }
    SECTION("commands of another process's mapping") {
        Buffer secret(other.device, kPage);
        secret.at(kVa);
        Commands().nop().write_to(secret.data());
        rig.queue.push(kVa, bytes);
        error = -EFAULT;
        rig.queue.ring();
        faults(rig, other, error);
        return;
    }
    SECTION("a packet of garbage") {
        memset(rig.commands.data(), 0x5a, kPage);
        rig.queue.push(Fixture::kCmdVa, 64);
    }
    SECTION("an access out of the mappings") {
        rig.push(Commands().fill(0x4000'0000, 64, 1));
        error = -EFAULT;
    }
    SECTION("the ring itself taken away") {
        REQUIRE(rig.device.unmap(kRingVa, 2 * kPage) == 0);
        error = -EFAULT;
    }
    rig.queue.store_doorbell();
    faults(rig, other, error);
}

TEST_CASE("words of the device that a process overwrites harm its own queue only") {
    QueueRig rig, other;
    // The device takes the fence from memory when it first looks at a ring.
    REQUIRE(rig.queue.wait(rig.kick(Commands().nop())) == 0);
    // The process believes what it wrote itself; the device does not.
    rig.queue.header()->fence = 1000;
    CHECK(rig.queue.wait(1000) == 0);
    rig.queue.header()->fence = 1;
    rig.queue.header()->head = 12345;
    rig.queue.header()->irq_fence = ~0ull;
    rig.queue.header()->no_doorbell = 7;
    const uint64_t fence = rig.push(Commands().nop());
    rig.queue.store_doorbell();
    CHECK(rig.queue.wait(fence) == 0);
    CHECK(rig.queue.header()->head == 2);
    REQUIRE(other.queue.wait(other.kick(Commands().nop())) == 0);
}

TEST_CASE("a kick that is left out, and a value to wake for that is overwritten, cost a moment") {
    QueueRig rig;
    const uint64_t fence = rig.push(Commands().nop());  // not rung for
    CHECK(rig.queue.wait(fence) == 0);

    Buffer word(rig.device, kPage);
    word.at(kVa);
    const uint64_t next = rig.kick(Commands().wait(kVa, 1, 30'000'000));
    int result = 1;
    std::thread waiter([&] { result = rig.queue.wait(next); });
    CHECK(rig.queue.sleeps_for(next));
    rig.queue.header()->irq_fence = 0;
    *reinterpret_cast<volatile uint64_t*>(word.data()) = 1;
    rig.queue.store_doorbell();
    waiter.join();
    CHECK(result == 0);
}

TEST_CASE("two processes with queues of their own") {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    bool good = true;
    QueueRig rig;
    Buffer data(rig.device, kPage);
    data.at(kVa);
    for (uint64_t i = 1; i <= 300 && good; i++) {
        const uint64_t word = i << 1 | (child == 0);
        const uint64_t fence = rig.kick(Commands().signal(kVa, word));
        good = rig.queue.wait(fence) == 0 && *reinterpret_cast<uint64_t*>(data.data()) == word;
    }
    if (child == 0) _exit(good ? 0 : 1);
    CHECK(good);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a queue is destroyed with work in flight, by itself, its context and its file") {
    auto rig = std::make_unique<QueueRig>();
    Buffer word(rig->device, kPage);
    word.at(kVa);
    for (int i = 0; i < 40; i++) rig->kick(Commands().wait(kVa, 1, 60'000'000));
    int result = 1;
    std::thread waiter([&] { result = rig->queue.wait(40); });
    // Else it would find no queue.
    CHECK(rig->queue.sleeps_for(40));
    const int64_t start = deadline({});
    int expected = -ECANCELED;
    SECTION("by itself") {
        CHECK(rig->queue.destroy() == 0);
    }
    SECTION("by its context") {
        CHECK(rig->device.context_destroy(rig->ctx) == 0);
    }
    SECTION("by another thread that ends the wait") {
        *reinterpret_cast<volatile uint64_t*>(word.data()) = 1;
        rig->queue.store_doorbell();
        expected = 0;
    }
    waiter.join();
    CHECK(result == expected);
    CHECK(deadline({}) - start < 5'000'000'000 * slower());
}

}  // namespace
}  // namespace enpu::test
