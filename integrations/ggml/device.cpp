// SPDX-License-Identifier: MIT
#include "device.h"

#include <cstdio>

namespace enpu::ggml {
namespace {

const char* get_name(ggml_backend_dev_t device) {
    return device_of(device).name.c_str();
}

const char* get_description(ggml_backend_dev_t device) {
    return device_of(device).description.c_str();
}

void get_memory(ggml_backend_dev_t device, size_t* free, size_t* total) {
    rt_device_info info{};
    info.struct_size = sizeof(info);
    *free = *total = 0;
    rt_status status = rt_device_get_info(device_of(device).session->device(), &info);
    if (status == RT_OK) {
        *free = info.local_free;
        *total = info.local_bytes;
    }
    rt_status_free(status);
}

// With memory of its own it takes weights, as a GPU does; ACCEL means a helper beside the CPU.
enum ggml_backend_dev_type get_type(ggml_backend_dev_t) {
    return GGML_BACKEND_DEVICE_TYPE_GPU;
}

void get_props(ggml_backend_dev_t device, ggml_backend_dev_props* props) {
    *props = {};
    props->name = get_name(device);
    props->description = get_description(device);
    get_memory(device, &props->memory_free, &props->memory_total);
    props->type = get_type(device);
    props->caps.async = true;
    props->caps.events = true;
}

ggml_backend_t init_backend(ggml_backend_dev_t device, const char*) {
    ggml_backend_t backend = nullptr;
    guarded("enpu: backend", [&] { backend = make_backend(device_of(device)); });
    return backend;
}

ggml_backend_buffer_type_t get_buffer_type(ggml_backend_dev_t device) {
    return &device_of(device).buffer_type;
}

bool supports_op(ggml_backend_dev_t device, const ggml_tensor* op) {
    if (ggml_is_empty(op)) return true;
    return why_not(*device_of(device).session, op).empty();
}

bool supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t type) {
    return is_ours(type, device_of(device));
}

ggml_backend_event_t event_new(ggml_backend_dev_t device) {
    rt_event event = nullptr;
    const bool ok = guarded("enpu: event", [&] {
        lowering::check(rt_event_create(device_of(device).session->device(), 0, &event), "event");
    });
    return ok ? new ggml_backend_event{device, event} : nullptr;
}

void event_free(ggml_backend_dev_t, ggml_backend_event_t event) {
    if (!event) return;
    rt_event_destroy(static_cast<rt_event>(event->context));
    delete event;
}

void event_synchronize(ggml_backend_dev_t, ggml_backend_event_t event) {
    guarded("enpu: event", [&] {
        lowering::check(rt_event_wait(static_cast<rt_event>(event->context), rt_deadline_ms(60000)),
                        "event");
    });
}

}  // namespace

void report(const std::string& what) {
    ggml_log_callback log = nullptr;
    void* user = nullptr;
    ggml_log_get(&log, &user);
    if (log) log(GGML_LOG_LEVEL_ERROR, (what + "\n").c_str(), user);
}

Device::Device(const std::string& spec, size_t index)
    : name("NPU" + std::to_string(index)),
      session(std::make_shared<lowering::DeviceSession>(spec)),
      programs(std::make_unique<ProgramCache>(session, counters)) {
    rt_device_info info{};
    info.struct_size = sizeof(info);
    lowering::check(rt_device_get_info(session->device(), &info), "device");
    description = std::string(info.name) + " (" + info.spec + ")";
}

void fill_device(Device& device, ggml_backend_reg_t reg) {
    ggml_backend_device_i& f = device.base.iface;
    f.get_name = get_name;
    f.get_description = get_description;
    f.get_memory = get_memory;
    f.get_type = get_type;
    f.get_props = get_props;
    f.init_backend = init_backend;
    f.get_buffer_type = get_buffer_type;
    f.supports_op = supports_op;
    f.supports_buft = supports_buft;
    f.event_new = event_new;
    f.event_free = event_free;
    f.event_synchronize = event_synchronize;
    device.base.reg = reg;
    device.base.context = &device;
    device.buffer_type = make_buffer_type(device);
}

}  // namespace enpu::ggml
