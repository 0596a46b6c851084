// SPDX-License-Identifier: MIT
// One command, checked and ready to be given to a stream: in a queue, or captured into a graph.
#pragma once

#include "device.h"
#include "kernels.h"
#include "kernels/args.h"
#include "libraries/library.h"

namespace enpu::hal::cuda {

struct CopyRecord {
    uint64_t dst, src, width, height, dst_pitch, src_pitch;
};

struct FillRecord {
    uint64_t dst, bytes, pattern;
    uint32_t pattern_bytes;
    bool by_kernel;  // where there are kernels: what the driver's memset does not do, or may not
};

enum class RecordKind : uint32_t { kCopy, kFill, kKernel, kHostCall };

struct Record {
    RecordKind kind = RecordKind::kCopy;
    uint32_t op = ENPU_OPS;  // of a dispatch
    uint64_t work = 0;
    union {
        CopyRecord copy;
        FillRecord fill;
        KernelCall kernel;
        enpu_hal_host_call host_call;
    };
    // Of a dispatch that a library serves; `kernel` then stands by for what it refuses, and is
    // kCount where there is none.
    std::shared_ptr<LibraryPlan> library;
    LibraryCall call;
    bool by_library = false;  // the last time it was given to a stream

    Record() : copy{} {}

    bool fallible() const { return kind == RecordKind::kKernel && kernel.fallible; }
    bool kernel_missing() const {
        return kind == RecordKind::kKernel && kernel.id == KernelId::kCount;
    }
    uint64_t workspace_bytes() const { return library ? library->workspace_bytes : 0; }
    // Calls of the driver that it takes, at most.
    uint32_t calls() const { return kind == RecordKind::kFill ? 8 : 1; }
};

// Checks a command and resolves it. `offence`: address on the GPU of the caller's Offence. On an
// error *record is garbage.
uint32_t resolve(enpu_hal_device& device, const enpu_hal_command& command, uint64_t offence,
                 Record& record, enpu_hal_status* status);
// kernel.supported.
uint32_t check_supported(enpu_hal_device& device, const enpu_hal_dispatch& dispatch,
                         enpu_hal_status* status);

// Gives a record to a stream of the current context. `workspace` is that of the stream's work, with
// workspace_bytes() of it, or 0 where there was no memory for one. What a library refuses goes to
// the own kernel and is counted.
Result issue(enpu_hal_device& device, Record& record, Stream stream, uint64_t workspace);
// The words for an error of issue().
const char* issue_what(const Record& record);

// What a list of records does, for the counters.
struct Totals {
    uint32_t ops[ENPU_OPS] = {}, library_ops[ENPU_OPS] = {};
    uint64_t copies = 0, copy_bytes = 0, work = 0;
    bool computes = false;

    void add(const Record& record);
    void count(Counters& counters, uint64_t busy_ns) const;
};

// The failure that an Offence stands for.
uint32_t fail_offence(enpu_hal_status* status, uint32_t op, const Offence& offence);

}  // namespace enpu::hal::cuda
