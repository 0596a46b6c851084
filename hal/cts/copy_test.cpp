// SPDX-License-Identifier: MIT
// Copies and fills beyond the simplest ones.
#include <algorithm>

#include "fixture.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;

namespace {

std::vector<uint8_t> pattern(size_t count) {
    std::vector<uint8_t> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<uint8_t>(i * 13 + i / 256 * 7);
    return values;
}

enpu_hal_command rows(enpu_hal_place dst, enpu_hal_place src, uint64_t width, uint64_t height,
                      uint64_t dst_pitch, uint64_t src_pitch) {
    enpu_hal_command command{};
    command.kind = ENPU_HAL_COMMAND_COPY;
    command.u.copy = {dst, src, width, height, dst_pitch, src_pitch};
    return command;
}

}  // namespace

TEST_CASE("copy: between every pair of kinds of memory", "[copy]") {
    Fixture f;
    const auto data = pattern(5000);
    for (uint32_t from : {ENPU_HAL_MEMORY_LOCAL, ENPU_HAL_MEMORY_HOST})
        for (uint32_t to : {ENPU_HAL_MEMORY_LOCAL, ENPU_HAL_MEMORY_HOST}) {
            auto* source = f.upload(data);
            auto* a = f.make_buffer(data.size(), from);
            auto* b = f.make_buffer(data.size(), to);
            f.run({f.copy(a, 0, source, 0, data.size()), f.copy(b, 0, a, 0, data.size())});
            CHECK(f.download<uint8_t>(b, data.size()) == data);
        }
}

TEST_CASE("copy: one byte, and every size around powers of two", "[copy]") {
    Fixture f;
    const auto data = pattern(4200);
    auto* source = f.upload(data);
    for (uint64_t size : {1u, 2u, 3u, 63u, 64u, 65u, 4095u, 4096u, 4097u}) {
        auto* target = f.upload(std::vector<uint8_t>(4200, 0xee));
        f.run({f.copy(target, 0, source, 0, size)});
        const auto seen = f.download<uint8_t>(target, 4200);
        for (size_t i = 0; i < 4200; ++i) REQUIRE(seen[i] == (i < size ? data[i] : 0xee));
    }
}

TEST_CASE("copy: at every offset the device allows", "[copy]") {
    Fixture f;
    const auto data = pattern(512);
    auto* source = f.upload(data);
    const uint64_t step = f.info.buffer_alignment;
    for (uint64_t offset = 0; offset < 64; offset += step) {
        auto* target = f.upload(std::vector<uint8_t>(512, 0));
        f.run({f.copy(target, offset, source, 64 - offset / step * step, 100)});
        const auto seen = f.download<uint8_t>(target, 512);
        for (size_t i = 0; i < 100; ++i)
            REQUIRE(seen[offset + i] == data[64 - offset / step * step + i]);
    }
}

TEST_CASE("copy: within one buffer, side by side", "[copy]") {
    Fixture f;
    const auto data = pattern(1024);
    auto* buffer = f.upload(data);
    f.run({f.copy(buffer, 512, buffer, 0, 512)});
    const auto seen = f.download<uint8_t>(buffer, 1024);
    CHECK(std::equal(seen.begin() + 512, seen.end(), data.begin()));
}

TEST_CASE("copy: eight megabytes", "[copy]") {
    Fixture f;
    const auto data = pattern(8u << 20);
    auto* a = f.upload(data);
    auto* b = f.make_buffer(data.size(), ENPU_HAL_MEMORY_LOCAL);
    f.run({f.copy(b, 0, a, 0, data.size())});
    CHECK(f.download<uint8_t>(b, data.size()) == data);
}

TEST_CASE("copy: a chain through ten buffers in one submission", "[copy]") {
    Fixture f;
    const auto data = pattern(700);
    std::vector<enpu_hal_buffer*> chain{f.upload(data)};
    std::vector<enpu_hal_command> commands;
    for (int i = 0; i < 10; ++i) {
        chain.push_back(f.make_buffer(700, ENPU_HAL_MEMORY_LOCAL));
        commands.push_back(f.copy(chain[size_t(i) + 1], 0, chain[size_t(i)], 0, 700));
    }
    f.run(commands);
    CHECK(f.download<uint8_t>(chain.back(), 700) == data);
}

TEST_CASE("copy: bytes are counted", "[copy][profile]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_PROFILE);
    auto* a = f.make_buffer(10'000);
    auto* b = f.make_buffer(10'000);
    const auto before = f.counters();
    f.run({f.copy(a, 0, b, 0, 10'000), f.copy(b, 0, a, 0, 500)});
    const auto after = f.counters();
    CHECK(after.copy_bytes == before.copy_bytes + 10'500);
    CHECK(after.copies == before.copies + 2);
}

TEST_CASE("copy: as many commands as a submission may have, and one more", "[copy][limits]") {
    Fixture f;
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    auto* b = f.make_buffer(64);
    std::vector<enpu_hal_command> commands(f.info.max_commands, f.copy(a, 0, b, 0, 64));
    f.run(commands);
    commands.push_back(commands[0]);
    HAL_FAILS(f.submit(commands), ENPU_HAL_INVALID_ARGUMENT);
    --f.value;
    f.run({commands[0]});
}

TEST_CASE("copy: rows with pitches on both sides", "[copy][2d]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_COPY_2D);
    const auto data = pattern(40 * 128);
    auto* source = f.upload(data);
    auto* target = f.upload(std::vector<uint8_t>(40 * 64, 0xee));
    f.run({rows({target, 0}, {source, 64}, 33, 40, 64, 128)});
    const auto seen = f.download<uint8_t>(target, 40 * 64);
    for (size_t r = 0; r < 40; ++r)
        for (size_t i = 0; i < 64; ++i)
            REQUIRE(seen[r * 64 + i] == (i < 33 ? data[64 + r * 128 + i] : 0xee));
}

TEST_CASE("copy: more rows than a submission has commands", "[copy][2d]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_COPY_2D);
    constexpr uint64_t kRows = 3000;
    const auto data = pattern(kRows * 64);
    auto* source = f.upload(data);
    auto* target = f.make_buffer(kRows * 64, ENPU_HAL_MEMORY_LOCAL);
    f.run({rows({target, 0}, {source, 0}, 64, kRows, 64, 64)});
    CHECK(f.download<uint8_t>(target, kRows * 64) == data);
}

TEST_CASE("copy: a last row that ends with its buffer", "[copy][2d]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_COPY_2D);
    auto& status = f.status;
    auto* source = f.upload(pattern(4 * 64));
    auto* target = f.make_buffer(3 * 4096 + 10);
    f.run({rows({target, 0}, {source, 0}, 10, 4, 4096, 64)});
    HAL_FAILS(f.submit({rows({target, 0}, {source, 0}, 64, 5, 4096, 64)}),
              ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("copy: rows that overlap their source are refused", "[copy][2d][errors]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_COPY_2D);
    auto& status = f.status;
    auto* buffer = f.make_buffer(4096);
    HAL_FAILS(f.submit({rows({buffer, 64}, {buffer, 0}, 64, 4, 128, 128)}),
              ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("copy: a height or width of 0 is refused", "[copy][errors]") {
    Fixture f;
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    auto* b = f.make_buffer(64);
    HAL_FAILS(f.submit({rows({a, 0}, {b, 0}, 16, 0, 16, 16)}), ENPU_HAL_INVALID_ARGUMENT);
    HAL_FAILS(f.submit({rows({a, 0}, {b, 0}, 0, 1, 16, 16)}), ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("copy: one bad command among good ones drops them all", "[copy][errors]") {
    Fixture f;
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    auto* b = f.make_buffer(64);
    std::memset(f.host<char>(a), 1, 64);
    std::memset(f.host<char>(b), 2, 64);
    HAL_FAILS(f.submit({f.copy(b, 0, a, 0, 64), f.copy(b, 0, a, 0, 1u << 20)}),
              ENPU_HAL_INVALID_ARGUMENT);
    --f.value;
    f.run({});
    CHECK(f.host<char>(b)[0] == 2);
}

TEST_CASE("fill: sizes that are no power of two", "[fill]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    for (uint64_t bytes : {1u, 3u, 65u, 1000u, 4099u}) {
        auto* target = f.upload(std::vector<uint8_t>(5000, 0));
        f.run({f.fill(target, 64, bytes, 0x5a, 1)});
        const auto seen = f.download<uint8_t>(target, 5000);
        CHECK(std::count(seen.begin(), seen.end(), 0x5a) == int64_t(bytes));
        CHECK(seen[63] == 0);
        CHECK(seen[64 + bytes] == 0);
    }
}

TEST_CASE("fill: high bits of the pattern do not matter", "[fill]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    auto* target = f.make_buffer(64);
    f.run({f.fill(target, 0, 64, 0xffffffffffff1234, 2)});
    for (int i = 0; i < 32; ++i) REQUIRE(f.host<uint16_t>(target)[i] == 0x1234);
}

TEST_CASE("fill: many with different patterns in one submission", "[fill]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    auto* target = f.make_buffer(64 * 16);
    std::vector<enpu_hal_command> commands;
    for (uint64_t i = 0; i < 16; ++i) commands.push_back(f.fill(target, 64 * i, 64, i + 1, 8));
    f.run(commands);
    for (uint64_t i = 0; i < 16; ++i) REQUIRE(f.host<uint64_t>(target)[8 * i + 7] == i + 1);
}

TEST_CASE("fill: thousands in flight", "[fill][stress]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    auto& status = f.status;
    auto* target = f.make_buffer(64 * 1000);
    for (uint64_t i = 0; i < 1000; ++i) HAL_OK(f.submit({f.fill(target, 64 * i, 64, i, 4)}));
    HAL_OK(f.wait(f.fence, f.value));
    for (uint64_t i = 0; i < 1000; ++i) REQUIRE(f.host<uint32_t>(target)[16 * i + 15] == i);
}

TEST_CASE("fill: nonsense is refused", "[fill][errors]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    auto& status = f.status;
    auto* target = f.make_buffer(64);
    HAL_FAILS(f.submit({f.fill(target, 0, 0, 1, 1)}), ENPU_HAL_INVALID_ARGUMENT);
    HAL_FAILS(f.submit({f.fill(target, 0, 64, 1, 0)}), ENPU_HAL_INVALID_ARGUMENT);
    HAL_FAILS(f.submit({f.fill(target, 0, 64, 1, 16)}), ENPU_HAL_INVALID_ARGUMENT);
    HAL_FAILS(f.submit({f.fill(nullptr, 0, 64, 1, 1)}), ENPU_HAL_INVALID_ARGUMENT);
    HAL_FAILS(f.submit({f.fill(target, UINT64_MAX - 3, 8, 1, 1)}), ENPU_HAL_INVALID_ARGUMENT);
}
