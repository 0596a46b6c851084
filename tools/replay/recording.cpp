// SPDX-License-Identifier: MIT
// Reads a recording; nothing in the file is believed unchecked.
#include <cstring>

#include "enpu_hw.h"
#include "lib/failure.h"
#include "lib/output.h"
#include "replayer.h"

namespace enpu::tools {
namespace {

using record::Chunk;

// A range that wraps or leaves the address space belongs to no recording.
void check_range(uint64_t va, uint64_t size, size_t at) {
    if (size == 0 || va < ENPU_VA_START || size > ENPU_VA_END || va > ENPU_VA_END - size)
        throw Failure(
            kUsage,
            format("no recording: the chunk before byte %zu has the impossible range %s + %s", at,
                   hex(va).c_str(), hex(size).c_str()));
}

class Reader {
  public:
    explicit Reader(Recording& recording) : recording_(recording) {}

    void read() {
        const std::span<const std::byte> file = recording_.file;
        if (file.size() < sizeof(record::Header) ||
            std::memcmp(file.data(), record::kMagic, sizeof(record::kMagic)) != 0)
            throw Failure(kUsage, "no recording: it does not begin with ENPUREC1");
        std::memcpy(&recording_.header, file.data(), sizeof(record::Header));
        size_t at = sizeof(record::Header);
        while (at < file.size()) {
            Chunk chunk;
            if (file.size() - at < sizeof(chunk)) return cut_off(at);
            std::memcpy(&chunk, file.data() + at, sizeof(chunk));
            at += sizeof(chunk);
            if (chunk.payload > file.size() - at) return cut_off(at);
            take(chunk, file.subspan(at, chunk.payload), at);
            at += chunk.payload;
        }
    }

  private:
    void cut_off(size_t at) {
        // The job that was being written is not whole.
        if (in_job_) recording_.jobs.pop_back();
        if (recording_.stopped.empty())
            recording_.stopped = format("the file was cut off at byte %zu", at);
    }

    void take(const Chunk& chunk, std::span<const std::byte> payload, size_t at) {
        switch (chunk.kind) {
            case record::kMap:
            case record::kUnmap:
                check_range(chunk.va, chunk.size, at);
                next_.maps.push_back(
                    {chunk.kind == record::kMap, chunk.va, chunk.size, chunk.flags});
                break;
            case record::kBefore:
                check_range(chunk.va, payload.size(), at);
                next_.before.push_back({chunk.va, payload});
                break;
            case record::kJob:
                check_range(chunk.va, chunk.size, at);
                if (chunk.size > ENPU_MAX_COMMAND_BYTES)
                    throw Failure(kUsage, format("no recording: a command buffer of %s bytes",
                                                 hex(chunk.size).c_str()));
                next_.engine = chunk.flags;
                next_.cmd_va = chunk.va;
                next_.cmd_bytes = static_cast<uint32_t>(chunk.size);
                next_.job_id = chunk.argument;
                recording_.jobs.push_back(std::move(next_));
                next_ = {};
                in_job_ = true;
                break;
            case record::kPacket:
                if (!in_job_ || chunk.argument >= recording_.jobs.back().cmd_bytes)
                    throw Failure(kUsage,
                                  format("no recording: a packet without its job at byte %zu", at));
                recording_.jobs.back().packets.push_back({static_cast<uint32_t>(chunk.argument),
                                                          static_cast<uint16_t>(chunk.flags),
                                                          {}});
                break;
            case record::kAfter:
                check_range(chunk.va, payload.size(), at);
                if (!in_job_ || recording_.jobs.back().packets.empty())
                    throw Failure(
                        kUsage,
                        format("no recording: an output without its packet at byte %zu", at));
                recording_.jobs.back().packets.back().after.push_back({chunk.va, payload});
                break;
            case record::kStopped:
                // The job it stopped in has no outputs to compare with.
                if (in_job_) recording_.jobs.pop_back();
                in_job_ = false;
                recording_.stopped.assign(reinterpret_cast<const char*>(payload.data()),
                                          payload.size());
                break;
            default:
                throw Failure(kUsage, format("no recording: a chunk of unknown kind %u at byte %zu",
                                             chunk.kind, at));
        }
    }

    Recording& recording_;
    RecordedJob next_;
    bool in_job_ = false;
};

}  // namespace

Recording read_recording(std::vector<std::byte> file) {
    Recording recording;
    recording.file = std::move(file);
    Reader(recording).read();
    return recording;
}

}  // namespace enpu::tools
