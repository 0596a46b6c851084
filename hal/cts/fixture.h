// SPDX-License-Identifier: MIT
// The conformance suite's view of one device, opened through the loader alone: nothing here knows a
// backend. The device is that of the environment variable ENPU_DEVICE ("cpu" when it is not set).
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "enpu_hal.h"
#include "loader.h"
#include "status.h"

namespace enpu::hal::cts {

template <typename T>
T with_header(enpu_hal_type type) {
    T value;
    std::memset(&value, 0, sizeof(value));
    value.header = {sizeof(T), static_cast<uint32_t>(type), nullptr};
    return value;
}

inline const char* device_spec() {
    const char* spec = std::getenv("ENPU_DEVICE");
    return spec ? spec : "cpu";
}

inline uint64_t soon() {
    return now_ns() + 20'000'000'000;
}

// A call of the HAL that must succeed; the sentence is shown when it does not. `status` is in
// scope.
#define HAL_OK(call)                             \
    do {                                         \
        status = {};                             \
        const uint32_t code_ = (call);           \
        INFO(#call ": " << status.message);      \
        REQUIRE(code_ == uint32_t(ENPU_HAL_OK)); \
    } while (0)

// The same for a call that needs kernels: a device that never has them is told apart.
#define HAL_SUPPORTED(call)                                                                        \
    do {                                                                                           \
        status = {};                                                                               \
        const uint32_t supported_ = (call);                                                        \
        if (supported_ == uint32_t(ENPU_HAL_UNSUPPORTED)) SKIP("unsupported: " << status.message); \
        INFO(#call ": " << status.message);                                                        \
        REQUIRE(supported_ == uint32_t(ENPU_HAL_OK));                                              \
    } while (0)

// A call that must fail with a code and a sentence.
#define HAL_FAILS(call, expected)           \
    do {                                    \
        status = {};                        \
        const uint32_t code_ = (call);      \
        INFO(#call ": " << status.message); \
        CHECK(code_ == uint32_t(expected)); \
        CHECK(status.code == code_);        \
        CHECK(status.message[0] != 0);      \
    } while (0)

// What a device cannot do for good is told apart from a failure.
#define NEEDS(fixture, capability) \
    if (!((fixture).info.caps & (capability))) SKIP("unsupported: the device has no " #capability)

// A case about a kernel that the device does not have says nothing of the device.
#define NEEDS_KERNEL(fixture, wanted)                                                      \
    do {                                                                                   \
        enpu_hal_status why_{};                                                            \
        if ((fixture).hal->kernel->supported((fixture).device, &(wanted).dispatch, &why_)) \
            SKIP("unsupported: " << why_.message);                                         \
    } while (0)

// The plug-in that takes the device of ENPU_DEVICE, with the layers of ENPU_HAL_LAYERS.
inline const enpu_hal_plugin* plugin() {
    for (const Backend& backend : backends().loaded)
        if (backend.plugin->driver->accepts(device_spec())) return backend.plugin;
    FAIL("no backend takes '" << device_spec() << "'");
    return nullptr;
}

// Objects that a device still counts when a test has destroyed all of its own: the test fails.
void note_leaks(const enpu_hal_plugin& hal, enpu_hal_device* device, uint32_t caps);
std::string take_leaks();  // what was noted since the last call; empty: nothing

class Fixture {
  public:
    const enpu_hal_plugin* hal = nullptr;
    enpu_hal_device* device = nullptr;
    enpu_hal_device_info info{};
    enpu_hal_queue* queue = nullptr;
    enpu_hal_fence* fence = nullptr;
    uint64_t value = 0;  // last point submitted
    enpu_hal_status status{};

    Fixture() : Fixture(plugin(), device_spec()) {}
    Fixture(const enpu_hal_plugin* from, const char* spec) : hal(from) {
        HAL_OK(hal->driver->open(spec, &device, &status));
        info = with_header<enpu_hal_device_info>(ENPU_HAL_TYPE_DEVICE_INFO);
        HAL_OK(hal->device->info(device, &info, &status));
        queue = make_queue();
        fence = make_fence(0);
    }
    ~Fixture() {
        for (auto* each : graphs_) hal->graph->destroy(each);
        for (auto* each : queues_) hal->queue->destroy(each);
        for (auto* each : fences_) hal->fence->destroy(each);
        for (const auto& [buffer, bytes] : buffers_) hal->memory->free(buffer);
        if (device) note_leaks(*hal, device, info.caps);
        if (device) hal->device->close(device);
    }
    Fixture(const Fixture&) = delete;

    enpu_hal_queue* make_queue(uint32_t engine = ENPU_HAL_ENGINE_COMPUTE) {
        auto desc = with_header<enpu_hal_queue_desc>(ENPU_HAL_TYPE_QUEUE_DESC);
        desc.engine = engine;
        enpu_hal_queue* made = nullptr;
        HAL_OK(hal->queue->create(device, &desc, &made, &status));
        queues_.push_back(made);
        return made;
    }
    void drop_queue(enpu_hal_queue* gone) {
        std::erase(queues_, gone);
        hal->queue->destroy(gone);
    }
    enpu_hal_fence* make_fence(uint64_t initial) {
        enpu_hal_fence* made = nullptr;
        HAL_OK(hal->fence->create(device, initial, &made, &status));
        fences_.push_back(made);
        return made;
    }
    enpu_hal_buffer* make_buffer(uint64_t bytes, uint32_t memory = ENPU_HAL_MEMORY_HOST) {
        auto desc = with_header<enpu_hal_buffer_desc>(ENPU_HAL_TYPE_BUFFER_DESC);
        desc.bytes = bytes;
        desc.memory = memory;
        enpu_hal_buffer* made = nullptr;
        HAL_OK(hal->memory->alloc(device, &desc, &made, &status));
        buffers_[made] = bytes;
        return made;
    }
    void drop_buffer(enpu_hal_buffer* gone) {
        buffers_.erase(gone);
        hal->memory->free(gone);
    }
    enpu_hal_buffer_info buffer_info(enpu_hal_buffer* buffer) {
        auto result = with_header<enpu_hal_buffer_info>(ENPU_HAL_TYPE_BUFFER_INFO);
        HAL_OK(hal->memory->info(buffer, &result, &status));
        return result;
    }
    uint64_t bytes_of(enpu_hal_buffer* buffer) const { return buffers_.at(buffer); }
    template <typename T>
    T* host(enpu_hal_buffer* buffer) {
        auto* pointer = static_cast<T*>(buffer_info(buffer).host);
        REQUIRE(pointer);
        return pointer;
    }
    // A local buffer with these contents, and back.
    template <typename T>
    enpu_hal_buffer* upload(const std::vector<T>& values) {
        const uint64_t bytes = values.size() * sizeof(T);
        enpu_hal_buffer* staging = make_buffer(bytes);
        enpu_hal_buffer* local = make_buffer(bytes, ENPU_HAL_MEMORY_LOCAL);
        std::memcpy(host<T>(staging), values.data(), bytes);
        run({copy(local, 0, staging, 0, bytes)});
        drop_buffer(staging);
        return local;
    }
    template <typename T>
    std::vector<T> download(enpu_hal_buffer* buffer, size_t count, uint64_t offset = 0) {
        enpu_hal_buffer* staging = make_buffer(count * sizeof(T));
        run({copy(staging, 0, buffer, offset, count * sizeof(T))});
        const T* from = host<T>(staging);
        std::vector<T> values(from, from + count);
        drop_buffer(staging);
        return values;
    }

    static enpu_hal_command copy(enpu_hal_buffer* dst, uint64_t dst_offset, enpu_hal_buffer* src,
                                 uint64_t src_offset, uint64_t bytes) {
        enpu_hal_command command{};
        command.kind = ENPU_HAL_COMMAND_COPY;
        command.u.copy = {{dst, dst_offset}, {src, src_offset}, bytes, 1, bytes, bytes};
        return command;
    }
    static enpu_hal_command fill(enpu_hal_buffer* dst, uint64_t offset, uint64_t bytes,
                                 uint64_t pattern, uint32_t pattern_bytes) {
        enpu_hal_command command{};
        command.kind = ENPU_HAL_COMMAND_FILL;
        command.u.fill = {{dst, offset}, bytes, pattern, pattern_bytes, 0};
        return command;
    }

    // Submits to the fixture's queue and signals the next point of its fence.
    uint32_t submit(const std::vector<enpu_hal_command>& commands,
                    const std::vector<enpu_hal_point>& waits = {}) {
        ++value;
        return submit_to(queue, {{fence, value}}, commands, waits, value);
    }
    uint32_t submit_to(enpu_hal_queue* to, const std::vector<enpu_hal_point>& signals,
                       const std::vector<enpu_hal_command>& commands,
                       const std::vector<enpu_hal_point>& waits = {}, uint64_t op_id = 0) {
        auto submission = with_header<enpu_hal_submission>(ENPU_HAL_TYPE_SUBMISSION);
        submission.op_id = op_id;
        submission.waits = waits.data();
        submission.wait_count = static_cast<uint32_t>(waits.size());
        submission.signals = signals.data();
        submission.signal_count = static_cast<uint32_t>(signals.size());
        submission.commands = commands.data();
        submission.command_count = static_cast<uint32_t>(commands.size());
        status = {};
        return hal->queue->submit(to, &submission, soon(), &status);
    }
    uint32_t wait(enpu_hal_fence* on, uint64_t point, uint64_t deadline = soon()) {
        const enpu_hal_point wanted{on, point};
        status = {};
        return hal->fence->wait(device, &wanted, 1, 0, deadline, &status);
    }
    // Submits and waits; both succeed.
    void run(const std::vector<enpu_hal_command>& commands) {
        HAL_SUPPORTED(submit(commands));
        HAL_OK(wait(fence, value));
    }
    enpu_hal_graph* make_graph(const std::vector<enpu_hal_command>& commands) {
        enpu_hal_graph* made = nullptr;
        HAL_OK(hal->graph->create(device, commands.data(), static_cast<uint32_t>(commands.size()),
                                  &made, &status));
        graphs_.push_back(made);
        return made;
    }
    // Launches on a queue with signals and waits of the caller.
    uint32_t launch_to(enpu_hal_queue* to, enpu_hal_graph* graph,
                       const std::vector<enpu_hal_point>& signals,
                       const std::vector<enpu_hal_point>& waits = {}, uint64_t op_id = 0) {
        auto submission = with_header<enpu_hal_submission>(ENPU_HAL_TYPE_SUBMISSION);
        submission.op_id = op_id;
        submission.waits = waits.data();
        submission.wait_count = static_cast<uint32_t>(waits.size());
        submission.signals = signals.data();
        submission.signal_count = static_cast<uint32_t>(signals.size());
        status = {};
        return hal->graph->launch(to, graph, &submission, soon(), &status);
    }
    void launch(enpu_hal_graph* graph) {
        ++value;
        HAL_OK(launch_to(queue, graph, {{fence, value}}));
        HAL_OK(wait(fence, value));
    }
    enpu_hal_counters counters() {
        auto result = with_header<enpu_hal_counters>(ENPU_HAL_TYPE_COUNTERS);
        HAL_OK(hal->profile->counters(device, &result, &status));
        return result;
    }

  private:
    std::vector<enpu_hal_queue*> queues_;
    std::vector<enpu_hal_fence*> fences_;
    std::vector<enpu_hal_graph*> graphs_;
    std::map<enpu_hal_buffer*, uint64_t> buffers_;
};

// A dense tensor in a buffer.
inline enpu_hal_operand tensor(enpu_hal_buffer* buffer, uint32_t dtype, std::vector<int64_t> dims,
                               uint64_t offset = 0) {
    enpu_hal_operand operand{};
    operand.place = {buffer, offset};
    operand.tensor.dtype = dtype;
    operand.tensor.rank = static_cast<uint32_t>(dims.size());
    int64_t stride = 1;
    for (size_t i = dims.size(); i-- > 0;) {
        operand.tensor.dims[i] = dims[i];
        operand.tensor.strides[i] = stride;
        // Tests describe tensors that no number can count: wraps, and the backend must refuse.
        stride =
            static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(dims[i]));
    }
    return operand;
}

// A dispatch that owns its arguments.
struct Kernel {
    std::vector<enpu_hal_operand> operands;
    std::vector<unsigned char> params;
    enpu_hal_dispatch dispatch{};

    template <typename Params>
    Kernel(enpu_op op, const Params& values, std::vector<enpu_hal_operand> list)
        : operands(std::move(list)),
          params(reinterpret_cast<const unsigned char*>(&values),
                 reinterpret_cast<const unsigned char*>(&values) + sizeof(values)) {
        set(op);
    }
    Kernel(enpu_op op, std::vector<enpu_hal_operand> list) : operands(std::move(list)) { set(op); }
    Kernel(const Kernel&) = delete;

    enpu_hal_command command() const {
        enpu_hal_command result{};
        result.kind = ENPU_HAL_COMMAND_DISPATCH;
        result.u.dispatch = &dispatch;
        return result;
    }

  private:
    void set(enpu_op op) {
        dispatch = {{sizeof(dispatch), ENPU_HAL_TYPE_DISPATCH, nullptr},
                    static_cast<uint32_t>(op),
                    static_cast<uint32_t>(operands.size()),
                    params.empty() ? nullptr : params.data(),
                    params.size(),
                    operands.data()};
    }
};

}  // namespace enpu::hal::cts
