// SPDX-License-Identifier: MIT
// What PyTorch asks an accelerator: is it there, its generator, its pinned memory.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "device.h"
#include "memory.h"
#include "random.h"

namespace enpu::pytorch {
namespace {

class Hooks final : public at::PrivateUse1HooksInterface {
  public:
    bool isBuilt() const override { return true; }
    bool isAvailable() const override {
        try {
            Runtime::get();
            return true;
        } catch (const c10::Error&) {
            return false;
        }
    }
    bool hasPrimaryContext(c10::DeviceIndex) const override { return Runtime::opened(); }
    void init() const override { Runtime::get(); }
    c10::DeviceIndex deviceCount() const override { return 1; }
    void setCurrentDevice(c10::DeviceIndex index) const override {
        TORCH_CHECK(index == 0, "enpu: there is one device, not index ", static_cast<int>(index));
    }
    c10::DeviceIndex getCurrentDevice() const override { return 0; }
    c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
        setCurrentDevice(index);
        return 0;
    }
    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }

    const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
        return default_generator();
    }
    at::Generator getNewGenerator(c10::DeviceIndex) const override { return new_generator(); }

    at::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
    bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
    at::Device getDeviceFromPtr(void*) const override { return npu(); }

    void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
        resize_storage(storage.unsafeGetStorageImpl(), bytes);
    }
};

const bool registered = [] {
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    return true;
}();

}  // namespace
}  // namespace enpu::pytorch
