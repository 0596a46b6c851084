// SPDX-License-Identifier: MIT
// The opaque layout of PACK: a header, then f32 weights as the kernels like them, or the plain
// ones.
#pragma once

#include <optional>

#include "onednn.h"
#include "operator.h"
#include "strided.h"

namespace enpu::ops {

enum class PackedLayout : uint32_t {
    kPlain = 1,    // row-major, in the dtype of the weights
    kMatrix = 2,   // row-major f32 (minus the zero point)
    kBlocked = 3,  // f32 in the oneDNN layout with the number `block`
    kInteger = 4,  // 8-bit integers: see IntegerBody; `block` is a fingerprint
};

// First bytes of a packed buffer. What it says is believed only when it fits the descriptor that
// names the buffer: guest software can write here too.
struct PackedHeader {
    uint32_t magic;
    uint32_t version;
    uint32_t kind;  // enum enpu_pack_kind
    uint32_t layout;
    uint32_t block;
    uint32_t groups;
    uint32_t dtype;
    int32_t zero_point;
    uint32_t dims[8];
    uint32_t reserved[47];
    uint32_t checksum;  // of the words before
};
static_assert(sizeof(PackedHeader) == ENPU_PACKED_HEADER_BYTES);

PackedHeader make_header(const enpu_tensor& packed, uint32_t kind, uint32_t groups,
                         PackedLayout layout, uint32_t block);

// Reads the header once and compares it with the descriptor. Nothing when it is not that of these
// weights.
std::optional<PackedHeader> read_header(const Operand& packed, uint32_t kind, uint32_t groups);

// The plain weights follow the header, whatever follows them.
inline bool begins_plain(const PackedHeader& header) {
    return header.layout == static_cast<uint32_t>(PackedLayout::kPlain) ||
           header.layout == static_cast<uint32_t>(PackedLayout::kInteger);
}
// The row-major weights behind the header of a packed buffer that has such a layout.
View plain_behind_header(View packed);

// Numbers of oneDNN layouts: 0 when a layout has none. `dims` are those of weight_dims(), or [k, n].
uint32_t block_number(const dnnl::memory::desc& desc);
std::optional<dnnl::memory::desc> block_desc(uint32_t number, const dnnl::memory::dims& dims);

}  // namespace enpu::ops
