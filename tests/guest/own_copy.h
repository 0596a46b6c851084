// SPDX-License-Identifier: MIT
// For tests that put the system to sleep: the shares of the guest are lost by that (their driver
// cannot sleep), so such a test runs from a copy of itself in memory and tells its results by its
// output only.
#pragma once

namespace enpu::test {

// Whether this process already is the copy.
bool is_own_copy(const char* program);

// Copies the program and its libraries off the share and runs the copy. Returns, with the exit
// status, only on failure.
int run_own_copy(int argc, char** argv);

// Sends all devices to sleep and wakes them again by the kernel's own test mode; the processor stays
// on. `state` is "mem" or "freeze". 0 or -errno; -ENOENT: this kernel has no test mode.
int sleep_devices(const char* state);

}  // namespace enpu::test
