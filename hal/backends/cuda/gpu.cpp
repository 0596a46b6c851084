// SPDX-License-Identifier: MIT
#include "gpu.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "status.h"

namespace enpu::hal::cuda {
namespace {

constexpr uint64_t kPoolDeadlineNs = 10'000'000'000;

struct Table {
    std::mutex mutex;
    std::vector<Gpu*> live;  // not lost, in no order
};

Table& table() {
    static Table* all = new Table;  // never destroyed: openings may outlive static objects
    return *all;
}

int attribute(const Driver& api, Attribute which, DeviceId device) {
    int value = 0;
    return api.cuDeviceGetAttribute(&value, which, device) == kSuccess ? value : 0;
}

}  // namespace

int Gpu::count(enpu_hal_status* status) {
    const Driver* api = driver(status);
    if (!api) return 0;
    int found = 0;
    const Result error = api->cuDeviceGetCount(&found);
    if (error != kSuccess || found <= 0) {
        fail_device(status, ENPU_HAL_UNAVAILABLE, error, "no CUDA device: the driver sees %d: %s",
                    found, error_text(*api, error == kSuccess ? kNoDevice : error).text);
        return 0;
    }
    return found;
}

uint32_t Gpu::describe(const Driver& api, int index, GpuInfo& info, enpu_hal_status* status) {
    std::memset(&info, 0, sizeof(info));
    DeviceId device = 0;
    size_t bytes = 0;
    Result error = api.cuDeviceGet(&device, index);
    if (error == kSuccess) error = api.cuDeviceGetName(info.name, sizeof(info.name), device);
    if (error == kSuccess) error = api.cuDeviceTotalMem(&bytes, device);
    if (error == kSuccess) error = api.cuDriverGetVersion(&info.driver_version);
    if (error != kSuccess)
        return fail_driver(status, api, ENPU_HAL_UNAVAILABLE, error, "cuda: describing the GPU");
    info.name[sizeof(info.name) - 1] = '\0';
    info.memory_bytes = bytes;
    info.compute_major = attribute(api, kComputeMajor, device);
    info.compute_minor = attribute(api, kComputeMinor, device);
    info.multiprocessors = attribute(api, kMultiprocessorCount, device);
    info.copy_engines = attribute(api, kAsyncEngineCount, device);
    info.unified_addressing = attribute(api, kUnifiedAddressing, device) != 0;
    info.pools = attribute(api, kMemoryPoolsSupported, device) != 0;
    info.host_register = attribute(api, kHostRegisterSupported, device) != 0;
    info.max_pitch = static_cast<uint64_t>(attribute(api, kMaxPitch, device));
    return ENPU_HAL_OK;
}

uint32_t Gpu::acquire(int index, Gpu** gpu, enpu_hal_status* status) {
    const Driver* api = driver(status);
    if (!api) return ENPU_HAL_UNAVAILABLE;
    std::lock_guard lock(table().mutex);
    for (Gpu* each : table().live) {
        if (each->index != index || each->is_lost()) continue;
        ++each->users_;
        *gpu = each;
        return ENPU_HAL_OK;
    }
    std::unique_ptr<Gpu> made(new Gpu(*api, index));
    if (uint32_t code = made->create(status)) {
        made->destroy();
        return code;
    }
    made->users_ = 1;
    table().live.push_back(made.get());
    *gpu = made.release();
    return ENPU_HAL_OK;
}

void Gpu::release(Gpu* gpu) {
    std::lock_guard lock(table().mutex);
    if (--gpu->users_ != 0) return;
    if (!gpu->is_lost()) {  // kept for the next opening, but not the memory
        const InContext in(*gpu);
        if (gpu->pool) gpu->api.cuMemPoolTrimTo(gpu->pool, 0);
        return;
    }
    std::erase(table().live, gpu);
    gpu->destroy();
    delete gpu;
}

uint32_t Gpu::create(enpu_hal_status* status) {
    if (uint32_t code = describe(api, index, info, status)) return code;
    if (!info.unified_addressing)
        return fail(status, ENPU_HAL_UNAVAILABLE,
                    "cuda:%d: the GPU has no unified addressing, which this backend needs", index);
    DeviceId device = 0;
    Result error = api.cuDeviceGet(&device, index);
    if (error == kSuccess) error = api.cuCtxCreate(&context, kContextBlockingSync, device);
    if (error != kSuccess) {
        fail_driver(status, api, ENPU_HAL_UNAVAILABLE, error, "cuda: making a context");
        // Whatever the reason: there is no device to work with.
        if (status) status->code = ENPU_HAL_UNAVAILABLE;
        return ENPU_HAL_UNAVAILABLE;
    }
    Context popped = nullptr;
    api.cuCtxPopCurrent(&popped);  // cuCtxCreate leaves it current
    const InContext in(*this);
    error = api.cuStreamCreateWithPriority(&memory_stream, kStreamNonBlocking, 0);
    if (error == kSuccess && info.pools) {
        PoolProps props{};
        props.alloc_type = props.location_type = 1;
        props.location_id = index;
        error = api.cuMemPoolCreate(&pool, &props);
        uint64_t keep = UINT64_MAX;  // what was freed is given back when an allocation fails
        if (error == kSuccess) error = api.cuMemPoolSetAttribute(pool, kReleaseThreshold, &keep);
    }
    if (error != kSuccess)
        return fail_driver(status, api, ENPU_HAL_UNAVAILABLE, error, "cuda: preparing the GPU");
    kernels.load(api);
    libraries.open(info.driver_version);
    log_line(ENPU_HAL_LOG_INFO, "cuda:%d: %s. %s", index, libraries.text().c_str(),
             libraries.reasons().c_str());
    return ENPU_HAL_OK;
}

void Gpu::destroy() {
    // Destroying a context waits for its work: not where that may never end.
    if (!context || hung_.load()) {
        libraries.abandon();
        return;
    }
    {
        const InContext in(*this);
        libraries.close();
        kernels.unload(api);
        if (pool) api.cuMemPoolDestroy(pool);
        if (memory_stream) api.cuStreamDestroy(memory_stream);
    }
    api.cuCtxDestroy(context);
    context = nullptr;
}

// Until the allocations in the memory stream have happened.
uint32_t Gpu::wait_for_pool(enpu_hal_status* status) {
    const uint64_t deadline = now_ns() + kPoolDeadlineNs;
    for (unsigned round = 0;; ++round) {
        const Result error = api.cuStreamQuery(memory_stream);
        if (error != kNotReady)
            return result(status, ENPU_HAL_INTERNAL, error, "alloc: cuStreamQuery");
        if (now_ns() > deadline)
            return fail(status, ENPU_HAL_DEADLINE_EXCEEDED,
                        "alloc: the driver's pool did not answer within 10 s");
        if (round < 100)
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

uint32_t Gpu::take(uint64_t bytes, DevicePtr* address, enpu_hal_status* status) {
    constexpr const char* kWhat = "alloc: local memory";
    if (!pool)
        return result(status, ENPU_HAL_RESOURCE_EXHAUSTED, api.cuMemAlloc(address, bytes), kWhat);
    Result error = api.cuMemAllocFromPoolAsync(address, bytes, pool, memory_stream);
    if (error == kOutOfMemory) {
        // Pieces of the pool that lie idle may be what is missing.
        api.cuMemPoolTrimTo(pool, 0);
        error = api.cuMemAllocFromPoolAsync(address, bytes, pool, memory_stream);
    }
    if (uint32_t code = result(status, ENPU_HAL_RESOURCE_EXHAUSTED, error, kWhat)) return code;
    return wait_for_pool(status);
}

void Gpu::give_back(DevicePtr address) {
    if (pool)
        api.cuMemFreeAsync(address, memory_stream);
    else
        api.cuMemFree(address);
}

void Gpu::lose(const enpu_hal_status& why, bool hung) {
    std::lock_guard lock(mutex_);
    if (hung) hung_.store(true);
    if (lost_.load()) return;
    fail_device(&loss_, ENPU_HAL_DEVICE_LOST, why.device_code,
                "cuda:%d is lost: %.170s; close it and open it again", index, why.message);
    loss_.op_id = why.op_id;
    lost_.store(true);
}

uint32_t Gpu::check(enpu_hal_status* status) {
    if (!is_lost()) return ENPU_HAL_OK;
    std::lock_guard lock(mutex_);
    return fail_as(status, loss_);
}

uint32_t Gpu::result(enpu_hal_status* status, uint32_t code, Result error, const char* what) {
    if (error == kSuccess) return ENPU_HAL_OK;
    enpu_hal_status why{};
    code = fail_driver(&why, api, code, error, what);
    if (is_sticky(error)) lose(why, false);
    return fail_as(status, why);
}

}  // namespace enpu::hal::cuda
