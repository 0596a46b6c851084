// SPDX-License-Identifier: MIT
// Checks of arguments that do not depend on the chip. Each gives OK, or fills *status with the
// operand and the rule.
#pragma once

#include <cstdint>

#include "enpu_hal.h"

namespace enpu::hal {

uint32_t check_device_info(const enpu_hal_device_info* info, enpu_hal_status* status);
uint32_t check_buffer_info(const enpu_hal_buffer_info* info, enpu_hal_status* status);
uint32_t check_counters(const enpu_hal_counters* counters, enpu_hal_status* status);

// Size, alignment, kind of memory, flags. An alignment above the backend's largest and the flag
// SHARED where the device cannot share are UNSUPPORTED.
uint32_t check_buffer_desc(const enpu_hal_buffer_desc* desc, uint64_t max_alignment,
                           uint32_t device_caps, enpu_hal_status* status);

// Engine and priority. A copy queue on a device without copy engines is UNSUPPORTED.
uint32_t check_queue_desc(const enpu_hal_queue_desc* desc, uint32_t copy_engines,
                          enpu_hal_status* status);

// Structure, counts and that lists are not null where their counts are not 0.
uint32_t check_submission(const enpu_hal_submission* submission, uint32_t max_commands,
                          uint32_t max_points, enpu_hal_status* status);

// Structure of a dispatch, and that its lists are there.
uint32_t check_dispatch_structure(const enpu_hal_dispatch* dispatch, enpu_hal_status* status);

// A list of points for fence.wait.
uint32_t check_points(const enpu_hal_point* points, uint32_t count, uint32_t most,
                      enpu_hal_status* status);

}  // namespace enpu::hal
