// SPDX-License-Identifier: MIT
// The kernel driver's trace events (events/enpu of tracefs) in an instance of their own, on
// CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace enpu::rt::profile {

struct KernelEvent {
    uint64_t ns = 0;
    std::string name;  // "enpu_job_run"
    std::string text;  // its fields
};

// One line of a tracefs `trace` file: "task-12 [000] d..1. 12.345678: enpu_irq: status=1"; false for
// a comment or anything else.
bool parse_trace_line(const std::string& line, KernelEvent& event);

class KernelTrace {
  public:
    ~KernelTrace() { stop(); }
    // Says in `note` why there will be no events: no tracefs, no right to it, no such driver.
    void start();
    void stop();

    std::vector<KernelEvent> events;
    std::string note;

  private:
    std::string folder_;  // of the instance; empty: not tracing
};

}  // namespace enpu::rt::profile
