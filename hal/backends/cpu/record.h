// SPDX-License-Identifier: MIT
// One command, checked and resolved to host pointers, as the ring of a queue and a graph hold it.
#pragma once

#include <atomic>

#include "device.h"
#include "packet.h"

namespace enpu::hal::cpu {

struct ResolvedCopy {
    std::byte* dst;
    const std::byte* src;
    uint64_t width, height, dst_pitch, src_pitch;
};

struct ResolvedFill {
    std::byte* dst;
    uint64_t bytes, pattern;
    uint32_t pattern_bytes;
};

enum class RecordKind : uint32_t { kCopy, kFill, kDispatch, kTimestamp, kHostCall };

struct Record {
    RecordKind kind;
    union {
        ResolvedCopy copy;
        ResolvedFill fill;
        PacketStorage dispatch;  // addresses are host pointers
        std::byte* timestamp;
        enpu_hal_host_call host_call;
    };
    Record() {}
};

// Checks a command and resolves it. On an error *record is garbage.
uint32_t resolve(const enpu_hal_command& command, Record& record, enpu_hal_status* status);

// Runs a record on the calling thread. `stop` ends an operator at its next tile. OK or the failure.
uint32_t run(enpu_hal_device& device, const Record& record, const std::atomic<bool>& stop,
             enpu_hal_status* status);

}  // namespace enpu::hal::cpu
