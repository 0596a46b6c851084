// SPDX-License-Identifier: MIT
// A device coredump as the report needs it; kmod/dump reads and checks the bytes.
#pragma once

#include <linux/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drm/enpu_dump.h"
#include "enpu_hw.h"

namespace enpu::tools {

struct DeviceDump {
    enpu_dump_header header = {};
    enpu_dump_info info = {};
    std::vector<enpu_dump_register> registers;
    std::vector<enpu_error_record> errors;
    std::vector<enpu_dump_queue> queues;
    std::map<uint32_t, std::string> rings;  // memory of a queue by its number
    std::optional<enpu_dump_job> job;
    std::string packets;      // bytes of the job's command buffer …
    uint32_t packets_at = 0;  // … from this offset on
    std::vector<enpu_dump_walk> walks;
    std::optional<enpu_dump_context> context;
    bool complete = false;  // the end section was there
    unsigned unknown_sections = 0;

    static bool is_dump(std::string_view bytes);
    // Throws Failure(kUsage) that says where the bytes stop making sense; a dump that was cut off
    // is no failure but incomplete.
    static DeviceDump parse(std::string_view bytes);
};

}  // namespace enpu::tools
