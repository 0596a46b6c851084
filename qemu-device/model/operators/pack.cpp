// SPDX-License-Identifier: MIT
// PACK: weights into the layout that their operator computes fastest with.
#include <algorithm>
#include <array>
#include <cstring>

#include "conv2d.h"
#include "convert.h"
#include "element.h"
#include "families.h"
#include "gemm.h"
#include "integer_tiles.h"
#include "integer_weights.h"
#include "weights.h"

namespace enpu::ops {
namespace {

constexpr int64_t kTypicalSize = 56;   // of a picture
constexpr int64_t kTypicalRows = 128;  // of the other factor

class Packer {
  public:
    explicit Packer(const Call& call)
        : call_(call),
          kind_(call.packet.params.pack.kind),
          groups_(std::max(call.packet.params.pack.groups, 1u)),
          from_(view_of(call.operands[ENPU_PACK_OPERAND_WEIGHTS])),
          packed_(call.operands[ENPU_PACK_OPERAND_PACKED]),
          room_(packed_.desc->bytes - ENPU_PACKED_HEADER_BYTES) {}

    Outcome run();

  private:
    std::byte* body() const { return packed_.data + ENPU_PACKED_HEADER_BYTES; }
    bool fits_floats() const {
        return static_cast<uint64_t>(element_count(from_)) * sizeof(float) <= room_;
    }
    Outcome pack_plain();
    Outcome pack_matrix();
    Outcome pack_matmul();
    Outcome pack_transposed_conv();
    Outcome pack_conv();
    // Plain weights, their sums, and the layout of a kernel for integers; plain only where there is none.
    Outcome pack_integers();
    dnnl::memory::desc integer_layout() const;
    ConvSpec typical_conv(int64_t size) const;

    const Call& call_;
    const uint32_t kind_, groups_;
    const View from_;
    const Operand packed_;
    const uint64_t room_;
    PackedLayout layout_ = PackedLayout::kPlain;
    uint32_t block_ = 0;
};

Outcome Packer::pack_plain() {
    layout_ = PackedLayout::kPlain;
    View to = from_;
    to.data = packed_.data;
    return with_element_size(from_.dtype, [&](auto tag) {
        using T = typename decltype(tag)::Type;
        to = plain_behind_header(to);
        const Loop loop = make_loop(std::array{from_, to});
        return for_tiles(call_.progress, loop.count, 1 << 20, [&](int64_t begin, int64_t end) {
            for_blocks(loop, begin, end, [&](const Block& block) {
                alignas(64) T values[kBlockElements];
                const T* in =
                    fetch_as<T, T>(reinterpret_cast<const T*>(from_.data), block, 0, values);
                put_as<T, T>(in, reinterpret_cast<T*>(to.data), block, 1);
            });
        });
    });
}

Outcome Packer::pack_matrix() {
    if (!fits_floats()) return pack_plain();
    layout_ = PackedLayout::kMatrix;
    const View to = dense_view(reinterpret_cast<float*>(body()), {from_.dims.data(), from_.rank});
    return convert_tiled(call_.progress, from_, to, packed_.desc->zero_point);
}

// [c][kh][kw][o]: the product with a line of the input gives contributions with the output channels
// side by side.
Outcome Packer::pack_transposed_conv() {
    if (!fits_floats()) return pack_plain();
    layout_ = PackedLayout::kMatrix;
    const auto& d = from_.dims;
    const View to = channels_last_view(reinterpret_cast<float*>(body()), d[0], d[1], d[2], d[3]);
    return convert_tiled(call_.progress, from_, to);
}

// A convolution of a picture of typical size: its kernel tells which layout it likes. Where another has other
// wishes, weights are reordered when it runs.
ConvSpec Packer::typical_conv(int64_t size) const {
    const auto& d = from_.dims;
    ConvSpec spec{};
    spec.n = 1;
    spec.c = d[1] * groups_;
    spec.o = d[0];
    spec.kh = d[2];
    spec.kw = d[3];
    spec.groups = groups_;
    spec.h = spec.oh = std::max<int64_t>(size, d[2]);
    spec.w = spec.ow = std::max<int64_t>(size, d[3]);
    spec.stride[0] = spec.stride[1] = spec.dilation[0] = spec.dilation[1] = 1;
    spec.pad[0] = (d[2] - 1) / 2;
    spec.pad[1] = (d[3] - 1) / 2;
    spec.pad[2] = d[2] - 1 - spec.pad[0];
    spec.pad[3] = d[3] - 1 - spec.pad[1];
    spec.bias = 1;
    spec.threads = call_.progress.threads();
    return spec;
}

Outcome Packer::pack_conv() {
    if (!is_float(from_.dtype)) return pack_integers();
    // A matrix product is as good there as a convolution, but for wide vectors.
    const bool pointwise = from_.dims[2] == 1 && from_.dims[3] == 1 && groups_ == 1;
    if (pointwise && !has_wide_vectors()) return pack_matrix();
    std::shared_ptr<const ConvKernel> kernel;
    in_arena(call_.progress.threads(), [&] { kernel = conv_kernel(typical_conv(kTypicalSize)); });
    block_ = block_number(kernel->weights());
    if (block_ == 0 || kernel->weights().get_size() > room_) {
        block_ = 0;
        return pointwise ? pack_matrix() : pack_plain();
    }
    layout_ = PackedLayout::kBlocked;
    ConvWeights weights;
    const Outcome outcome = weights.gather(call_.progress, from_, groups_);
    return outcome == Outcome::kDone ? weights.write(call_.progress, kernel->weights(), body())
                                     : outcome;
}

// [k, n] in blocks where a product likes that better than rows.
Outcome Packer::pack_matmul() {
    if (!is_float(from_.dtype)) return pack_integers();
    const int64_t k = from_.dims[0], n = from_.dims[1];
    dnnl::memory::desc layout;
    in_arena(call_.progress.threads(), [&] { layout = gemm_layout(k, n); });
    block_ = block_number(layout);
    // What is cut into tiles along n cannot lie in blocks.
    if (block_ == 0 || layout.get_size() > room_ || k * n > kTileWork) {
        block_ = 0;
        return pack_matrix();
    }
    layout_ = PackedLayout::kBlocked;
    Scratch dense = scratch_floats(k * n);
    const View rows = dense_view(dense.floats(), std::array{k, n});
    const Outcome outcome = convert_tiled(call_.progress, from_, rows);
    if (outcome != Outcome::kDone) return outcome;
    return reorder_weights(call_.progress, f32_desc({k, n}, {n, 1}), dense.data(), layout, body());
}

// Of no bytes when there is no kernel for integers.
dnnl::memory::desc Packer::integer_layout() const {
    dnnl::memory::desc layout;
    const auto& d = from_.dims;
    in_arena(call_.progress.threads(), [&] {
        // A kernel is tried when it is made: of no more work than a tile.
        if (kind_ == ENPU_PACK_KIND_MATMUL) {
            if (d[0] * d[1] > kTileWork) return;
            const int64_t rows = std::clamp<int64_t>(kTileWork / (d[0] * d[1]), 1, kTypicalRows);
            const auto kernel =
                integer_gemm({rows, d[1], d[0], d[0], 0, 0, call_.progress.threads()});
            if (kernel) layout = kernel->weights();
            return;
        }
        const int64_t per_pixel = element_count(from_);
        if (per_pixel > kTileWork) return;
        int64_t size = kTypicalSize;
        while (size > 1 && size * size * per_pixel > kTileWork) --size;
        ConvSpec spec = typical_conv(size);
        spec.bias = 0;
        spec.h = spec.oh + spec.kh - 1;
        spec.w = spec.ow + spec.kw - 1;
        std::fill(std::begin(spec.pad), std::end(spec.pad), 0);
        if (const auto kernel = integer_conv_kernel(spec)) layout = kernel->weights();
    });
    return layout;
}

Outcome Packer::pack_integers() {
    if (kind_ == ENPU_PACK_KIND_MATMUL && !has_integer_dot_products()) return pack_matrix();
    const Outcome outcome = pack_plain();
    const bool usable = packed_.desc->zero_point == (from_.dtype == ENPU_DTYPE_U8 ? 128 : 0);
    if (outcome != Outcome::kDone || (kind_ != ENPU_PACK_KIND_MATMUL && !usable)) return outcome;
    const bool product = kind_ == ENPU_PACK_KIND_MATMUL;
    const int64_t outputs = from_.dims[product ? 1 : 0], terms = from_.dims[product ? 0 : 1];
    const int64_t lines = product ? 1 : from_.dims[2] * from_.dims[3];
    const bool tiles = (product || groups_ == 1) && suits_tiles(outputs, terms);
    const dnnl::memory::desc layout = tiles ? dnnl::memory::desc() : integer_layout();
    if (!tiles && layout.get_size() == 0) return Outcome::kDone;
    const size_t bytes = tiles ? tile_weights_bytes(outputs, lines, terms) : layout.get_size();
    const IntegerBody at = integer_body(from_, outputs, bytes);
    if (at.end > packed_.desc->bytes) return Outcome::kDone;
    IntegerWeights weights(static_cast<enpu_pack_kind>(kind_));
    const int32_t* sums = nullptr;
    const void* blocked = nullptr;
    const int8_t* plain = nullptr;
    Outcome made = weights.open(call_.progress, call_.operands[ENPU_PACK_OPERAND_WEIGHTS],
                                ENPU_PACK_OPERAND_WEIGHTS, groups_);
    if (made == Outcome::kDone) made = weights.sums(call_.progress, sums);
    if (made == Outcome::kDone)
        made = tiles ? weights.plain(call_.progress, plain)
                     : weights.as(call_.progress, layout, blocked);
    if (made != Outcome::kDone) return made;
    std::memcpy(packed_.data + at.sums, sums, static_cast<size_t>(outputs) * sizeof(int32_t));
    layout_ = PackedLayout::kInteger;
    block_ = tiles ? kTileLayout : fingerprint(layout);
    if (!tiles) {
        std::memcpy(packed_.data + at.blocked, blocked, bytes);
        return Outcome::kDone;
    }
    const PlainWeights order =
        product ? PlainWeights{plain, 1, 0, outputs} : PlainWeights{plain, terms * lines, 1, lines};
    return tile_weights(call_.progress, outputs, lines, terms, order, packed_.data + at.blocked);
}

Outcome Packer::run() {
    // Without a header until the body is complete.
    std::memset(packed_.data, 0, ENPU_PACKED_HEADER_BYTES);
    const Outcome outcome = kind_ == ENPU_PACK_KIND_CONV2D   ? pack_conv()
                            : kind_ == ENPU_PACK_KIND_MATMUL ? pack_matmul()
                                                             : pack_transposed_conv();
    if (outcome != Outcome::kDone) return outcome;
    const PackedHeader header = make_header(*packed_.desc, kind_, groups_, layout_, block_);
    std::memcpy(packed_.data, &header, sizeof(header));
    return Outcome::kDone;
}

}  // namespace

Outcome run_pack(const Call& call) {
    return Packer(call).run();
}

}  // namespace enpu::ops
