// SPDX-License-Identifier: MIT
// A layer over the way down that writes what the device is given and what it answers into a file,
// for `enpu replay`. ENPU_RECORD=FILE puts it in; a further device of the process writes FILE.2 ….
#pragma once

#include <memory>
#include <string>

#include "os/os.h"

namespace enpu::os {

// Exchanges *os for one that records into `file`. Jobs then run one after the other, packet by
// packet, and each submission waits until its job has ended. What cannot be recorded (imported
// memory without a mapping, a job that fails or waits for a later one) ends the recording with a
// reason, in the file and on stderr; the program goes on.
int record_to(const std::string& file, std::unique_ptr<Os>* os, enpu_error* error);

}  // namespace enpu::os
