// SPDX-License-Identifier: MIT
// Buffers, mapping, copies and fills.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "fixture.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;

namespace {

std::vector<uint8_t> ramp(size_t count) {
    std::vector<uint8_t> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<uint8_t>(i * 7 + i / 253);
    return values;
}

}  // namespace

TEST_CASE("memory: buffers keep size, alignment and place apart", "[memory]") {
    Fixture f;
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (uint32_t memory : {ENPU_HAL_MEMORY_LOCAL, ENPU_HAL_MEMORY_HOST}) {
        for (uint64_t bytes : {1ull, 4096ull, 1'000'001ull}) {
            const auto info = f.buffer_info(f.make_buffer(bytes, memory));
            CHECK(info.bytes >= bytes);
            CHECK(info.memory == memory);
            CHECK(info.address % 64 == 0);
            if (memory == ENPU_HAL_MEMORY_HOST) CHECK(info.host != nullptr);
            for (const auto& [begin, size] : ranges)
                CHECK((info.address + info.bytes <= begin || begin + size <= info.address));
            ranges.emplace_back(info.address, info.bytes);
        }
    }
}

TEST_CASE("memory: a requested alignment holds", "[memory]") {
    Fixture f;
    for (uint64_t alignment : {64, 256, 4096}) {
        auto desc = with_header<enpu_hal_buffer_desc>(ENPU_HAL_TYPE_BUFFER_DESC);
        desc.bytes = 100;
        desc.alignment = alignment;
        enpu_hal_buffer* buffer = nullptr;
        auto& status = f.status;
        HAL_OK(f.hal->memory->alloc(f.device, &desc, &buffer, &status));
        CHECK(f.buffer_info(buffer).address % alignment == 0);
        f.hal->memory->free(buffer);
    }
}

TEST_CASE("memory: nonsense is refused with a sentence", "[memory][errors]") {
    Fixture f;
    auto& status = f.status;
    enpu_hal_buffer* buffer = nullptr;
    auto desc = with_header<enpu_hal_buffer_desc>(ENPU_HAL_TYPE_BUFFER_DESC);
    HAL_FAILS(f.hal->memory->alloc(f.device, &desc, &buffer, &status), ENPU_HAL_INVALID_ARGUMENT);
    desc.bytes = 64;
    desc.alignment = 3;
    HAL_FAILS(f.hal->memory->alloc(f.device, &desc, &buffer, &status), ENPU_HAL_INVALID_ARGUMENT);
    desc.alignment = 0;
    desc.flags = 0x80000000;
    HAL_FAILS(f.hal->memory->alloc(f.device, &desc, &buffer, &status), ENPU_HAL_INVALID_ARGUMENT);
    desc.flags = 0;
    desc.memory = 9;
    HAL_FAILS(f.hal->memory->alloc(f.device, &desc, &buffer, &status), ENPU_HAL_INVALID_ARGUMENT);
    desc.memory = ENPU_HAL_MEMORY_LOCAL;
    desc.bytes = uint64_t{1} << 46;
    HAL_FAILS(f.hal->memory->alloc(f.device, &desc, &buffer, &status), ENPU_HAL_RESOURCE_EXHAUSTED);
    CHECK(buffer == nullptr);
}

TEST_CASE("memory: usage falls and comes back where the device has memory of its own", "[memory]") {
    Fixture f;
    if (f.info.local_bytes == 0) SKIP("unsupported: the memory is the host's");
    auto& status = f.status;
    uint64_t before = 0, during = 0, after = 0, total = 0;
    HAL_OK(f.hal->memory->usage(f.device, &before, &total, &status));
    enpu_hal_buffer* buffer = f.make_buffer(8u << 20, ENPU_HAL_MEMORY_LOCAL);
    HAL_OK(f.hal->memory->usage(f.device, &during, &total, &status));
    f.drop_buffer(buffer);
    HAL_OK(f.hal->memory->usage(f.device, &after, &total, &status));
    CHECK(during + (8u << 20) <= before);
    CHECK(after == before);
    CHECK(total == f.info.local_bytes);
}

TEST_CASE("memory: local memory that is full says so, and a free makes room",
          "[memory][exhaustion]") {
    Fixture f;
    if (f.info.local_bytes == 0) SKIP("unsupported: the memory is the host's");
    auto& status = f.status;
    auto desc = with_header<enpu_hal_buffer_desc>(ENPU_HAL_TYPE_BUFFER_DESC);
    desc.bytes = f.info.local_bytes / 4;
    std::vector<enpu_hal_buffer*> held;
    enpu_hal_buffer* buffer = nullptr;
    uint32_t code = ENPU_HAL_OK;
    while (held.size() < 8) {
        code = f.hal->memory->alloc(f.device, &desc, &buffer, &status);
        if (code != ENPU_HAL_OK) break;
        held.push_back(buffer);
    }
    CHECK(code == ENPU_HAL_RESOURCE_EXHAUSTED);
    REQUIRE_FALSE(held.empty());
    f.hal->memory->free(held.back());
    HAL_OK(f.hal->memory->alloc(f.device, &desc, &held.back(), &status));
    for (auto* each : held) f.hal->memory->free(each);
}

TEST_CASE("copy: bytes of every size and offset arrive", "[copy]") {
    Fixture f;
    for (size_t bytes : {1, 2, 3, 63, 64, 65, 4095, 4096, 4097, 70'001}) {
        const auto sent = ramp(bytes);
        CHECK(f.download<uint8_t>(f.upload(sent), bytes) == sent);
    }
    NEEDS(f, ENPU_HAL_CAP_FILL);
    const uint64_t step = f.info.buffer_alignment;  // every offset is odd in units of it
    const auto sent = ramp(6000);
    enpu_hal_buffer* from = f.upload(sent);
    enpu_hal_buffer* to = f.make_buffer(6000, ENPU_HAL_MEMORY_LOCAL);
    f.run({f.fill(to, 0, 6000, 0xee, 1), f.copy(to, 13 * step, from, 7 * step, 850)});
    const auto seen = f.download<uint8_t>(to, 6000);
    const auto begin = seen.begin() + ptrdiff_t(13 * step);
    CHECK(std::equal(begin, begin + 850, sent.begin() + ptrdiff_t(7 * step)));
    CHECK(std::count(seen.begin(), begin, 0xee) == begin - seen.begin());
    CHECK(std::count(begin + 850, seen.end(), 0xee) == seen.end() - begin - 850);
}

TEST_CASE("copy: rows with pitches leave what is between them", "[copy]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_COPY_2D);
    NEEDS(f, ENPU_HAL_CAP_FILL);
    const uint64_t step = f.info.buffer_alignment;
    if (step > 8) SKIP("unsupported: rows of this size are not aligned");
    const auto sent = ramp(30 * 88);
    enpu_hal_buffer* from = f.upload(sent);
    enpu_hal_buffer* to = f.make_buffer(30 * 128, ENPU_HAL_MEMORY_LOCAL);
    enpu_hal_command command{};
    command.kind = ENPU_HAL_COMMAND_COPY;
    command.u.copy = {{to, step}, {from, step}, 23, 30, 128, 88};
    f.run({f.fill(to, 0, 30 * 128, 0, 1), command});
    const auto seen = f.download<uint8_t>(to, 30 * 128);
    for (size_t row = 0; row < 30; ++row)
        for (size_t at = 0; at < 128; ++at) {
            const bool inside = at >= step && at < step + 23;
            REQUIRE(seen[row * 128 + at] == (inside ? sent[row * 88 + at] : 0));
        }
}

TEST_CASE("copy: what does not fit is refused and changes nothing", "[copy][errors]") {
    Fixture f;
    auto& status = f.status;
    enpu_hal_buffer* a = f.make_buffer(100);
    enpu_hal_buffer* b = f.make_buffer(100);
    std::memset(f.host<char>(b), 7, 100);
    const std::pair<enpu_hal_command, const char*> wrong[] = {
        {f.copy(b, 0, a, 0, 0), "no bytes"},
        {f.copy(b, 1, a, 0, 8192), "past the end of the destination"},
        {f.copy(b, 0, a, 8000, 100), "past the end of the source"},
        {f.copy(b, UINT64_MAX - 7, a, 0, 16), "offset that wraps"},
        {f.copy(b, 0, a, 0, UINT64_MAX), "size that wraps"},
        {f.copy(nullptr, 0, a, 0, 4), "no destination"},
        {f.copy(b, 0, b, 2, 50), "overlap"}};
    for (const auto& [command, what] : wrong) {
        INFO(what);
        HAL_FAILS(f.submit({command}), ENPU_HAL_INVALID_ARGUMENT);
        --f.value;
    }
    enpu_hal_command rows{};
    rows.kind = ENPU_HAL_COMMAND_COPY;
    rows.u.copy = {{b, 0}, {a, 0}, 16, 4, 8, 16};
    HAL_FAILS(f.submit({rows}), ENPU_HAL_INVALID_ARGUMENT);
    rows.u.copy = {{b, 0}, {a, 0}, 16, uint64_t{1} << 62, 16, 16};
    HAL_FAILS(f.submit({rows}), ENPU_HAL_INVALID_ARGUMENT);
    f.value -= 2;
    CHECK(std::count(f.host<char>(b), f.host<char>(b) + 100, 7) == 100);
    f.run({f.copy(b, 0, a, 0, 100)});  // the queue is as good as new
}

TEST_CASE("fill: patterns of 1, 2, 4 and 8 bytes", "[fill]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    enpu_hal_buffer* buffer = f.make_buffer(256, ENPU_HAL_MEMORY_LOCAL);
    constexpr uint64_t kPattern = 0x8899aabbccddeeff;
    for (uint32_t size : {1u, 2u, 4u, 8u}) {
        f.run({f.fill(buffer, 0, 256, 0, 1), f.fill(buffer, 16, 64, kPattern, size)});
        const auto seen = f.download<uint8_t>(buffer, 256);
        for (size_t i = 0; i < 256; ++i) {
            const bool inside = i >= 16 && i < 80;
            const uint8_t expected = static_cast<uint8_t>(kPattern >> (8 * ((i - 16) % size)));
            REQUIRE(seen[i] == (inside ? expected : 0));
        }
    }
    auto& status = f.status;
    HAL_FAILS(f.submit({f.fill(buffer, 0, 9, 0, 3)}), ENPU_HAL_INVALID_ARGUMENT);
    HAL_FAILS(f.submit({f.fill(buffer, 0, 10, 0, 4)}), ENPU_HAL_INVALID_ARGUMENT);
    HAL_FAILS(f.submit({f.fill(buffer, 0, 1u << 20, 0, 4)}), ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("memory: the process's own memory is used in place", "[memory]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_FILL);
    NEEDS(f, ENPU_HAL_CAP_USERPTR);
    auto& status = f.status;
    std::vector<uint8_t> mine = ramp(3 * 4096);
    enpu_hal_buffer* wrapped = nullptr;
    HAL_OK(f.hal->memory->wrap(f.device, mine.data(), mine.size(), &wrapped, &status));
    enpu_hal_buffer* local = f.make_buffer(mine.size(), ENPU_HAL_MEMORY_LOCAL);
    f.run({f.copy(local, 0, wrapped, 0, mine.size())});
    CHECK(f.download<uint8_t>(local, mine.size()) == mine);
    f.run({f.fill(wrapped, 5, 100, 0x11, 1)});
    CHECK(std::count(mine.begin() + 5, mine.begin() + 105, 0x11) == 100);
    f.hal->memory->free(wrapped);
    HAL_FAILS(f.hal->memory->wrap(f.device, nullptr, 10, &wrapped, &status),
              ENPU_HAL_INVALID_ARGUMENT);
}

namespace {

enpu_hal_buffer* shared_buffer(Fixture& f, uint64_t bytes, uint32_t memory) {
    auto& status = f.status;
    auto desc = with_header<enpu_hal_buffer_desc>(ENPU_HAL_TYPE_BUFFER_DESC);
    desc.bytes = bytes;
    desc.memory = memory;
    desc.flags = ENPU_HAL_BUFFER_SHARED;
    enpu_hal_buffer* buffer = nullptr;
    HAL_OK(f.hal->memory->alloc(f.device, &desc, &buffer, &status));
    return buffer;
}

}  // namespace

TEST_CASE("memory: a shared buffer is the same bytes in another opening", "[memory][share]") {
    Fixture a, b;
    NEEDS(a, ENPU_HAL_CAP_SHARE);
    auto& status = a.status;
    const auto data = ramp(10'000);
    for (uint32_t memory : {ENPU_HAL_MEMORY_HOST, ENPU_HAL_MEMORY_LOCAL}) {
        auto* shared = shared_buffer(a, data.size(), memory);
        int fd = -1;
        HAL_OK(a.hal->memory->export_fd(shared, &fd, &status));
        enpu_hal_buffer* twin = nullptr;
        const uint32_t code = b.hal->memory->import_fd(b.device, fd, &twin, &status);
        ::close(fd);
        INFO(status.message);
        REQUIRE(code == ENPU_HAL_OK);
        CHECK(b.buffer_info(twin).bytes >= data.size());
        auto* source = a.upload(data);
        a.run({a.copy(shared, 0, source, 0, data.size())});
        CHECK(b.download<uint8_t>(twin, data.size()) == data);
        a.hal->memory->free(shared);
        // The bytes live as long as somebody has them.
        CHECK(b.download<uint8_t>(twin, data.size()) == data);
        b.hal->memory->free(twin);
    }
}

TEST_CASE("memory: an exported descriptor closes on exec and is the caller's", "[memory][share]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_SHARE);
    auto& status = f.status;
    auto* shared = shared_buffer(f, 4096, ENPU_HAL_MEMORY_HOST);
    int first = -1, second = -1;
    HAL_OK(f.hal->memory->export_fd(shared, &first, &status));
    HAL_OK(f.hal->memory->export_fd(shared, &second, &status));
    CHECK(first != second);
    CHECK((fcntl(first, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK(::close(first) == 0);
    CHECK(::close(second) == 0);
    f.hal->memory->free(shared);
}

TEST_CASE("memory: only shared buffers are exported", "[memory][share][errors]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_SHARE);
    auto& status = f.status;
    auto* plain = f.make_buffer(4096);
    int fd = -1;
    HAL_FAILS(f.hal->memory->export_fd(plain, &fd, &status), ENPU_HAL_INVALID_ARGUMENT);
    CHECK(fd == -1);
}

TEST_CASE("memory: what is no shared memory is not imported", "[memory][share][errors]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_SHARE);
    auto& status = f.status;
    enpu_hal_buffer* buffer = nullptr;
    HAL_FAILS(f.hal->memory->import_fd(f.device, -1, &buffer, &status), ENPU_HAL_INVALID_ARGUMENT);
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    HAL_FAILS(f.hal->memory->import_fd(f.device, ends[0], &buffer, &status),
              ENPU_HAL_INVALID_ARGUMENT);
    ::close(ends[0]);
    ::close(ends[1]);
    // A memory file that its owner may still shrink: its pages could go away under the device.
    const int loose = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(ftruncate(loose, 4096) == 0);
    HAL_FAILS(f.hal->memory->import_fd(f.device, loose, &buffer, &status),
              ENPU_HAL_INVALID_ARGUMENT);
    ::close(loose);
    CHECK(buffer == nullptr);
}

TEST_CASE("memory: a device that cannot share refuses the flag", "[memory][share][errors]") {
    Fixture f;
    if (f.info.caps & ENPU_HAL_CAP_SHARE) SKIP("unsupported: the device can share");
    auto& status = f.status;
    auto desc = with_header<enpu_hal_buffer_desc>(ENPU_HAL_TYPE_BUFFER_DESC);
    desc.bytes = 64;
    desc.flags = ENPU_HAL_BUFFER_SHARED;
    enpu_hal_buffer* buffer = nullptr;
    HAL_FAILS(f.hal->memory->alloc(f.device, &desc, &buffer, &status), ENPU_HAL_UNSUPPORTED);
}

TEST_CASE("memory: a description of another type or size is refused", "[memory][errors]") {
    Fixture f;
    auto& status = f.status;
    enpu_hal_buffer* buffer = nullptr;
    HAL_FAILS(f.hal->memory->alloc(f.device, nullptr, &buffer, &status), ENPU_HAL_INVALID_ARGUMENT);
    auto desc = with_header<enpu_hal_buffer_desc>(ENPU_HAL_TYPE_QUEUE_DESC);
    desc.bytes = 64;
    HAL_FAILS(f.hal->memory->alloc(f.device, &desc, &buffer, &status), ENPU_HAL_INVALID_ARGUMENT);
    desc.header = {12, ENPU_HAL_TYPE_BUFFER_DESC, nullptr};
    HAL_FAILS(f.hal->memory->alloc(f.device, &desc, &buffer, &status), ENPU_HAL_INVALID_ARGUMENT);
    CHECK(buffer == nullptr);
}

TEST_CASE("memory: an unknown extension in the chain is ignored", "[memory][abi]") {
    Fixture f;
    auto& status = f.status;
    enpu_hal_header unknown{sizeof(unknown), 0x7fffffff, nullptr};
    auto desc = with_header<enpu_hal_buffer_desc>(ENPU_HAL_TYPE_BUFFER_DESC);
    desc.bytes = 64;
    desc.header.next = &unknown;
    enpu_hal_buffer* buffer = nullptr;
    HAL_OK(f.hal->memory->alloc(f.device, &desc, &buffer, &status));
    f.hal->memory->free(buffer);
}

TEST_CASE("memory: alignments up to the device's largest, and not beyond", "[memory]") {
    Fixture f;
    auto& status = f.status;
    auto desc = with_header<enpu_hal_buffer_desc>(ENPU_HAL_TYPE_BUFFER_DESC);
    desc.bytes = 100;
    enpu_hal_buffer* buffer = nullptr;
    for (uint64_t alignment = 1; alignment <= std::min<uint64_t>(f.info.max_alignment, 1u << 16);
         alignment *= 2) {
        desc.alignment = alignment;
        HAL_OK(f.hal->memory->alloc(f.device, &desc, &buffer, &status));
        CHECK(f.buffer_info(buffer).address % std::max<uint64_t>(alignment, 64) == 0);
        f.hal->memory->free(buffer);
    }
    buffer = nullptr;
    desc.alignment = f.info.max_alignment * 2;
    HAL_FAILS(f.hal->memory->alloc(f.device, &desc, &buffer, &status), ENPU_HAL_UNSUPPORTED);
}

TEST_CASE("memory: info refuses a structure of another type", "[memory][errors]") {
    Fixture f;
    auto& status = f.status;
    auto* buffer = f.make_buffer(64);
    HAL_FAILS(f.hal->memory->info(buffer, nullptr, &status), ENPU_HAL_INVALID_ARGUMENT);
    auto info = with_header<enpu_hal_buffer_info>(ENPU_HAL_TYPE_BUFFER_DESC);
    HAL_FAILS(f.hal->memory->info(buffer, &info, &status), ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("memory: freeing nothing is safe", "[memory]") {
    Fixture f;
    f.hal->memory->free(nullptr);
    f.run({});
}

TEST_CASE("memory: the host pointer stays the same", "[memory][mapping]") {
    Fixture f;
    auto* buffer = f.make_buffer(4096);
    char* first = f.host<char>(buffer);
    for (int i = 0; i < 10; ++i) f.make_buffer(1u << 16);
    CHECK(f.host<char>(buffer) == first);
    first[0] = 1, first[4095] = 2;
    auto* copy = f.make_buffer(4096);
    f.run({f.copy(copy, 0, buffer, 0, 4096)});
    CHECK(f.host<char>(copy)[4095] == 2);
}

TEST_CASE("memory: local buffers are mapped where the device says so", "[memory][mapping]") {
    Fixture f;
    auto* buffer = f.make_buffer(64, ENPU_HAL_MEMORY_LOCAL);
    if (!(f.info.caps & ENPU_HAL_CAP_MAP_LOCAL)) {
        CHECK(f.buffer_info(buffer).host == nullptr);
        SKIP("unsupported: local memory has no host pointer");
    }
    std::memset(f.host<char>(buffer), 8, 64);
    CHECK(f.download<uint8_t>(buffer, 64) == std::vector<uint8_t>(64, 8));
}

TEST_CASE("memory: hundreds of buffers keep their own bytes", "[memory][stress]") {
    Fixture f;
    std::vector<enpu_hal_buffer*> buffers;
    for (uint32_t i = 0; i < 300; ++i) {
        buffers.push_back(f.make_buffer(64 + i * 8));
        std::memset(f.host<char>(buffers.back()), int(i % 251), 64 + i * 8);
    }
    for (uint32_t i = 0; i < 300; ++i)
        REQUIRE(uint8_t(f.host<char>(buffers[i])[63 + i * 8]) == i % 251);
}

TEST_CASE("memory: a size that wraps is refused", "[memory][errors]") {
    Fixture f;
    auto& status = f.status;
    auto desc = with_header<enpu_hal_buffer_desc>(ENPU_HAL_TYPE_BUFFER_DESC);
    enpu_hal_buffer* buffer = nullptr;
    for (uint32_t memory : {ENPU_HAL_MEMORY_LOCAL, ENPU_HAL_MEMORY_HOST}) {
        desc.memory = memory;
        desc.bytes = UINT64_MAX;
        const uint32_t code = f.hal->memory->alloc(f.device, &desc, &buffer, &status);
        INFO(status.message);
        CHECK((code == ENPU_HAL_RESOURCE_EXHAUSTED || code == ENPU_HAL_INVALID_ARGUMENT));
    }
    CHECK(buffer == nullptr);
}

TEST_CASE("memory: usage tells total and free", "[memory]") {
    Fixture f;
    auto& status = f.status;
    uint64_t free_bytes = 1, total = 0;
    HAL_OK(f.hal->memory->usage(f.device, &free_bytes, &total, &status));
    CHECK(free_bytes <= total);
}

TEST_CASE("memory: pages of the process at an odd address are wrapped", "[memory][userptr]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_USERPTR);
    auto& status = f.status;
    std::vector<uint8_t> mine = ramp(10'000);
    const uint64_t step = f.info.buffer_alignment;
    enpu_hal_buffer* wrapped = nullptr;
    HAL_OK(f.hal->memory->wrap(f.device, mine.data() + 16, 5000, &wrapped, &status));
    auto* local = f.make_buffer(5000, ENPU_HAL_MEMORY_LOCAL);
    f.run({f.copy(local, 0, wrapped, step, 4000)});
    const auto seen = f.download<uint8_t>(local, 4000);
    CHECK(std::equal(seen.begin(), seen.end(), mine.begin() + 16 + ptrdiff_t(step)));
    HAL_FAILS(f.submit({f.copy(local, 0, wrapped, 0, 1u << 20)}), ENPU_HAL_INVALID_ARGUMENT);
    f.hal->memory->free(wrapped);
}

TEST_CASE("memory: nothing is no memory of the process", "[memory][userptr][errors]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_USERPTR);
    auto& status = f.status;
    char byte = 0;
    enpu_hal_buffer* wrapped = nullptr;
    HAL_FAILS(f.hal->memory->wrap(f.device, &byte, 0, &wrapped, &status),
              ENPU_HAL_INVALID_ARGUMENT);
    CHECK(wrapped == nullptr);
}
