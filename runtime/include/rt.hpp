// SPDX-License-Identifier: MIT
// C++20 owners of the runtime's objects. Header-only: nothing but the C functions of rt.h crosses
// the library's border. A failed call throws rt::Error; destructors do not.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <source_location>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "rt.h"

namespace enpu::rt {

// A status as an exception.
class Error : public std::runtime_error {
  public:
    explicit Error(rt_status status)
        : std::runtime_error(std::string(rt_code_name(rt_status_code(status))) + ": " +
                             rt_status_message(status) + " (" + rt_status_origin(status) + ")"),
          code_(rt_status_code(status)),
          operation_(rt_status_operation(status)),
          call_site_(rt_status_call_site(status)) {
        rt_status_free(status);
    }
    rt_code code() const { return code_; }
    uint64_t operation() const { return operation_; }
    const std::string& call_site() const { return call_site_; }  // "serve.cpp:120", or ""

  private:
    rt_code code_;
    uint64_t operation_;
    std::string call_site_;
};

inline void check(rt_status status) {
    if (status) throw Error(status);
}

// Owns a handle that `Drop` gives back.
template <typename Handle, void (*Drop)(Handle)>
class Owner {
  public:
    Owner() = default;
    explicit Owner(Handle handle) : handle_(handle) {}
    Owner(Owner&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Owner& operator=(Owner&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Owner() { Drop(handle_); }

    Handle get() const { return handle_; }
    explicit operator bool() const { return handle_ != nullptr; }

  private:
    Handle handle_ = nullptr;
};

class Device : public Owner<rt_device, rt_device_close> {
  public:
    explicit Device(const char* spec) : Owner(open(spec)) {}

    rt_device_info info() const {
        rt_device_info result{};
        result.struct_size = sizeof(result);
        check(rt_device_get_info(get(), &result));
        return result;
    }
    rt_counters counters() const {
        rt_counters result{};
        result.struct_size = sizeof(result);
        check(rt_device_get_counters(get(), &result));
        return result;
    }
    rt_kernel kernel(const char* name) const {
        rt_kernel result = nullptr;
        check(rt_kernel_lookup(get(), name, &result));
        return result;
    }

  private:
    static rt_device open(const char* spec) {
        rt_device device = nullptr;
        check(rt_device_open(spec, &device));
        return device;
    }
};

// Shared: a copy holds a reference.
class Tensor {
  public:
    Tensor() = default;
    Tensor(rt_stream stream, const enpu_op_tensor& desc) {
        check(rt_tensor_alloc(stream, &desc, &handle_));
    }
    Tensor(const Tensor& other) : handle_(other.handle_) {
        if (handle_) rt_tensor_retain(handle_);
    }
    Tensor(Tensor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Tensor& operator=(Tensor other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Tensor() { rt_tensor_release(handle_); }

    rt_tensor get() const { return handle_; }
    void* data() const { return rt_tensor_data(handle_); }
    uint64_t bytes() const { return rt_tensor_bytes(handle_); }
    const enpu_op_tensor& desc() const { return *rt_tensor_desc(handle_); }
    rt_operand operand() const { return {nullptr, handle_, desc()}; }

  private:
    rt_tensor handle_ = nullptr;
};

class Event : public Owner<rt_event, rt_event_destroy> {
  public:
    explicit Event(const Device& device, uint32_t flags = RT_EVENT_DEFAULT)
        : Owner(make(device.get(), flags)) {}
    void wait(uint64_t deadline_ns) const { check(rt_event_wait(get(), deadline_ns)); }

  private:
    static rt_event make(rt_device device, uint32_t flags) {
        rt_event event = nullptr;
        check(rt_event_create(device, flags, &event));
        return event;
    }
};

class GraphExec : public Owner<rt_graph_exec, rt_graph_exec_destroy> {
  public:
    using Owner::Owner;
};

class Graph : public Owner<rt_graph, rt_graph_destroy> {
  public:
    using Owner::Owner;
    GraphExec instantiate(const rt_graph_options* options = nullptr) const {
        rt_graph_exec exec = nullptr;
        check(rt_graph_instantiate_with(get(), options, &exec));
        return GraphExec(exec);
    }
};

class Stream : public Owner<rt_stream, rt_stream_destroy> {
  public:
    explicit Stream(const Device& device, const rt_stream_options* options = nullptr)
        : Owner(make(device.get(), options)) {}

    void sync(uint64_t deadline_ns) const { check(rt_stream_sync(get(), deadline_ns)); }
    void wait(const Event& event) const { check(rt_stream_wait_event(get(), event.get())); }
    void record(const Event& event) const { check(rt_event_record(event.get(), get())); }
    Tensor tensor(const enpu_op_tensor& desc) const { return Tensor(get(), desc); }

    // Each of these also tells the runtime where it was called, for the status of a failure.
    using Where = std::source_location;

    template <typename T>
    void upload(const Tensor& to, std::span<const T> from, Where where = Where::current()) const {
        tell(where);
        check(rt_memcpy_h2d(get(), to.data(), from.data(), from.size_bytes()));
    }
    template <typename T>
    void download(std::span<T> to, const Tensor& from, Where where = Where::current()) const {
        tell(where);
        check(rt_memcpy_d2h(get(), to.data(), from.data(), to.size_bytes()));
    }
    template <typename Params>
    void launch(rt_kernel kernel, const Params& params, std::span<const rt_operand> operands,
                Where where = Where::current()) const {
        tell(where);
        check(rt_kernel_launch(get(), kernel, nullptr, &params, sizeof(params), operands.data(),
                               static_cast<uint32_t>(operands.size())));
    }
    // For kernels without parameters.
    void launch(rt_kernel kernel, std::span<const rt_operand> operands,
                Where where = Where::current()) const {
        tell(where);
        check(rt_kernel_launch(get(), kernel, nullptr, nullptr, 0, operands.data(),
                               static_cast<uint32_t>(operands.size())));
    }
    void launch(const GraphExec& exec, Where where = Where::current()) const {
        tell(where);
        check(rt_graph_launch(exec.get(), get()));
    }
    void host(void (*function)(void* context), void* context,
              Where where = Where::current()) const {
        tell(where);
        check(rt_launch_host_func(get(), function, context));
    }
    // What `record` enqueues on this stream, as a graph. When it throws, the capture is ended.
    template <typename Record>
    Graph capture(Record record) const {
        check(rt_stream_begin_capture(get()));
        rt_graph graph = nullptr;
        try {
            record();
        } catch (...) {
            rt_status_free(rt_stream_end_capture(get(), &graph));
            rt_graph_destroy(graph);
            throw;
        }
        check(rt_stream_end_capture(get(), &graph));
        return Graph(graph);
    }
    void reset() const { check(rt_stream_reset(get())); }

  private:
    static void tell(const Where& where) { rt_call_site(where.file_name(), where.line()); }
    static rt_stream make(rt_device device, const rt_stream_options* options) {
        rt_stream stream = nullptr;
        check(rt_stream_create(device, options, &stream));
        return stream;
    }
};

// A dense tensor description.
inline enpu_op_tensor dense(enpu_op_dtype dtype, std::initializer_list<int64_t> dims) {
    enpu_op_tensor desc;
    check(rt_tensor_desc_init(&desc, dtype, static_cast<uint32_t>(dims.size()), dims.begin()));
    return desc;
}

}  // namespace enpu::rt
