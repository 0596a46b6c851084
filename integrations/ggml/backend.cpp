// SPDX-License-Identifier: MIT
// A stream of the device as a ggml backend. What fails in flight is found by synchronize, which ggml
// gives no way to report: it is logged, and the next graph on the backend fails with the reason.
#include "device.h"

namespace enpu::ggml {
namespace {

constexpr uint64_t kDeadlineMs = 120000;

struct Stream {
    Device* device;
    rt_stream stream = nullptr;
};

Stream& stream_of(ggml_backend_t backend) {
    return *static_cast<Stream*>(backend->context);
}

const char* get_name(ggml_backend_t backend) {
    return stream_of(backend).device->name.c_str();
}

void free_backend(ggml_backend_t backend) {
    rt_stream_destroy(stream_of(backend).stream);
    delete &stream_of(backend);
    delete backend;
}

void* at(const ggml_tensor* tensor, size_t offset) {
    return static_cast<char*>(tensor->data) + offset;
}

void set_tensor_async(ggml_backend_t backend, ggml_tensor* tensor, const void* data, size_t offset,
                      size_t size) {
    if (size == 0) return;
    guarded("enpu: write of a tensor", [&] {
        lowering::check(rt_memcpy_h2d(stream_of(backend).stream, at(tensor, offset), data, size),
                        "copy");
    });
}

void get_tensor_async(ggml_backend_t backend, const ggml_tensor* tensor, void* data, size_t offset,
                      size_t size) {
    if (size == 0) return;
    guarded("enpu: read of a tensor", [&] {
        lowering::check(rt_memcpy_d2h(stream_of(backend).stream, data, at(tensor, offset), size),
                        "copy");
    });
}

// Between two streams of one device: the target's stream waits for the source's.
bool cpy_tensor_async(ggml_backend_t from, ggml_backend_t to, const ggml_tensor* src,
                      ggml_tensor* dst) {
    if (from->device != to->device) return false;
    Stream& target = stream_of(to);
    if (!src->buffer || !dst->buffer || !is_ours(src->buffer->buft, *target.device) ||
        !is_ours(dst->buffer->buft, *target.device)) {
        return false;
    }
    return guarded("enpu: copy of a tensor", [&] {
        if (from != to) {
            rt_event event = nullptr;
            lowering::check(rt_event_create(target.device->session->device(), 0, &event), "event");
            rt_status status = rt_event_record(event, stream_of(from).stream);
            if (status == RT_OK) status = rt_stream_wait_event(target.stream, event);
            rt_event_destroy(event);
            lowering::check(status, "event");
        }
        if (ggml_nbytes(src)) {
            lowering::check(rt_memcpy_d2d(target.stream, dst->data, src->data, ggml_nbytes(src)),
                            "copy");
        }
    });
}

void synchronize(ggml_backend_t backend) {
    guarded("enpu: synchronize", [&] {
        lowering::check(rt_stream_sync(stream_of(backend).stream, rt_deadline_ms(kDeadlineMs)),
                        "stream");
    });
    write_report(*stream_of(backend).device, false);
}

ggml_status graph_compute(ggml_backend_t backend, ggml_cgraph* graph) {
    Stream& stream = stream_of(backend);
    const bool ok =
        guarded("enpu: graph", [&] { stream.device->programs->launch(graph, stream.stream); });
    return ok ? GGML_STATUS_SUCCESS : GGML_STATUS_FAILED;
}

void event_record(ggml_backend_t backend, ggml_backend_event_t event) {
    guarded("enpu: event", [&] {
        lowering::check(
            rt_event_record(static_cast<rt_event>(event->context), stream_of(backend).stream),
            "event");
    });
}

void event_wait(ggml_backend_t backend, ggml_backend_event_t event) {
    guarded("enpu: event", [&] {
        lowering::check(
            rt_stream_wait_event(stream_of(backend).stream, static_cast<rt_event>(event->context)),
            "event");
    });
}

ggml_guid guid = {0x65, 0x6e, 0x70, 0x75, 0x4e, 0x50, 0x9a, 0x41,
                  0x8d, 0x27, 0x61, 0x30, 0x5c, 0x12, 0xf0, 0x03};

}  // namespace

ggml_backend_t make_backend(Device& device) {
    auto stream = std::make_unique<Stream>(Stream{&device});
    lowering::check(rt_stream_create(device.session->device(), nullptr, &stream->stream), "stream");
    auto* backend = new ggml_backend{};
    ggml_backend_i& f = backend->iface;
    f.get_name = get_name;
    f.free = free_backend;
    f.set_tensor_async = set_tensor_async;
    f.get_tensor_async = get_tensor_async;
    f.cpy_tensor_async = cpy_tensor_async;
    f.synchronize = synchronize;
    f.graph_compute = graph_compute;
    f.event_record = event_record;
    f.event_wait = event_wait;
    backend->guid = &guid;
    backend->device = &device.base;
    backend->context = stream.release();
    return backend;
}

}  // namespace enpu::ggml
