// SPDX-License-Identifier: MIT
// Writes the part of Perfetto's trace format (protobuf) that timelines need: tracks of slices and
// counters, with time stamps of CLOCK_MONOTONIC. Field numbers: perfetto's public trace_packet.proto,
// track_descriptor.proto and track_event.proto, which never change.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace enpu::rt {

class PerfettoTrace {
  public:
    PerfettoTrace();

    // Tracks get numbers of the caller's choice, not 0. `parent` 0: none.
    void process(uint64_t track, int32_t pid, std::string_view name);
    void thread(uint64_t track, uint64_t parent, int32_t pid, int32_t tid, std::string_view name);
    void track(uint64_t track, uint64_t parent, std::string_view name);
    void counter(uint64_t track, uint64_t parent, std::string_view name, std::string_view unit);

    void begin(uint64_t track, uint64_t ns, std::string_view name, std::string_view note = {});
    void end(uint64_t track, uint64_t ns);
    void instant(uint64_t track, uint64_t ns, std::string_view name, std::string_view note = {});
    void value(uint64_t track, uint64_t ns, int64_t value);
    // The correlation of clocks that a reader needs to use CLOCK_MONOTONIC.
    void clocks(uint64_t monotonic_ns, uint64_t boottime_ns, uint64_t realtime_ns);

    const std::string& bytes() const { return bytes_; }

  private:
    void packet(std::string_view body, uint64_t ns, bool timed);
    void event(uint64_t track, uint64_t ns, uint32_t type, std::string_view name,
               std::string_view note);

    std::string bytes_;
    bool first_ = true;
};

}  // namespace enpu::rt
