// SPDX-License-Identifier: MIT
#include "integer_weights.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "convert.h"
#include "element.h"
#include "integer_tiles.h"
#include "weights.h"

namespace enpu::ops {
namespace {

constexpr int64_t kSumElements = int64_t{4} << 20;  // of a tile

uint64_t aligned(uint64_t bytes) {
    return (bytes + 63) / 64 * 64;
}

uint8_t flip_of(const View& view) {
    return view.dtype == ENPU_DTYPE_U8 ? 0x80 : 0;
}

bool is_row_major(const View& view) {
    int64_t stride = 1;
    for (unsigned axis = view.rank; axis-- > 0; stride *= view.dims[axis])
        if (view.dims[axis] != 1 && view.strides[axis] != stride) return false;
    return true;
}

View row_major_like(View view, std::byte* data) {
    int64_t stride = 1;
    for (unsigned axis = view.rank; axis-- > 0; stride *= view.dims[axis])
        view.strides[axis] = stride;
    view.data = data;
    return view;
}

}  // namespace

IntegerBody integer_body(const View& weights, int64_t sums, size_t blocked_bytes) {
    IntegerBody body;
    body.sums = aligned(ENPU_PACKED_HEADER_BYTES + static_cast<uint64_t>(element_count(weights)));
    body.blocked = aligned(body.sums + static_cast<uint64_t>(sums) * sizeof(int32_t));
    body.end = body.blocked + blocked_bytes;
    return body;
}

uint32_t fingerprint(const dnnl::memory::desc& desc) {
    uint64_t hash = 14695981039346656037ull;
    const auto mix = [&](int64_t value) {
        hash = (hash ^ static_cast<uint64_t>(value)) * 1099511628211ull;
    };
    for (const auto& list : {desc.get_dims(), desc.get_padded_dims(), desc.get_strides(),
                             desc.get_inner_blks(), desc.get_inner_idxs()}) {
        mix(static_cast<int64_t>(list.size()));
        for (const int64_t value : list) mix(value);
    }
    mix(static_cast<int64_t>(desc.get_size()));
    return static_cast<uint32_t>(hash ^ hash >> 32) | 1;  // 0 is none, and kTileLayout is even
}

bool suits_tiles(int64_t outputs, int64_t terms) {
    // Runs are filled up to whole steps: of short ones much would be zeros.
    const int64_t read = (terms + kTileTerms - 1) / kTileTerms * kTileTerms;
    return has_integer_tiles() && outputs >= kTileOutputs && 4 * terms >= 3 * read;
}

const std::byte* IntegerWeights::tiles(size_t bytes) const {
    return blocked_ != nullptr && fingerprint_ == kTileLayout && bytes <= blocked_room_ ? blocked_
                                                                                        : nullptr;
}

dnnl::memory::dims IntegerWeights::dims() const {
    const auto& d = view_.dims;
    if (kind_ == ENPU_PACK_KIND_MATMUL) return {d[0], d[1]};
    return weight_dims(groups_, d[0], d[1] * groups_, d[2], d[3]);
}

Outcome IntegerWeights::open(Progress& progress, const Operand& weights, unsigned operand,
                             uint32_t groups) {
    view_ = view_of(weights);
    groups_ = groups;
    if (weights.desc->format == ENPU_FORMAT_PLAIN) return Outcome::kDone;
    const auto header = read_header(weights, kind_, groups);
    const bool integer = header && header->layout == static_cast<uint32_t>(PackedLayout::kInteger);
    if (!integer && !(header && header->layout == static_cast<uint32_t>(PackedLayout::kPlain))) {
        progress.detail(operand, header ? header->layout : 0);
        return Outcome::kBadOperand;
    }
    const int64_t count = view_.dims[kind_ == ENPU_PACK_KIND_MATMUL ? 1 : 0];
    view_ = plain_behind_header(view_);
    if (!integer) return Outcome::kDone;
    const IntegerBody body = integer_body(view_, count, 0);
    if (body.end > weights.desc->bytes) {
        progress.detail(operand, header->layout);
        return Outcome::kBadOperand;
    }
    packed_sums_ = weights.data + body.sums;
    blocked_ = weights.data + body.blocked;
    blocked_room_ = weights.desc->bytes - body.blocked;
    fingerprint_ = header->block;
    return Outcome::kDone;
}

Outcome IntegerWeights::plain(Progress& progress, const int8_t*& weights) {
    if (plain_ == nullptr) {
        plain_ = reinterpret_cast<const int8_t*>(view_.data);
        if (flip_of(view_) != 0 || !is_row_major(view_)) {
            plain_copy_ = Scratch(static_cast<size_t>(element_count(view_)));
            const Outcome outcome = copy_bytes_tiled(
                progress, view_, row_major_like(view_, plain_copy_.bytes()), flip_of(view_));
            if (outcome != Outcome::kDone) return outcome;
            plain_ = static_cast<const int8_t*>(plain_copy_.data());
        }
    }
    weights = plain_;
    return Outcome::kDone;
}

Outcome IntegerWeights::as(Progress& progress, const dnnl::memory::desc& layout,
                           const void*& weights) {
    if (blocked_ != nullptr && layout.get_size() <= blocked_room_ &&
        fingerprint(layout) == fingerprint_) {
        weights = blocked_;
        return Outcome::kDone;
    }
    const int8_t* from = nullptr;
    const Outcome outcome = plain(progress, from);
    if (outcome != Outcome::kDone) return outcome;
    const auto plain_layout = integer_desc(dims());
    weights = from;
    if (layout == plain_layout) return Outcome::kDone;
    reordered_ = {};
    reordered_ = Scratch(layout.get_size());
    weights = reordered_.data();
    return reorder_weights(progress, plain_layout, from, layout, reordered_.data());
}

Outcome IntegerWeights::sums(Progress& progress, const int32_t*& sums) {
    const bool columns = kind_ == ENPU_PACK_KIND_MATMUL;
    const int64_t count = view_.dims[columns ? 1 : 0], terms = element_count(view_) / count;
    sums_ = {};
    sums_ = Scratch(static_cast<size_t>(count) * sizeof(int32_t));
    auto* to = static_cast<int32_t*>(sums_.data());
    sums = to;
    if (packed_sums_ != nullptr) {
        std::memcpy(to, packed_sums_,
                    static_cast<size_t>(count) * sizeof(int32_t));  // at any address
        return Outcome::kDone;
    }
    const int8_t* from = nullptr;
    const Outcome outcome = plain(progress, from);
    if (outcome != Outcome::kDone) return outcome;
    // Sums are 32-bit and wrap.
    const auto plus = [](int32_t sum, int8_t weight) {
        return static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(weight));
    };
    const auto body = [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            to[i] = std::accumulate(from + i * terms, from + (i + 1) * terms, int32_t{0}, plus);
    };
    if (!columns)
        return for_tiles(progress, count, std::max<int64_t>(kSumElements / terms, 1), body);
    std::fill_n(to, count, 0);
    const int64_t rows = std::max<int64_t>(kSumElements / count, 1);
    for (int64_t row = 0; row < terms; ++row) {
        if (row > 0 && row % rows == 0 && !progress.proceed()) return Outcome::kStopped;
        for (int64_t n = 0; n < count; ++n) to[n] = plus(to[n], from[row * count + n]);
    }
    return Outcome::kDone;
}

}  // namespace enpu::ops
