// SPDX-License-Identifier: MIT
#include "tests/device_fixture.h"

#include <algorithm>
#include <numeric>

using namespace enpu;
using namespace enpu::test;

TEST_CASE("bytes go to local memory and back, across pages, on every engine") {
    Fixture f;
    const uint64_t bytes = 3 * uint64_t{ENPU_LARGE_PAGE_SIZE} + 12345;
    const auto in = f.host(bytes), local = f.local(bytes), out = f.host(bytes);
    std::vector<uint8_t> values(bytes);
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<uint8_t>(i * 2654435761u >> 13);
    put(in, values);
    const uint32_t engines = f.device.info().compute_engines + f.device.info().copy_engines;
    for (uint32_t engine = 0; engine < engines; ++engine) {
        CAPTURE(engine);
        std::memset(out.map().data(), 0, bytes);
        f.copy(local, 1, in, 0, bytes - 1, engine);
        f.copy(out, 0, local, 1, bytes - 1, engine);
        values.back() = 0;
        REQUIRE(take<uint8_t>(out, bytes) == values);
    }
}

TEST_CASE("2D copies move rows and leave the gaps") {
    Fixture f;
    const auto in = f.host(64 * 8), out = f.host(100 * 8);
    std::vector<uint8_t> values(in.bytes());
    std::iota(values.begin(), values.end(), uint8_t{0});
    put(in, values);
    std::memset(out.map().data(), 0xcc, out.bytes());
    Builder builder(f.device, ENPU_ENGINE_KIND_COPY);
    const enpu_copy_2d copy = {out.get(), in.get(), 10, 3, 100, 64, 17, 7, 0};
    check([&](enpu_error* e) { return enpu_build_copy_2d(builder.get(), &copy, e); });
    f.run(f.copy_engine(), builder.finish());
    std::vector<uint8_t> expected(out.bytes(), 0xcc);
    for (size_t row = 0; row < 7; ++row)
        std::copy_n(values.begin() + 3 + row * 64, 17, expected.begin() + 10 + row * 100);
    REQUIRE(take<uint8_t>(out, out.bytes()) == expected);
}

TEST_CASE("fill repeats its pattern, signal and timestamp write words") {
    Fixture f;
    const auto out = f.host(4096);
    Builder builder(f.device, ENPU_ENGINE_KIND_COPY);
    check([&](enpu_error* e) {
        return enpu_build_fill(builder.get(), out.get(), 8, 24, 0x1122334455667788, 2, e);
    });
    check([&](enpu_error* e) { return enpu_build_timestamp(builder.get(), out.get(), 64, e); });
    check([&](enpu_error* e) { return enpu_build_barrier(builder.get(), e); });
    check([&](enpu_error* e) { return enpu_build_timestamp(builder.get(), out.get(), 72, e); });
    check([&](enpu_error* e) { return enpu_build_signal(builder.get(), out.get(), 80, 99, e); });
    uint64_t before_ns, after_ns, unused;
    check([&](enpu_error* e) {
        return enpu_device_get_clock(f.device.get(), &before_ns, &unused, e);
    });
    f.run(f.copy_engine(), builder.finish());
    check([&](enpu_error* e) {
        return enpu_device_get_clock(f.device.get(), &after_ns, &unused, e);
    });
    const auto words = take<uint64_t>(out, 11);
    REQUIRE(words[0] == 0);
    for (int i = 1; i < 4; ++i) REQUIRE(words[i] == 0x7788778877887788);
    REQUIRE(words[4] == 0);
    REQUIRE(before_ns <= words[8]);
    REQUIRE(words[8] <= words[9]);
    REQUIRE(words[9] <= after_ns);
    REQUIRE(words[10] == 99);
}
