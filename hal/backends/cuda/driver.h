// SPDX-License-Identifier: MIT
// The driver library: found at run time, once a process, and never unloaded.
#pragma once

#include "driver_api.h"
#include "enpu_hal.h"

namespace enpu::hal::cuda {

// The driver's functions after cuInit, or nullptr with the reason ("no CUDA device: …") in *status.
// The library is libcuda.so.1, or the file that ENPU_CUDA_LIBRARY names.
const Driver* driver(enpu_hal_status* status);

// Lines for the log of the host that loaded this backend.
void set_host(const enpu_hal_host& host);
__attribute__((format(printf, 2, 3))) void log_line(uint32_t level, const char* format, ...);

// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
struct ErrorText {
    char text[160];
};
ErrorText error_text(const Driver& driver, Result error);

// True for errors after which the context is of no more use: everything that follows in it fails
// too.
bool is_sticky(Result error);

// Fills *status with `what` and the driver's words. RESOURCE_EXHAUSTED for memory, DEVICE_LOST for
// sticky errors, else `code`.
uint32_t fail_driver(enpu_hal_status* status, const Driver& driver, uint32_t code, Result error,
                     const char* what);

}  // namespace enpu::hal::cuda
