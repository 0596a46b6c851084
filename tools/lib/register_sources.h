// SPDX-License-Identifier: MIT
// Where registers can be read: a live device, the simulator, a saved dump.
#pragma once

#include <memory>
#include <string>

#include "registers.h"

namespace enpu::tools {

// Opens registers by name. Throws Failure.
//   ""                        as "npu"
//   "npu", "/dev/accel/accelN"  the device of a node: by debugfs of its driver (root), else by its
//                             PCI resource file, which the kernel grants when no driver holds it
//   "pci:ADDRESS"             the PCI resource file of a function
//   "sim", "sim:OPTIONS"      a new simulator
//   a file                    a device coredump, or what 'enpu reg dump -o' wrote
std::unique_ptr<RegisterFile> open_registers(const std::string& spec);

}  // namespace enpu::tools
