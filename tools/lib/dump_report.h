// SPDX-License-Identifier: MIT
// A coredump in words.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "device_dump.h"

namespace enpu::tools {

std::string report_text(const DeviceDump& dump);
nlohmann::ordered_json report_json(const DeviceDump& dump);
// The likely cause, in a sentence or two.
std::string verdict(const DeviceDump& dump);
// "level 3 [0] table 0x…: entry 0x… READ WRITE" lines and what they come to.
std::string walk_text(const enpu_dump_walk& walk);

}  // namespace enpu::tools
