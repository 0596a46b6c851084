// SPDX-License-Identifier: MIT
#include <cstring>
#include <vector>

#include "lib/output.h"
#include "list.h"
#include "machine.h"

namespace enpu::bringup {
namespace {

using tools::format;

uint8_t pattern(uint64_t i) {
    return static_cast<uint8_t>(i * 31 + (i >> 8) * 7 + 5);
}

void paint(const Memory& memory) {
    auto* bytes = memory.as<uint8_t>();
    for (size_t i = 0; i < memory.host.size(); ++i) bytes[i] = pattern(i);
}

// `to` holds `guard` everywhere but in [at, at + bytes), which is the source from `from` on.
void check_bytes(const Memory& to, uint64_t at, uint64_t bytes, uint64_t from, uint8_t guard,
                 const std::string& step) {
    const auto* got = to.as<const uint8_t>();
    for (uint64_t i = 0; i < to.host.size(); ++i) {
        const bool inside = i >= at && i < at + bytes;
        const uint8_t want = inside ? pattern(from + i - at) : guard;
        if (got[i] == want) continue;
        require(false, format("%s: byte %lld of the target (%s) is 0x%02x, must be 0x%02x",
                              step.c_str(), (long long)i - (long long)at,
                              inside   ? "copied"
                              : i < at ? "in front of it"
                                       : "behind it",
                              got[i], want));
    }
}

void one_copy(Machine& machine, const Memory& src, const Memory& dst, uint64_t from, uint64_t at,
              uint64_t bytes, uint32_t engine) {
    const std::string step =
        format("COPY of %llu B from offset %llu to %llu on engine %u", (unsigned long long)bytes,
               (unsigned long long)from, (unsigned long long)at, engine);
    std::memset(dst.host.data(), 0xee, dst.host.size());
    machine.must_run(step, engine, Stream().copy(dst.va + at, src.va + from, bytes));
    check_bytes(dst, at, bytes, from, 0xee, step);
}

void check_sizes(Machine& machine) {
    constexpr uint64_t kBytes = 16 << 10;
    const Memory src = machine.allocate(kBytes, false), dst = machine.allocate(kBytes, false);
    paint(src);
    const uint32_t engine = machine.copy_engine();
    for (const uint64_t bytes :
         {1, 2, 3, 4, 7, 8, 9, 15, 16, 63, 64, 65, 255, 4095, 4096, 4097, 8192})
        one_copy(machine, src, dst, 64, 128, bytes, engine);
    for (unsigned from = 0; from < 16; from += 3)
        for (unsigned at = 0; at < 16; at += 5)
            one_copy(machine, src, dst, from, at, 1000 + from, engine);
    // Across a page on both sides, up to the last byte, and all of it.
    one_copy(machine, src, dst, 4090, 4093, 20, engine);
    one_copy(machine, src, dst, kBytes - 100, kBytes - 100, 100, engine);
    one_copy(machine, src, dst, 0, 0, kBytes, engine);
    for (uint32_t other = 0; other < machine.engines(); ++other)
        one_copy(machine, src, dst, 3, 5, 5000, other);
}

void check_2d(Machine& machine) {
    const Memory src = machine.allocate(64 << 10, false), dst = machine.allocate(64 << 10, false);
    paint(src);
    const uint32_t width = 100, height = 37, src_pitch = 301, dst_pitch = 128;
    machine.must_run("2D COPY", machine.copy_engine(),
                     Stream().copy_2d(dst.va + 1, dst_pitch, src.va + 2, src_pitch, width, height));
    for (uint32_t row = 0; row < height; ++row)
        for (uint32_t i = 0; i < dst_pitch; ++i) {
            const uint8_t want = i < width ? pattern(2 + row * src_pitch + i) : 0;
            const uint8_t got = dst.as<uint8_t>()[1 + row * dst_pitch + i];
            if (got == want) continue;
            require(false, format("2D COPY: row %u, byte %u is 0x%02x, must be 0x%02x", row, i, got,
                                  want));
        }
}

void check_fill(Machine& machine) {
    const Memory dst = machine.allocate(8192, false);
    for (const uint32_t bytes : {1u, 2u, 4u, 8u}) {
        std::memset(dst.host.data(), 0, dst.host.size());
        const uint64_t value = 0x8877'6655'4433'2211ull;
        machine.must_run(format("FILL with %u bytes", bytes), machine.copy_engine(),
                         Stream().fill(dst.va + 8, 4096, value, bytes));
        for (uint64_t i = 0; i < 8192; ++i) {
            const bool inside = i >= 8 && i < 8 + 4096;
            const auto want = inside ? static_cast<uint8_t>(value >> (8 * ((i - 8) % bytes))) : 0;
            if (dst.as<uint8_t>()[i] == want) continue;
            require(false, format("FILL with %u bytes: byte %llu is 0x%02x, must be 0x%02x", bytes,
                                  (unsigned long long)i, dst.as<uint8_t>()[i], want));
        }
    }
}

// Longer than a tile, so that it is done in pieces.
void check_large(Machine& machine) {
    constexpr uint64_t kBytes = (9 << 20) + 13;
    const Memory src = machine.allocate(kBytes, false), dst = machine.allocate(kBytes + 64, false);
    paint(src);
    machine.must_run("COPY of 9 MiB", machine.copy_engine(),
                     Stream().copy(dst.va + 7, src.va, kBytes));
    check_bytes(dst, 7, kBytes, 0, 0, "COPY of 9 MiB");
}

void jobs(Machine& machine) {
    machine.release();
    check_sizes(machine);
    check_2d(machine);
    check_fill(machine);
    check_large(machine);
    machine.release();
}

}  // namespace

const Stage kCopy = {
    "copy",
    "DMA: patterns of every size, alignment and page crossing, with guard bytes around them",
    "address bits lost, length rounded to words, a page boundary not looked up again, rows and "
    "pitches swapped",
    nullptr, jobs};

}  // namespace enpu::bringup
