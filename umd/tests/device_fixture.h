// SPDX-License-Identifier: MIT
// What the tests share: the device named by ENPU_DEVICE (default: the simulator), and short ways to
// run one job.
#pragma once

#include <catch2/catch_message.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <cstring>
#include <enpu/enpu.hpp>
#include <string>
#include <vector>

namespace enpu::test {

constexpr uint64_t kSecond = 1'000'000'000;

inline int64_t soon() {
    return enpu_deadline_after(20 * kSecond);
}

inline std::string spec() {
    const char* environment = std::getenv("ENPU_DEVICE");
    return environment != nullptr && *environment != '\0' ? environment : "sim";
}

struct Fixture {
    Device device = Device::open(spec().c_str());
    Context context = Context::create(device);
    Timeline timeline = Timeline::create(device);
    uint64_t point = 0;

    uint32_t copy_engine(uint32_t index = 0) const { return device.info().compute_engines + index; }
    Buffer host(uint64_t bytes, uint32_t flags = 0) const {
        return Buffer::create(device, bytes, ENPU_BUFFER_HOST | flags);
    }
    Buffer local(uint64_t bytes) const { return Buffer::create(device, bytes, ENPU_BUFFER_LOCAL); }

    // Submits and waits; throws what the job or the submission failed with.
    void run(uint32_t engine, const Command& command, uint64_t job_id = 0) {
        context.submit(engine, command, {}, {timeline.at(++point)}, job_id);
        context.wait(timeline, point, soon());
    }
    // Runs bytes that nothing has checked.
    int run_raw(uint32_t engine, uint64_t va, uint32_t bytes, enpu_error* error) {
        const enpu_point signal = timeline.at(++point);
        if (const int r = enpu_submit_raw(context.get(), engine, va, bytes, nullptr, 0, &signal, 1,
                                          77, nullptr, error))
            return r;
        return enpu_context_wait(context.get(), timeline.get(), point, soon(), error);
    }
    void renew_context() { context = Context::create(device); }

    void copy(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
              uint64_t bytes, uint32_t engine) {
        Builder builder(device, engine < device.info().compute_engines ? ENPU_ENGINE_KIND_COMPUTE
                                                                       : ENPU_ENGINE_KIND_COPY);
        check([&](enpu_error* e) {
            return enpu_build_copy(builder.get(), dst.get(), dst_offset, src.get(), src_offset,
                                   bytes, e);
        });
        run(engine, builder.finish());
    }
};

// A dense operand at an offset of a buffer.
inline enpu_operand operand(const Buffer& buffer, uint32_t dtype, const std::vector<uint32_t>& dims,
                            uint64_t offset = 0) {
    enpu_operand made = {buffer.get(), offset, {}};
    check([&](enpu_error* e) {
        return enpu_tensor_init(&made.tensor, dtype, static_cast<uint32_t>(dims.size()),
                                dims.data(), e);
    });
    return made;
}

template <typename T>
void put(const Buffer& buffer, const std::vector<T>& values, uint64_t offset = 0) {
    std::memcpy(buffer.map().data() + offset, values.data(), values.size() * sizeof(T));
}

template <typename T>
std::vector<T> take(const Buffer& buffer, size_t count, uint64_t offset = 0) {
    std::vector<T> values(count);
    std::memcpy(values.data(), buffer.map().data() + offset, count * sizeof(T));
    return values;
}

// The call must fail with `code`, and its sentence must hold every one of `words`.
template <typename Call>
void expect_failure(Call&& call, int code, std::initializer_list<const char*> words) {
    enpu_error error = {};
    const int result = call(&error);
    INFO(error.message);
    REQUIRE(result == code);
    REQUIRE(error.code == code);
    for (const char* word : words) {
        CAPTURE(word);
        REQUIRE(std::string(error.message).find(word) != std::string::npos);
    }
}

}  // namespace enpu::test
