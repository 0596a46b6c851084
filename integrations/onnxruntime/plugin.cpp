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
        CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                             OrtAllocator** allocator) noexcept -> OrtStatus* {
            *allocator = nullptr;
            return nullptr;
        };
        ReleaseAllocator = [](OrtEpFactory*, OrtAllocator*) noexcept {};
        CreateDataTransfer = [](OrtEpFactory*,
                                OrtDataTransferImpl** transfer) noexcept -> OrtStatus* {
            *transfer = nullptr;
            return nullptr;
        };
        IsStreamAware = [](const OrtEpFactory*) noexcept { return false; };
        CreateSyncStreamForDevice = [](OrtEpFactory*, const OrtMemoryDevice*,
                                       const OrtKeyValuePairs*,
                                       OrtSyncStreamImpl** stream) noexcept -> OrtStatus* {
            *stream = nullptr;
            return nullptr;
        };
    }

  private:
    // ONNX Runtime does not discover accelerators of this kind: the provider is offered for the
    // CPU, and says in its metadata what it is.
    static OrtStatus* supported_devices(OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                                        size_t count, OrtEpDevice** ep_devices, size_t max_devices,
                                        size_t* made) noexcept {
        *made = 0;
        return guarded([&] {
            for (size_t i = 0; i < count && *made < max_devices; ++i) {
                if (Ort::GetApi().HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU)
                    continue;
                Ort::KeyValuePairs metadata;
                metadata.Add("device", "enpu");
                metadata.Add("os_driver", "enpu.ko");
                Ort::ThrowOnError(Ort::GetEpApi().CreateEpDevice(self, devices[i], metadata,
                                                                 nullptr, &ep_devices[*made]));
                ++*made;
                return;
            }
        });
    }

    static OrtStatus* create_ep(OrtEpFactory*, const OrtHardwareDevice* const*,
                                const OrtKeyValuePairs* const*, size_t,
                                const OrtSessionOptions* options, const OrtLogger* logger,
                                OrtEp** ep) noexcept {
        *ep = nullptr;
        return guarded([&] { *ep = new Ep(read_options(options), logger); });
    }
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
