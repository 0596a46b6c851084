// SPDX-License-Identifier: MIT
// Loading, errors, devices and contexts of the double, and its control.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "double.h"

namespace enpu::hal::cuda::fake {
namespace {

thread_local std::vector<Context> context_stack;

int device_count() {
    return static_cast<int>(env_number("ENPU_CUDA_DOUBLE_DEVICES", 1));
}

struct Name {
    int value;
    const char* name;
    const char* words;
};
constexpr Name kNames[] = {
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kStubLibrary, "CUDA_ERROR_STUB_LIBRARY", "this is the stub"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kNoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image fits this device"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "not ready"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

const Name* find_name(int value) {
    for (const Name& each : kNames)
        if (each.value == value) return &each;
    return nullptr;
}

}  // namespace

World& world() {
    static World* all = new World;  // threads of streams may outlive static objects
    return *all;
}

uint64_t env_number(const char* name, uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

uint64_t device_bytes() {
    return env_number("ENPU_CUDA_DOUBLE_MEMORY", 256u << 20);
}

ContextObject* current() {
    return context_stack.empty() ? nullptr : context_stack.back();
}

Result enter(const char* function, bool needs_context) {
    {
        World& w = world();
        std::lock_guard lock(w.mutex);
        ++w.calls[function];
        const auto found = w.failures.find(function);
        if (found != w.failures.end() && found->second.count != 0) {
            if (found->second.skip == 0) {
                --found->second.count;
                return static_cast<Result>(found->second.result);
            }
            --found->second.skip;
        }
    }
    if (!needs_context) return kSuccess;
    if (!current()) return kInvalidContext;
    return static_cast<Result>(current()->sticky.load());
}

Result cuInit(unsigned flags) {
    if (flags != 0) return kInvalidValue;
    return static_cast<Result>(env_number("ENPU_CUDA_DOUBLE_INIT", 0));
}

Result cuDriverGetVersion(int* version) {
    *version = 12040;
    return kSuccess;
}

Result cuGetErrorName(Result error, const char** text) {
    const Name* name = find_name(error);
    *text = name ? name->name : nullptr;
    return name ? kSuccess : kInvalidValue;
}

Result cuGetErrorString(Result error, const char** text) {
    const Name* name = find_name(error);
    *text = name ? name->words : nullptr;
    return name ? kSuccess : kInvalidValue;
}

Result cuDeviceGetCount(int* count) {
    if (const Result injected = enter("cuDeviceGetCount", false)) return injected;
    *count = device_count();
    return kSuccess;
}

Result cuDeviceGet(DeviceId* device, int ordinal) {
    if (ordinal < 0 || ordinal >= device_count()) return kInvalidDevice;
    *device = ordinal;
    return kSuccess;
}

Result cuDeviceGetName(char* name, int bytes, DeviceId) {
    std::snprintf(name, static_cast<size_t>(bytes), "CUDA driver double");
    return kSuccess;
}

Result cuDeviceGetAttribute(int* value, Attribute attribute, DeviceId) {
    switch (attribute) {
        case kMaxPitch:
            *value = INT32_MAX;
            return kSuccess;
        case kMemoryPoolsSupported:
            *value = env_number("ENPU_CUDA_DOUBLE_POOLS", 1) != 0;
            return kSuccess;
        case kComputeMajor:
            *value = 9;
            return kSuccess;
        case kComputeMinor:
            *value = 0;
            return kSuccess;
        case kMultiprocessorCount:
        case kAsyncEngineCount:
        case kUnifiedAddressing:
        case kHostRegisterSupported:
            *value = 1;
            return kSuccess;
    }
    return kInvalidValue;
}

Result cuDeviceTotalMem(size_t* bytes, DeviceId) {
    *bytes = device_bytes();
    return kSuccess;
}

Result cuCtxCreate(Context* context, unsigned, DeviceId device) {
    if (const Result injected = enter("cuCtxCreate", false)) return injected;
    std::lock_guard lock(world().mutex);
    *context = &world().contexts.emplace_back();
    (*context)->device = device;
    context_stack.push_back(*context);
    ++world().live.contexts;
    return kSuccess;
}

// Not deleted: threads of streams that hang may still look at it.
Result cuCtxDestroy(Context) {
    if (const Result injected = enter("cuCtxDestroy", false)) return injected;
    std::lock_guard lock(world().mutex);
    --world().live.contexts;
    return kSuccess;
}

Result cuCtxPushCurrent(Context context) {
    if (!context) return kInvalidContext;
    context_stack.push_back(context);
    return kSuccess;
}

Result cuCtxPopCurrent(Context* context) {
    if (context_stack.empty()) return kInvalidContext;
    *context = context_stack.back();
    context_stack.pop_back();
    return kSuccess;
}

Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    ENPU_DOUBLE_ENTER(cuCtxGetStreamPriorityRange);
    *least = 0;
    *greatest = -5;
    return kSuccess;
}

namespace {

bool has_kernels() {
    return env_number("ENPU_CUDA_DOUBLE_KERNELS", 0) != 0;
}

}  // namespace

// No code fits this device, unless launches are to be counted: a function is its name then.
Result cuModuleLoadData(Module* module, const void* image) {
    ENPU_DOUBLE_ENTER(cuModuleLoadData);
    if (!has_kernels()) return kNoBinaryForGpu;
    *module = reinterpret_cast<Module>(const_cast<void*>(image));
    return kSuccess;
}
Result cuModuleUnload(Module) {
    return has_kernels() ? kSuccess : kInvalidValue;
}
Result cuModuleGetFunction(Function* function, Module, const char* name) {
    if (!has_kernels()) return kNotFound;
    *function = reinterpret_cast<Function>(const_cast<char*>(name));
    return kSuccess;
}
Result cuLaunchKernel(Function function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                      unsigned, Stream stream, void**, void**) {
    if (!has_kernels()) return kNotSupported;
    ENPU_DOUBLE_ENTER(cuLaunchKernel);
    if (const Result injected = enter(reinterpret_cast<const char*>(function))) return injected;
    return enqueue(stream, [] { return kSuccess; });
}

namespace {

void* find_function(const char* symbol) {
    static const Driver kDriver = {
#define ENPU_DOUBLE_SLOT(name, version, parameters) name,
        ENPU_CUDA_FUNCTIONS(ENPU_DOUBLE_SLOT)
#undef ENPU_DOUBLE_SLOT
    };
    const char* missing = std::getenv("ENPU_CUDA_DOUBLE_MISSING");
    if (missing && std::strcmp(missing, symbol) == 0) return nullptr;
#define ENPU_DOUBLE_FIND(name, version, parameters) \
    if (std::strcmp(symbol, #name) == 0) return reinterpret_cast<void*>(kDriver.name);
    ENPU_CUDA_FUNCTIONS(ENPU_DOUBLE_FIND)
#undef ENPU_DOUBLE_FIND
    return nullptr;
}

}  // namespace
}  // namespace enpu::hal::cuda::fake

#define ENPU_DOUBLE_EXPORT __attribute__((visibility("default")))

extern "C" {

ENPU_DOUBLE_EXPORT enpu::hal::cuda::Result cuGetProcAddress_v2(const char* symbol, void** function,
                                                               int, uint64_t, int* found) {
    *function = enpu::hal::cuda::fake::find_function(symbol);
    if (found) *found = *function ? 0 : 1;
    return *function ? enpu::hal::cuda::kSuccess : enpu::hal::cuda::kNotFound;
}

ENPU_DOUBLE_EXPORT void enpu_cuda_double_live(struct enpu_cuda_double_objects* live) {
    auto& w = enpu::hal::cuda::fake::world();
    std::lock_guard lock(w.mutex);
    *live = w.live;
}

ENPU_DOUBLE_EXPORT uint64_t enpu_cuda_double_calls(const char* function) {
    auto& w = enpu::hal::cuda::fake::world();
    std::lock_guard lock(w.mutex);
    return w.calls[function];
}

ENPU_DOUBLE_EXPORT void enpu_cuda_double_fail(const char* function, uint64_t skip, uint64_t count,
                                              int result) {
    auto& w = enpu::hal::cuda::fake::world();
    std::lock_guard lock(w.mutex);
    w.failures[function] = {skip, count, result};
}

ENPU_DOUBLE_EXPORT void enpu_cuda_double_break(int result) {
    enpu::hal::cuda::fake::world().breaking.store(result);
}

ENPU_DOUBLE_EXPORT void enpu_cuda_double_hang(int hang) {
    auto& w = enpu::hal::cuda::fake::world();
    {
        std::lock_guard lock(w.hang_mutex);
        w.hang = hang != 0;
    }
    w.hang_changed.notify_all();
}

ENPU_DOUBLE_EXPORT void enpu_cuda_double_delay_us(uint64_t microseconds) {
    enpu::hal::cuda::fake::world().delay_us.store(microseconds);
}

}  // extern "C"
