// SPDX-License-Identifier: MIT
// The file of a recording: what a process mapped, what its jobs found in memory, and what each packet
// left there. Little endian, one header, then chunks, each followed by its payload.
//
//   kMap / kUnmap / kBefore …   kJob   { kPacket kAfter … } …   the next job   …   kStopped
//
// Jobs were run one after the other and packet by packet, so that every kAfter is the work of one
// packet.
#pragma once

#include <cstdint>

namespace enpu::record {

inline constexpr char kMagic[8] = {'E', 'N', 'P', 'U', 'R', 'E', 'C', '1'};

struct Header {
    char magic[8];
    uint32_t hw_version;
    uint32_t compute_engines;  // engines from here on copy
    uint32_t copy_engines;
    uint32_t reserved;  // 0
};

enum ChunkKind : uint32_t {
    kMap = 1,      // va, size: memory of the device's address space, zeroed; flags: MapFlags
    kUnmap = 2,    // va, size
    kBefore = 3,   // va, payload: what the host has written since
    kJob = 4,      // va, size: command buffer; flags: engine; argument: job_id
    kPacket = 5,   // argument: offset in the command buffer; flags: opcode
    kAfter = 6,    // va, payload: what the packet before it has left
    kStopped = 7,  // payload: why the recording ends here, as text
};
enum MapFlags : uint32_t { kMapLocal = 1, kMapReadOnly = 2 };

struct Chunk {
    uint32_t kind;
    uint32_t flags;
    uint64_t va;
    uint64_t size;
    uint64_t argument;
    uint64_t payload;  // bytes behind this chunk
};
static_assert(sizeof(Header) == 24 && sizeof(Chunk) == 40);

}  // namespace enpu::record
