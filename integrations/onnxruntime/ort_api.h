// SPDX-License-Identifier: MIT
// ONNX Runtime's C++ wrapper without linking its library: the API pointer is given at load time.
#ifndef ENPU_ORT_API_H
#define ENPU_ORT_API_H

#define ORT_API_MANUAL_INIT
#include <onnxruntime_cxx_api.h>
#undef ORT_API_MANUAL_INIT

namespace enpu::ort {

// Oldest ONNX Runtime that shows graphs to plug-ins.
constexpr uint32_t kOldestApi = 23;
constexpr const char* kEpName = "EnpuExecutionProvider";
constexpr const char* kVendor = "enpu";
constexpr uint32_t kVendorId = 0x1234;
constexpr const char* kEpVersion = "0.1.0";

// The API version that was agreed with the host; goes into every structure that ORT reads.
extern uint32_t api_version;

// Runs what may throw; an exception becomes an OrtStatus. Nothing leaves the plug-in by throwing.
template <class F>
OrtStatus* guarded(F&& body) noexcept {
    try {
        body();
        return nullptr;
    } catch (const Ort::Exception& error) {
        return Ort::GetApi().CreateStatus(error.GetOrtErrorCode(), error.what());
    } catch (const std::exception& error) {
        return Ort::GetApi().CreateStatus(ORT_EP_FAIL, error.what());
    } catch (...) {
        return Ort::GetApi().CreateStatus(ORT_EP_FAIL, "unknown failure");
    }
}

}  // namespace enpu::ort
#endif
