// SPDX-License-Identifier: MIT
// The interface between ggml and a backend that it loads, API version 3 (ggml 0.27). ggml installs no
// header for it: the order of the members is the binary interface, and holds for this version only.
#ifndef ENPU_GGML_ABI_H
#define ENPU_GGML_ABI_H

#include <ggml-backend.h>
#include <ggml.h>

namespace enpu::ggml {
constexpr int kApiVersion = 3;
constexpr const char* kVersionPrefix = "0.27.";  // of ggml_version() of the host
}  // namespace enpu::ggml

extern "C" {

struct ggml_backend_buffer_type_i {
    const char* (*get_name)(ggml_backend_buffer_type_t type);
    ggml_backend_buffer_t (*alloc_buffer)(ggml_backend_buffer_type_t type, size_t size);
    void* alloc_buffer_n;  // of several devices; left out
    size_t (*get_alignment)(ggml_backend_buffer_type_t type);
    size_t (*get_max_size)(ggml_backend_buffer_type_t type);
    size_t (*get_alloc_size)(ggml_backend_buffer_type_t type, const ggml_tensor* tensor);
    void* get_alloc_size_n;
    bool (*is_host)(ggml_backend_buffer_type_t type);
};

struct ggml_backend_buffer_type {
    ggml_backend_buffer_type_i iface;
    ggml_backend_dev_t device;
    void* context;
};

struct ggml_backend_buffer_i {
    void (*free_buffer)(ggml_backend_buffer_t buffer);
    void* (*get_base)(ggml_backend_buffer_t buffer);
    ggml_status (*init_tensor)(ggml_backend_buffer_t buffer, ggml_tensor* tensor);
    void (*memset_tensor)(ggml_backend_buffer_t buffer, ggml_tensor* tensor, uint8_t value,
                          size_t offset, size_t size);
    void (*set_tensor)(ggml_backend_buffer_t buffer, ggml_tensor* tensor, const void* data,
                       size_t offset, size_t size);
    void (*get_tensor)(ggml_backend_buffer_t buffer, const ggml_tensor* tensor, void* data,
                       size_t offset, size_t size);
    void* set_tensor_2d;
    void* get_tensor_2d;
    bool (*cpy_tensor)(ggml_backend_buffer_t buffer, const ggml_tensor* src, ggml_tensor* dst);
    void (*clear)(ggml_backend_buffer_t buffer, uint8_t value);
    void (*reset)(ggml_backend_buffer_t buffer);
};

struct ggml_backend_buffer {
    ggml_backend_buffer_i iface;
    ggml_backend_buffer_type_t buft;
    void* context;
    size_t size;
    ggml_backend_buffer_usage usage;
};

struct ggml_backend_i {
    const char* (*get_name)(ggml_backend_t backend);
    void (*free)(ggml_backend_t backend);
    void (*set_tensor_async)(ggml_backend_t backend, ggml_tensor* tensor, const void* data,
                             size_t offset, size_t size);
    void (*get_tensor_async)(ggml_backend_t backend, const ggml_tensor* tensor, void* data,
                             size_t offset, size_t size);
    void* set_tensor_2d_async;
    void* get_tensor_2d_async;
    bool (*cpy_tensor_async)(ggml_backend_t from, ggml_backend_t to, const ggml_tensor* src,
                             ggml_tensor* dst);
    void (*synchronize)(ggml_backend_t backend);
    void* graph_plan_create;
    void* graph_plan_free;
    void* graph_plan_update;
    void* graph_plan_compute;
    ggml_status (*graph_compute)(ggml_backend_t backend, ggml_cgraph* graph);
    void (*event_record)(ggml_backend_t backend, ggml_backend_event_t event);
    void (*event_wait)(ggml_backend_t backend, ggml_backend_event_t event);
    void* graph_optimize;
};

struct ggml_backend {
    ggml_guid_t guid;
    ggml_backend_i iface;
    ggml_backend_dev_t device;
    void* context;
};

struct ggml_backend_event {
    ggml_backend_dev_t device;
    void* context;
};

struct ggml_backend_device_i {
    const char* (*get_name)(ggml_backend_dev_t device);
    const char* (*get_description)(ggml_backend_dev_t device);
    void (*get_memory)(ggml_backend_dev_t device, size_t* free, size_t* total);
    enum ggml_backend_dev_type (*get_type)(ggml_backend_dev_t device);
    void (*get_props)(ggml_backend_dev_t device, ggml_backend_dev_props* props);
    ggml_backend_t (*init_backend)(ggml_backend_dev_t device, const char* params);
    ggml_backend_buffer_type_t (*get_buffer_type)(ggml_backend_dev_t device);
    ggml_backend_buffer_type_t (*get_host_buffer_type)(ggml_backend_dev_t device);
    ggml_backend_buffer_t (*buffer_from_host_ptr)(ggml_backend_dev_t device, void* data,
                                                  size_t size, size_t max_tensor_size);
    bool (*supports_op)(ggml_backend_dev_t device, const ggml_tensor* op);
    bool (*supports_buft)(ggml_backend_dev_t device, ggml_backend_buffer_type_t type);
    bool (*offload_op)(ggml_backend_dev_t device, const ggml_tensor* op);
    ggml_backend_event_t (*event_new)(ggml_backend_dev_t device);
    void (*event_free)(ggml_backend_dev_t device, ggml_backend_event_t event);
    void (*event_synchronize)(ggml_backend_dev_t device, ggml_backend_event_t event);
};

struct ggml_backend_device {
    ggml_backend_device_i iface;
    ggml_backend_reg_t reg;
    void* context;
};

struct ggml_backend_reg_i {
    const char* (*get_name)(ggml_backend_reg_t reg);
    size_t (*get_device_count)(ggml_backend_reg_t reg);
    ggml_backend_dev_t (*get_device)(ggml_backend_reg_t reg, size_t index);
    void* (*get_proc_address)(ggml_backend_reg_t reg, const char* name);
};

struct ggml_backend_reg {
    int api_version;
    ggml_backend_reg_i iface;
    void* context;
};

GGML_API ggml_backend_buffer_t ggml_backend_buffer_init(ggml_backend_buffer_type_t type,
                                                        ggml_backend_buffer_i iface, void* context,
                                                        size_t size);

}  // extern "C"
#endif
