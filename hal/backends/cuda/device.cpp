// SPDX-License-Identifier: MIT
// Driver, device, kernel and profile tables, the thread of a device, and the export of the backend.
#include "device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string_view>

#include "arguments.h"
#include "kernels/args.h"
#include "queue.h"
#include "rules.h"
#include "status.h"

using namespace enpu::hal::cuda;
using enpu::hal::fail;
using enpu::hal::now_ns;

// ------------------------------------------------------------------------------------ the thread

enpu_hal_device::enpu_hal_device(Gpu& on, std::string name)
    : gpu(on), spec(std::move(name)), thread_([this] { loop(); }) {}

enpu_hal_device::~enpu_hal_device() {
    stop_.store(true);
    kick();
    thread_.join();
    if (!clock_word_ || gpu.is_lost()) return;
    const InContext in(gpu);
    gpu.api.cuMemFreeHost(clock_word_);
}

uint32_t enpu_hal_device::caps() const {
    uint32_t caps = kCaps;
    if (!gpu.kernels.available()) caps &= ~uint32_t{ENPU_HAL_CAP_TIMESTAMP};
    if (!gpu.info.host_register) caps &= ~uint32_t{ENPU_HAL_CAP_USERPTR};
    return caps;
}

void enpu_hal_device::add(enpu_hal_queue* queue) {
    std::lock_guard lock(queues_mutex_);
    queues_.push_back(queue);
}

void enpu_hal_device::remove(enpu_hal_queue* queue) {
    std::lock_guard lock(queues_mutex_);
    std::erase(queues_, queue);
}

void enpu_hal_device::kick() {
    {
        std::lock_guard lock(kick_mutex_);
        kicks_.fetch_add(1);
    }
    kicked_.notify_one();
}

bool enpu_hal_device::pump_all() {
    std::lock_guard lock(queues_mutex_);
    bool busy = false;
    for (enpu_hal_queue* queue : queues_) busy |= queue->pump();
    return busy;
}

// Looks often while things move, and less and less often while the GPU works on something long.
void enpu_hal_device::loop() {
    constexpr std::chrono::microseconds kShortest{5}, kLongest{500};
    std::chrono::microseconds pause = kShortest;
    uint64_t seen = kicks_.load();
    while (!stop_.load()) {
        const bool busy = pump_all();
        std::unique_lock lock(kick_mutex_);
        const auto kicked = [&] { return kicks_.load() != seen || stop_.load(); };
        const bool fresh = kicked();
        if (!fresh && busy) kicked_.wait_for(lock, pause, kicked);
        if (!fresh && !busy) kicked_.wait(lock, kicked);  // idle: nothing to be late for
        pause = kicked() ? kShortest : std::min(pause * 2, kLongest);
        seen = kicks_.load();
    }
}

// ------------------------------------------------------------------------------------- the clock

uint32_t enpu_hal_device::read_clock(uint64_t* ticks, uint64_t* before, uint64_t* after,
                                     enpu_hal_status* status) {
    KernelCall call;
    call.set<TimestampArgs>(KernelId::kTimestamp, 1, 1).address = clock_address_;
    void* params[] = {call.args};
    clock_word_->store(0);
    *before = now_ns();
    const Result error = gpu.api.cuLaunchKernel(gpu.kernels.function(call.id), 1, 1, 1, 1, 1, 1, 0,
                                                gpu.memory_stream, params, nullptr);
    if (uint32_t code = gpu.result(status, ENPU_HAL_INTERNAL, error, "clock: cuLaunchKernel"))
        return code;
    while ((*ticks = clock_word_->load()) == 0) {
        if (now_ns() - *before > 1'000'000'000)
            return fail(status, ENPU_HAL_DEADLINE_EXCEEDED,
                        "clock: the GPU did not answer within 1 s");
        std::this_thread::yield();
    }
    *after = now_ns();
    return ENPU_HAL_OK;
}

uint32_t enpu_hal_device::clock(uint64_t* ticks, uint64_t* host_ns, enpu_hal_status* status) {
    if (uint32_t code = gpu.check(status)) return code;
    if (!gpu.kernels.available()) {  // and so no timestamps: the host's clock is the only one
        *ticks = *host_ns = now_ns();
        return ENPU_HAL_OK;
    }
    std::lock_guard lock(clock_mutex_);
    const InContext in(gpu);
    if (!clock_word_) {
        void* word = nullptr;
        DevicePtr address = 0;
        Result error = gpu.api.cuMemHostAlloc(&word, 8, kHostPortable | kHostDeviceMap);
        if (error == kSuccess) error = gpu.api.cuMemHostGetDevicePointer(&address, word, 0);
        if (uint32_t code = gpu.result(status, ENPU_HAL_INTERNAL, error, "clock: pinned memory"))
            return code;
        clock_word_ = new (word) std::atomic<uint64_t>(0);
        clock_address_ = address;
    }
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 3; ++i) {
        uint64_t read = 0, before = 0, after = 0;
        if (uint32_t code = read_clock(&read, &before, &after, status)) return code;
        if (after - before >= best) continue;
        best = after - before;
        *ticks = read;
        *host_ns = before + best / 2;
    }
    return ENPU_HAL_OK;
}

// ---------------------------------------------------------------------------------------- tables

namespace enpu::hal::cuda {
namespace {

// `libraries`: what runs the heavy operators; "" before they are looked for.
uint32_t give_info(const GpuInfo& gpu, const char* libraries, const char* spec, uint32_t caps,
                   enpu_hal_device_info* out, enpu_hal_status* status) {
    if (uint32_t code = check_device_info(out, status)) return code;
    enpu_hal_device_info info{};
    std::snprintf(info.spec, sizeof(info.spec), "%s", spec);
    std::snprintf(info.name, sizeof(info.name), "%.48s (sm_%d%d)", gpu.name, gpu.compute_major,
                  gpu.compute_minor);
    std::snprintf(info.driver, sizeof(info.driver), "CUDA driver %u.%u%s%.31s",
                  unsigned(gpu.driver_version) / 1000 % 100,
                  unsigned(gpu.driver_version) % 1000 / 10, libraries[0] ? "; " : "", libraries);
    info.class_id = ENPU_HAL_CLASS_GPU;
    info.caps = caps;
    info.compute_engines = 1;
    info.copy_engines = static_cast<uint32_t>(gpu.copy_engines);
    info.local_bytes = gpu.memory_bytes;
    info.max_tensor_bytes = ENPU_MAX_TENSOR_BYTES;
    info.buffer_alignment = 1;
    info.clock_hz = 1'000'000'000;
    info.max_commands = kMaxCommands;
    info.max_points = kMaxPoints;
    info.dtypes = (1u << ENPU_OP_DTYPES) - 2;  // all but NONE
    info.max_alignment = kMaxAlignment;
    give(out, info);
    return ENPU_HAL_OK;
}

uint32_t enumerate(uint32_t index, enpu_hal_device_info* info, enpu_hal_status* status) {
    enpu_hal_status why{};
    const int count = Gpu::count(&why);
    if (index >= static_cast<uint32_t>(count))
        return fail(status, ENPU_HAL_NOT_FOUND, "%s",
                    count == 0 ? why.message : "cuda: there are no more devices");
    GpuInfo gpu{};
    const int number = static_cast<int>(index);
    if (uint32_t code = Gpu::describe(*driver(&why), number, gpu, status)) return code;
    char spec[32];
    std::snprintf(spec, sizeof(spec), "cuda:%u", index);
    // Whether kernels can be loaded is known only once it is open.
    return give_info(gpu, "", spec, kCaps, info, status);
}

// The number in "cuda" (0) or "cuda:N"; -1 for anything else.
int gpu_number(const char* spec) {
    const std::string_view text = spec ? spec : "";
    if (text == "cuda") return 0;
    if (!text.starts_with("cuda:") || text.size() == 5) return -1;
    char* end = nullptr;
    const long value = std::strtol(spec + 5, &end, 10);
    return *end == '\0' && spec[5] >= '0' && spec[5] <= '9' && value < 1024
               ? static_cast<int>(value)
               : -1;
}

uint32_t accepts(const char* spec) {
    const std::string_view text = spec ? spec : "";
    return text == "cuda" || text.starts_with("cuda:");
}

uint32_t open(const char* spec, enpu_hal_device** device, enpu_hal_status* status) {
    const int number = gpu_number(spec);
    if (!device || number < 0)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "cuda: spec '%.64s' is neither \"cuda\" nor \"cuda:N\"", spec ? spec : "");
    const int count = Gpu::count(status);
    if (count == 0) return ENPU_HAL_UNAVAILABLE;
    if (number >= count)
        return fail(status, ENPU_HAL_UNAVAILABLE, "cuda:%d is not there: the driver sees %d GPUs",
                    number, count);
    Gpu* gpu = nullptr;
    if (uint32_t code = Gpu::acquire(number, &gpu, status)) return code;
    try {
        *device = new enpu_hal_device(*gpu, spec);
    } catch (const std::exception& error) {
        Gpu::release(gpu);
        return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "cuda: %.200s", error.what());
    }
    return ENPU_HAL_OK;
}

void close(enpu_hal_device* device) {
    if (!device) return;
    Gpu* gpu = &device->gpu;
    delete device;
    Gpu::release(gpu);
}

uint32_t info(enpu_hal_device* device, enpu_hal_device_info* out, enpu_hal_status* status) {
    const Gpu& gpu = device->gpu;
    return give_info(gpu.info, gpu.libraries.text().c_str(), device->spec.c_str(), device->caps(),
                     out, status);
}

uint32_t check(enpu_hal_device* device, enpu_hal_status* status) {
    return device->gpu.check(status);
}

uint32_t counters(enpu_hal_device* device, enpu_hal_counters* out, enpu_hal_status* status) {
    if (uint32_t code = check_counters(out, status)) return code;
    give(out, device->counters.look());
    return ENPU_HAL_OK;
}

uint32_t clock(enpu_hal_device* device, uint64_t* device_ticks, uint64_t* host_ns,
               enpu_hal_status* status) {
    return device->clock(device_ticks, host_ns, status);
}

uint32_t supported(enpu_hal_device* device, const enpu_hal_dispatch* dispatch,
                   enpu_hal_status* status) {
    if (uint32_t code = check_dispatch_structure(dispatch, status)) return code;
    return check_supported(*device, *dispatch, status);
}

uint32_t packed_size(enpu_hal_device*, const enpu_op_tensor*, const enpu_op_pack_params*, uint64_t*,
                     enpu_hal_status* status) {
    return fail(status, ENPU_HAL_UNSUPPORTED, "pack_weights: the cuda backend takes them PLAIN");
}

}  // namespace

const enpu_hal_driver_table kDriver = {
    table_header(sizeof(enpu_hal_driver_table), ENPU_HAL_TYPE_DRIVER_TABLE), enumerate, accepts,
    open};
const enpu_hal_device_table kDevice = {
    table_header(sizeof(enpu_hal_device_table), ENPU_HAL_TYPE_DEVICE_TABLE), close, info, check};
const enpu_hal_kernel_table kKernel = {
    table_header(sizeof(enpu_hal_kernel_table), ENPU_HAL_TYPE_KERNEL_TABLE), supported,
    packed_size};
const enpu_hal_profile_table kProfile = {
    table_header(sizeof(enpu_hal_profile_table), ENPU_HAL_TYPE_PROFILE_TABLE), counters, clock};

}  // namespace enpu::hal::cuda

extern "C" __attribute__((visibility("default"))) const enpu_hal_plugin* enpu_hal_query(
    const enpu_hal_host* host, enpu_hal_status* status) {
    namespace cuda = enpu::hal::cuda;
    static const enpu_hal_plugin kPlugin = {
        enpu::hal::table_header(sizeof(enpu_hal_plugin), ENPU_HAL_TYPE_PLUGIN),
        ENPU_HAL_ABI_MAJOR,
        ENPU_HAL_ABI_MINOR,
        "cuda",
        "0.1",
        cuda::kCaps,
        0,
        &cuda::kDriver,
        &cuda::kDevice,
        &cuda::kMemory,
        &cuda::kQueue,
        &cuda::kFence,
        &cuda::kKernel,
        &cuda::kGraph,
        &cuda::kProfile,
    };
    if (!host || host->abi_major != ENPU_HAL_ABI_MAJOR) {
        fail(status, ENPU_HAL_FAILED_PRECONDITION,
             "cuda: this backend speaks HAL ABI %u, the host %u", ENPU_HAL_ABI_MAJOR,
             host ? host->abi_major : 0);
        return nullptr;
    }
    cuda::set_host(*host);
    return &kPlugin;
}
