// SPDX-License-Identifier: MIT
// Fences, waits and submissions: order, deadlines, limits, and each wrong argument.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "fixture.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;

TEST_CASE("fence: begins where it is told, up to the largest values", "[fence]") {
    Fixture f;
    auto& status = f.status;
    for (uint64_t initial : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40}) {
        enpu_hal_fence* fence = f.make_fence(initial);
        uint64_t value = 99;
        HAL_OK(f.hal->fence->query(fence, &value, &status));
        CHECK(value == initial);
        HAL_OK(f.hal->fence->signal(fence, initial + 5, &status));
        HAL_OK(f.hal->fence->query(fence, &value, &status));
        CHECK(value == initial + 5);
    }
}

TEST_CASE("fence: point 0 is always reached", "[fence]") {
    Fixture f;
    auto& status = f.status;
    HAL_OK(f.wait(f.make_fence(0), 0, 0));
    enpu_hal_fence* done = f.make_fence(0);
    HAL_OK(f.submit_to(f.queue, {{done, 1}}, {}, {{f.fence, 0}}));
    HAL_OK(f.wait(done, 1));
}

TEST_CASE("fence: never goes back", "[fence][errors]") {
    Fixture f;
    auto& status = f.status;
    enpu_hal_fence* fence = f.make_fence(7);
    HAL_FAILS(f.hal->fence->signal(fence, 7, &status), ENPU_HAL_INVALID_ARGUMENT);
    HAL_FAILS(f.hal->fence->signal(fence, 3, &status), ENPU_HAL_INVALID_ARGUMENT);
    uint64_t value = 0;
    HAL_OK(f.hal->fence->query(fence, &value, &status));
    CHECK(value == 7);
}

TEST_CASE("fence: submissions skip points", "[fence]") {
    Fixture f;
    auto& status = f.status;
    enpu_hal_fence* fence = f.make_fence(0);
    HAL_OK(f.submit_to(f.queue, {{fence, 10}}, {}));
    HAL_OK(f.submit_to(f.queue, {{fence, 25}}, {}));
    HAL_OK(f.wait(fence, 3));
    HAL_OK(f.wait(fence, 24));
    uint64_t value = 0;
    HAL_OK(f.wait(fence, 25));
    HAL_OK(f.hal->fence->query(fence, &value, &status));
    CHECK(value == 25);
}

TEST_CASE("fence: a submission signals several", "[fence]") {
    Fixture f;
    auto& status = f.status;
    std::vector<enpu_hal_point> signals;
    for (uint64_t i = 1; i <= 8; ++i) signals.push_back({f.make_fence(0), i});
    HAL_OK(f.submit_to(f.queue, signals, {}));
    HAL_OK(f.hal->fence->wait(f.device, signals.data(), 8, 0, soon(), &status));
}

TEST_CASE("fence: a submission waits for several", "[fence]") {
    Fixture f;
    auto& status = f.status;
    std::vector<enpu_hal_point> waits;
    auto* a = f.make_buffer(4096);
    auto* b = f.make_buffer(4096);
    for (int i = 0; i < 4; ++i) {
        waits.push_back({f.make_fence(0), 1});
        HAL_OK(f.submit_to(f.make_queue(), {waits.back()},
                           {f.copy(b, 1024 * uint64_t(i), a, 0, 1024)}));
    }
    HAL_OK(f.submit({}, waits));
    HAL_OK(f.wait(f.fence, f.value));
    HAL_OK(f.hal->fence->wait(f.device, waits.data(), 4, 0, 0, &status));
}

TEST_CASE("fence: as many points as the device takes, and one more", "[fence][limits]") {
    Fixture f;
    auto& status = f.status;
    std::vector<enpu_hal_point> points;
    for (uint32_t i = 0; i < f.info.max_points; ++i) points.push_back({f.make_fence(0), 1});
    HAL_OK(f.submit_to(f.queue, points, {}));
    HAL_OK(f.hal->fence->wait(f.device, points.data(), f.info.max_points, 0, soon(), &status));
    HAL_OK(f.submit({}, points));
    HAL_OK(f.wait(f.fence, f.value));
    if (f.info.max_points > 4096) return;
    points.push_back({f.make_fence(0), 1});
    const uint32_t code = f.submit({}, points);
    INFO(status.message);
    CHECK(code == ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("fence: a submission that signals nothing still runs", "[fence][queue]") {
    Fixture f;
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    auto* b = f.make_buffer(64);
    std::memset(f.host<char>(a), 9, 64);
    HAL_OK(f.submit_to(f.queue, {}, {f.copy(b, 0, a, 0, 64)}));
    f.run({});
    CHECK(f.host<char>(b)[63] == 9);
}

TEST_CASE("fence: a list of points that is not there is refused", "[fence][errors]") {
    Fixture f;
    auto& status = f.status;
    HAL_FAILS(f.hal->fence->wait(f.device, nullptr, 1, 0, soon(), &status),
              ENPU_HAL_INVALID_ARGUMENT);
    const enpu_hal_point none{nullptr, 1};
    HAL_FAILS(f.hal->fence->wait(f.device, &none, 1, 0, soon(), &status),
              ENPU_HAL_INVALID_ARGUMENT);
    HAL_FAILS(f.submit_to(f.queue, {none}, {}), ENPU_HAL_INVALID_ARGUMENT);
    HAL_FAILS(f.submit_to(f.queue, {}, {}, {none}), ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("fence: a deadline in the past only looks", "[fence][timeout]") {
    Fixture f;
    auto& status = f.status;
    enpu_hal_fence* fence = f.make_fence(1);
    HAL_OK(f.wait(fence, 1, 1));
    const uint64_t start = now_ns();
    HAL_FAILS(f.wait(fence, 2, 1), ENPU_HAL_DEADLINE_EXCEEDED);
    CHECK(now_ns() - start < 2'000'000'000);
}

TEST_CASE("fence: the largest deadline waits until it is reached", "[fence][timeout]") {
    Fixture f;
    auto& status = f.status;
    enpu_hal_fence* fence = f.make_fence(0);
    std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        f.hal->fence->signal(fence, 1, nullptr);
    });
    const uint32_t code = f.wait(fence, 1, UINT64_MAX);
    later.join();
    CHECK(code == ENPU_HAL_OK);
    HAL_OK(f.wait(fence, 1, 0));
}

TEST_CASE("fence: a deadline is kept by a wait for any of several", "[fence][timeout]") {
    Fixture f;
    auto& status = f.status;
    const enpu_hal_point points[] = {{f.make_fence(0), 1}, {f.make_fence(0), 1}};
    const uint64_t start = now_ns();
    HAL_FAILS(f.hal->fence->wait(f.device, points, 2, 1, start + 40'000'000, &status),
              ENPU_HAL_DEADLINE_EXCEEDED);
    CHECK(now_ns() - start >= 40'000'000);
}

TEST_CASE("fence: any of several wakes for whichever comes", "[fence][threads]") {
    Fixture f;
    auto& status = f.status;
    for (int which = 0; which < 2; ++which) {
        const enpu_hal_point points[] = {{f.make_fence(0), 1}, {f.make_fence(0), 1}};
        std::thread later([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            f.hal->fence->signal(points[which].fence, 1, nullptr);
        });
        const uint32_t code = f.hal->fence->wait(f.device, points, 2, 1, soon(), &status);
        later.join();
        CHECK(code == ENPU_HAL_OK);
    }
}

TEST_CASE("fence: sixteen threads wait for one point", "[fence][threads]") {
    Fixture f;
    auto& status = f.status;
    enpu_hal_fence* fence = f.make_fence(0);
    std::atomic<int> woken{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; ++i)
        threads.emplace_back([&] {
            const enpu_hal_point point{fence, 1};
            if (f.hal->fence->wait(f.device, &point, 1, 0, soon(), nullptr) == ENPU_HAL_OK) ++woken;
        });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    HAL_OK(f.hal->fence->signal(fence, 1, &status));
    for (auto& thread : threads) thread.join();
    CHECK(woken == 16);
}

TEST_CASE("fence: threads look at a value that only grows", "[fence][threads]") {
    Fixture f;
    auto& status = f.status;
    enpu_hal_fence* fence = f.make_fence(0);
    std::atomic<bool> stop{false}, fell{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            uint64_t last = 0, value = 0;
            while (!stop) {
                if (f.hal->fence->query(fence, &value, nullptr) != ENPU_HAL_OK || value < last)
                    fell = true;
                last = value;
            }
        });
    for (uint64_t i = 1; i <= 300; ++i) HAL_OK(f.submit_to(f.queue, {{fence, i}}, {}));
    HAL_OK(f.wait(fence, 300));
    stop = true;
    for (auto& thread : threads) thread.join();
    CHECK_FALSE(fell);
}

TEST_CASE("fence: created and destroyed by many threads", "[fence][threads][stress]") {
    Fixture f;
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (uint64_t i = 1; i <= 50; ++i) {
                enpu_hal_fence* fence = nullptr;
                if (f.hal->fence->create(f.device, i, &fence, nullptr)) {
                    ++wrong;
                    continue;
                }
                const enpu_hal_point point{fence, i};
                wrong += f.hal->fence->wait(f.device, &point, 1, 0, 0, nullptr) != ENPU_HAL_OK;
                f.hal->fence->destroy(fence);
            }
        });
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
}

TEST_CASE("fence: shared by a descriptor", "[fence][share]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FENCE_SHARE);
    auto& status = f.status;
    enpu_hal_fence* fence = f.make_fence(0);
    enpu_hal_fence* twin = nullptr;
    int fd = -1;
    HAL_OK(f.hal->fence->export_fd(fence, &fd, &status));
    HAL_OK(f.hal->fence->import_fd(f.device, fd, &twin, &status));
    ::close(fd);
    HAL_OK(f.submit_to(f.queue, {{fence, 3}}, {}));
    HAL_OK(f.wait(twin, 3));
    f.hal->fence->destroy(twin);
}

TEST_CASE("fence: a descriptor that is none is refused", "[fence][share][errors]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FENCE_SHARE);
    auto& status = f.status;
    enpu_hal_fence* fence = nullptr;
    HAL_FAILS(f.hal->fence->import_fd(f.device, -1, &fence, &status), ENPU_HAL_INVALID_ARGUMENT);
    CHECK(fence == nullptr);
}

// ------------------------------------------------------------------------------------- queues

TEST_CASE("queue: a submission of another type or size is refused", "[queue][errors]") {
    Fixture f;
    auto& status = f.status;
    HAL_FAILS(f.hal->queue->submit(f.queue, nullptr, soon(), &status), ENPU_HAL_INVALID_ARGUMENT);
    auto submission = with_header<enpu_hal_submission>(ENPU_HAL_TYPE_QUEUE_DESC);
    HAL_FAILS(f.hal->queue->submit(f.queue, &submission, soon(), &status),
              ENPU_HAL_INVALID_ARGUMENT);
    submission = with_header<enpu_hal_submission>(ENPU_HAL_TYPE_SUBMISSION);
    submission.header.size = 8;
    HAL_FAILS(f.hal->queue->submit(f.queue, &submission, soon(), &status),
              ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("queue: commands that are not there are refused", "[queue][errors]") {
    Fixture f;
    auto& status = f.status;
    auto submission = with_header<enpu_hal_submission>(ENPU_HAL_TYPE_SUBMISSION);
    submission.command_count = 3;
    HAL_FAILS(f.hal->queue->submit(f.queue, &submission, soon(), &status),
              ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("queue: a description of another type or size is refused", "[queue][errors]") {
    Fixture f;
    auto& status = f.status;
    enpu_hal_queue* queue = nullptr;
    HAL_FAILS(f.hal->queue->create(f.device, nullptr, &queue, &status), ENPU_HAL_INVALID_ARGUMENT);
    auto desc = with_header<enpu_hal_queue_desc>(ENPU_HAL_TYPE_BUFFER_DESC);
    HAL_FAILS(f.hal->queue->create(f.device, &desc, &queue, &status), ENPU_HAL_INVALID_ARGUMENT);
    desc = with_header<enpu_hal_queue_desc>(ENPU_HAL_TYPE_QUEUE_DESC);
    desc.header.size = 8;
    HAL_FAILS(f.hal->queue->create(f.device, &desc, &queue, &status), ENPU_HAL_INVALID_ARGUMENT);
    CHECK(queue == nullptr);
}

TEST_CASE("queue: priorities are -1, 0 and 1", "[queue][priority]") {
    Fixture f;
    auto& status = f.status;
    auto desc = with_header<enpu_hal_queue_desc>(ENPU_HAL_TYPE_QUEUE_DESC);
    for (int32_t priority : {-1, 0, 1}) {
        desc.priority = priority;
        enpu_hal_queue* queue = nullptr;
        HAL_OK(f.hal->queue->create(f.device, &desc, &queue, &status));
        enpu_hal_fence* fence = f.make_fence(0);
        HAL_OK(f.submit_to(queue, {{fence, 1}}, {}));
        HAL_OK(f.wait(fence, 1));
        f.hal->queue->destroy(queue);
    }
    enpu_hal_queue* queue = nullptr;
    for (int32_t priority : {-2, 2, INT32_MAX, INT32_MIN}) {
        desc.priority = priority;
        HAL_FAILS(f.hal->queue->create(f.device, &desc, &queue, &status),
                  ENPU_HAL_INVALID_ARGUMENT);
    }
}

TEST_CASE("queue: many at once", "[queue][stress]") {
    Fixture f;
    auto& status = f.status;
    std::vector<enpu_hal_point> points;
    for (int i = 0; i < 16; ++i) {
        points.push_back({f.make_fence(0), 1});
        HAL_OK(f.submit_to(f.make_queue(), {points.back()}, {}));
    }
    HAL_OK(f.hal->fence->wait(f.device, points.data(), 16, 0, soon(), &status));
}

TEST_CASE("queue: one is made and destroyed again and again", "[queue][stress]") {
    Fixture f;
    auto& status = f.status;
    auto* a = f.make_buffer(4096);
    auto* b = f.make_buffer(4096);
    for (uint64_t i = 1; i <= 20; ++i) {
        enpu_hal_queue* queue = f.make_queue();
        enpu_hal_fence* fence = f.make_fence(0);
        HAL_OK(f.submit_to(queue, {{fence, 1}}, {f.copy(b, 0, a, 0, 4096)}));
        HAL_OK(f.wait(fence, 1));
        f.drop_queue(queue);
    }
}

TEST_CASE("queue: destroyed with work behind it, every fence is settled", "[queue][errors]") {
    Fixture f;
    auto& status = f.status;
    auto* a = f.make_buffer(1u << 20);
    auto* b = f.make_buffer(1u << 20);
    enpu_hal_queue* doomed = f.make_queue();
    enpu_hal_fence* fence = f.make_fence(0);
    for (uint64_t i = 1; i <= 20; ++i)
        HAL_OK(f.submit_to(doomed, {{fence, i}}, {f.copy(b, 0, a, 0, 1u << 20)}));
    f.drop_queue(doomed);
    const uint32_t code = f.wait(fence, 20, now_ns() + 10'000'000'000);
    CHECK(code != ENPU_HAL_DEADLINE_EXCEEDED);
    f.run({f.copy(b, 0, a, 0, 64)});
}

TEST_CASE("queue: what a submission points to may change after the call", "[queue]") {
    Fixture f;
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    auto* b = f.make_buffer(64);
    std::memset(f.host<char>(a), 6, 64);
    for (int i = 0; i < 50; ++i) {
        auto command = std::make_unique<enpu_hal_command>(f.copy(b, 0, a, 0, 64));
        auto signal = std::make_unique<enpu_hal_point>(enpu_hal_point{f.fence, ++f.value});
        auto submission = with_header<enpu_hal_submission>(ENPU_HAL_TYPE_SUBMISSION);
        submission.commands = command.get();
        submission.command_count = 1;
        submission.signals = signal.get();
        submission.signal_count = 1;
        HAL_OK(f.hal->queue->submit(f.queue, &submission, soon(), &status));
        std::memset(command.get(), 0xff, sizeof(*command));
        std::memset(signal.get(), 0xff, sizeof(*signal));
    }
    HAL_OK(f.wait(f.fence, f.value));
    CHECK(f.host<char>(b)[63] == 6);
}

TEST_CASE("queue: a ring of four queues passes a token", "[queue][fence]") {
    Fixture f;
    auto& status = f.status;
    constexpr uint64_t kRounds = 10;
    std::vector<enpu_hal_queue*> queues;
    std::vector<enpu_hal_fence*> fences;
    std::vector<enpu_hal_buffer*> buffers;
    for (int i = 0; i < 4; ++i) {
        queues.push_back(f.make_queue());
        fences.push_back(f.make_fence(0));
        buffers.push_back(f.make_buffer(64));
    }
    *f.host<uint32_t>(buffers[3]) = 77;
    for (uint64_t r = 1; r <= kRounds; ++r)
        for (size_t i = 0; i < 4; ++i) {
            const size_t before = (i + 3) % 4;
            const uint64_t point = i == 0 ? r - 1 : r;
            HAL_OK(f.submit_to(queues[i], {{fences[i], r}},
                               {f.copy(buffers[i], 0, buffers[before], 0, 64)},
                               {{fences[before], point}}));
        }
    HAL_OK(f.wait(fences[3], kRounds));
    CHECK(*f.host<uint32_t>(buffers[0]) == 77);
}

TEST_CASE("queue: a host call sees what came before it, and what follows waits for it",
          "[queue][host-call]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_HOST_CALL);
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    auto* b = f.make_buffer(64);
    auto* c = f.make_buffer(64);
    std::memset(f.host<char>(a), 1, 64);
    struct State {
        char* bytes;
        std::atomic<int> seen{0};
    } state{f.host<char>(b), {}};
    enpu_hal_command call{};
    call.kind = ENPU_HAL_COMMAND_HOST_CALL;
    call.u.host_call = {[](void* context) {
                            auto& s = *static_cast<State*>(context);
                            std::this_thread::sleep_for(std::chrono::milliseconds(20));
                            s.seen = s.bytes[63];
                            std::memset(s.bytes, 2, 64);
                        },
                        &state};
    HAL_OK(f.submit({f.copy(b, 0, a, 0, 64), call}));
    HAL_OK(f.submit({f.copy(c, 0, b, 0, 64)}));
    HAL_OK(f.wait(f.fence, f.value));
    CHECK(state.seen == 1);
    CHECK(f.host<char>(c)[63] == 2);
}

TEST_CASE("queue: a hundred host calls come once each, in order", "[queue][host-call]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_HOST_CALL);
    auto& status = f.status;
    struct Slot {
        std::vector<int>* order;
        int index;
    };
    std::vector<int> order;
    std::vector<Slot> slots;
    for (int i = 0; i < 100; ++i) slots.push_back({&order, i});
    for (Slot& slot : slots) {
        enpu_hal_command call{};
        call.kind = ENPU_HAL_COMMAND_HOST_CALL;
        call.u.host_call = {[](void* context) {
                                auto* s = static_cast<Slot*>(context);
                                s->order->push_back(s->index);
                            },
                            &slot};
        HAL_OK(f.submit({call}));
    }
    HAL_OK(f.wait(f.fence, f.value));
    REQUIRE(order.size() == 100);
    CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("queue: other queues run while one is in a host call", "[queue][host-call]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_HOST_CALL);
    auto& status = f.status;
    enpu_hal_queue* other = f.make_queue();
    enpu_hal_fence* done = f.make_fence(0);
    std::atomic<bool> release{false};
    enpu_hal_command call{};
    call.kind = ENPU_HAL_COMMAND_HOST_CALL;
    call.u.host_call = {[](void* context) {
                            auto& flag = *static_cast<std::atomic<bool>*>(context);
                            for (int i = 0; i < 5000 && !flag; ++i)
                                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                        },
                        &release};
    HAL_OK(f.submit({call}));
    HAL_OK(f.submit_to(other, {{done, 1}}, {}));
    const uint32_t code = f.wait(done, 1);
    HAL_FAILS(f.wait(f.fence, f.value, 0), ENPU_HAL_DEADLINE_EXCEEDED);
    release = true;
    CHECK(code == ENPU_HAL_OK);
    HAL_OK(f.wait(f.fence, f.value));
}

TEST_CASE("queue: a host call without a function is refused", "[queue][host-call][errors]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_HOST_CALL);
    auto& status = f.status;
    enpu_hal_command call{};
    call.kind = ENPU_HAL_COMMAND_HOST_CALL;
    HAL_FAILS(f.submit({call}), ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("queue: an early wait holds its queue alone, and is ended by the host",
          "[queue][wait-early]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_WAIT_EARLY);
    auto& status = f.status;
    enpu_hal_queue* other = f.make_queue();
    enpu_hal_fence* gate = f.make_fence(0);
    enpu_hal_fence* done = f.make_fence(0);
    auto* a = f.make_buffer(64);
    auto* b = f.make_buffer(64);
    HAL_OK(f.submit_to(other, {{done, 1}}, {f.copy(b, 0, a, 0, 64)}, {{gate, 1}}));
    HAL_OK(f.submit_to(other, {{done, 2}}, {}));
    f.run({});
    HAL_FAILS(f.wait(done, 1, 0), ENPU_HAL_DEADLINE_EXCEEDED);
    HAL_OK(f.hal->fence->signal(gate, 1, &status));
    HAL_OK(f.wait(done, 2));
}

TEST_CASE("queue: two queues wait early for each other's parts", "[queue][wait-early]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_WAIT_EARLY);
    auto& status = f.status;
    enpu_hal_queue* other = f.make_queue();
    enpu_hal_fence* mine = f.make_fence(0);
    enpu_hal_fence* theirs = f.make_fence(0);
    HAL_OK(f.submit_to(other, {{theirs, 1}}, {}, {{mine, 1}}));
    HAL_OK(f.submit_to(f.queue, {{mine, 1}}, {}));
    HAL_OK(f.submit_to(f.queue, {{mine, 2}}, {}, {{theirs, 1}}));
    HAL_OK(f.wait(mine, 2));
}

TEST_CASE("queue: an early wait that nobody ends fails by the queue's timeout",
          "[queue][wait-early][timeout]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_WAIT_EARLY);
    auto& status = f.status;
    auto desc = with_header<enpu_hal_queue_desc>(ENPU_HAL_TYPE_QUEUE_DESC);
    desc.timeout_ns = 200'000'000;
    enpu_hal_queue* queue = nullptr;
    HAL_OK(f.hal->queue->create(f.device, &desc, &queue, &status));
    enpu_hal_fence* gate = f.make_fence(0);
    enpu_hal_fence* done = f.make_fence(0);
    HAL_OK(f.submit_to(queue, {{done, 1}}, {}, {{gate, 1}}, 55));
    HAL_FAILS(f.wait(done, 1, now_ns() + 10'000'000'000), ENPU_HAL_WORK_TIMEOUT);
    CHECK(status.op_id == 55);
    f.hal->queue->destroy(queue);
}
