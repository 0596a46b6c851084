// SPDX-License-Identifier: MIT
#include <atomic>
#include <thread>

#include "tests/device_fixture.h"

namespace enpu::test {
namespace {

Command nops(const Device& device, uint32_t kind = ENPU_ENGINE_KIND_COMPUTE) {
    Builder builder(device, kind);
    check([&](enpu_error* e) { return enpu_build_nop(builder.get(), e); });
    return builder.finish();
}

Command signal(const Device& device, const Buffer& word, uint64_t value) {
    Builder builder(device, ENPU_ENGINE_KIND_COMPUTE);
    check([&](enpu_error* e) { return enpu_build_signal(builder.get(), word.get(), 0, value, e); });
    return builder.finish();
}

Command wait_for(const Device& device, const Buffer& word, uint64_t value) {
    Builder builder(device, ENPU_ENGINE_KIND_COMPUTE);
    check([&](enpu_error* e) {
        return enpu_build_wait(builder.get(), word.get(), 0, value, 30'000'000, e);
    });
    return builder.finish();
}

TEST_CASE("A command goes through a user-mode queue") {
    Fixture f;
    const Buffer word = f.host(8);
    const Queue queue = Queue::create(f.context, 0, 16);
    for (uint64_t i = 1; i <= 100; ++i) {
        const uint64_t fence = queue.submit(signal(f.device, word, i));
        REQUIRE(fence == i);
        queue.wait(fence, soon());
        CHECK(word.map<uint64_t>()[0] == i);
        CHECK(queue.completed() == i);
    }
}

TEST_CASE("Many commands with one kick, and a ring that is full") {
    Fixture f;
    const Buffer word = f.host(8);
    const Queue queue = Queue::create(f.context, 0, 8);
    const Command blocked = wait_for(f.device, word, 1), nop = nops(f.device);
    std::vector<enpu_command*> batch = {blocked.get(), nop.get(), nop.get(), nop.get()};
    uint64_t fence = 0;
    check([&](enpu_error* e) {
        return enpu_queue_submit(queue.get(), batch.data(), batch.size(), 5, &fence, e);
    });
    CHECK(fence == 4);
    batch = {nop.get(), nop.get(), nop.get(), nop.get(), nop.get()};
    expect_failure(
        [&](enpu_error* e) {
            return enpu_queue_submit(queue.get(), batch.data(), batch.size(), 5, nullptr, e);
        },
        -EAGAIN, {"8 entries", "5"});
    CHECK(queue.completed() == 0);
    expect_failure(
        [&](enpu_error* e) {
            return enpu_queue_wait(queue.get(), 2, enpu_deadline_after(20'000'000), e);
        },
        -ETIME, {"fence 2"});
    std::atomic_ref(word.map<uint64_t>()[0]).store(1);  // the device looks at it
    // A parked WAIT looks again at every kick.
    CHECK(queue.submit(nop) == 5);
    queue.wait(5, soon());
    for (uint64_t i = 6; i <= 100; ++i) queue.wait(queue.submit(nop), soon());
}

TEST_CASE("What a user-mode queue refuses") {
    Fixture f;
    const Queue queue = Queue::create(f.context, 0, 4);
    const Command nop = nops(f.device), copy = nops(f.device, ENPU_ENGINE_KIND_COPY);
    const auto create = [&](uint32_t engine, uint32_t entries) {
        return [&f, engine, entries](enpu_error* e) {
            enpu_queue* made = nullptr;
            return enpu_queue_create(f.context.get(), engine, entries, &made, e);
        };
    };
    expect_failure(create(99, 16), -EINVAL, {"engine 99"});
    expect_failure(create(0, 12), -EINVAL, {"12 entries", "power of two"});
    expect_failure(create(0, 2), -EINVAL, {"2 entries"});
    expect_failure(create(0, 1u << 31), -EINVAL, {"power of two"});
    const auto submit = [&](std::vector<enpu_command*> commands) {
        return [&queue, commands](enpu_error* e) {
            return enpu_queue_submit(queue.get(), commands.data(), commands.size(), 0, nullptr, e);
        };
    };
    expect_failure(submit({}), -EINVAL, {"no command"});
    expect_failure(submit({nop.get(), nullptr}), -EINVAL, {"commands[1]"});
    expect_failure(submit({copy.get()}), -EINVAL, {"other kind"});
    expect_failure(submit(std::vector<enpu_command*>(5, nop.get())), -EINVAL, {"4 entries"});
    const auto wait = [&](uint64_t fence) {
        return [&queue, fence](enpu_error* e) {
            return enpu_queue_wait(queue.get(), fence, soon(), e);
        };
    };
    expect_failure(wait(0), -EINVAL, {"fence 0"});
    expect_failure(wait(1), -EINVAL, {"fence 1", "0 were submitted"});

    const Buffer shared = f.host(64, ENPU_BUFFER_SHARED);
    const Command uses = signal(f.device, shared, 1);
    expect_failure(submit({uses.get()}), -EOPNOTSUPP, {"commands[0]", "shared"});
    CHECK(queue.completed() == 0);
    queue.wait(queue.submit(nop), soon());
}

TEST_CASE("A command on a user-mode queue cannot be patched, and outlives its owner") {
    Fixture f;
    const Buffer word = f.host(8), other = f.host(8), target = f.host(8);
    const Queue queue = Queue::create(f.context, 0, 8);
    uint64_t fence;
    {
        const Command blocked = wait_for(f.device, word, 1);
        const Command writes = signal(f.device, target, 7);
        queue.submit(blocked);
        fence = queue.submit(writes);
        expect_failure(
            [&](enpu_error* e) {
                return enpu_command_patch(writes.get(), 0, 0, other.get(), 0, e);
            },
            -EBUSY, {"still runs"});
    }
    std::atomic_ref(word.map<uint64_t>()[0]).store(1);  // the device looks at it
    const Command nop = nops(f.device);
    queue.wait(queue.submit(nop), soon());
    queue.wait(fence, soon());
    CHECK(target.map<uint64_t>()[0] == 7);
    const Command writes = signal(f.device, target, 8);
    queue.wait(queue.submit(writes), soon());
    writes.patch(0, 0, other, 0);
    queue.wait(queue.submit(writes), soon());
    CHECK(other.map<uint64_t>()[0] == 8);
}

TEST_CASE("A fault ends a user-mode queue and its context, and nobody else's") {
    Fixture f, innocent;
    const Queue queue = Queue::create(f.context, 0, 8);
    const Queue second = Queue::create(f.context, 0, 8);
    const Queue healthy = Queue::create(innocent.context, 0, 8);
    Builder builder(f.device, ENPU_ENGINE_KIND_COMPUTE);
    const Buffer words = f.host(4096), index = f.host(8);
    // An index out of range, which only the device can see.
    index.map<uint32_t>()[0] = 99;
    const enpu_operand x = operand(words, ENPU_DTYPE_F32, {4}),
                       i = operand(index, ENPU_DTYPE_I32, {1}),
                       y = operand(words, ENPU_DTYPE_F32, {1}, 64);
    enpu_gather_params params{};
    check([&](enpu_error* e) { return enpu_build_gather(builder.get(), &params, &x, &i, &y, e); });
    const Command bad = builder.finish();
    const Command nop = nops(f.device), good = nops(innocent.device);
    enpu_command* const both[] = {bad.get(), nop.get()};
    uint64_t behind = 0;
    check([&](enpu_error* e) { return enpu_queue_submit(queue.get(), both, 2, 0, &behind, e); });
    const uint64_t fence = behind - 1;
    expect_failure([&](enpu_error* e) { return enpu_queue_wait(queue.get(), fence, soon(), e); },
                   -EBADMSG, {"gather"});
    expect_failure([&](enpu_error* e) { return enpu_queue_wait(queue.get(), behind, soon(), e); },
                   -EBADMSG, {"gather"});
    enpu_command* const one = nop.get();
    expect_failure(
        [&](enpu_error* e) { return enpu_queue_submit(queue.get(), &one, 1, 0, nullptr, e); },
        -ENOTRECOVERABLE, {"no more jobs"});
    CHECK(f.context.status().failed_seqno == fence);
    healthy.wait(healthy.submit(good), soon());
    innocent.run(0, good);
}

TEST_CASE("Waits of several threads, and a queue that ends with work in it") {
    Fixture f;
    const Buffer word = f.host(8);
    Queue queue = Queue::create(f.context, 0, 64);
    const Command blocked = wait_for(f.device, word, 1), nop = nops(f.device);
    queue.submit(blocked);
    for (int i = 0; i < 30; ++i) queue.submit(nop);
    std::atomic<int> woken{0};
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            enpu_error error{};
            if (enpu_queue_wait(queue.get(), 1 + 10 * i, soon(), &error) == 0) ++woken;
        });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(woken == 0);
    std::atomic_ref(word.map<uint64_t>()[0]).store(1);  // the device looks at it
    queue.submit(nop);
    for (auto& thread : threads) thread.join();
    CHECK(woken == 4);

    std::atomic_ref(word.map<uint64_t>()[0]).store(0);
    queue.submit(blocked);
    queue.submit(nop);
    const int64_t start = enpu_deadline_after(0);
    queue = Queue();
    CHECK(enpu_deadline_after(0) - start < 5'000'000'000);
    const Queue next = Queue::create(f.context, 0, 4);
    next.wait(next.submit(nop), soon());
}

}  // namespace
}  // namespace enpu::test
