// SPDX-License-Identifier: MIT
// Weights of integer products as the integer kernels take them: s8, and the sum of those that one sum of
// products has, which corrects for the zero point of the other factor.
#pragma once

#include "integer_kernel.h"
#include "packed.h"
#include "scratch.h"
#include "strided.h"

namespace enpu::ops {

// What lies behind the header of a packed buffer with PackedLayout::kInteger: the plain weights, then these.
// The layout of the last part is a kernel's own; the header has its fingerprint, so that a device that
// finds another one there takes the plain weights instead.
struct IntegerBody {
    uint64_t sums = 0, blocked = 0, end = 0;  // offsets from the start of the buffer
};
IntegerBody integer_body(const View& weights, int64_t sums, size_t blocked_bytes);
uint32_t fingerprint(const dnnl::memory::desc& desc);
// Are weights of so many outputs and terms a run packed for tiles?
bool suits_tiles(int64_t outputs, int64_t terms);

// Weights of a convolution [o, c/groups, kh, kw] or of a product [k, n], plain or packed.
class IntegerWeights {
  public:
    explicit IntegerWeights(enpu_pack_kind kind) : kind_(kind) {}

    // Looks at the operand. kBadOperand when a packed buffer is not for this.
    Outcome open(Progress& progress, const Operand& weights, unsigned operand, uint32_t groups);
    // Those less 128 where the operand is U8, in `layout`. The pointer lives as long as this object, until the
    // next call.
    Outcome as(Progress& progress, const dnnl::memory::desc& layout, const void*& weights);
    // Those of a packed buffer in the order of kTileLayout; null when they are not in it, or not all of so many bytes.
    const std::byte* tiles(size_t bytes) const;
    // One sum an output channel or column.
    Outcome sums(Progress& progress, const int32_t*& sums);
    // As they are, row-major, s8.
    Outcome plain(Progress& progress, const int8_t*& weights);

  private:
    dnnl::memory::dims dims() const;

    const enpu_pack_kind kind_;
    View view_;
    uint32_t groups_ = 1, fingerprint_ = 0;
    const std::byte *blocked_ = nullptr, *packed_sums_ = nullptr;
    uint64_t blocked_room_ = 0;
    const int8_t* plain_ = nullptr;
    Scratch plain_copy_, reordered_, sums_;
};

}  // namespace enpu::ops
