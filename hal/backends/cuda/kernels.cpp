// SPDX-License-Identifier: MIT
#include "kernels.h"

#include "images.h"
#include "status.h"

namespace enpu::hal::cuda {
namespace {

constexpr const char* kNames[] = {
#define ENPU_CUDA_NAME(id, name) name,
    ENPU_CUDA_KERNELS(ENPU_CUDA_NAME)
#undef ENPU_CUDA_NAME
};

}  // namespace

const char* kernel_name(KernelId id) {
    return id < KernelId::kCount ? kNames[static_cast<size_t>(id)] : "unknown";
}

// Each image holds the kernels of a family; a name that is not in this one is in another.
Result KernelSet::find(const Driver& api, Module module) {
    for (size_t i = 0; i < kKernels; ++i) {
        Function function = nullptr;
        const Result error = api.cuModuleGetFunction(&function, module, kNames[i]);
        if (error == kNotFound) continue;
        if (error != kSuccess) return error;
        functions_[i] = function;
    }
    return kSuccess;
}

void KernelSet::load(const Driver& api) {
    const auto images = kernel_images();
    if (images.empty()) {
        fail(&reason_, ENPU_HAL_UNSUPPORTED, "the backend was built without nvcc, so it has none");
        return;
    }
    for (const void* image : images) {
        Module module = nullptr;
        Result error = api.cuModuleLoadData(&module, image);
        if (error == kSuccess) {
            modules_.push_back(module);
            error = find(api, module);
        }
        if (error == kSuccess) continue;
        fail_device(&reason_, ENPU_HAL_UNSUPPORTED, error, "the driver does not load them: %s",
                    error_text(api, error).text);
        return;
    }
    for (size_t i = 0; i < kKernels; ++i) {
        if (functions_[i]) continue;
        fail(&reason_, ENPU_HAL_UNSUPPORTED, "the images lack %s", kNames[i]);
        return;
    }
    available_ = true;
}

void KernelSet::unload(const Driver& api) {
    for (Module module : modules_) api.cuModuleUnload(module);
    modules_.clear();
    available_ = false;
}

}  // namespace enpu::hal::cuda
