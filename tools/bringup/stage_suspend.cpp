// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "driver.h"
#include "lib/output.h"
#include "lib/system.h"
#include "list.h"

namespace enpu::bringup {
namespace {

namespace fs = std::filesystem;
using tools::format;

constexpr const char* kWhy = "it needs a driver: it is the driver that puts a device to sleep";
constexpr auto kPatience = std::chrono::seconds(15);

std::string status_of(const fs::path& pci) {
    return tools::read_text(pci / "power/runtime_status").value_or("unknown");
}

void check_engines(Machine& machine, const Memory& memory, uint64_t value, const char* after) {
    for (uint32_t engine = 0; engine < machine.engines(); ++engine) {
        machine.must_run(format("a job on engine %u %s", engine, after), engine,
                         Stream()
                             .fill(memory.va + 64 * engine, 64, value + engine, 8)
                             .copy(memory.va + 2048 + 64 * engine, memory.va + 64 * engine, 64));
        require_equal(format("its last word, engine %u %s", engine, after),
                      memory.as<uint64_t>(2048 + 64 * engine)[7], value + engine);
    }
}

// With nothing to do the device sleeps; the next job wakes it.
void check_runtime(Machine& machine, const fs::path& pci, const Memory& memory, unsigned round) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (status_of(pci) != "suspended") {
        require(std::chrono::steady_clock::now() < until,
                format("the device does not fall asleep: power/runtime_status is '%s' after %lld s "
                       "without a job",
                       status_of(pci).c_str(), (long long)kPatience.count()));
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    const std::string state = tools::read_text(pci / "power_state").value_or("unknown");
    require(state == "D3hot", format("the device sleeps, but power_state is '%s': the function has "
                                     "refused D3hot",
                                     state.c_str()));
    check_engines(machine, memory, 0x100 * round, "that woke the device");
}

// A reset by the bus takes all registers; what was set up is there afterwards.
void check_reset(Machine& machine, const fs::path& pci, const Memory& memory) {
    const fs::path file = pci / "reset";
    if (access(file.c_str(), W_OK) != 0) return;  // no root, or a bus without
    std::ofstream out(file);
    out << "1" << std::flush;
    require(static_cast<bool>(out), "the bus does not reset the device: " + file.string());
    check_engines(machine, memory, 0xabc000, "after a reset by the bus");
}

void jobs(Machine& machine) {
    Driver& driver = driver_of(machine, kWhy);
    const fs::path pci = driver.pci();
    if (pci.empty()) throw StageSkipped("the simulator has no power states");
    const auto control = tools::read_text(pci / "power/control");
    if (!control || *control != "auto")
        throw StageSkipped((pci / "power/control").string() + " is not 'auto'");
    // Local memory that is mapped keeps a device awake.
    machine.release();
    driver.let_sleep();
    const Memory memory = machine.allocate(4096, false);
    for (unsigned round = 1; round <= 2; ++round) check_runtime(machine, pci, memory, round);
    check_reset(machine, pci, memory);
    check_runtime(machine, pci, memory, 3);
    machine.release();
}

}  // namespace

const Stage kSuspend = {
    "suspend", "an idle device sleeps, a job wakes it, a reset by the bus is survived",
    "a power management capability whose state cannot be written, a reference that is never given "
    "back, registers that are not written again after sleep (root "
    "tables, queues, interrupt enables)",
    nullptr, jobs};

}  // namespace enpu::bringup
