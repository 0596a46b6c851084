// SPDX-License-Identifier: MIT
// Filling enum enpu_hal_code and enpu_hal_status together.
#pragma once

#include <cstdarg>
#include <cstdint>

#include "enpu_hal.h"

namespace enpu::hal {

// Fills *status (may be null) and gives back the code, so that a function can `return fail(...)`.
__attribute__((format(printf, 3, 4))) uint32_t fail(enpu_hal_status* status, uint32_t code,
                                                    const char* format, ...);
// The same with the code of the backend's driver.
__attribute__((format(printf, 4, 5))) uint32_t fail_device(enpu_hal_status* status, uint32_t code,
                                                           int32_t device_code, const char* format,
                                                           ...);
// Copies a failure that happened elsewhere.
uint32_t fail_as(enpu_hal_status* status, const enpu_hal_status& failure);

const char* code_name(uint32_t code);  // "invalid-argument"

// CLOCK_MONOTONIC in ns, as all deadlines are.
uint64_t now_ns();

}  // namespace enpu::hal
