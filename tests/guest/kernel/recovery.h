// SPDX-License-Identifier: MIT
// What tests of faults and resets share.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernel_device.h"

namespace enpu::test {

// A timeout of contexts that is short, but not so short that a slow guest passes it by itself.
constexpr uint32_t kTimeoutMs = 600;

// Arms a fault, or skips the test where the device cannot.
void inject(enpu_fault_kind kind, uint32_t target, uint32_t times = 1, uint64_t arg = 0,
            uint32_t after = 0);
void clear_faults();

// Messages of the kernel about devices, from now on.
class Uevents {
  public:
    Uevents();
    ~Uevents();
    Uevents(const Uevents&) = delete;
    Uevents& operator=(const Uevents&) = delete;
    // Waits for an event of the accelerator that has this line.
    bool comes(const std::string& line);

  private:
    int fd_;
};

// Waits until an engine (by its name without "enpu-") has a job: what is submitted now comes behind
// it.
void wait_until_busy(const std::string& engine = "compute0");
void wait_a_little();
// Waits until the condition holds; false after a deadline.
template <typename Condition>
bool eventually(Condition condition) {
    for (const int64_t until = soon(); !condition(); wait_a_little())
        if (deadline({}) > until) return false;
    return true;
}

// A counter of the device in sysfs.
unsigned long counter(const char* name);

// Throws away the dump that waits, if there is one.
void drop_dump();
// The dump that waits, or comes; empty after a deadline. Leaves it there.
std::vector<uint8_t> read_dump();

// What exists in the driver, by name, as debugfs tells it. Jobs of a closed file end a little later.
std::map<std::string, long> live_objects();

// Writes a file whole. 0 or -errno.
int write_file(const std::string& path, const std::string& text);
// Waits until the PCI function at a path of /sys/devices has a node, and makes it the one of the
// test. A file that is still open keeps the old number.
bool find_node(const std::string& device);
// The node of the device in /sys/devices. Valid without a driver, too.
std::string pci_path();

}  // namespace enpu::test
