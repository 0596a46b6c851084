// SPDX-License-Identifier: MIT
#include "lib/output.h"
#include "list.h"
#include "machine.h"

namespace enpu::bringup {
namespace {

using tools::format;

// Host to local, local to local, local to host; and what the CPU sees of local memory.
void jobs(Machine& machine) {
    machine.release();
    constexpr uint64_t kBytes = (5 << 20) / 2 + 40;
    const Memory in = machine.allocate(kBytes, false), out = machine.allocate(kBytes, false);
    const Memory a = machine.allocate(kBytes, true), b = machine.allocate(kBytes, true);
    for (uint64_t i = 0; i < kBytes / 4; ++i)
        in.as<uint32_t>()[i] = static_cast<uint32_t>(i * 2654435761u);
    machine.must_run("copies through local memory", machine.copy_engine(),
                     Stream()
                         .copy(a.va, in.va, kBytes)
                         .copy(b.va + 16, a.va + 16, kBytes - 32)
                         .copy(out.va + 16, b.va + 16, kBytes - 32));
    for (uint64_t i = 0; i < kBytes / 4; ++i) {
        const bool inside = i >= 4 && i < kBytes / 4 - 4;
        const uint32_t want = inside ? in.as<uint32_t>()[i] : 0;
        if (out.as<uint32_t>()[i] == want) continue;
        require(false, format("word %llu came back from local memory as %08x, must be %08x",
                              (unsigned long long)i, out.as<uint32_t>()[i], want));
    }
    for (uint64_t i = 4; i < 5000; i += 7)
        require_equal("a word of local memory, seen by the CPU", b.as<uint32_t>()[i],
                      in.as<uint32_t>()[i]);
    a.as<uint32_t>()[100] = 0xfeedbeef;
    require_equal("a word of local memory after the CPU wrote to another block",
                  b.as<uint32_t>()[100], in.as<uint32_t>()[100]);
    machine.must_run("copy of what the CPU wrote", machine.copy_engine(),
                     Stream().copy(out.va, a.va + 400, 4));
    require_equal("a word that the CPU wrote to local memory", out.as<uint32_t>()[0], 0xfeedbeef);
    machine.release();
}

}  // namespace

const Stage kLocal = {"local", "device-local memory from the device's side and the CPU's",
                      "local bit of a page-table entry ignored, offset wrong, BAR mapped elsewhere",
                      nullptr, jobs};

}  // namespace enpu::bringup
