// SPDX-License-Identifier: MIT
// Everything at once, from several threads, against what a plain loop gives.
#include <algorithm>
#include <atomic>
#include <thread>

#include "fixture.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;

TEST_CASE("stress: threads allocate and free", "[stress][memory][threads]") {
    Fixture f;
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            auto desc = with_header<enpu_hal_buffer_desc>(ENPU_HAL_TYPE_BUFFER_DESC);
            for (uint64_t i = 0; i < 60; ++i) {
                desc.bytes = 1 + (i * 977 + uint64_t(t) * 131) % 20'000;
                desc.memory = i % 2;
                enpu_hal_buffer* buffer = nullptr;
                if (f.hal->memory->alloc(f.device, &desc, &buffer, nullptr) != ENPU_HAL_OK)
                    ++wrong;
                else
                    f.hal->memory->free(buffer);
            }
        });
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
}

TEST_CASE("stress: each thread with a queue of its own", "[stress][queue][threads]") {
    Fixture f;
    constexpr int kThreads = 4, kSteps = 60;
    std::vector<enpu_hal_queue*> queues;
    std::vector<enpu_hal_fence*> fences;
    std::vector<enpu_hal_buffer*> buffers;
    for (int t = 0; t < kThreads; ++t) {
        queues.push_back(f.make_queue());
        fences.push_back(f.make_fence(0));
        buffers.push_back(f.make_buffer(64 * (kSteps + 1)));
        *f.host<uint32_t>(buffers.back()) = uint32_t(t) + 100;
    }
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            auto submission = with_header<enpu_hal_submission>(ENPU_HAL_TYPE_SUBMISSION);
            for (uint64_t i = 1; i <= kSteps; ++i) {
                const auto command =
                    Fixture::copy(buffers[t], 64 * i, buffers[t], 64 * (i - 1), 64);
                const enpu_hal_point signal{fences[t], i};
                submission.commands = &command;
                submission.command_count = 1;
                submission.signals = &signal;
                submission.signal_count = 1;
                wrong += f.hal->queue->submit(queues[t], &submission, soon(), nullptr) != 0;
                if (i % 16 == 0)
                    wrong += f.hal->fence->wait(f.device, &signal, 1, 0, soon(), nullptr) != 0;
            }
            const enpu_hal_point last{fences[t], kSteps};
            wrong += f.hal->fence->wait(f.device, &last, 1, 0, soon(), nullptr) != 0;
        });
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
    for (size_t t = 0; t < kThreads; ++t)
        CHECK(f.host<uint32_t>(buffers[t])[16 * kSteps] == t + 100);
}

TEST_CASE("stress: random copies give what a loop gives", "[stress][copy]") {
    Fixture f;
    constexpr size_t kBytes = 1u << 16;
    auto& status = f.status;
    std::vector<uint8_t> mirror(kBytes);
    for (size_t i = 0; i < kBytes; ++i) mirror[i] = uint8_t(i * 31);
    auto* buffer = f.upload(mirror);
    uint32_t state = 1;
    const auto next = [&](uint32_t below) {
        state = state * 1664525u + 1013904223u;
        return (state >> 8) % below;
    };
    for (int round = 0; round < 300; ++round) {
        const uint64_t half = kBytes / 2, size = 1 + next(2000);
        const uint64_t from = next(uint32_t(half - size) / 64) * 64;
        const uint64_t to = half + next(uint32_t(half - size) / 64) * 64;
        const bool up = next(2);
        const uint64_t dst = up ? to : from, src = up ? from : to;
        HAL_OK(f.submit({f.copy(buffer, dst, buffer, src, size)}));
        std::copy_n(mirror.begin() + ptrdiff_t(src), size, mirror.begin() + ptrdiff_t(dst));
    }
    HAL_OK(f.wait(f.fence, f.value));
    CHECK(f.download<uint8_t>(buffer, kBytes) == mirror);
}

TEST_CASE("stress: several devices side by side", "[stress][device][threads]") {
    std::atomic<int> wrong{0};
    std::vector<std::unique_ptr<Fixture>> fixtures;
    for (int i = 0; i < 3; ++i) fixtures.push_back(std::make_unique<Fixture>());
    std::vector<std::pair<enpu_hal_buffer*, enpu_hal_buffer*>> pairs;
    for (auto& f : fixtures) pairs.emplace_back(f->make_buffer(4096), f->make_buffer(4096));
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
            Fixture& f = *fixtures[t];
            for (int i = 0; i < 30; ++i)
                wrong += f.submit({f.copy(pairs[t].second, 0, pairs[t].first, 0, 4096)}) != 0;
            wrong += f.wait(f.fence, f.value) != 0;
        });
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
}

TEST_CASE("stress: a fence goes as soon as its point is seen", "[stress][fence]") {
    Fixture f;
    auto& status = f.status;
    for (int i = 0; i < 200; ++i) {
        enpu_hal_fence* fence = nullptr;
        HAL_OK(f.hal->fence->create(f.device, 0, &fence, &status));
        HAL_OK(f.submit_to(f.queue, {{fence, 1}}, {}));
        uint64_t seen = 0;
        const uint64_t deadline = soon();
        while (seen < 1 && now_ns() < deadline) HAL_OK(f.hal->fence->query(fence, &seen, &status));
        REQUIRE(seen == 1);
        f.hal->fence->destroy(fence);
    }
}
