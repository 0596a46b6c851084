// SPDX-License-Identifier: MIT
// The device from outside, for a fault test: its fault block, counters, kernel log and dumps.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "slower.h"

namespace enpu::faults {

using test::slower;

// Text of a file of the device in debugfs or sysfs; empty when it cannot be read.
std::string debugfs(const std::string& name);
bool debugfs_write(const std::string& name, const std::string& text);
uint64_t counter(const std::string& name);

// What the device counted of its own faults.
struct Fired {
    uint64_t count = 0;
    int64_t at_ns = 0;  // CLOCK_MONOTONIC of the last
};
Fired fired(const std::string& kind);
std::map<std::string, uint64_t> fired_by_kind();

// A reset of the function by the bus, which brings a lost device back.
bool bus_reset();

// What is left of clients that have ended, in words; empty when nothing is: objects of the driver
// (files, address spaces, contexts, queues, buffers, mappings, page tables, pinned pages, jobs,
// fences, local memory) and references to the module.
std::string leftovers();
// Nothing keeps the device awake any more: it goes to sleep when it is let.
bool falls_asleep(int limit_ms);
// Of local memory; ~0 while the device does not answer.
uint64_t local_free();

// The kernel log from its end when this was made.
class KernelLog {
  public:
    KernelLog();
    ~KernelLog();
    KernelLog(const KernelLog&) = delete;
    KernelLog& operator=(const KernelLog&) = delete;
    // Alarms of the kernel and errors of the driver since then, but those that match one of the
    // expressions (separated by newlines).
    std::string findings(const std::string& allowed);

  private:
    int fd_;
};

// Takes all dumps that lie there: how many, and whether each could be read and put into words.
struct Dumps {
    unsigned count = 0;
    bool readable = true;
    std::string why;  // not readable
};
Dumps take_dumps();

}  // namespace enpu::faults
