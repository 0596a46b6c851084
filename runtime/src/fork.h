// SPDX-License-Identifier: MIT
// A device belongs to the process that opened it: a child of fork has neither its threads nor a
// consistent state of its locks.
#pragma once

#include "rt.h"

namespace enpu::rt {

// Number of forks between the first process and this one; watches for them from the first call on.
uint32_t fork_generation();
bool forked_since(const rt_device_impl& device);
// RT_FAILED_PRECONDITION in a child of the process that opened the device. Before any lock.
rt_status check_fork(const rt_device_impl& device, const char* origin);

}  // namespace enpu::rt
