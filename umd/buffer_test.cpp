// SPDX-License-Identifier: MIT
#include "tests/device_fixture.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

using namespace enpu;
using namespace enpu::test;

namespace {

int create(const Fixture& f, uint64_t bytes, uint32_t flags, enpu_error* error) {
    auto* buffer = reinterpret_cast<enpu_buffer*>(1);
    const int result = enpu_buffer_create(f.device.get(), bytes, flags, &buffer, error);
    if (result == 0) {
        enpu_buffer_release(buffer);
    } else {
        REQUIRE(buffer == nullptr);
    }
    return result;
}

std::vector<uint8_t> pattern(size_t count) {
    std::vector<uint8_t> values(count);
    std::iota(values.begin(), values.end(), uint8_t{3});
    return values;
}

}  // namespace

TEST_CASE("buffers are zeroed, mapped and apart from each other") {
    Fixture f;
    for (const uint32_t flags : {ENPU_BUFFER_HOST, ENPU_BUFFER_LOCAL}) {
        const auto a = Buffer::create(f.device, 10000, flags);
        const auto b = Buffer::create(f.device, 3 * uint64_t{ENPU_LARGE_PAGE_SIZE}, flags);
        REQUIRE(a.bytes() == 10000);
        REQUIRE(a.va() % ENPU_PAGE_SIZE == 0);
        REQUIRE(b.va() % ENPU_LARGE_PAGE_SIZE == 0);
        REQUIRE((a.va() + a.bytes() < b.va() || b.va() + b.bytes() < a.va()));
        for (const auto& buffer : {a, b}) {
            const auto bytes = buffer.map();
            REQUIRE(std::all_of(bytes.begin(), bytes.end(),
                                [](std::byte byte) { return byte == std::byte{0}; }));
            REQUIRE(buffer.map().data() == bytes.data());
        }
    }
}

TEST_CASE("freed local memory comes back cleared") {
    Fixture f;
    uint64_t va = 0;
    {
        const auto buffer = f.local(ENPU_LARGE_PAGE_SIZE);
        va = buffer.va();
        std::memset(buffer.map().data(), 0xab, buffer.bytes());
    }
    const auto again = f.local(ENPU_LARGE_PAGE_SIZE);
    REQUIRE(again.va() == va);
    const auto bytes = again.map();
    REQUIRE(std::all_of(bytes.begin(), bytes.end(),
                        [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST_CASE("impossible buffers are refused") {
    Fixture f;
    expect_failure([&](enpu_error* e) { return create(f, 0, ENPU_BUFFER_HOST, e); }, -EINVAL,
                   {"0 bytes"});
    expect_failure([&](enpu_error* e) { return create(f, UINT64_MAX, ENPU_BUFFER_HOST, e); },
                   -EINVAL, {"bytes"});
    expect_failure([&](enpu_error* e) { return create(f, 4096, 0, e); }, -EINVAL,
                   {"HOST and LOCAL"});
    expect_failure(
        [&](enpu_error* e) { return create(f, 4096, ENPU_BUFFER_HOST | ENPU_BUFFER_LOCAL, e); },
        -EINVAL, {"0x3"});
    expect_failure([&](enpu_error* e) { return create(f, 4096, ENPU_BUFFER_HOST | 0x100, e); },
                   -EINVAL, {"0x101"});
    enpu_error error = {};
    int fd = 0;
    REQUIRE(enpu_buffer_export(f.host(4096).get(), &fd, &error) == -EINVAL);
    REQUIRE(fd == -1);
}

TEST_CASE("full local memory is told with numbers, and nothing is evicted") {
    Fixture f;
    const uint64_t total = f.device.info().local_bytes;
    expect_failure([&](enpu_error* e) { return create(f, total + 1, ENPU_BUFFER_LOCAL, e); },
                   -ENOSPC, {"device-local", "largest piece"});
    std::vector<Buffer> buffers;
    int code = 0;
    while (code == 0) {
        try {
            buffers.push_back(f.local(total / 8));
        } catch (const Error& error) {
            code = error.code();
        }
        REQUIRE(buffers.size() <= 8);
    }
    REQUIRE(code == -ENOSPC);
    REQUIRE(buffers.size() >= 7);
    // What is given back can be had again at once.
    buffers.pop_back();
    buffers.push_back(f.local(total / 8));
}

TEST_CASE("memory of the process is used without a copy") {
    Fixture f;
    // Not aligned on purpose: the library maps whole pages and keeps the offset.
    std::vector<uint8_t> memory(70001);
    const auto values = pattern(memory.size() - 1);
    std::copy(values.begin(), values.end(), memory.begin() + 1);
    const auto in = Buffer::wrap(f.device, memory.data() + 1, values.size(), ENPU_BUFFER_READ_ONLY);
    REQUIRE(reinterpret_cast<uint8_t*>(in.map().data()) == memory.data() + 1);
    std::vector<uint8_t> result(values.size());
    {
        const auto out = Buffer::wrap(f.device, result.data(), result.size());
        f.copy(out, 0, in, 0, values.size(), f.copy_engine());
    }
    REQUIRE(result == values);

    enpu_buffer* none = nullptr;
    const auto hole = reinterpret_cast<void*>(uint64_t{0x10000});
    expect_failure(
        [&](enpu_error* e) { return enpu_buffer_wrap(f.device.get(), hole, 4096, 0, &none, e); },
        -EFAULT, {"0x10000"});
    expect_failure(
        [&](enpu_error* e) {
            return enpu_buffer_wrap(f.device.get(), hole, UINT64_MAX, 0, &none, e);
        },
        -EINVAL, {"range"});
}

TEST_CASE("a read-only buffer is no output") {
    Fixture f;
    const auto in = f.host(4096);
    const auto fixed = f.host(4096, ENPU_BUFFER_READ_ONLY);
    Builder builder(f.device, ENPU_ENGINE_KIND_COPY);
    expect_failure(
        [&](enpu_error* e) {
            return enpu_build_copy(builder.get(), fixed.get(), 0, in.get(), 0, 64, e);
        },
        -EACCES, {"copy", "'dst'", "READ_ONLY"});
    // The device has the same opinion when the packet is forged.
    const auto forged = f.host(64);
    const enpu_fill_packet fill = {{ENPU_OPCODE_FILL, 0, sizeof(fill), 0}, fixed.va(), 64, 1, 1, 0};
    put(forged, std::vector<enpu_fill_packet>{fill});
    expect_failure(
        [&](enpu_error* e) { return f.run_raw(f.copy_engine(), forged.va(), sizeof(fill), e); },
        -EFAULT, {"fill"});
}

TEST_CASE("a released buffer stays until its job has ended") {
    Fixture f;
    const uint64_t bytes = uint64_t{8} << 20;
    const auto out = f.host(bytes);
    auto in = f.host(bytes);
    const auto values = pattern(bytes);
    put(in, values);
    const uint64_t va = in.va();
    const auto gate = Timeline::create(f.device);
    {
        Builder builder(f.device, ENPU_ENGINE_KIND_COPY);
        check([&](enpu_error* e) {
            return enpu_build_copy(builder.get(), out.get(), 0, in.get(), 0, bytes, e);
        });
        const auto command = builder.finish();
        // The gate's point must be submitted before it can be waited for: a job of another context
        // signals it after the release.
        const auto other = Context::create(f.device);
        const auto flag = f.host(8);
        Builder waiting(f.device, ENPU_ENGINE_KIND_COPY);
        check([&](enpu_error* e) {
            return enpu_build_wait(waiting.get(), flag.get(), 0, 1, 10'000'000, e);
        });
        other.submit(f.copy_engine(), waiting.finish(), {}, {gate.at(1)});
        f.context.submit(f.copy_engine(), command, {gate.at(1)}, {f.timeline.at(++f.point)});
        in = Buffer();
        Builder kick(f.device, ENPU_ENGINE_KIND_COMPUTE);
        check([&](enpu_error* e) { return enpu_build_signal(kick.get(), flag.get(), 0, 1, e); });
        const auto done = Timeline::create(f.device);
        f.context.submit(0, kick.finish(), {}, {done.at(1)});
        // Nobody gets the VA while the job may read there.
        REQUIRE(f.host(bytes).va() != va);
        f.context.wait(f.timeline, f.point, soon());
        f.context.wait(done, 1, soon());
    }
    REQUIRE(take<uint8_t>(out, bytes) == values);
}

TEST_CASE("export and import share memory between devices") {
    Fixture f;
    const auto shared = f.host(8192, ENPU_BUFFER_SHARED);
    int fd = -1;
    enpu_error error = {};
    const int result = enpu_buffer_export(shared.get(), &fd, &error);
    if (f.device.info().simulator != 0) {
        REQUIRE(result == -EOPNOTSUPP);
        return;
    }
    REQUIRE(result == 0);
    const auto other = Device::open(spec().c_str());
    enpu_buffer* raw = nullptr;
    check([&](enpu_error* e) { return enpu_buffer_import(other.get(), fd, 0, &raw, e); });
    const Buffer imported(raw);
    // Twice on the same device: one handle below, closed with the second release only.
    enpu_buffer* twice = nullptr;
    check([&](enpu_error* e) { return enpu_buffer_import(other.get(), fd, 0, &twice, e); });
    enpu_buffer_release(twice);
    close(fd);

    const auto values = pattern(8192);
    put(shared, values);
    const auto context = Context::create(other);
    const auto timeline = Timeline::create(other);
    const auto out = Buffer::create(other, 8192, ENPU_BUFFER_HOST);
    Builder builder(other, ENPU_ENGINE_KIND_COPY);
    check([&](enpu_error* e) {
        return enpu_build_copy(builder.get(), out.get(), 0, imported.get(), 0, 8192, e);
    });
    context.submit(other.info().compute_engines, builder.finish(), {}, {timeline.at(1)});
    check([&](enpu_error* e) { return enpu_buffer_wait(imported.get(), true, soon(), e); });
    context.wait(timeline, 1, soon());
    REQUIRE(take<uint8_t>(out, 8192) == values);
}
