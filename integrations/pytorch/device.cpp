// SPDX-License-Identifier: MIT
#include "device.h"

#include <atomic>
#include <cstdlib>

#include "policy.h"

namespace enpu::pytorch {
namespace {

constexpr size_t kPoolStreams = 8;
// Streams are never given back, as everywhere in PyTorch; a number that grows is a leak of the program.
constexpr size_t kMostStreams = 1024;

thread_local c10::StreamId current_stream_id = 0;
std::atomic<Runtime*> instance{nullptr};

}  // namespace

void check(rt_status status, const char* what) {
    if (status == RT_OK) return;
    const std::string sentence = std::string("enpu: ") + what + ": " + rt_status_message(status) +
                                 " (" + rt_code_name(rt_status_code(status)) + ", " +
                                 rt_status_origin(status) + ")";
    const bool full = rt_status_code(status) == RT_RESOURCE_EXHAUSTED;
    rt_status_free(status);
    TORCH_CHECK_WITH(OutOfMemoryError, !full, sentence);
    TORCH_CHECK(false, sentence);
}

Runtime& Runtime::get() {
    if (Runtime* open = instance.load(std::memory_order_acquire)) return *open;
    static std::mutex opening;
    const std::lock_guard guard(opening);
    if (Runtime* open = instance.load(std::memory_order_acquire)) return *open;
    const char* spec = std::getenv("ENPU_DEVICE");
    auto* made = new Runtime(spec && *spec ? spec : "npu");
    instance.store(made, std::memory_order_release);
    return *made;
}

bool Runtime::opened() {
    return instance.load(std::memory_order_acquire) != nullptr;
}

Runtime::Runtime(const char* spec) {
    check(rt_device_open(spec, &device_), spec);
    for (uint32_t op = 0; op < ENPU_OPS; ++op) {
        // What a backend lacks is refused where it is launched.
        rt_status_free(rt_kernel_for_op(device_, static_cast<enpu_op>(op), &kernels_[op]));
    }
    try {
        apply_policy(device_);
        new_stream(0);
    } catch (...) {
        rt_device_close(device_);
        throw;
    }
}

rt_stream Runtime::stream(c10::StreamId id) {
    const std::lock_guard guard(lock_);
    TORCH_CHECK(id >= 0 && static_cast<size_t>(id) < streams_.size(), "enpu: there is no stream ",
                id);
    return streams_[static_cast<size_t>(id)];
}

c10::StreamId Runtime::current_id() {
    return current_stream_id;
}

c10::StreamId Runtime::exchange_current(c10::StreamId id) {
    if (id != 0) get().stream(id);
    return std::exchange(current_stream_id, id);
}

c10::StreamId Runtime::new_stream(int priority) {
    rt_stream_options options{};
    options.struct_size = sizeof(options);
    options.priority = std::clamp(priority, -1, 1);
    const std::lock_guard guard(lock_);
    TORCH_CHECK(streams_.size() < kMostStreams, "enpu: ", kMostStreams,
                " streams have been made; reuse them");
    const std::string name = "torch-" + std::to_string(streams_.size());
    options.name = name.c_str();
    rt_stream made = nullptr;
    check(rt_stream_create(device_, &options, &made), "stream");
    streams_.push_back(made);
    return static_cast<c10::StreamId>(streams_.size()) - 1;
}

c10::StreamId Runtime::pool_stream(bool high_priority) {
    if (high_priority) return new_stream(1);
    {
        const std::lock_guard guard(lock_);
        if (pool_.size() == kPoolStreams) return pool_[next_++ % kPoolStreams];
    }
    const c10::StreamId made = new_stream(0);
    const std::lock_guard guard(lock_);
    if (pool_.size() < kPoolStreams) pool_.push_back(made);
    return made;
}

void Runtime::recover() {
    const std::lock_guard guard(lock_);
    for (rt_stream stream : streams_) check(rt_stream_reset(stream), "reset of a stream");
}

rt_counters Runtime::counters() {
    rt_counters counted{};
    counted.struct_size = sizeof(counted);
    check(rt_device_get_counters(device_, &counted), "counters");
    return counted;
}

}  // namespace enpu::pytorch
