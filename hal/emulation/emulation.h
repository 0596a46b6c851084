// SPDX-License-Identifier: MIT
// What a backend lacks, made once from what it has:
//   COPY_2D     a copy for each row
//   FILL        a copy of the pattern, then copies of what is filled already
//   GRAPH       the list is kept, checked, and submitted anew by each launch
//   HOST_CALL   a thread of the queue waits for what comes before, calls, and submits what follows
//   WAIT_EARLY  the same thread waits on the host for a point that nobody has submitted yet
// A command that was held back for the thread is refused, if at all, by the failure of its fences.
#pragma once

#include "enpu_hal.h"

namespace enpu::hal {

constexpr uint32_t kEmulatedCaps = ENPU_HAL_CAP_COPY_2D | ENPU_HAL_CAP_FILL | ENPU_HAL_CAP_GRAPH |
                                   ENPU_HAL_CAP_HOST_CALL | ENPU_HAL_CAP_WAIT_EARLY;

// The plug-in with all of that; the plug-in itself when it lacks nothing (or when there are too many
// layers, which is logged by the caller that meets the missing capability).
const enpu_hal_plugin* complete(const enpu_hal_plugin& plugin);

}  // namespace enpu::hal
