// SPDX-License-Identifier: MIT
// C++20 owners of the runtime's objects. Header-only: nothing but the C functions of rt.h crosses
// the library's border. A failed call throws rt::Error; destructors do not.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rt.h"

namespace enpu::rt {

// A status as an exception.
class Error : public std::runtime_error {
  public:
    explicit Error(rt_status status)
        : std::runtime_error(std::string(rt_code_name(rt_status_code(status))) + ": " +
                             rt_status_message(status) + " (" + rt_status_origin(status) + ")"),
          code_(rt_status_code(status)),
          device_code_(rt_status_device_code(status)),
          operation_(rt_status_operation(status)),
          elapsed_ns_(rt_status_elapsed_ns(status)),
          operation_name_(rt_status_operation_name(status)),
          stream_(rt_status_stream(status)),
          call_site_(rt_status_call_site(status)) {
        rt_status_free(status);
    }
    rt_code code() const { return code_; }
    int32_t device_code() const { return device_code_; }
    uint64_t operation() const { return operation_; }
    uint64_t elapsed_ns() const { return elapsed_ns_; }
    const std::string& operation_name() const { return operation_name_; }
    const std::string& stream() const { return stream_; }
    const std::string& call_site() const { return call_site_; }  // "serve.cpp:120", or ""

  private:
    rt_code code_;
    int32_t device_code_;
    uint64_t operation_, elapsed_ns_;
    std::string operation_name_, stream_, call_site_;
};

inline void check(rt_status status) {
    if (status) throw Error(status);
}

// Absolute times of CLOCK_MONOTONIC, as every call that can block takes them.
inline uint64_t now_ns() {
    return rt_now_ns();
}
inline uint64_t after_ms(uint64_t ms) {
    return rt_deadline_ms(ms);
}
inline uint64_t after_ns(uint64_t ns) {
    return rt_deadline_ns(ns);
}

// A structure that says its own size, as the C functions ask for.
template <typename T>
T sized() {
    T value{};
    value.struct_size = sizeof(value);
    return value;
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

    // All that can be opened, in the order of preference.
    static std::vector<rt_device_info> all() {
        std::vector<rt_device_info> devices;
        for (;;) {
            auto info = sized<rt_device_info>();
            rt_status status = rt_device_enumerate(uint32_t(devices.size()), &info);
            if (rt_status_code(status) == RT_NOT_FOUND) {
                rt_status_free(status);
                return devices;
            }
            rt::check(status);
            devices.push_back(info);
        }
    }

    rt_device_info info() const {
        auto result = sized<rt_device_info>();
        rt::check(rt_device_get_info(get(), &result));
        return result;
    }
    rt_counters counters() const {
        auto result = sized<rt_counters>();
        rt::check(rt_device_get_counters(get(), &result));
        return result;
    }
    // Throws device-lost, with the reason, when the device is gone.
    void check() const { rt::check(rt_device_check(get())); }
    void sync(uint64_t deadline_ns) const { rt::check(rt_device_sync(get(), deadline_ns)); }
    void set_sync_mode(bool on) const { rt::check(rt_device_set_sync_mode(get(), on)); }

    // Before there are streams or memory.
    void set_policy(const rt_policy& policy) const {
        rt::check(rt_device_set_policy(get(), &policy));
    }
    rt_policy_report policy_report() const {
        auto result = sized<rt_policy_report>();
        rt::check(rt_device_policy_report(get(), &result));
        return result;
    }

    rt_kernel kernel(const char* name) const {
        rt_kernel result = nullptr;
        rt::check(rt_kernel_lookup(get(), name, &result));
        return result;
    }
    rt_kernel kernel(enpu_op op) const {
        rt_kernel result = nullptr;
        rt::check(rt_kernel_for_op(get(), op, &result));
        return result;
    }
    // Bytes of the packed form; nothing when the weights are best left as they are.
    std::optional<uint64_t> packed_size(const enpu_op_tensor& weights,
                                        const enpu_op_pack_params& params) const {
        uint64_t bytes = 0;
        rt_status status = rt_packed_size(get(), &weights, &params, &bytes);
        if (!status) return bytes;
        if (rt_status_code(status) != RT_UNSUPPORTED) throw Error(status);
        rt_status_free(status);
        return std::nullopt;
    }

    rt_pool_stats pool() const {
        auto result = sized<rt_pool_stats>();
        rt::check(rt_pool_get_stats(get(), &result));
        return result;
    }
    void trim_pool(uint64_t keep_bytes = 0) const { rt::check(rt_pool_trim(get(), keep_bytes)); }
    void set_poison(bool on) const { rt::check(rt_pool_set_poison(get(), on)); }

  private:
    static rt_device open(const char* spec) {
        rt_device device = nullptr;
        rt::check(rt_device_open(spec, &device));
        return device;
    }
};

inline const char* name(rt_kernel kernel) {
    return rt_kernel_name(kernel);
}
inline uint32_t operands(rt_kernel kernel) {
    return rt_kernel_operands(kernel);
}
// "" when the kernel can run so, else the reason.
template <typename Params>
std::string why_unsupported(rt_kernel kernel, const Params& params,
                            std::span<const rt_operand> with) {
    rt_status status =
        rt_kernel_supported(kernel, &params, sizeof(params), with.data(), uint32_t(with.size()));
    std::string reason = rt_status_message(status);
    rt_status_free(status);
    return reason;
}

// Pinned host memory: allocated, or memory of the caller that is registered in place. The device
// outlives it.
class Pinned {
  public:
    Pinned(const Device& device, size_t bytes) : device_(device.get()), bytes_(bytes) {
        check(rt_host_alloc(device_, bytes, &data_));
    }
    Pinned(const Device& device, void* memory, size_t bytes)
        : device_(device.get()), data_(memory), bytes_(bytes), registered_(true) {
        check(rt_host_register(device_, memory, bytes));
    }
    Pinned(Pinned&& other) noexcept { *this = std::move(other); }
    Pinned& operator=(Pinned&& other) noexcept {
        std::swap(device_, other.device_);
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(registered_, other.registered_);
        return *this;
    }
    ~Pinned() {
        if (!data_) return;
        rt_status_free(registered_ ? rt_host_unregister(device_, data_)
                                   : rt_host_free(device_, data_));
    }

    void* data() const { return data_; }
    size_t bytes() const { return bytes_; }
    template <typename T>
    std::span<T> as() const {
        return {static_cast<T*>(data_), bytes_ / sizeof(T)};
    }

  private:
    rt_device device_ = nullptr;
    void* data_ = nullptr;
    size_t bytes_ = 0;
    bool registered_ = false;
};

// The host is about to look at pinned memory: for the validation layer.
inline void note_host_access(const void* pointer, size_t bytes, bool writes) {
    rt_note_host_access(pointer, bytes, writes);
}

// Shared: a copy holds a reference.
class Tensor {
  public:
    Tensor() = default;
    Tensor(rt_stream stream, const enpu_op_tensor& desc) {
        check(rt_tensor_alloc(stream, &desc, &handle_));
    }
    // Over pinned memory of the caller, which kernels use in place.
    Tensor(rt_stream stream, const enpu_op_tensor& desc, void* pinned) {
        check(rt_tensor_wrap(stream, &desc, pinned, &handle_));
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
    bool done() const {
        uint32_t result = 0;
        check(rt_event_query(get(), &result));
        return result != 0;
    }
    // Device time since `start`; both have RT_EVENT_TIMING and have been reached.
    int64_t elapsed_ns(const Event& start) const {
        int64_t ns = 0;
        check(rt_event_elapsed_ns(start.get(), get(), &ns));
        return ns;
    }

  private:
    static rt_event make(rt_device device, uint32_t flags) {
        rt_event event = nullptr;
        check(rt_event_create(device, flags, &event));
        return event;
    }
};

}  // namespace enpu::rt

#include "rt_graph.hpp"

namespace enpu::rt {

class Stream : public Owner<rt_stream, rt_stream_destroy> {
  public:
    explicit Stream(const Device& device, const rt_stream_options* options = nullptr)
        : Owner(make(device.get(), options)) {}

    void sync(uint64_t deadline_ns) const { check(rt_stream_sync(get(), deadline_ns)); }
    bool done() const {
        uint32_t result = 0;
        check(rt_stream_query(get(), &result));
        return result != 0;
    }
    void set_timeout(uint64_t ns) const { check(rt_stream_set_timeout(get(), ns)); }
    // Submits copies that were held back to go together.
    void flush() const { check(rt_stream_flush(get())); }
    void wait(const Event& event) const { check(rt_stream_wait_event(get(), event.get())); }
    void record(const Event& event) const { check(rt_event_record(event.get(), get())); }
    Tensor tensor(const enpu_op_tensor& desc) const { return Tensor(get(), desc); }
    Tensor wrap(const enpu_op_tensor& desc, void* pinned) const {
        return Tensor(get(), desc, pinned);
    }
    // Memory of the pool, freed in stream order.
    void* allocate(size_t bytes) const {
        void* pointer = nullptr;
        check(rt_malloc(get(), bytes, &pointer));
        return pointer;
    }
    void free(void* pointer) const { check(rt_free(get(), pointer)); }

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
    // Pointers as in the C functions. On pinned memory all but these two are asynchronous.
    void to_device(void* to, const void* from, size_t bytes, Where where = Where::current()) const {
        tell(where);
        check(rt_memcpy_h2d(get(), to, from, bytes));
    }
    void to_host(void* to, const void* from, size_t bytes, Where where = Where::current()) const {
        tell(where);
        check(rt_memcpy_d2h(get(), to, from, bytes));
    }
    void to_device_async(void* to, const void* pinned, size_t bytes,
                         Where where = Where::current()) const {
        tell(where);
        check(rt_memcpy_h2d_async(get(), to, pinned, bytes));
    }
    void to_host_async(void* pinned, const void* from, size_t bytes,
                       Where where = Where::current()) const {
        tell(where);
        check(rt_memcpy_d2h_async(get(), pinned, from, bytes));
    }
    void copy(void* to, const void* from, size_t bytes, Where where = Where::current()) const {
        tell(where);
        check(rt_memcpy_d2d(get(), to, from, bytes));
    }
    void copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                   size_t height, Where where = Where::current()) const {
        tell(where);
        check(rt_memcpy_2d(get(), to, to_pitch, from, from_pitch, width, height));
    }
    void copy(std::span<const rt_copy> copies, Where where = Where::current()) const {
        tell(where);
        check(rt_memcpy_batch(get(), copies.data(), uint32_t(copies.size())));
    }
    // From memory of another stream's device; says which way it went.
    rt_peer_path copy_from(const Stream& other, void* to, const void* from, size_t bytes,
                           Where where = Where::current()) const {
        rt_peer_path path = RT_PEER_NONE;
        tell(where);
        check(rt_memcpy_peer(get(), to, other.get(), from, bytes, &path));
        return path;
    }
    // Once `after` is reached (nullptr: at once); `ready` stands for the end of it (or nullptr).
    void prefetch(std::span<const rt_copy> copies, const Event* after, const Event* ready,
                  Where where = Where::current()) const {
        tell(where);
        check(rt_prefetch(get(), copies.data(), uint32_t(copies.size()),
                          after ? after->get() : nullptr, ready ? ready->get() : nullptr));
    }
    // Pattern: of 1, 2, 4 or 8 bytes.
    template <typename T>
    void fill(void* to, T pattern, size_t count, Where where = Where::current()) const {
        static_assert(sizeof(T) <= sizeof(uint64_t));
        uint64_t bits = 0;
        std::memcpy(&bits, &pattern, sizeof(pattern));
        tell(where);
        check(rt_fill(get(), to, bits, sizeof(T), count * sizeof(T)));
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
    // Called once all that is enqueued has ended, with the failure or RT_OK, which it frees.
    void on_completion(void (*function)(void* context, rt_status status), void* context) const {
        check(rt_stream_on_completion(get(), function, context));
    }
    bool capturing() const {
        uint32_t result = 0;
        check(rt_stream_is_capturing(get(), &result));
        return result != 0;
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
// Dims in the order N, C, H, W, channels last in memory.
inline enpu_op_tensor dense_nhwc(enpu_op_dtype dtype, const int64_t (&dims)[4]) {
    enpu_op_tensor desc;
    check(rt_tensor_desc_init_nhwc(&desc, dtype, dims));
    return desc;
}
inline uint64_t bytes_of(const enpu_op_tensor& desc) {
    uint64_t bytes = 0;
    check(rt_tensor_desc_bytes(&desc, &bytes));
    return bytes;
}
inline const char* name(rt_peer_path path) {
    return rt_peer_path_name(path);
}

}  // namespace enpu::rt

#include "rt_pipeline.hpp"
#include "rt_profile.hpp"
