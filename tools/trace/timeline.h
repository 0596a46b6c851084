// SPDX-License-Identifier: MIT
// A recording of the kernel's events as a Perfetto trace and as a page that needs no network.
#pragma once

#include <string>
#include <vector>

#include "kernel_events.h"

namespace enpu::tools {

// Tracks of engines, of the threads' ioctls, of scheduler, fences and interrupts, and the number of
// jobs in flight. May be followed by another Perfetto trace in the same file.
std::string perfetto_trace(const std::vector<KernelEvent>& events);
// Timeline, table of engines with their gaps by reason, table of ioctls.
std::string timeline_page(const std::string& title, const std::vector<KernelEvent>& events);

}  // namespace enpu::tools
