// SPDX-License-Identifier: MIT
// The plug-in: its factory, and the two functions that ONNX Runtime looks up.
#include "ep.h"

namespace enpu::ort {

uint32_t api_version = 0;

namespace {

class Factory : public OrtEpFactory {
  public:
    Factory() : OrtEpFactory{} {
        ort_version_supported = api_version;
        GetName = [](const OrtEpFactory*) noexcept { return kEpName; };
        GetVendor = [](const OrtEpFactory*) noexcept { return kVendor; };
        GetVendorId = [](const OrtEpFactory*) noexcept { return kVendorId; };
        GetVersion = [](const OrtEpFactory*) noexcept { return kEpVersion; };
        GetSupportedDevices = supported_devices;
        CreateEp = create_ep;
        ReleaseEp = [](OrtEpFactory*, OrtEp* ep) noexcept { delete static_cast<Ep*>(ep); };
        CreateAllocator = [](OrtEpFactory* self, const OrtMemoryInfo* info, const OrtKeyValuePairs*,
                             OrtAllocator** allocator) noexcept -> OrtStatus* {
            *allocator = nullptr;
            return guarded([&] { *allocator = make_allocator(memory_of(self), info); });
        };
        ReleaseAllocator = [](OrtEpFactory*, OrtAllocator* allocator) noexcept {
            release_allocator(allocator);
        };
        CreateDataTransfer = [](OrtEpFactory* self,
                                OrtDataTransferImpl** transfer) noexcept -> OrtStatus* {
            *transfer = nullptr;
            return guarded([&] { *transfer = make_data_transfer(memory_of(self)); });
        };
        IsStreamAware = [](const OrtEpFactory*) noexcept { return true; };
        CreateSyncStreamForDevice = [](OrtEpFactory* self, const OrtMemoryDevice* device,
                                       const OrtKeyValuePairs*,
                                       OrtSyncStreamImpl** stream) noexcept -> OrtStatus* {
            *stream = nullptr;
            const bool ours =
                Ort::GetEpApi().MemoryDevice_GetDeviceType(device) == OrtMemoryInfoDeviceType_NPU;
            return guarded([&] {
                if (ours) *stream = make_sync_stream(memory_of(self));
            });
        };
    }

  private:
    static std::shared_ptr<SharedDevice> memory_of(OrtEpFactory* self) {
        return static_cast<Factory*>(self)->memory_;
    }

    // ONNX Runtime does not discover accelerators of this kind: the provider is offered for the
    // CPU, and says in its metadata what it is. It is offered twice: with operands in host memory,
    // and with operands in the device's memory.
    static OrtStatus* supported_devices(OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                                        size_t count, OrtEpDevice** ep_devices, size_t max_devices,
                                        size_t* made) noexcept {
        *made = 0;
        return guarded([&] {
            for (size_t i = 0; i < count; ++i) {
                if (Ort::GetApi().HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU)
                    continue;
                for (const char* memory : {kHostMemory, kDeviceMemory}) {
                    if (*made == max_devices) return;
                    ep_devices[*made] = offer(*static_cast<Factory*>(self), devices[i], memory);
                    ++*made;
                }
                return;
            }
        });
    }

    static OrtEpDevice* offer(Factory& self, const OrtHardwareDevice* hardware,
                              const char* memory) {
        Ort::KeyValuePairs metadata;
        metadata.Add("device", "enpu");
        metadata.Add("os_driver", "enpu.ko");
        metadata.Add(kMemoryKey, memory);
        OrtEpDevice* device = nullptr;
        Ort::ThrowOnError(
            Ort::GetEpApi().CreateEpDevice(&self, hardware, metadata, nullptr, &device));
        if (std::string(memory) == kDeviceMemory) {
            for (const Ort::MemoryInfo& info : self.memory_infos_) {
                Ort::ThrowOnError(Ort::GetEpApi().EpDevice_AddAllocatorInfo(device, info));
            }
        }
        return device;
    }

    static OrtStatus* create_ep(OrtEpFactory* self, const OrtHardwareDevice* const*,
                                const OrtKeyValuePairs* const* metadata, size_t count,
                                const OrtSessionOptions* options, const OrtLogger* logger,
                                OrtEp** ep) noexcept {
        *ep = nullptr;
        return guarded([&] {
            const EpOptions read = read_options(options);
            const char* memory =
                count ? Ort::GetApi().GetKeyValue(metadata[0], kMemoryKey) : nullptr;
            std::shared_ptr<SharedDevice> shared;
            if (memory && std::string(memory) == kDeviceMemory) {
                shared = memory_of(self);
                check_shared(read, *shared);
            }
            *ep = new Ep(read, std::move(shared), logger);
        });
    }

    // What is offered with the device's memory is one device, that of the process.
    static void check_shared(const EpOptions& options, const SharedDevice& shared) {
        if (options.device != shared.spec()) {
            lowering::fail("option device is '" + options.device +
                           "', but operands are in the memory of '" + shared.spec() +
                           "' (ENPU_DEVICE when the library was registered)");
        }
        if (options.cpu_on_failure) {
            lowering::fail("on_failure=cpu needs operands in host memory");
        }
    }

    static Ort::MemoryInfo memory_info(OrtDeviceMemoryType type) {
        OrtMemoryInfo* info = nullptr;
        Ort::ThrowOnError(Ort::GetApi().CreateMemoryInfo_V2(
            "enpu", OrtMemoryInfoDeviceType_NPU, kVendorId, 0, type, 0, OrtDeviceAllocator, &info));
        return Ort::MemoryInfo(info);
    }

    static constexpr const char* kMemoryKey = "memory";
    static constexpr const char* kHostMemory = "host";
    static constexpr const char* kDeviceMemory = "device";
    std::shared_ptr<SharedDevice> memory_ = std::make_shared<SharedDevice>(default_device());
    Ort::MemoryInfo memory_infos_[2] = {memory_info(OrtDeviceMemoryType_DEFAULT),
                                        memory_info(OrtDeviceMemoryType_HOST_ACCESSIBLE)};
};

// The newest API that both sides know, or nullptr.
const OrtApi* agree(const OrtApiBase* base) {
    for (uint32_t version = ORT_API_VERSION; version >= kOldestApi; --version) {
        if (const OrtApi* api = base->GetApi(version)) {
            api_version = version;
            return api;
        }
    }
    return nullptr;
}

}  // namespace
}  // namespace enpu::ort

extern "C" {

__attribute__((visibility("default"))) OrtStatus* CreateEpFactories(
    const char*, const OrtApiBase* base, const OrtLogger*, OrtEpFactory** factories,
    size_t max_factories, size_t* count) {
    using namespace enpu::ort;
    *count = 0;
    const OrtApi* api = agree(base);
    if (!api) {
        const OrtApi* any = base->GetApi(1);
        const std::string text =
            "the enpu execution provider needs ONNX Runtime 1.23 or newer, this is " +
            std::string(base->GetVersionString());
        return any ? any->CreateStatus(ORT_NOT_IMPLEMENTED, text.c_str()) : nullptr;
    }
    Ort::InitApi(api);
    if (max_factories < 1) return api->CreateStatus(ORT_INVALID_ARGUMENT, "no room for a factory");
    return guarded([&] {
        factories[0] = new Factory();
        *count = 1;
    });
}

__attribute__((visibility("default"))) OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
    delete static_cast<enpu::ort::Factory*>(factory);
    return nullptr;
}
}
