// SPDX-License-Identifier: MIT
// What the tool ends with when something is in the way: a sentence and an exit status that scripts
// can use.
#pragma once

#include <stdexcept>
#include <string>

namespace enpu::tools {

enum Exit {
    kOk = 0,
    kCheckFailed = 1,   // the command ran and found a fault of what it looked at
    kUsage = 2,         // the command line
    kNoDevice = 3,      // no device, or it went away
    kNoPermission = 4,  // of the node, of a register file
    kDeviceLost = 5,    // wedged, or it does not answer
    kUnsupported = 6,   // this device, kernel or build cannot do it; the sentence says why
    kInternal = 70,
};

class Failure : public std::runtime_error {
  public:
    Failure(Exit exit, const std::string& message) : std::runtime_error(message), exit_(exit) {}
    Exit exit() const { return exit_; }

  private:
    Exit exit_;
};

// The exit status for a negative errno of libenpu.
Exit exit_of(int code);

}  // namespace enpu::tools
