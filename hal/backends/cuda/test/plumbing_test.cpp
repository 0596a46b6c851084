// SPDX-License-Identifier: MIT
// What the conformance suite cannot provoke on a real GPU: errors, hangs and exhaustion, against
// the double of the driver library.
#include <algorithm>
#include <thread>

#include "../../../cts/fixture.h"
#include "../driver_api.h"
#include "double_driver.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;
using namespace enpu::hal::cuda;

namespace {

bool contains(const char* text, const char* part) {
    return std::strstr(text, part) != nullptr;
}

enpu_hal_queue* queue_with_timeout(Fixture& f, uint64_t timeout_ns) {
    auto& status = f.status;
    auto desc = with_header<enpu_hal_queue_desc>(ENPU_HAL_TYPE_QUEUE_DESC);
    desc.timeout_ns = timeout_ns;
    enpu_hal_queue* made = nullptr;
    HAL_OK(f.hal->queue->create(f.device, &desc, &made, &status));
    return made;
}

}  // namespace

TEST_CASE("cuda: another queue's work on the GPU is waited for there, not by the host") {
    Double driver;
    Fixture f;
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    auto* b = f.make_buffer(64);
    auto* other = f.make_queue();
    auto* done = f.make_fence(0);
    driver.delay_us(30'000);
    const uint64_t before = driver.calls("cuStreamWaitEvent");
    const uint64_t start = now_ns();
    HAL_OK(f.submit({f.fill(a, 0, 64, 7, 1)}));
    HAL_OK(f.submit_to(other, {{done, 1}}, {f.copy(b, 0, a, 0, 64)}, {{f.fence, f.value}}));
    CHECK(driver.calls("cuStreamWaitEvent") == before + 1);
    CHECK(now_ns() - start < 25'000'000);  // both were taken while the first still waited
    HAL_OK(f.wait(done, 1));
    CHECK(f.host<char>(b)[63] == 7);
}

TEST_CASE("cuda: work that the driver refuses fails alone, after what it already gave") {
    Double driver;
    Fixture f;
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    auto* b = f.make_buffer(64);
    auto* failing = f.make_queue();
    auto* fence = f.make_fence(0);
    std::memset(f.host<char>(a), 5, 64);
    driver.delay_us(20'000);
    driver.fail("cuMemcpyAsync", 1, 1, kLaunchOutOfResources);
    HAL_OK(f.submit_to(failing, {{fence, 1}}, {f.copy(b, 0, a, 0, 32), f.copy(b, 32, a, 32, 32)},
                       {}, 71));
    HAL_FAILS(f.wait(fence, 1), ENPU_HAL_WORK_FAILED);
    CHECK(status.op_id == 71);
    CHECK(status.device_code == kLaunchOutOfResources);
    // The first copy used the buffers: the failure was not told before it had ended.
    CHECK(f.host<char>(b)[31] == 5);
    auto* later = f.make_fence(0);
    HAL_OK(f.submit_to(failing, {{later, 1}}, {f.copy(b, 0, a, 0, 32)}, {}, 72));
    HAL_FAILS(f.wait(later, 1), ENPU_HAL_ABORTED);
    CHECK(status.op_id == 71);  // the one that is to blame
    driver.delay_us(0);
    f.run({f.fill(b, 0, 64, 3, 1)});
    CHECK(f.host<char>(b)[63] == 3);
    HAL_OK(f.hal->device->check(f.device, &status));
}

TEST_CASE("cuda: a sticky error loses the device, and opening it again works") {
    Double driver;
    {
        Fixture f;
        auto& status = f.status;
        auto* a = f.make_buffer(64);
        auto* other = f.make_queue();
        auto* second = f.make_fence(0);
        driver.break_next(kIllegalAddress);
        HAL_OK(f.submit({f.fill(a, 0, 64, 1, 1)}));
        HAL_FAILS(f.wait(f.fence, f.value), ENPU_HAL_DEVICE_LOST);
        CHECK(status.device_code == kIllegalAddress);
        CHECK(contains(status.message, "CUDA_ERROR_ILLEGAL_ADDRESS"));
        HAL_FAILS(f.hal->device->check(f.device, &status), ENPU_HAL_DEVICE_LOST);
        CHECK(contains(status.message, "open it again"));
        HAL_FAILS(f.submit_to(other, {{second, 1}}, {f.fill(a, 0, 64, 1, 1)}),
                  ENPU_HAL_DEVICE_LOST);
        auto desc = with_header<enpu_hal_buffer_desc>(ENPU_HAL_TYPE_BUFFER_DESC);
        desc.bytes = 64;
        enpu_hal_buffer* buffer = nullptr;
        HAL_FAILS(f.hal->memory->alloc(f.device, &desc, &buffer, &status), ENPU_HAL_DEVICE_LOST);
    }
    Fixture again;
    auto& status = again.status;
    HAL_OK(again.hal->device->check(again.device, &status));
    auto* a = again.make_buffer(64);
    again.run({again.fill(a, 0, 64, 9, 1)});
    CHECK(again.host<char>(a)[0] == 9);
}

TEST_CASE("cuda: work that hangs is told within the queue's time, and nothing waits for it") {
    Double driver;
    {
        Fixture f;
        auto& status = f.status;
        auto* a = f.make_buffer(64);
        auto* hanging = queue_with_timeout(f, 200'000'000);
        auto* first = f.make_fence(0);
        auto* second = f.make_fence(0);
        driver.hang(1);
        const uint64_t start = now_ns();
        HAL_OK(f.submit_to(hanging, {{first, 1}}, {f.fill(a, 0, 64, 1, 1)}, {}, 31));
        HAL_OK(f.submit_to(f.queue, {{second, 1}}, {f.fill(a, 0, 64, 1, 1)}, {}, 32));
        HAL_FAILS(f.wait(first, 1, start + 50'000'000), ENPU_HAL_DEADLINE_EXCEEDED);
        HAL_FAILS(f.wait(first, 1), ENPU_HAL_WORK_TIMEOUT);
        CHECK(status.op_id == 31);
        CHECK(now_ns() - start < 5'000'000'000);
        HAL_FAILS(f.wait(second, 1), ENPU_HAL_DEVICE_LOST);
        f.hal->queue->destroy(hanging);
    }
    driver.hang(0);
    Fixture again;
    auto* a = again.make_buffer(64);
    again.run({again.fill(a, 0, 64, 9, 1)});
    CHECK(again.host<char>(a)[0] == 9);
}

TEST_CASE("cuda: a queue that is destroyed ends what the GPU has and drops the rest") {
    Double driver;
    Fixture f;
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    auto* gate = f.make_fence(0);
    auto* ran = f.make_fence(0);
    auto* dropped = f.make_fence(0);
    auto* doomed = f.make_queue();
    driver.delay_us(20'000);
    HAL_OK(f.submit_to(doomed, {{ran, 1}}, {f.fill(a, 0, 64, 6, 1)}));
    HAL_OK(f.submit_to(doomed, {{dropped, 1}}, {f.fill(a, 0, 64, 1, 1)}, {{gate, 1}}));
    f.drop_queue(doomed);
    HAL_OK(f.wait(ran, 1, 0));
    HAL_FAILS(f.wait(dropped, 1, 0), ENPU_HAL_ABORTED);
    CHECK(f.host<char>(a)[63] == 6);
}

TEST_CASE("cuda: a wait on the host that never ends fails with the queue's time") {
    Double driver;
    Fixture f;
    auto& status = f.status;
    auto* gate = f.make_fence(0);
    auto* done = f.make_fence(0);
    auto* queue = queue_with_timeout(f, 100'000'000);
    HAL_OK(f.submit_to(queue, {{done, 1}}, {}, {{gate, 1}}, 5));
    HAL_FAILS(f.wait(done, 1), ENPU_HAL_WORK_TIMEOUT);
    CHECK(status.op_id == 5);
    HAL_OK(f.hal->device->check(f.device, &status));
    f.hal->queue->destroy(queue);
}

TEST_CASE("cuda: a full pool is trimmed before memory is refused") {
    Double driver;
    Fixture f;
    auto& status = f.status;
    auto desc = with_header<enpu_hal_buffer_desc>(ENPU_HAL_TYPE_BUFFER_DESC);
    desc.bytes = 4096;
    enpu_hal_buffer* buffer = nullptr;
    const uint64_t trims = driver.calls("cuMemPoolTrimTo");
    driver.fail("cuMemAllocFromPoolAsync", 0, 1, kOutOfMemory);
    HAL_OK(f.hal->memory->alloc(f.device, &desc, &buffer, &status));
    CHECK(driver.calls("cuMemPoolTrimTo") == trims + 1);
    f.hal->memory->free(buffer);
    driver.fail("cuMemAllocFromPoolAsync", 0, 2, kOutOfMemory);
    HAL_FAILS(f.hal->memory->alloc(f.device, &desc, &buffer, &status), ENPU_HAL_RESOURCE_EXHAUSTED);
    CHECK(status.device_code == kOutOfMemory);
    driver.fail("cuMemHostAlloc", 0, 1, kOutOfMemory);
    desc.memory = ENPU_HAL_MEMORY_HOST;
    HAL_FAILS(f.hal->memory->alloc(f.device, &desc, &buffer, &status), ENPU_HAL_RESOURCE_EXHAUSTED);
}

TEST_CASE("cuda: what cannot be made leaves nothing behind") {
    Double driver;
    { Fixture warm; }  // the context and its stream stay
    const auto before = driver.objects();
    {
        Fixture f;
        auto& status = f.status;
        auto desc = with_header<enpu_hal_queue_desc>(ENPU_HAL_TYPE_QUEUE_DESC);
        enpu_hal_queue* queue = nullptr;
        driver.fail("cuEventCreate", 7, 1, kOutOfMemory);
        HAL_FAILS(f.hal->queue->create(f.device, &desc, &queue, &status),
                  ENPU_HAL_RESOURCE_EXHAUSTED);
        auto* a = f.make_buffer(64);
        const enpu_hal_command fills[] = {f.fill(a, 0, 64, 1, 1), f.fill(a, 0, 64, 2, 1)};
        enpu_hal_graph* graph = nullptr;
        for (const char* function : {"cuStreamEndCapture", "cuGraphInstantiateWithFlags",
                                     "cuMemsetD8Async", "cuStreamBeginCapture"}) {
            INFO(function);
            driver.fail(function, 0, 1, kOutOfMemory);
            HAL_FAILS(f.hal->graph->create(f.device, fills, 2, &graph, &status),
                      ENPU_HAL_RESOURCE_EXHAUSTED);
        }
        const auto counters = f.counters();
        CHECK(counters.live_queues == 1);
        CHECK(counters.live_graphs == 0);
        CHECK(counters.live_buffers == 1);
    }
    const auto after = driver.objects();
    CHECK(after.contexts == before.contexts);
    CHECK(after.streams == before.streams);
    CHECK(after.events == before.events);
    CHECK(after.graphs == before.graphs);
    CHECK(after.graph_execs == before.graph_execs);
    CHECK(after.local == before.local);
    CHECK(after.host == before.host);
    CHECK(after.registered == before.registered);
}

TEST_CASE("cuda: a graph takes an update in place, or is made anew") {
    Double driver;
    Fixture f;
    auto& status = f.status;
    auto* a = f.make_buffer(512 * 4);
    std::vector<enpu_hal_command> commands;
    for (uint64_t i = 0; i < 512; ++i) commands.push_back(f.fill(a, 4 * i, 4, i, 4));
    enpu_hal_graph* graph = nullptr;
    HAL_OK(f.hal->graph->create(f.device, commands.data(), 512, &graph, &status));
    const auto launch = [&] {
        auto submission = with_header<enpu_hal_submission>(ENPU_HAL_TYPE_SUBMISSION);
        const enpu_hal_point signal{f.fence, ++f.value};
        submission.signals = &signal;
        submission.signal_count = 1;
        HAL_OK(f.hal->graph->launch(f.queue, graph, &submission, soon(), &status));
        HAL_OK(f.wait(f.fence, f.value));
    };
    launch();
    CHECK(f.host<uint32_t>(a)[511] == 511);
    const uint64_t updates = driver.calls("cuGraphExecUpdate");
    const uint64_t made = driver.calls("cuGraphInstantiateWithFlags");
    for (uint64_t i = 300; i < 310; ++i) {
        const auto changed = f.fill(a, 4 * i, 4, 7 * i, 4);
        HAL_OK(f.hal->graph->update(graph, static_cast<uint32_t>(i), &changed, &status));
    }
    launch();
    CHECK(f.host<uint32_t>(a)[305] == 7 * 305);
    CHECK(driver.calls("cuGraphExecUpdate") == updates + 1);  // one segment, once
    CHECK(driver.calls("cuGraphInstantiateWithFlags") == made);
    driver.fail("cuGraphExecUpdate", 0, 1, kGraphExecUpdateFailure);
    const auto changed = f.fill(a, 0, 4, 99, 4);
    HAL_OK(f.hal->graph->update(graph, 0, &changed, &status));
    launch();
    CHECK(f.host<uint32_t>(a)[0] == 99);
    CHECK(driver.calls("cuGraphInstantiateWithFlags") == made + 1);
    f.hal->graph->destroy(graph);
}

TEST_CASE("cuda: launches of a graph follow each other without the host") {
    Double driver;
    Fixture f;
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    const enpu_hal_command fill = f.fill(a, 0, 64, 4, 1);
    enpu_hal_graph* graph = nullptr;
    HAL_OK(f.hal->graph->create(f.device, &fill, 1, &graph, &status));
    driver.hang(1);
    const uint64_t before = driver.calls("cuGraphLaunch");
    for (int i = 0; i < 3; ++i) {
        auto submission = with_header<enpu_hal_submission>(ENPU_HAL_TYPE_SUBMISSION);
        const enpu_hal_point signal{f.fence, ++f.value};
        submission.signals = &signal;
        submission.signal_count = 1;
        HAL_OK(f.hal->graph->launch(f.queue, graph, &submission, soon(), &status));
    }
    CHECK(driver.calls("cuGraphLaunch") == before + 3);
    driver.hang(0);
    HAL_OK(f.wait(f.fence, f.value));
    CHECK(f.host<char>(a)[63] == 4);
    f.hal->graph->destroy(graph);
}

TEST_CASE("cuda: fills of every pattern at every address") {
    Double driver;
    Fixture f;
    auto* a = f.make_buffer(128);
    constexpr uint64_t kPattern = 0x1122334455667788;
    for (uint32_t size : {1u, 2u, 4u, 8u})
        for (uint64_t offset = 0; offset < 9; ++offset) {
            f.run({f.fill(a, 0, 128, 0, 1), f.fill(a, offset, 8 * size, kPattern, size)});
            const auto* bytes = f.host<unsigned char>(a);
            for (uint64_t i = 0; i < 128; ++i) {
                const bool in = i >= offset && i < offset + 8 * size;
                const auto wanted =
                    static_cast<unsigned char>(in ? kPattern >> (8 * ((i - offset) % size)) : 0);
                INFO("size " << size << ", offset " << offset << ", byte " << i);
                REQUIRE(bytes[i] == wanted);
            }
        }
}

TEST_CASE("cuda: many commands stay below what a stream takes without blocking") {
    Double driver;
    Fixture f;
    auto& status = f.status;
    auto* a = f.make_buffer(4096);
    std::vector<enpu_hal_command> commands(200, f.fill(a, 0, 64, 1, 1));
    driver.delay_us(100);
    const uint64_t before = driver.calls("cuMemsetD8Async");
    for (int i = 0; i < 20; ++i) HAL_OK(f.submit(commands));
    CHECK(driver.calls("cuMemsetD8Async") - before <= 600);
    HAL_OK(f.wait(f.fence, f.value));
    CHECK(driver.calls("cuMemsetD8Async") - before == 4000);
}

TEST_CASE("cuda: a dispatch is unsupported here, with the driver's reason") {
    Double driver;
    Fixture f;
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    const auto ta = tensor(a, ENPU_OP_F32, {16});
    const Kernel negate(ENPU_OP_UNARY, enpu_op_unary_params{ENPU_OP_UNARY_NEG, 0, 0}, {ta, ta});
    HAL_FAILS(f.hal->kernel->supported(f.device, &negate.dispatch, &status), ENPU_HAL_UNSUPPORTED);
    HAL_FAILS(f.submit({negate.command()}), ENPU_HAL_UNSUPPORTED);
    CHECK(contains(status.message, "no kernels"));
    CHECK((f.info.caps & ENPU_HAL_CAP_TIMESTAMP) == 0);
}

TEST_CASE("cuda: specs, and devices that are not there") {
    Double driver;
    Fixture f;
    auto& status = f.status;
    const auto& table = *f.hal->driver;
    enpu_hal_device* device = nullptr;
    HAL_FAILS(table.open("cuda:7", &device, &status), ENPU_HAL_UNAVAILABLE);
    HAL_FAILS(table.open("cuda:", &device, &status), ENPU_HAL_INVALID_ARGUMENT);
    HAL_FAILS(table.open("cuda:x", &device, &status), ENPU_HAL_INVALID_ARGUMENT);
    HAL_FAILS(table.open("cuda:-1", &device, &status), ENPU_HAL_INVALID_ARGUMENT);
    CHECK_FALSE(table.accepts("cudax"));
    auto info = with_header<enpu_hal_device_info>(ENPU_HAL_TYPE_DEVICE_INFO);
    HAL_OK(table.enumerate(0, &info, &status));
    CHECK(std::string(info.spec) == "cuda:0");
    CHECK(info.class_id == ENPU_HAL_CLASS_GPU);
    HAL_FAILS(table.enumerate(1, &info, &status), ENPU_HAL_NOT_FOUND);
}

// Run with environments in which there is no GPU; ENPU_EXPECTED is part of the sentence.
TEST_CASE("cuda: without a driver or a GPU the backend loads and says why", "[.absent]") {
    const char* expected = std::getenv("ENPU_EXPECTED");
    REQUIRE(expected);
    const enpu_hal_plugin* hal = nullptr;
    for (const Backend& backend : backends().loaded)
        if (backend.plugin->driver->accepts("cuda")) hal = backend.plugin;
    REQUIRE(hal);
    enpu_hal_status status{};
    enpu_hal_device* device = nullptr;
    HAL_FAILS(hal->driver->open("cuda", &device, &status), ENPU_HAL_UNAVAILABLE);
    INFO(status.message);
    CHECK(contains(status.message, expected));
    auto info = with_header<enpu_hal_device_info>(ENPU_HAL_TYPE_DEVICE_INFO);
    HAL_FAILS(hal->driver->enumerate(0, &info, &status), ENPU_HAL_NOT_FOUND);
    CHECK(contains(status.message, expected));
}

// Cases run in the order of this file.
TEST_CASE("cuda: no case left an object alive", "[leaks]") {
    CHECK(take_leaks().empty());
}
