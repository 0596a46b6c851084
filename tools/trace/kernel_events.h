// SPDX-License-Identifier: MIT
// Events of the kernel by tracefs: the driver's, the scheduler's, fences, and the program's ioctls,
// on CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace enpu::tools {

struct KernelEvent {
    uint64_t ns = 0;
    std::string task;  // "name-tid"
    int tid = 0;
    std::string name;  // "enpu_job_run"
    std::string text;
    // The number of "key=…" in the text; `missing` when there is none.
    uint64_t number(const char* key, uint64_t missing = 0) const;
};

// A line of a tracefs `trace` file; false for a comment and for what cannot be read.
bool parse_event(const std::string& line, KernelEvent* event);

// An instance of tracefs that is gone with the object.
class KernelRecorder {
  public:
    KernelRecorder() = default;
    ~KernelRecorder();
    KernelRecorder(const KernelRecorder&) = delete;
    // False, with the reason in `why`, when this user or kernel cannot trace.
    bool start(std::string* why);
    std::vector<KernelEvent> stop();
    uint64_t lost() const { return lost_; }  // events that found the buffer full
    // Kinds of events that this kernel was built without: "syscalls/sys_enter_ioctl".
    const std::vector<std::string>& missing() const { return missing_; }

  private:
    std::string folder_;
    std::vector<std::string> missing_;
    uint64_t lost_ = 0;
};

// A job as the driver saw it: submitted, handed to the device, ended.
struct JobSpan {
    uint32_t context = 0, engine = 0;
    uint64_t seqno = 0, job_id = 0;
    uint64_t submit_ns = 0, run_ns = 0, done_ns = 0;
    uint64_t begin_ns = 0;  // when the engine was free for it and it was there
    int error = 0;
    std::string task;
};
// Jobs that began and ended inside the recording, by engine, in order of their ends.
std::map<uint32_t, std::vector<JobSpan>> job_spans(const std::vector<KernelEvent>& events);
struct IoctlSpan {
    std::string task;
    int tid = 0;
    std::string name;
    uint64_t from_ns = 0, to_ns = 0;
    int64_t result = 0;
};
std::vector<IoctlSpan> ioctl_spans(const std::vector<KernelEvent>& events);

}  // namespace enpu::tools
