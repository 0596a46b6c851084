// SPDX-License-Identifier: MIT
// For the runtime's tests: statuses as failures with their sentence, and owners of the C objects.
// The device is that of the environment variable ENPU_DEVICE, "cpu" when it is not set.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "rt.h"

namespace enpu::rt::test {

inline std::string take(rt_status status) {
    if (!status) return "";
    std::string text = std::string(rt_code_name(rt_status_code(status))) + ": " +
                       rt_status_message(status) + " (" + rt_status_origin(status) + ")";
    rt_status_free(status);
    return text;
}

// The call succeeds; else its sentence is shown. The call is made outside of the assertion: it may
// skip the case.
#define OK(call)                                                \
    do {                                                        \
        const std::string told_ = ::enpu::rt::test::take(call); \
        INFO(#call);                                            \
        CHECK(told_ == "");                                     \
    } while (0)
#define MUST(call)                                              \
    do {                                                        \
        const std::string told_ = ::enpu::rt::test::take(call); \
        INFO(#call);                                            \
        REQUIRE(told_ == "");                                   \
    } while (0)

struct Failure {
    rt_code code;
    std::string message, origin;
    uint64_t operation;
};

inline Failure failure(rt_status status) {
    Failure result{rt_status_code(status), rt_status_message(status), rt_status_origin(status),
                   rt_status_operation(status)};
    rt_status_free(status);
    return result;
}

inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

inline const char* device_spec() {
    const char* spec = std::getenv("ENPU_DEVICE");
    return spec ? spec : "cpu";
}

inline uint64_t soon() {
    return rt_deadline_ms(20'000);
}

// A device may have no kernels at all (the double of the CUDA driver): what launches some says
// nothing of it. In the thread of the test.
inline void needs_kernels(rt_device device) {
    rt_kernel binary = nullptr;
    MUST(rt_kernel_lookup(device, "binary", &binary));
    const int64_t one = 1;
    rt_operand operand{};
    MUST(rt_tensor_desc_init(&operand.desc, ENPU_OP_F32, 1, &one));
    const rt_operand operands[] = {operand, operand, operand};
    const enpu_op_binary_params params{ENPU_OP_BINARY_ADD, ENPU_OP_UNARY_IDENTITY, 0, 0};
    rt_status status = rt_kernel_supported(binary, &params, sizeof(params), operands, 3);
    const bool none = rt_status_code(status) == RT_UNSUPPORTED;
    const std::string why = take(status);
    if (none) SKIP(why);
    REQUIRE(why == "");
}

// A device with one stream.
struct Fixture {
    rt_device device = nullptr;
    rt_stream stream = nullptr;

    Fixture() {
        MUST(rt_device_open(device_spec(), &device));
        MUST(rt_stream_create(device, nullptr, &stream));
    }
    ~Fixture() {
        rt_stream_destroy(stream);
        rt_device_close(device);
    }
    Fixture(const Fixture&) = delete;

    void* allocate(size_t bytes) {
        void* pointer = nullptr;
        MUST(rt_malloc(stream, bytes, &pointer));
        return pointer;
    }
    void* pinned(size_t bytes) {
        void* pointer = nullptr;
        MUST(rt_host_alloc(device, bytes, &pointer));
        return pointer;
    }
    void sync() { MUST(rt_stream_sync(stream, soon())); }

    template <typename T>
    void* upload(const std::vector<T>& values) {
        void* pointer = allocate(values.size() * sizeof(T));
        MUST(rt_memcpy_h2d(stream, pointer, values.data(), values.size() * sizeof(T)));
        return pointer;
    }
    template <typename T>
    std::vector<T> download(const void* pointer, size_t count) {
        std::vector<T> values(count);
        MUST(rt_memcpy_d2h(stream, values.data(), pointer, count * sizeof(T)));
        return values;
    }
    // To be launched; lookup() is enough to look at it.
    rt_kernel kernel(const char* name) {
        needs_kernels(device);
        return lookup(name);
    }
    rt_kernel lookup(const char* name) {
        rt_kernel result = nullptr;
        MUST(rt_kernel_lookup(device, name, &result));
        return result;
    }
    rt_counters counters() {
        rt_counters result{};
        result.struct_size = sizeof(result);
        MUST(rt_device_get_counters(device, &result));
        return result;
    }
    rt_device_info device_info() {
        rt_device_info result{};
        result.struct_size = sizeof(result);
        MUST(rt_device_get_info(device, &result));
        return result;
    }
    rt_pool_stats pool() {
        rt_pool_stats result{};
        result.struct_size = sizeof(result);
        MUST(rt_pool_get_stats(device, &result));
        return result;
    }
};

inline rt_operand operand(void* data, uint32_t dtype, std::vector<int64_t> dims) {
    rt_operand result{};
    MUST(rt_tensor_desc_init(&result.desc, dtype, static_cast<uint32_t>(dims.size()), dims.data()));
    result.data = data;
    return result;
}

// Launches y = x + x elementwise over `count` floats.
inline rt_status launch_double(rt_stream stream, rt_kernel binary, void* x, void* y,
                               int64_t count) {
    const enpu_op_binary_params params{ENPU_OP_BINARY_ADD, ENPU_OP_UNARY_IDENTITY, 0, 0};
    enpu_op_tensor desc{};
    if (rt_status status = rt_tensor_desc_init(&desc, ENPU_OP_F32, 1, &count)) return status;
    const rt_operand operands[] = {{x, nullptr, desc}, {x, nullptr, desc}, {y, nullptr, desc}};
    return rt_kernel_launch(stream, binary, nullptr, &params, sizeof(params), operands, 3);
}

}  // namespace enpu::rt::test
