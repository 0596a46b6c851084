// SPDX-License-Identifier: MIT
// What runs jobs: the harness's own rings on a bare device, or libenpu over a driver. The same
// packets go either way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "enpu_commands.h"
#include "enpu_hw.h"

namespace enpu::bringup {

class Bench;
using Stream = hw::Commands;

struct Memory {
    uint64_t va = 0;
    std::span<std::byte> host;
    template <typename T>
    T* as(size_t offset = 0) const {
        return reinterpret_cast<T*>(host.data() + offset);
    }
};

// How a job ended; fields past `status` are meaningful when it is not OK.
struct Outcome {
    uint32_t status = ENPU_STATUS_OK;  // enum enpu_status
    uint64_t va = 0;
    uint32_t packet = 0;
    uint16_t rule = 0;
    uint16_t operand = 0xff;
    std::string sentence;
};

class Machine {
  public:
    virtual ~Machine() = default;
    virtual std::string name() const = 0;
    virtual bool driver() const = 0;  // a kernel driver or simulator's driver stands between
    virtual uint32_t compute_engines() const = 0;
    virtual uint32_t copy_engines() const = 0;
    // Zeroed memory with an unmapped page behind it; lives until release().
    virtual Memory allocate(uint64_t bytes, bool local) = 0;
    virtual void release() = 0;
    // Hands a job over; its number. Throws StageFailure when it is refused.
    virtual uint64_t submit(uint32_t engine, const Stream& stream) = 0;
    // Waits for a job, for a bounded time: one that does not end is a StageFailure.
    virtual Outcome wait(uint64_t job) = 0;

    Outcome run(uint32_t engine, const Stream& stream) { return wait(submit(engine, stream)); }
    // The same; anything but OK is a StageFailure that says which step it was.
    void must_run(const std::string& step, uint32_t engine, const Stream& stream);
    uint32_t copy_engine(uint32_t index = 0) const { return compute_engines() + index; }
    uint32_t engines() const { return compute_engines() + copy_engines(); }
};

std::unique_ptr<Machine> bare_machine(Bench& bench);
// Over libenpu. Throws enpu::Error when it cannot be opened.
std::unique_ptr<Machine> driver_machine(const std::string& spec);

}  // namespace enpu::bringup
