// SPDX-License-Identifier: MIT
// A device under a policy (rt_policy.h): operations one at a time, tried again, or run on another
// backend from the inputs that are left.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "record.h"
#include "rt.h"
#include "status.h"

struct StreamWork;

namespace enpu::rt {

// Bytes of a buffer that a command reads or writes.
struct Span {
    enpu_hal_buffer* buffer = nullptr;
    uint64_t begin = 0, end = 0;

    bool overlaps(const Span& other) const {
        return buffer == other.buffer && begin < other.end && other.begin < end;
    }
};

struct Access {
    std::vector<Span> reads, writes;
};
void add_access(const enpu_hal_command& command, Access& access);
// Whether the commands could run again after having run in part: none writes what it or one before
// it reads.
bool inputs_survive(const enpu_hal_command* commands, uint32_t count);

// A queue of a backend, used by one thread at a time, each submission waited for.
class PlainQueue {
  public:
    ~PlainQueue() { close(); }
    uint32_t open(const enpu_hal_plugin& hal, enpu_hal_device* device, enpu_hal_status* status);
    uint32_t run(const enpu_hal_command* commands, uint32_t count, uint64_t deadline_ns,
                 enpu_hal_status* status);
    void close();

  private:
    const enpu_hal_plugin* hal_ = nullptr;
    enpu_hal_device* device_ = nullptr;
    enpu_hal_queue* queue_ = nullptr;
    enpu_hal_fence* fence_ = nullptr;
    uint64_t value_ = 0;
};

class Guard {
  public:
    explicit Guard(rt_device_impl& device) : device_(device) {}
    ~Guard();

    rt_status open(const rt_policy& policy);
    // Enqueues on the stream and waits; repairs what the policy allows.
    rt_status run(rt_stream_impl& stream, const StreamWork& work);
    void report(rt_policy_report& out);

  private:
    // The host's copy of a buffer of the device, and that memory as buffers of both backends.
    struct Shadow {
        uint64_t address = 0, bytes = 0;
        void* host = nullptr;
        bool owned = false;  // else the buffer is host memory itself
        enpu_hal_buffer* here = nullptr;
        enpu_hal_buffer* there = nullptr;
    };

    rt_status open_fallback(const rt_policy& policy);
    rt_status attempt(rt_stream_impl& stream, const StreamWork& work);
    rt_status repair(rt_stream_impl& stream, const StreamWork& work, rt_status failed);
    rt_status fall_back(rt_stream_impl& stream, const StreamWork& work);
    uint32_t run_there(const StreamWork& work, uint64_t deadline_ns, enpu_hal_status* status);
    uint32_t translate(OpRecord& op, enpu_hal_status* status);
    uint32_t move(const std::vector<Span>& spans, bool to_host, uint64_t deadline_ns,
                  enpu_hal_status* status);
    uint32_t shadow_of(enpu_hal_buffer* buffer, Shadow** shadow, enpu_hal_status* status);
    void drop(Shadow& shadow);
    bool lost();
    void tell(const char* format, ...) __attribute__((format(printf, 2, 3)));

    rt_device_impl& device_;
    std::mutex mutex_;  // one operation at a time
    uint32_t retries_ = 0;
    bool retain_ = false;
    void (*notice_)(void* context, const char* text) = nullptr;
    void* context_ = nullptr;
    const enpu_hal_plugin* hal_ = nullptr;  // of the fallback, or null
    enpu_hal_device* fallback_ = nullptr;
    PlainQueue here_, there_;
    std::map<enpu_hal_buffer*, Shadow> shadows_;
    rt_policy_report counts_{};
};

}  // namespace enpu::rt
