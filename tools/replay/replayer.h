// SPDX-License-Identifier: MIT
// Runs the jobs of a recording again and compares what they leave in memory with what was recorded;
// finds the first packet whose output differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "os/os.h"
#include "os/record/recording.h"

namespace enpu::tools {

struct RecordedRange {
    uint64_t va = 0;
    std::span<const std::byte> bytes;  // in the recording
};
struct RecordedPacket {
    uint32_t offset = 0;
    uint16_t opcode = 0;
    std::vector<RecordedRange> after;
};
struct RecordedMap {
    bool map = true;  // else unmap
    uint64_t va = 0, size = 0;
    uint32_t flags = 0;
};
struct RecordedJob {
    std::vector<RecordedMap> maps;  // before the job, in order
    std::vector<RecordedRange> before;
    uint32_t engine = 0, cmd_bytes = 0;
    uint64_t cmd_va = 0, job_id = 0;
    std::vector<RecordedPacket> packets;
};
struct Recording {
    std::vector<std::byte> file;
    record::Header header{};
    std::vector<RecordedJob> jobs;
    std::string stopped;  // why it ends early, if it does
};
// Throws Failure (kUsage) for a file that is none; a cut-off one is read as far as it goes, and
// `stopped` says so.
Recording read_recording(std::vector<std::byte> file);

struct Difference {
    size_t job = 0;
    uint64_t job_id = 0;
    uint32_t engine = 0;
    bool failed = false;       // the job ended with an error, which `what` tells
    bool found_again = false;  // run in part, it differed again: packet and what follows are known
    uint32_t packet = 0;       // offset in the command buffer
    std::string opcode, operand;
    uint64_t va = 0;  // of the first byte that differs
    uint64_t bytes = 0, bytes_of = 0;
    std::string what;  // one sentence
};
struct ReplayResult {
    size_t jobs = 0, packets = 0;
    uint64_t bytes = 0;  // of outputs compared
    std::vector<Difference> differences;
};
struct ReplayOptions {
    bool keep_going = false;  // after a difference; each job begins with what was recorded
    std::function<void(size_t job, size_t of)> progress;
};
// Throws Failure when the device cannot take the recording (engines, memory, address space).
ReplayResult replay(const Recording& recording, os::Os& device, const ReplayOptions& options);
// "npu", "/dev/accel/accelN" or "sim[:…]". Throws Failure.
std::unique_ptr<os::Os> open_below(const std::string& spec);

}  // namespace enpu::tools
