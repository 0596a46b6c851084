// SPDX-License-Identifier: MIT
// A device that disappears: the cpu backend behind tables that can be switched to "gone". Its local
// memory has no host pointer, as that of a real device.
#include <atomic>

#include "common/status.h"
#include "device.h"
#include "loader/loader.h"
#include "test_support.h"

using namespace enpu::rt::test;

namespace {

std::atomic<bool> gone{false};
const enpu_hal_plugin* cpu = nullptr;

uint32_t lost(enpu_hal_status* status) {
    return enpu::hal::fail(status, ENPU_HAL_DEVICE_LOST, "the device was pulled out");
}

uint32_t check(enpu_hal_device* device, enpu_hal_status* status) {
    return gone ? lost(status) : cpu->device->check(device, status);
}
uint32_t alloc(enpu_hal_device* device, const enpu_hal_buffer_desc* desc, enpu_hal_buffer** buffer,
               enpu_hal_status* status) {
    return gone ? lost(status) : cpu->memory->alloc(device, desc, buffer, status);
}
uint32_t info(enpu_hal_buffer* buffer, enpu_hal_buffer_info* out, enpu_hal_status* status) {
    const uint32_t code = cpu->memory->info(buffer, out, status);
    if (code == ENPU_HAL_OK && out->memory == ENPU_HAL_MEMORY_LOCAL) out->host = nullptr;
    return code;
}
uint32_t make_queue(enpu_hal_device* device, const enpu_hal_queue_desc* desc,
                    enpu_hal_queue** queue, enpu_hal_status* status) {
    return gone ? lost(status) : cpu->queue->create(device, desc, queue, status);
}
uint32_t submit(enpu_hal_queue* queue, const enpu_hal_submission* submission, uint64_t deadline_ns,
                enpu_hal_status* status) {
    return gone ? lost(status) : cpu->queue->submit(queue, submission, deadline_ns, status);
}
uint32_t make_fence(enpu_hal_device* device, uint64_t initial, enpu_hal_fence** fence,
                    enpu_hal_status* status) {
    return gone ? lost(status) : cpu->fence->create(device, initial, fence, status);
}

// The plug-in, made once.
const enpu_hal_plugin& removable() {
    static enpu_hal_plugin plugin;
    static enpu_hal_device_table device;
    static enpu_hal_memory_table memory;
    static enpu_hal_queue_table queue;
    static enpu_hal_fence_table fence;
    for (const auto& backend : enpu::hal::backends().loaded)
        if (std::string(backend.plugin->name) == "cpu") cpu = backend.plugin;
    REQUIRE(cpu);
    plugin = *cpu;
    device = *cpu->device;
    memory = *cpu->memory;
    queue = *cpu->queue;
    fence = *cpu->fence;
    device.check = check;
    memory.alloc = alloc;
    memory.info = info;
    queue.create = make_queue;
    queue.submit = submit;
    fence.create = make_fence;
    plugin.name = "removable";
    plugin.device = &device;
    plugin.memory = &memory;
    plugin.queue = &queue;
    plugin.fence = &fence;
    return plugin;
}

struct Rig {
    rt_device device = nullptr;
    rt_stream stream = nullptr;
    rt_kernel binary = nullptr;
    void *x = nullptr, *y = nullptr;
    static constexpr int64_t kCount = 1000;

    explicit Rig(const rt_policy* policy) {
        gone = false;
        const enpu_hal_plugin& plugin = removable();
        enpu_hal_status status{};
        enpu_hal_device* handle = nullptr;
        REQUIRE(plugin.driver->open("cpu", &handle, &status) == ENPU_HAL_OK);
        device = new rt_device_impl(plugin, handle);
        device->info.header = {sizeof(device->info), ENPU_HAL_TYPE_DEVICE_INFO, nullptr};
        REQUIRE(plugin.device->info(handle, &device->info, &status) == ENPU_HAL_OK);
        if (policy) MUST(rt_device_set_policy(device, policy));
        MUST(rt_stream_create(device, nullptr, &stream));
        MUST(rt_kernel_lookup(device, "binary", &binary));
        MUST(rt_malloc(stream, kCount * 4, &x));
        MUST(rt_malloc(stream, kCount * 4, &y));
    }
    ~Rig() {
        rt_stream_destroy(stream);
        rt_device_close(device);
    }
    rt_status launch() { return launch_double(stream, binary, x, y, kCount); }
};

struct Notices {
    std::string text;
    static void add(void* context, const char* line) {
        static_cast<Notices*>(context)->text += line;
    }
};

}  // namespace

TEST_CASE("guard: work goes on from retained inputs when the device disappears") {
    Notices notices;
    rt_policy policy{};
    policy.struct_size = sizeof(policy);
    policy.retries = 1;
    policy.fallbacks[0] = "cpu";
    policy.retain = 1;
    policy.notice = Notices::add;
    policy.context = &notices;
    Rig rig(&policy);
    std::vector<float> values(Rig::kCount);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    MUST(rt_memcpy_h2d(rig.stream, rig.x, values.data(), Rig::kCount * 4));
    gone = true;
    MUST(rig.launch());
    std::vector<float> seen(Rig::kCount);
    MUST(rt_memcpy_d2h(rig.stream, seen.data(), rig.y, Rig::kCount * 4));
    for (float& value : values) value *= 2;
    CHECK(seen == values);
    OK(rt_stream_sync(rig.stream, soon()));
    rt_policy_report report{};
    report.struct_size = sizeof(report);
    MUST(rt_device_policy_report(rig.device, &report));
    CHECK(report.device_lost == 1);
    CHECK(report.failures == 1);
    CHECK(report.retries == 0);  // of no use without the device
    CHECK(report.fallback_ops == 2);
    CHECK(std::string(report.fallback) == "cpu");
    CHECK(contains(notices.text, "ran on cpu instead"));
    CHECK(contains(notices.text, "pulled out"));
    CHECK(failure(rt_device_check(rig.device)).code == RT_DEVICE_LOST);
}

TEST_CASE("guard: without retained memory a lost device is told, and why nothing was done") {
    Notices notices;
    rt_policy policy{};
    policy.struct_size = sizeof(policy);
    policy.fallbacks[0] = "cpu";
    policy.notice = Notices::add;
    policy.context = &notices;
    Rig rig(&policy);
    MUST(rt_fill(rig.stream, rig.x, 0, 4, Rig::kCount * 4));
    gone = true;
    CHECK(failure(rig.launch()).code == RT_DEVICE_LOST);
    CHECK(contains(notices.text, "does not retain"));
    CHECK(failure(rig.launch()).code == RT_STREAM_POISONED);
}

TEST_CASE("guard: without a policy a device that disappears is told by the next call") {
    Rig rig(nullptr);
    MUST(rig.launch());
    OK(rt_stream_sync(rig.stream, soon()));
    gone = true;
    const Failure failed = failure(rig.launch());
    CHECK(failed.code == RT_DEVICE_LOST);
    CHECK(contains(failed.message, "pulled out"));
    CHECK(failure(rt_device_check(rig.device)).code == RT_DEVICE_LOST);
}
