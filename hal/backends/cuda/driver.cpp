// SPDX-License-Identifier: MIT
#include "driver.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "status.h"

namespace enpu::hal::cuda {
namespace {

struct Loaded {
    Driver driver;
    bool usable = false;
    enpu_hal_status reason{};
};

const char* library_name() {
    const char* name = std::getenv("ENPU_CUDA_LIBRARY");
    return name && name[0] ? name : "libcuda.so.1";
}

// All functions of the list, each with the signature of the version named there.
bool resolve(void* library, Driver& driver, enpu_hal_status* reason) {
    const auto get = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
    if (!get) {
        fail(reason, ENPU_HAL_UNAVAILABLE,
             "no CUDA device: %.120s is older than CUDA 12.0 (it has no cuGetProcAddress_v2)",
             library_name());
        return false;
    }
    const auto find = [&](const char* name, int version, void** function) {
        int found = 0;
        const Result result = get(name, function, version, 0, &found);
        if (result == kSuccess && *function) return true;
        fail_device(reason, ENPU_HAL_UNAVAILABLE, result,
                    "no CUDA device: %.120s has no %s of CUDA %d.%d", library_name(), name,
                    version / 1000, version % 1000 / 10);
        return false;
    };
#define ENPU_CUDA_FIND(name, version, parameters) \
    if (!find(#name, version, reinterpret_cast<void**>(&driver.name))) return false;
    ENPU_CUDA_FUNCTIONS(ENPU_CUDA_FIND)
#undef ENPU_CUDA_FIND
    return true;
}

void load(Loaded& loaded) {
    // A driver starts threads of its own: it stays for the life of the process.
    void* library = dlopen(library_name(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char* error = dlerror();
        fail(&loaded.reason, ENPU_HAL_UNAVAILABLE, "no CUDA device: %.200s",
             error ? error : "the driver library cannot be loaded");
        return;
    }
    if (!resolve(library, loaded.driver, &loaded.reason)) return;
    const Result result = loaded.driver.cuInit(0);
    if (result == kStubLibrary) {
        fail_device(&loaded.reason, ENPU_HAL_UNAVAILABLE, result,
                    "no CUDA device: %.120s is the toolkit's stub, not a driver", library_name());
        return;
    }
    if (result != kSuccess) {
        fail_device(&loaded.reason, ENPU_HAL_UNAVAILABLE, result, "no CUDA device: cuInit: %s",
                    error_text(loaded.driver, result).text);
        return;
    }
    loaded.usable = true;
}

}  // namespace

const Driver* driver(enpu_hal_status* status) {
    static std::once_flag once;
    static Loaded loaded;
    std::call_once(once, [] { load(loaded); });
    if (loaded.usable) return &loaded.driver;
    fail_as(status, loaded.reason);
    return nullptr;
}

namespace {
std::atomic<const enpu_hal_host*> log_host{nullptr};
}  // namespace

void set_host(const enpu_hal_host& host) {
    log_host.store(&host);
}

void log_line(uint32_t level, const char* format, ...) {
    const enpu_hal_host* host = log_host.load();
    if (!host || !host->log) return;
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    host->log(host->context, level, line);
}

ErrorText error_text(const Driver& driver, Result error) {
    const char* name = nullptr;
    const char* words = nullptr;
    ErrorText result;
    if (driver.cuGetErrorName(error, &name) != kSuccess || !name) {
        std::snprintf(result.text, sizeof(result.text), "error %d, which the driver cannot name",
                      error);
        return result;
    }
    if (driver.cuGetErrorString(error, &words) != kSuccess || !words) words = "no explanation";
    std::snprintf(result.text, sizeof(result.text), "%.60s (%.90s)", name, words);
    return result;
}

bool is_sticky(Result error) {
    switch (static_cast<int>(error)) {
        case kDeinitialized:
        case kDeviceUnavailable:
        case kEccUncorrectable:
        case 220:  // NVLINK_UNCORRECTABLE
        case 226:  // CONTAINED
        case kIllegalAddress:
        case 702:  // LAUNCH_TIMEOUT
        case 709:  // CONTEXT_IS_DESTROYED
        case 710:  // ASSERT
        case 714:  // HARDWARE_STACK_ERROR
        case 715:  // ILLEGAL_INSTRUCTION
        case 716:  // MISALIGNED_ADDRESS
        case 717:  // INVALID_ADDRESS_SPACE
        case 718:  // INVALID_PC
        case kLaunchFailed:
        case 721:  // TENSOR_MEMORY_LEAK
        case 911:  // EXTERNAL_DEVICE
        case kUnknown:
            return true;
        default:
            return false;
    }
}

uint32_t fail_driver(enpu_hal_status* status, const Driver& driver, uint32_t code, Result error,
                     const char* what) {
    if (error == kOutOfMemory) code = ENPU_HAL_RESOURCE_EXHAUSTED;
    if (is_sticky(error)) code = ENPU_HAL_DEVICE_LOST;
    return fail_device(status, code, error, "%.90s: %s", what, error_text(driver, error).text);
}

}  // namespace enpu::hal::cuda
