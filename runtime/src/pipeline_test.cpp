// SPDX-License-Identifier: MIT
// Double buffering: every item comes out right and in order, whoever pushes and pops.
#include <algorithm>
#include <atomic>
#include <thread>

#include "test_support.h"

using namespace enpu::rt::test;

namespace {

constexpr int64_t kCount = 4000;
constexpr size_t kBytes = kCount * sizeof(float);

// output = 2 * input.
struct Doubling {
    rt_kernel binary = nullptr;
    static rt_status compute(void* context, rt_stream stream, const rt_pipeline_slot* slot) {
        return launch_double(stream, static_cast<Doubling*>(context)->binary, slot->input,
                             slot->output, kCount);
    }
};

struct PipelineFixture : Fixture {
    Doubling doubling;
    rt_pipeline pipeline = nullptr;

    explicit PipelineFixture(uint32_t slots, bool in_place = false,
                             rt_pipeline_compute compute = Doubling::compute) {
        doubling.binary = kernel("binary");
        rt_pipeline_desc desc{};
        desc.struct_size = sizeof(desc);
        desc.slots = slots;
        desc.input_bytes = desc.output_bytes = kBytes;
        desc.compute = compute;
        desc.context = &doubling;
        desc.input_in_place = desc.output_in_place = in_place;
        MUST(rt_pipeline_create(device, &desc, &pipeline));
    }
    ~PipelineFixture() { rt_pipeline_destroy(pipeline); }

    void push(float value) {
        void* host = nullptr;
        MUST(rt_pipeline_input(pipeline, soon(), &host));
        std::fill_n(static_cast<float*>(host), kCount, value);
        MUST(rt_pipeline_push(pipeline, nullptr, 0));
    }
    void pop(float expected) {
        const void* host = nullptr;
        MUST(rt_pipeline_pop(pipeline, soon(), &host));
        const auto* values = static_cast<const float*>(host);
        INFO("item that gives " << expected << " gave " << values[0]);
        REQUIRE(std::count(values, values + kCount, expected) == kCount);
        rt_pipeline_release(pipeline);
    }
};

}  // namespace

TEST_CASE("pipeline: items come out in order, with any number of slots, in place or copied") {
    for (const bool in_place : {false, true})
        for (const uint32_t slots : {1u, 2u, 4u}) {
            INFO(slots << " slots, in place " << in_place);
            PipelineFixture f(slots, in_place);
            int popped = 0;
            for (int i = 0; i < 20; ++i) {
                while (rt_pipeline_free_slots(f.pipeline) == 0) f.pop(float(2 * popped++));
                f.push(float(i));
            }
            CHECK(rt_pipeline_in_flight(f.pipeline) >= 1);
            while (rt_pipeline_in_flight(f.pipeline)) f.pop(float(2 * popped++));
            CHECK(popped == 20);
            const void* none = nullptr;
            CHECK(failure(rt_pipeline_pop(f.pipeline, soon(), &none)).code == RT_NOT_FOUND);
        }
}

TEST_CASE("pipeline: two slots stay busy while the output before is read") {
    PipelineFixture f(2);
    f.push(1);
    f.push(2);
    CHECK(rt_pipeline_free_slots(f.pipeline) == 0);
    CHECK(failure(rt_pipeline_push(f.pipeline, nullptr, 0)).code == RT_FAILED_PRECONDITION);
    const void* first = nullptr;
    MUST(rt_pipeline_pop(f.pipeline, soon(), &first));
    CHECK(rt_pipeline_free_slots(f.pipeline) == 1);
    f.push(3);
    f.sync();
    OK(rt_device_sync(f.device, soon()));
    CHECK(static_cast<const float*>(first)[kCount - 1] == 2.0f);  // nothing wrote over it
    f.pop(4);
    f.pop(6);
}

TEST_CASE("pipeline: steady state asks the driver for no memory") {
    PipelineFixture f(2);
    for (int i = 0; i < 4; ++i) {
        f.push(1);
        f.pop(2);
    }
    const uint64_t before = f.counters().backend_allocations;
    for (int i = 0; i < 50; ++i) {
        f.push(float(i));
        f.pop(float(2 * i));
    }
    CHECK(f.counters().backend_allocations == before);
    CHECK(f.pool().live == 2 * 2);
}

TEST_CASE("pipeline: an input in many pieces is merged into one submission") {
    PipelineFixture f(2);
    constexpr uint32_t kPieces = 40;
    constexpr size_t kPart = kBytes / kPieces;
    auto* parts = static_cast<float*>(f.pinned(2 * kBytes));
    std::vector<rt_pipeline_piece> pieces;
    for (uint32_t i = 0; i < kPieces; ++i) {
        float* part = parts + 2 * i * kPart / sizeof(float);  // apart, so that none are neighbours
        std::fill_n(part, kPart / sizeof(float), float(i));
        pieces.push_back({i * kPart, part, kPart});
    }
    const uint64_t before = f.counters().copies_merged;
    MUST(rt_pipeline_push(f.pipeline, pieces.data(), kPieces));
    const void* host = nullptr;
    MUST(rt_pipeline_pop(f.pipeline, soon(), &host));
    CHECK(f.counters().copies_merged == before + kPieces - 1);
    for (uint32_t i = 0; i < kPieces; ++i)
        REQUIRE(static_cast<const float*>(host)[i * kPart / sizeof(float)] == float(2 * i));
    pieces[3].bytes = kBytes;
    CHECK(
        contains(failure(rt_pipeline_push(f.pipeline, pieces.data(), kPieces)).message, "piece 3"));
    f.push(1);  // a refused push took no slot
    f.pop(2);
    OK(rt_host_free(f.device, parts));
}

TEST_CASE("pipeline: one thread pushes while another pops") {
    PipelineFixture f(3);
    constexpr int kItems = 100;
    std::atomic<int> wrong{0};
    std::jthread producer([&] {
        for (int i = 0; i < kItems; ++i) {
            void* host = nullptr;
            if (rt_pipeline_input(f.pipeline, soon(), &host)) {
                ++wrong;
                return;
            }
            std::fill_n(static_cast<float*>(host), kCount, float(i));
            if (rt_pipeline_push(f.pipeline, nullptr, 0)) ++wrong;
        }
    });
    for (int i = 0; i < kItems;) {
        const void* host = nullptr;
        rt_status status = rt_pipeline_pop(f.pipeline, soon(), &host);
        if (rt_status_code(status) == RT_NOT_FOUND && !wrong) {
            rt_status_free(status);
            std::this_thread::yield();
            continue;
        }
        MUST(status);
        REQUIRE(static_cast<const float*>(host)[i % kCount] == float(2 * i));
        ++i;
    }
    producer.join();
    CHECK(wrong == 0);
}

TEST_CASE("pipeline: waiting for a slot ends at the deadline") {
    PipelineFixture f(1);
    f.push(1);
    void* host = nullptr;
    CHECK(failure(rt_pipeline_input(f.pipeline, rt_deadline_ms(20), &host)).code ==
          RT_DEADLINE_EXCEEDED);
    f.pop(2);
}

TEST_CASE("pipeline: a compute step that fails is told by the push") {
    PipelineFixture f(2, false, [](void*, rt_stream stream, const rt_pipeline_slot* slot) {
        return rt_fill(stream, slot->output, 0, 1, kBytes + (1 << 20));  // past the end
    });
    void* host = nullptr;
    MUST(rt_pipeline_input(f.pipeline, soon(), &host));
    CHECK(contains(failure(rt_pipeline_push(f.pipeline, nullptr, 0)).message, "pass the end"));
    CHECK(rt_pipeline_in_flight(f.pipeline) == 0);
    OK(rt_pipeline_reset(f.pipeline));
}

TEST_CASE("pipeline: a wrong description is refused") {
    Fixture f;
    rt_pipeline pipeline = nullptr;
    rt_pipeline_desc desc{};
    CHECK(failure(rt_pipeline_create(f.device, &desc, &pipeline)).code == RT_INVALID_ARGUMENT);
    desc.struct_size = sizeof(desc);
    desc.slots = 17;
    desc.input_bytes = desc.output_bytes = 4;
    desc.compute = Doubling::compute;
    CHECK(contains(failure(rt_pipeline_create(f.device, &desc, &pipeline)).message, "slots is 17"));
    desc.slots = 2;
    desc.output_bytes = 0;
    CHECK(
        contains(failure(rt_pipeline_create(f.device, &desc, &pipeline)).message, "output_bytes"));
    CHECK(pipeline == nullptr);
}
