// SPDX-License-Identifier: MIT
// The layers that watch, record and disturb. None of them is there unless it is asked for
// (with_layers in loader.h, ENPU_HAL_LAYERS).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "layer.h"

namespace enpu::hal {

// ---- validate: what a backend may take for granted, checked, with a sentence that says what to do.

enum class Finding {
    kUseAfterFree,     // the call is refused
    kWrongDevice,      // the call is refused
    kDoubleFree,       // the call is refused
    kFreeInFlight,     // freed while work in flight uses it
    kHostAccess,       // the host looks at what work in flight still writes
    kMissingSync,      // two queues touch the same bytes and nothing orders them
    kAllocationLoop,   // allocate and free again and again between submissions
    kShapeLoop,        // the same question about a shape, or the same graph, again and again
    kDeviceSwitching,  // one thread goes to and fro between devices with single submissions
    kLeak,             // objects that live when their device is closed
    kCount,
};
const char* finding_name(Finding finding);

// Where findings go; nullptr: standard error. Called with no lock held, from any thread.
using FindingSink = void (*)(Finding finding, const char* message);
void set_finding_sink(FindingSink sink);

// For code that keeps host pointers: tells the layer that the host is about to read (or write) these
// bytes. Cheap, and does nothing, when no validation layer is in use.
void note_host_access(const void* pointer, uint64_t bytes, bool writes);

std::unique_ptr<Layer> make_validate_layer(const enpu_hal_plugin& below);

// ---- trace: each call, into a recording and as a line of JSON in the form of Chrome's "X" events,
// with time in microseconds of CLOCK_MONOTONIC.

// Where lines go; nullptr: the file of ENPU_HAL_TRACE, or standard error.
using TraceSink = void (*)(const char* line);
void set_trace_sink(TraceSink sink);

// A call that has ended, told on its thread. What is pointed to lives as long as the call of the
// recorder, and `name` for ever.
struct TracedCall {
    const char* name;  // "queue.submit"
    uint64_t start_ns, end_ns;
    uint32_t code;          // enum enpu_hal_code
    const char* arguments;  // a piece of JSON, without braces
};
// Takes part in a recording: true when it kept the call. Then a line is written only where one was
// asked for, by a sink or ENPU_HAL_TRACE. nullptr: nobody records.
using TraceRecorder = bool (*)(const TracedCall& call);
void set_trace_recorder(TraceRecorder recorder);

std::unique_ptr<Layer> make_trace_layer(const enpu_hal_plugin& below);

// ---- fault: failures by order.
//   KIND[:KEY=VALUE,…][;KIND…]
//   oom     memory.alloc gives RESOURCE_EXHAUSTED
//   submit  queue.submit and graph.launch give UNAVAILABLE
//   delay   they sleep first, `ms`
//   drop    their signals are never signalled
//   wait    fence.wait gives WORK_FAILED for what has been reached
//   lost    this call and all after it give DEVICE_LOST
// `after` calls are spared (0), then `count` are hit (1; 0 for all), each with `chance` (1.0), drawn
// from `seed` (1). Every hit is logged to standard error.
// nullptr with a sentence in `reason` when the order cannot be read.
std::unique_ptr<Layer> make_fault_layer(const enpu_hal_plugin& below, const std::string& order,
                                        std::string& reason);

}  // namespace enpu::hal
