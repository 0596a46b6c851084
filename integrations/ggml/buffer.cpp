// SPDX-License-Identifier: MIT
// Device memory as ggml buffers. The base address names device memory and is never read through.
#include "device.h"

namespace enpu::ggml {
namespace {

constexpr size_t kAlignment = 256;
constexpr uint64_t kDeadlineMs = 60000;

struct Buffer {
    Device* device;
    void* data;
};

Buffer& buffer_of(ggml_backend_buffer_t buffer) {
    return *static_cast<Buffer*>(buffer->context);
}

void wait(Device& device) {
    lowering::check(rt_stream_sync(device.session->stream(), rt_deadline_ms(kDeadlineMs)), "copy");
}

void* at(const ggml_tensor* tensor, size_t offset) {
    return static_cast<char*>(tensor->data) + offset;
}

void free_buffer(ggml_backend_buffer_t buffer) {
    Buffer* ours = &buffer_of(buffer);
    rt_status_free(rt_free(ours->device->session->stream(), ours->data));
    delete ours;
}

void* get_base(ggml_backend_buffer_t buffer) {
    return buffer_of(buffer).data;
}

void fill(Device& device, void* data, uint8_t value, size_t size) {
    if (size == 0) return;
    const std::lock_guard guard(device.session->lock());
    lowering::check(rt_fill(device.session->stream(), data, value, 1, size), "fill");
    wait(device);
}

void memset_tensor(ggml_backend_buffer_t buffer, ggml_tensor* tensor, uint8_t value, size_t offset,
                   size_t size) {
    guarded("enpu: memset",
            [&] { fill(*buffer_of(buffer).device, at(tensor, offset), value, size); });
}

void clear(ggml_backend_buffer_t buffer, uint8_t value) {
    guarded("enpu: clear",
            [&] { fill(*buffer_of(buffer).device, buffer_of(buffer).data, value, buffer->size); });
}

void set_tensor(ggml_backend_buffer_t buffer, ggml_tensor* tensor, const void* data, size_t offset,
                size_t size) {
    if (size == 0) return;
    guarded("enpu: write of a tensor", [&] {
        Device& device = *buffer_of(buffer).device;
        const std::lock_guard guard(device.session->lock());
        lowering::check(rt_memcpy_h2d(device.session->stream(), at(tensor, offset), data, size),
                        "copy");
        wait(device);
    });
}

void get_tensor(ggml_backend_buffer_t buffer, const ggml_tensor* tensor, void* data, size_t offset,
                size_t size) {
    if (size == 0) return;
    guarded("enpu: read of a tensor", [&] {
        Device& device = *buffer_of(buffer).device;
        const std::lock_guard guard(device.session->lock());
        lowering::check(rt_memcpy_d2h(device.session->stream(), data, at(tensor, offset), size),
                        "copy");
        wait(device);
    });
}

bool cpy_tensor(ggml_backend_buffer_t buffer, const ggml_tensor* src, ggml_tensor* dst) {
    Device& device = *buffer_of(buffer).device;
    if (!src->buffer || !is_ours(src->buffer->buft, device)) return false;
    if (ggml_nbytes(src) == 0) return true;
    return guarded("enpu: copy of a tensor", [&] {
        const std::lock_guard guard(device.session->lock());
        lowering::check(
            rt_memcpy_d2d(device.session->stream(), dst->data, src->data, ggml_nbytes(src)),
            "copy");
        wait(device);
    });
}

const char* get_name(ggml_backend_buffer_type_t type) {
    return static_cast<Device*>(type->context)->name.c_str();
}

ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t type, size_t size) {
    Device& device = *static_cast<Device*>(type->context);
    void* data = nullptr;
    const bool ok = guarded("enpu: allocation", [&] {
        const std::lock_guard guard(device.session->lock());
        lowering::check(rt_malloc(device.session->stream(), std::max<size_t>(size, 1), &data),
                        "device memory");
        wait(device);
    });
    if (!ok) return nullptr;
    ggml_backend_buffer_i f{};
    f.free_buffer = free_buffer;
    f.get_base = get_base;
    f.memset_tensor = memset_tensor;
    f.set_tensor = set_tensor;
    f.get_tensor = get_tensor;
    f.cpy_tensor = cpy_tensor;
    f.clear = clear;
    return ggml_backend_buffer_init(type, f, new Buffer{&device, data}, size);
}

size_t get_alignment(ggml_backend_buffer_type_t) {
    return kAlignment;
}

size_t get_max_size(ggml_backend_buffer_type_t type) {
    rt_device_info info{};
    info.struct_size = sizeof(info);
    rt_status status =
        rt_device_get_info(static_cast<Device*>(type->context)->session->device(), &info);
    const bool ok = status == RT_OK;
    rt_status_free(status);
    return ok && info.local_bytes ? info.local_bytes : SIZE_MAX;
}

}  // namespace

bool is_ours(ggml_backend_buffer_type_t type, Device& device) {
    return type == &device.buffer_type;
}

ggml_backend_buffer_type make_buffer_type(Device& device) {
    ggml_backend_buffer_type type{};
    type.iface.get_name = get_name;
    type.iface.alloc_buffer = alloc_buffer;
    type.iface.get_alignment = get_alignment;
    type.iface.get_max_size = get_max_size;
    type.device = &device.base;
    type.context = &device;
    return type;
}

}  // namespace enpu::ggml
