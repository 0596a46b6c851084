// SPDX-License-Identifier: MIT
// Options of "sim:cores=2,threads=1,local-mem=256M,…".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "enpu/enpu.h"
#include "enpu_fault.h"

namespace enpu::sim {

struct Options {
    uint32_t cores = 2;
    uint32_t threads = 1;
    uint32_t copy_engines = 2;
    uint64_t local_bytes = uint64_t{256} << 20;
    uint64_t host_bytes = 0;  // limit of host memory in BOs; 0: what the machine has
    bool fault_injection = false;
    std::vector<enpu_fault> faults;  // armed from the start
};

// 0, or -EINVAL with a sentence that names the option.
int parse_options(const std::string& text, Options* options, enpu_error* error);
// Adds what ENPU_SIM_FAULTS asks for. Errors as above.
int add_environment(Options* options, enpu_error* error);
// Appends the faults of a text (enpu_fault.h). -EINVAL with a sentence that says where and what.
int parse_faults(const char* text, std::vector<enpu_fault>* faults, enpu_error* error);

}  // namespace enpu::sim
