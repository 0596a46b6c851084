// SPDX-License-Identifier: MIT
// Devices of the runtime as devices of ggml.
#ifndef ENPU_GGML_DEVICE_H
#define ENPU_GGML_DEVICE_H

#include <memory>
#include <string>

#include "abi.h"
#include "program_cache.h"
#include "session.h"

namespace enpu::ggml {

// One device: opened once a process. Its session's stream serves buffers; each backend (ggml's
// word for a stream) has a stream of its own.
struct Device {
    explicit Device(const std::string& spec, size_t index);

    ggml_backend_device base{};
    ggml_backend_buffer_type buffer_type{};
    std::string name;         // "NPU0"
    std::string description;  // of the runtime
    std::shared_ptr<lowering::DeviceSession> session;
    std::unique_ptr<ProgramCache> programs;
    Counters counters;
};

inline Device& device_of(ggml_backend_dev_t device) {
    return *static_cast<Device*>(device->context);
}

void fill_device(Device& device, ggml_backend_reg_t reg);       // device.cpp
ggml_backend_buffer_type make_buffer_type(Device& device);      // buffer.cpp
ggml_backend_t make_backend(Device& device);                    // backend.cpp
bool is_ours(ggml_backend_buffer_type_t type, Device& device);  // buffer.cpp

// The file that ENPU_GGML_REPORT names, if any; while graphs run at most once a second.
void write_report(const Device& device, bool at_end);
// ggml's log at error level; `what` is one sentence.
void report(const std::string& what);
// Runs `body`; an exception becomes a log line and false.
template <class Body>
bool guarded(const char* where, Body&& body) {
    try {
        body();
        return true;
    } catch (const std::exception& error) {
        report(std::string(where) + ": " + error.what());
        return false;
    }
}

}  // namespace enpu::ggml
#endif
