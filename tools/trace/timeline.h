// SPDX-License-Identifier: MIT
// A recording of the kernel's events as a Perfetto trace, and any trace as a page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis.h"
#include "kernel_events.h"

namespace enpu::tools {

// Tracks of engines, of the threads' ioctls, of scheduler, fences and interrupts, and the number of
// jobs in flight. Engines from `compute_engines` on are named as copy engines; without it none are.
// May be followed by another Perfetto trace in the same file.
std::string perfetto_trace(const std::vector<KernelEvent>& events,
                           std::optional<uint32_t> compute_engines);

// One file of HTML that asks for nothing else: timeline, table of the lanes with their gaps by
// reason, table of kernels and of calls, counters over time. The data is in it as JSON
// (<script id="data">).
std::string timeline_page(const std::string& title, const Analysis& analysis);

}  // namespace enpu::tools
