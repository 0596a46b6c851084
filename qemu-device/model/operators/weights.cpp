// SPDX-License-Identifier: MIT
#include "weights.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "convert.h"
#include "rules.h"

namespace enpu::ops {
namespace {

using dnnl::memory;

constexpr int64_t kReorderElements = int64_t{4} << 20;  // a tile: about 5 ms
constexpr int64_t kReorderStep = 192;                   // a multiple of every block of channels

memory::dims split_dims(const View& weights, uint32_t groups) {
    const auto& d = weights.dims;
    return weight_dims(groups, d[0], d[1] * groups, d[2], d[3]);
}

void reorder(const memory::desc& from, const void* source, const memory::desc& to, void* target) {
    dnnl::stream stream(dnnl_engine());
    memory source_memory = memory_at(from, source), target_memory = memory_at(to, target);
    dnnl::reorder(source_memory, target_memory).execute(stream, source_memory, target_memory);
    stream.wait();
}

memory::dims dense_strides(const memory::dims& dims) {
    memory::dims strides(dims.size());
    int64_t stride = 1;
    for (size_t axis = dims.size(); axis-- > 0;) {
        strides[axis] = stride;
        stride *= dims[axis];
    }
    return strides;
}

bool is_dense(const View& view) {
    int64_t stride = 1;
    for (unsigned axis = view.rank; axis-- > 0;) {
        if (view.dims[axis] != 1 && view.strides[axis] != stride) return false;
        stride *= view.dims[axis];
    }
    return true;
}

// [O / block][kh][kw][i][block] of f32, O padded to whole blocks; with groups the same of each group.
struct OutputBlocks {
    int64_t groups, outputs, inner, block;  // inner: kh * kw * i

    int64_t blocks() const { return (outputs + block - 1) / block; }
};
std::optional<OutputBlocks> output_blocks(const memory::desc& desc) {
    const auto dims = desc.get_dims(), strides = desc.get_strides();
    const auto blocks = desc.get_inner_blks(), axes = desc.get_inner_idxs();
    const size_t o = dims.size() - 4;  // the axis of output channels
    if (dims.size() < 4 || dims.size() > 5 || blocks.size() != 1 ||
        axes[0] != static_cast<int64_t>(o))
        return std::nullopt;
    const OutputBlocks found{o ? dims[0] : 1, dims[o], dims[o + 1] * dims[o + 2] * dims[o + 3],
                             blocks[0]};
    // Strides of [i, kh, kw] in that order, and of blocks and groups around them.
    const memory::dims wanted{found.block, found.block * dims[o + 1] * dims[o + 3],
                              found.block * dims[o + 1]};
    for (size_t n = 0; n < 3; ++n)
        if (dims[o + 1 + n] != 1 && strides[o + 1 + n] != wanted[n]) return std::nullopt;
    if (found.blocks() > 1 && strides[o] != found.inner * found.block) return std::nullopt;
    if (found.groups > 1 && strides[0] != found.blocks() * found.inner * found.block)
        return std::nullopt;
    return found;
}

// Between blocks of different sizes, in pieces as long as both allow. oneDNN has only its reference for that, which is a
// hundred times slower.
Outcome reblock(Progress& progress, const OutputBlocks& from, const float* source,
                const OutputBlocks& to, float* target) {
    const int64_t piece = std::gcd(from.block, to.block);
    const int64_t per_block = to.inner * to.block;
    const int64_t tile = std::max<int64_t>(kReorderElements / per_block, 1);
    return for_tiles(progress, to.groups * to.blocks(), tile, [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
            const int64_t group = n / to.blocks(), first = n % to.blocks() * to.block;
            for (int64_t at = 0; at < to.block; at += piece) {
                const int64_t o = first + at;
                float* out = target + n * per_block + at;
                const bool inside = o < from.blocks() * from.block;
                const float* in =
                    source + ((group * from.blocks() + o / from.block) * from.inner * from.block +
                              o % from.block);
                for (int64_t i = 0; i < to.inner; ++i) {
                    if (inside) std::copy_n(in + i * from.block, piece, out + i * to.block);
                    if (!inside) std::fill_n(out + i * to.block, piece, 0.0f);
                }
            }
        }
    });
}

}  // namespace

Outcome reorder_weights(Progress& progress, const memory::desc& from, const void* source,
                        const memory::desc& to, void* target) {
    const auto from_blocks = output_blocks(from), to_blocks = output_blocks(to);
    const bool floats = to.get_data_type() == memory::data_type::f32;
    if (floats && from_blocks && to_blocks)
        return reblock(progress, *from_blocks, static_cast<const float*>(source), *to_blocks,
                       static_cast<float*>(target));
    const memory::dims dims = to.get_dims();
    int64_t per_pair = 1;  // elements for one index of each of the first two axes
    for (size_t axis = 2; axis < dims.size(); ++axis) per_pair *= dims[axis];
    const auto whole_steps = [](int64_t limit) {
        return std::max<int64_t>(limit / kReorderStep * kReorderStep, kReorderStep);
    };
    const int64_t first = whole_steps(kReorderElements / (per_pair * dims[1]));
    const int64_t second =
        first > kReorderStep ? dims[1] : whole_steps(kReorderElements / (per_pair * kReorderStep));
    bool begun = false;
    for (int64_t i = 0; i < dims[0]; i += first) {
        for (int64_t j = 0; j < dims[1]; j += second) {
            if (begun && !progress.proceed()) return Outcome::kStopped;
            begun = true;
            memory::dims part = dims, offset(dims.size(), 0);
            part[0] = std::min(first, dims[0] - i);
            part[1] = std::min(second, dims[1] - j);
            offset[0] = i;
            offset[1] = j;
            in_arena(progress.threads(), [&] {
                if (part == dims) return reorder(from, source, to, target);
                reorder(from.submemory_desc(part, offset), source, to.submemory_desc(part, offset),
                        target);
            });
        }
    }
    return Outcome::kDone;
}

Outcome ConvWeights::gather(Progress& progress, const View& from, uint32_t groups,
                            int32_t zero_point) {
    const memory::dims dims = split_dims(from, groups);
    desc_ = f32_desc(dims, dense_strides(dims));
    if (from.dtype == ENPU_DTYPE_F32 && is_dense(from)) {
        data_ = reinterpret_cast<const float*>(from.data);
        return Outcome::kDone;
    }
    gathered_ = scratch_floats(element_count(from));
    data_ = gathered_.floats();
    return convert_tiled(progress, from, dense_view(gathered_.floats(), {from.dims.data(), 4}),
                         zero_point);
}

Outcome ConvWeights::open(Progress& progress, const Operand& weights, uint32_t operand,
                          uint32_t groups) {
    const View view = view_of(weights);
    if (weights.desc->format == ENPU_FORMAT_PLAIN) return gather(progress, view, groups);

    const auto bad = [&](int64_t value) {
        progress.detail(operand, value);
        return Outcome::kBadOperand;
    };
    const auto header = read_header(weights, ENPU_PACK_KIND_CONV2D, groups);
    if (!header) return bad(0);
    if (header->layout == static_cast<uint32_t>(PackedLayout::kPlain)) {
        return gather(progress, plain_behind_header(view), groups);
    }
    if (header->layout == static_cast<uint32_t>(PackedLayout::kMatrix)) {
        const uint64_t bytes = static_cast<uint64_t>(element_count(view)) * sizeof(float);
        if (bytes > weights.desc->bytes - ENPU_PACKED_HEADER_BYTES) return bad(header->layout);
        const memory::dims dims = split_dims(view, groups);
        desc_ = f32_desc(dims, dense_strides(dims));
        data_ = reinterpret_cast<const float*>(weights.data + ENPU_PACKED_HEADER_BYTES);
        return Outcome::kDone;
    }
    const auto desc = block_desc(header->block, split_dims(view, groups));
    if (header->layout != static_cast<uint32_t>(PackedLayout::kBlocked) || !desc ||
        desc->get_size() > weights.desc->bytes - ENPU_PACKED_HEADER_BYTES) {
        return bad(header->block);
    }
    desc_ = *desc;
    data_ = reinterpret_cast<const float*>(weights.data + ENPU_PACKED_HEADER_BYTES);
    return Outcome::kDone;
}

bool ConvWeights::is_row_major() const {
    return desc_ == f32_desc(desc_.get_dims(), dense_strides(desc_.get_dims()));
}

Outcome ConvWeights::as_matrix(Progress& progress, const float*& weights) {
    return as(progress, f32_desc(desc_.get_dims(), dense_strides(desc_.get_dims())), weights);
}

Outcome ConvWeights::as(Progress& progress, const memory::desc& layout, const float*& weights) {
    if (layout == desc_) {
        weights = data_;
        return Outcome::kDone;
    }
    if (reordered_.data() != nullptr && layout == reordered_desc_) {
        weights = reordered_.floats();
        return Outcome::kDone;
    }
    reordered_ = Scratch(layout.get_size());
    reordered_desc_ = layout;
    weights = reordered_.floats();
    return reorder_weights(progress, desc_, data_, layout, reordered_.data());
}

}  // namespace enpu::ops
