// SPDX-License-Identifier: MIT
// Options of "sim:cores=2,threads=1,local-mem=256M,…".
#pragma once

#include <cstdint>
#include <string>

#include "enpu/enpu.h"

namespace enpu::sim {

struct Options {
    uint32_t cores = 2;
    uint32_t threads = 1;
    uint32_t copy_engines = 2;
    uint64_t local_bytes = uint64_t{256} << 20;
    uint64_t host_bytes = 0;  // limit of host memory in BOs; 0: what the machine has
    bool fault_injection = false;
};

// 0, or -EINVAL with a sentence that names the option.
int parse_options(const std::string& text, Options* options, enpu_error* error);

}  // namespace enpu::sim
