// SPDX-License-Identifier: MIT
// What only a driver has: more users of one device, jobs that wait for jobs, a clock over hangs,
// power, counters of what went wrong.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "machine.h"

namespace enpu::bringup {

class Driver {
  public:
    virtual ~Driver() = default;
    // Another user of the device, with an address space of its own.
    virtual std::unique_ptr<Machine> beside() const = 0;
    // Hands a job over that the driver runs when the others, of this machine, have ended.
    virtual uint64_t submit_after(uint32_t engine, const Stream& stream,
                                  std::span<const uint64_t> jobs) = 0;
    // Hands a job over in a context of its own and closes that. ns until the job had ended; fails
    // when it does not end.
    virtual uint64_t abandon(uint32_t engine, const Stream& stream) = 0;
    // Jobs of this machine on the engine count as hung after so long without progress.
    virtual void limit(uint32_t engine, uint32_t milliseconds) = 0;
    // Waits for a job; the negative errno it ended with, 0 when it was well.
    virtual int code(uint64_t job) = 0;
    // Arms an injected fault (enpu_fault.h); false with the reason where that cannot be done.
    virtual bool inject(const std::string& fault, std::string* why_not) = 0;
    // Until this is called, the device is kept awake: a slow host would else find in any stage what
    // sleep does to a device.
    virtual void let_sleep() = 0;
    // The PCI device under /sys; empty for one without.
    virtual std::filesystem::path pci() const = 0;
    // A counter of the driver under pci(); 0 where there is none.
    uint64_t event(const char* name) const;
};

// The driver below a machine. A stage that needs one is skipped on a bare device, with `why`.
Driver& driver_of(Machine& machine, const char* why);

}  // namespace enpu::bringup
