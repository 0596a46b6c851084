// SPDX-License-Identifier: MIT
// Submission, order, fences and their failures.
#include <algorithm>
#include <atomic>
#include <thread>

#include "fixture.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;

TEST_CASE("device: says what it is", "[device]") {
    Fixture f;
    CHECK(f.info.spec[0] != 0);
    CHECK(f.info.name[0] != 0);
    CHECK(f.info.compute_engines >= 1);
    CHECK(f.info.max_commands >= 16);
    CHECK((f.info.caps & ~f.hal->caps) == 0);
    auto& status = f.status;
    HAL_OK(f.hal->device->check(f.device, &status));
    enpu_hal_device_info small{};
    HAL_FAILS(f.hal->device->info(f.device, &small, &status), ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("queue: commands of one submission and submissions of one queue run in order",
          "[queue]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    auto& status = f.status;
    enpu_hal_buffer* buffer = f.make_buffer(4096);
    for (uint64_t i = 1; i <= 200; ++i)
        HAL_OK(f.submit({f.fill(buffer, 0, 4096, i, 2), f.fill(buffer, 0, 2048, i + 1000, 2)}));
    HAL_OK(f.wait(f.fence, f.value));
    const uint16_t* words = f.host<uint16_t>(buffer);
    CHECK(std::count(words, words + 1024, 1200) == 1024);
    CHECK(std::count(words + 1024, words + 2048, 200) == 1024);
}

TEST_CASE("queue: a submission without commands passes its waits on", "[queue][fence]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    auto& status = f.status;
    enpu_hal_queue* other = f.make_queue();
    enpu_hal_fence* second = f.make_fence(0);
    enpu_hal_buffer* buffer = f.make_buffer(1u << 20);
    for (int i = 0; i < 10; ++i) HAL_OK(f.submit({f.fill(buffer, 0, 1u << 20, 5, 1)}));
    HAL_OK(f.submit_to(other, {{second, 7}}, {}, {{f.fence, f.value}}));
    HAL_OK(f.wait(second, 7));
    uint64_t reached = 0;
    HAL_OK(f.hal->fence->query(f.fence, &reached, &status));
    CHECK(reached == f.value);
    HAL_OK(f.hal->fence->query(second, &reached, &status));
    CHECK(reached == 7);
}

TEST_CASE("queue: queues are ordered by fences alone", "[queue][fence]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    auto& status = f.status;
    enpu_hal_queue* other = f.make_queue();
    enpu_hal_fence* back = f.make_fence(0);
    enpu_hal_buffer* a = f.make_buffer(1u << 18);
    enpu_hal_buffer* b = f.make_buffer(1u << 18);
    for (uint64_t i = 1; i <= 20; ++i) {
        const std::vector<enpu_hal_point> waits =
            i == 1 ? std::vector<enpu_hal_point>{} : std::vector<enpu_hal_point>{{back, i - 1}};
        HAL_OK(f.submit({f.fill(a, 0, 1u << 18, i, 4)}, waits));
        HAL_OK(
            f.submit_to(other, {{back, i}}, {f.copy(b, 0, a, 0, 1u << 18)}, {{f.fence, f.value}}));
        if (i % 5 != 0) continue;
        HAL_OK(f.wait(back, i));
        const uint32_t* words = f.host<uint32_t>(b);
        REQUIRE(std::count(words, words + (1u << 16), i) == 1 << 16);
    }
}

TEST_CASE("queue: copy engines run copies and refuse kernels", "[queue]") {
    Fixture f;
    if (f.info.copy_engines == 0) SKIP("unsupported: no copy engines");
    auto& status = f.status;
    enpu_hal_queue* copies = f.make_queue(ENPU_HAL_ENGINE_COPY);
    enpu_hal_buffer* a = f.make_buffer(64);
    enpu_hal_buffer* b = f.make_buffer(64);
    std::memset(f.host<char>(a), 3, 64);
    HAL_OK(f.submit_to(copies, {{f.fence, ++f.value}}, {f.copy(b, 0, a, 0, 64)}));
    HAL_OK(f.wait(f.fence, f.value));
    CHECK(f.host<char>(b)[63] == 3);
    const Kernel move(ENPU_OP_MOVE, {tensor(a, ENPU_OP_U8, {64}), tensor(b, ENPU_OP_U8, {64})});
    HAL_FAILS(f.submit_to(copies, {{f.fence, f.value + 1}}, {move.command()}),
              ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("queue: an unknown engine or command is refused", "[queue][errors]") {
    Fixture f;
    auto& status = f.status;
    auto desc = with_header<enpu_hal_queue_desc>(ENPU_HAL_TYPE_QUEUE_DESC);
    desc.engine = 77;
    enpu_hal_queue* queue = nullptr;
    HAL_FAILS(f.hal->queue->create(f.device, &desc, &queue, &status), ENPU_HAL_INVALID_ARGUMENT);
    enpu_hal_command command{};
    command.kind = 99;
    HAL_FAILS(f.submit({command}), ENPU_HAL_UNSUPPORTED);
}

TEST_CASE("queue: a long queue takes more work than it holds at once", "[queue]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    auto& status = f.status;
    enpu_hal_buffer* buffer = f.make_buffer(8 * 3000);
    for (uint64_t i = 0; i < 3000; ++i) HAL_OK(f.submit({f.fill(buffer, 8 * i, 8, i, 8)}));
    HAL_OK(f.wait(f.fence, f.value));
    const uint64_t* words = f.host<uint64_t>(buffer);
    for (uint64_t i = 0; i < 3000; ++i) REQUIRE(words[i] == i);
}

TEST_CASE("queue: host calls come in order", "[queue]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    NEEDS(f, ENPU_HAL_CAP_HOST_CALL);
    enpu_hal_buffer* buffer = f.make_buffer(4);
    struct Seen {
        uint32_t* word;
        uint32_t values[2];
        int count;
    } seen{f.host<uint32_t>(buffer), {}, 0};
    enpu_hal_command call{};
    call.kind = ENPU_HAL_COMMAND_HOST_CALL;
    call.u.host_call = {[](void* context) {
                            auto* s = static_cast<Seen*>(context);
                            s->values[s->count++] = *s->word;
                        },
                        &seen};
    f.run({f.fill(buffer, 0, 4, 1, 4), call, f.fill(buffer, 0, 4, 2, 4), call});
    CHECK(seen.count == 2);
    CHECK(seen.values[0] == 1);
    CHECK(seen.values[1] == 2);
}

TEST_CASE("queue: timestamps grow and are on the device's clock", "[queue][profile]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    NEEDS(f, ENPU_HAL_CAP_TIMESTAMP);
    enpu_hal_buffer* buffer = f.make_buffer(16);
    enpu_hal_command at[2] = {};
    for (uint32_t i = 0; i < 2; ++i) {
        at[i].kind = ENPU_HAL_COMMAND_TIMESTAMP;
        at[i].u.timestamp.dst = {buffer, 8 * i};
    }
    enpu_hal_buffer* work = f.make_buffer(1u << 20);
    auto& status = f.status;
    uint64_t before = 0, after = 0, host = 0;
    if (f.info.caps & ENPU_HAL_CAP_PROFILE)
        HAL_OK(f.hal->profile->clock(f.device, &before, &host, &status));
    f.run({at[0], f.fill(work, 0, 1u << 20, 1, 1), at[1]});
    if (f.info.caps & ENPU_HAL_CAP_PROFILE)
        HAL_OK(f.hal->profile->clock(f.device, &after, &host, &status));
    const uint64_t* words = f.host<uint64_t>(buffer);
    CHECK(words[0] < words[1]);
    if (f.info.caps & ENPU_HAL_CAP_PROFILE) {
        CHECK(before <= words[0]);
        CHECK(words[1] <= after);
    }
    at[0].u.timestamp.dst.offset = 4;
    HAL_FAILS(f.submit({at[0]}), ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("fence: the host signals and waits", "[fence]") {
    Fixture f;
    auto& status = f.status;
    enpu_hal_fence* fence = f.make_fence(10);
    uint64_t value = 0;
    HAL_OK(f.hal->fence->query(fence, &value, &status));
    CHECK(value == 10);
    HAL_OK(f.wait(fence, 10, 0));
    HAL_FAILS(f.wait(fence, 11, 0), ENPU_HAL_DEADLINE_EXCEEDED);
    HAL_FAILS(f.hal->fence->signal(fence, 10, &status), ENPU_HAL_INVALID_ARGUMENT);
    std::thread signaller([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        f.hal->fence->signal(fence, 25, nullptr);
    });
    HAL_OK(f.wait(fence, 20));
    signaller.join();
    HAL_OK(f.hal->fence->query(fence, &value, &status));
    CHECK(value == 25);
}

TEST_CASE("fence: a deadline is kept and nothing is lost by it", "[fence][timeout]") {
    Fixture f;
    auto& status = f.status;
    enpu_hal_fence* fence = f.make_fence(0);
    const uint64_t start = now_ns();
    HAL_FAILS(f.wait(fence, 1, start + 30'000'000), ENPU_HAL_DEADLINE_EXCEEDED);
    const uint64_t took = now_ns() - start;
    CHECK(took >= 30'000'000);
    CHECK(took < 5'000'000'000);
    HAL_OK(f.hal->fence->signal(fence, 1, &status));
    HAL_OK(f.wait(fence, 1, 0));
}

TEST_CASE("fence: all or any of several", "[fence]") {
    Fixture f;
    auto& status = f.status;
    enpu_hal_fence* a = f.make_fence(0);
    enpu_hal_fence* b = f.make_fence(0);
    HAL_OK(f.hal->fence->signal(a, 3, &status));
    const enpu_hal_point points[] = {{a, 3}, {b, 1}};
    HAL_OK(f.hal->fence->wait(f.device, points, 2, 1, soon(), &status));
    HAL_FAILS(f.hal->fence->wait(f.device, points, 2, 0, now_ns() + 5'000'000, &status),
              ENPU_HAL_DEADLINE_EXCEEDED);
    HAL_OK(f.hal->fence->signal(b, 1, &status));
    HAL_OK(f.hal->fence->wait(f.device, points, 2, 0, soon(), &status));
    HAL_OK(f.hal->fence->wait(f.device, points, 0, 0, 0, &status));
}

TEST_CASE("fence: many threads wait for points of one timeline", "[fence][threads]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    auto& status = f.status;
    enpu_hal_buffer* buffer = f.make_buffer(8 * 64);
    const uint64_t* words = f.host<uint64_t>(buffer);
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    const uint64_t base = f.value;
    for (uint64_t t = 0; t < 8; ++t)
        threads.emplace_back([&, t] {
            for (uint64_t i = t; i < 64; i += 8) {
                const enpu_hal_point point{f.fence, base + 1 + i};
                if (f.hal->fence->wait(f.device, &point, 1, 0, soon(), nullptr) != ENPU_HAL_OK)
                    ++wrong;
                if (words[i] != i + 1) ++wrong;
            }
        });
    for (uint64_t i = 0; i < 64; ++i) HAL_OK(f.submit({f.fill(buffer, 8 * i, 8, i + 1, 8)}));
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
}

TEST_CASE("queue: threads submit to queues of their own and to a shared one", "[queue][threads]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    constexpr int kThreads = 4, kEach = 100;
    enpu_hal_buffer* buffer = f.make_buffer(64 * kThreads * kEach);
    std::vector<enpu_hal_fence*> fences;
    std::vector<enpu_hal_queue*> queues;
    for (int t = 0; t < kThreads; ++t) {
        fences.push_back(f.make_fence(0));
        queues.push_back(t < 2 ? f.queue : f.make_queue());
    }
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            auto submission = with_header<enpu_hal_submission>(ENPU_HAL_TYPE_SUBMISSION);
            for (int i = 0; i < kEach; ++i) {
                const auto index = static_cast<uint64_t>(t * kEach + i);
                const auto command = Fixture::fill(buffer, 64 * index, 4, index, 4);
                const enpu_hal_point signal{fences[size_t(t)], uint64_t(i) + 1};
                submission.commands = &command;
                submission.command_count = 1;
                submission.signals = &signal;
                submission.signal_count = 1;
                if (f.hal->queue->submit(queues[size_t(t)], &submission, soon(), nullptr)) ++wrong;
            }
            const enpu_hal_point last{fences[size_t(t)], kEach};
            if (f.hal->fence->wait(f.device, &last, 1, 0, soon(), nullptr)) ++wrong;
        });
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
    const uint32_t* words = f.host<uint32_t>(buffer);
    for (uint32_t i = 0; i < kThreads * kEach; ++i) REQUIRE(words[16 * i] == i);
}

TEST_CASE("queue: work may wait for a point that comes later", "[queue][fence]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    NEEDS(f, ENPU_HAL_CAP_WAIT_EARLY);
    auto& status = f.status;
    enpu_hal_fence* gate = f.make_fence(0);
    enpu_hal_buffer* buffer = f.make_buffer(4);
    *f.host<uint32_t>(buffer) = 1;
    HAL_OK(f.submit({f.fill(buffer, 0, 4, 2, 4)}, {{gate, 5}}));
    HAL_FAILS(f.wait(f.fence, f.value, now_ns() + 20'000'000), ENPU_HAL_DEADLINE_EXCEEDED);
    CHECK(*f.host<uint32_t>(buffer) == 1);
    HAL_OK(f.hal->fence->signal(gate, 5, &status));
    HAL_OK(f.wait(f.fence, f.value));
    CHECK(*f.host<uint32_t>(buffer) == 2);
}

TEST_CASE("queue: one that is destroyed fails what it drops, and the device works on",
          "[queue][errors]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    NEEDS(f, ENPU_HAL_CAP_WAIT_EARLY);
    auto& status = f.status;
    enpu_hal_fence* gate = f.make_fence(0);
    enpu_hal_fence* done = f.make_fence(0);
    enpu_hal_queue* doomed = f.make_queue();
    enpu_hal_buffer* buffer = f.make_buffer(4);
    HAL_OK(f.submit_to(doomed, {{done, 1}}, {f.fill(buffer, 0, 4, 2, 4)}, {{gate, 1}}));
    f.drop_queue(doomed);
    HAL_FAILS(f.wait(done, 1), ENPU_HAL_ABORTED);
    f.run({f.fill(buffer, 0, 4, 3, 4)});
    CHECK(*f.host<uint32_t>(buffer) == 3);
}
