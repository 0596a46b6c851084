// SPDX-License-Identifier: MIT
#include "packed.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

namespace enpu::ops {
namespace {

constexpr uint32_t kMagic = 0x4b41504e;  // "NPAK" in memory order
constexpr uint32_t kVersion = 1;

using Tag = dnnl::memory::format_tag;

// Append-only: a number is stored in packed buffers.
constexpr Tag kBlocks[] = {Tag::Ohwi8o,     Tag::Ohwi16o, Tag::Ohwi24o, Tag::Ohwi32o, Tag::OIhw8i8o,
                           Tag::OIhw16i16o, Tag::Ohwi4o,  Tag::Ohwi48o, Tag::Ohwi64o};
constexpr Tag kGroupedBlocks[] = {Tag::gOhwi8o,   Tag::gOhwi16o,    Tag::gOhwi24o, Tag::gOhwi32o,
                                  Tag::gOIhw8i8o, Tag::gOIhw16i16o, Tag::Goihw8g,  Tag::Goihw16g,
                                  Tag::hwioG8g,   Tag::hwioG16g,    Tag::gOhwi4o,  Tag::gOhwi48o,
                                  Tag::gOhwi64o};
constexpr Tag kMatrixBlocks[] = {Tag::BA16a64b};

std::span<const Tag> blocks_of(size_t rank) {
    if (rank == 2) return kMatrixBlocks;
    return rank == 5 ? std::span<const Tag>(kGroupedBlocks) : std::span<const Tag>(kBlocks);
}

uint32_t checksum(const PackedHeader& header) {
    uint32_t words[sizeof(header) / 4];
    std::memcpy(words, &header, sizeof(header));
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i + 1 < std::size(words); ++i) hash = (hash ^ words[i]) * 16777619u;
    return hash;
}

}  // namespace

PackedHeader make_header(const enpu_tensor& packed, uint32_t kind, uint32_t groups,
                         PackedLayout layout, uint32_t block) {
    PackedHeader header{};
    header.magic = kMagic;
    header.version = kVersion;
    header.kind = kind;
    header.layout = static_cast<uint32_t>(layout);
    header.block = block;
    header.groups = groups;
    header.dtype = packed.dtype;
    header.zero_point = packed.zero_point;
    std::copy(std::begin(packed.dims), std::end(packed.dims), header.dims);
    header.checksum = checksum(header);
    return header;
}

std::optional<PackedHeader> read_header(const Operand& packed, uint32_t kind, uint32_t groups) {
    PackedHeader header;
    std::memcpy(&header, packed.data, sizeof(header));
    const PackedHeader expected = make_header(
        *packed.desc, kind, groups, static_cast<PackedLayout>(header.layout), header.block);
    if (std::memcmp(&header, &expected, sizeof(header)) != 0) return std::nullopt;
    return header;
}

View plain_behind_header(View packed) {
    packed.data += ENPU_PACKED_HEADER_BYTES;
    int64_t stride = 1;
    for (unsigned axis = packed.rank; axis-- > 0;) {
        packed.strides[axis] = stride;
        stride *= packed.dims[axis];
    }
    return packed;
}

uint32_t block_number(const dnnl::memory::desc& desc) {
    const auto dims = desc.get_dims();
    const auto blocks = blocks_of(dims.size());
    for (size_t i = 0; i < blocks.size(); ++i) {
        if (desc == dnnl::memory::desc(dims, dnnl::memory::data_type::f32, blocks[i])) {
            return static_cast<uint32_t>(i + 1);
        }
    }
    return 0;
}

std::optional<dnnl::memory::desc> block_desc(uint32_t number, const dnnl::memory::dims& dims) {
    const auto blocks = blocks_of(dims.size());
    if (number == 0 || number > blocks.size()) return std::nullopt;
    return dnnl::memory::desc(dims, dnnl::memory::data_type::f32, blocks[number - 1]);
}

}  // namespace enpu::ops
