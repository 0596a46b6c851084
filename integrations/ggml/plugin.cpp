// SPDX-License-Identifier: MIT
// What ggml's loader calls. ENPU_DEVICE names the device (default: npu).
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "device.h"

namespace enpu::ggml {
namespace {

struct Registry {
    ggml_backend_reg base{};
    std::unique_ptr<Device> device;
};

Registry& registry() {
    // Never destroyed: ggml keeps backends until after the destructors of the program have run.
    static auto* instance = new Registry;
    return *instance;
}

const char* get_name(ggml_backend_reg_t) {
    return "enpu";
}

size_t get_device_count(ggml_backend_reg_t) {
    return registry().device ? 1 : 0;
}

ggml_backend_dev_t get_device(ggml_backend_reg_t, size_t index) {
    return index == 0 && registry().device ? &registry().device->base : nullptr;
}

bool fits_host() {
    const std::string version = ggml_version();
    if (version.rfind(kVersionPrefix, 0) == 0) return true;
    report("enpu: this backend speaks API " + std::to_string(kApiVersion) + " of ggml " +
           kVersionPrefix + "x, the host is ggml " + version + "; build it for that version");
    return false;
}

ggml_backend_reg_t init() {
    Registry& r = registry();
    static std::once_flag once;
    std::call_once(once, [&] {
        r.base.api_version = kApiVersion;
        r.base.iface.get_name = get_name;
        r.base.iface.get_device_count = get_device_count;
        r.base.iface.get_device = get_device;
        const char* spec = std::getenv("ENPU_DEVICE");
        guarded("enpu", [&] {
            r.device = std::make_unique<Device>(spec ? spec : "npu", 0);
            fill_device(*r.device, &r.base);
        });
        std::atexit([] {
            if (registry().device) write_report(*registry().device, true);
        });
    });
    return &r.base;
}

}  // namespace
}  // namespace enpu::ggml

extern "C" {
__attribute__((visibility("default"))) ggml_backend_reg_t ggml_backend_init(void);
__attribute__((visibility("default"))) int ggml_backend_score(void);

ggml_backend_reg_t ggml_backend_init(void) {
    return enpu::ggml::fits_host() ? enpu::ggml::init() : nullptr;
}

// 0: not usable here.
int ggml_backend_score(void) {
    return enpu::ggml::fits_host() ? 100 : 0;
}
}
