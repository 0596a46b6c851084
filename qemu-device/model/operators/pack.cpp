// SPDX-License-Identifier: MIT
// PACK: weights into the layout that their operator computes fastest with.
#include <algorithm>
#include <array>
#include <cstring>

#include "convert.h"
#include "element.h"
#include "families.h"
#include "weights.h"

namespace enpu::ops {
namespace {

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
    Outcome pack_transposed_conv();
    Outcome pack_conv();

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

Outcome Packer::pack_conv() {
    if (!is_float(from_.dtype)) return pack_plain();
    const bool pointwise = from_.dims[2] == 1 && from_.dims[3] == 1 && groups_ == 1;
    if (pointwise) return pack_matrix();
    // The kernel of a picture of typical size tells which layout it likes; others are reordered
    // when they run.
    const auto& d = from_.dims;
    ConvSpec spec{};
    spec.n = 1;
    spec.c = d[1] * groups_;
    spec.o = d[0];
    spec.kh = d[2];
    spec.kw = d[3];
    spec.groups = groups_;
    spec.h = spec.oh = std::max<int64_t>(56, d[2]);
    spec.w = spec.ow = std::max<int64_t>(56, d[3]);
    spec.stride[0] = spec.stride[1] = spec.dilation[0] = spec.dilation[1] = 1;
    spec.pad[0] = (d[2] - 1) / 2;
    spec.pad[1] = (d[3] - 1) / 2;
    spec.pad[2] = d[2] - 1 - spec.pad[0];
    spec.pad[3] = d[3] - 1 - spec.pad[1];
    spec.bias = 1;
    spec.threads = call_.progress.threads();
    std::shared_ptr<const ConvKernel> kernel;
    in_arena(call_.progress.threads(), [&] { kernel = conv_kernel(spec); });
    block_ = block_number(kernel->weights());
    if (block_ == 0 || kernel->weights().get_size() > room_) {
        block_ = 0;
        return pack_plain();
    }
    layout_ = PackedLayout::kBlocked;
    ConvWeights weights;
    const Outcome outcome = weights.gather(call_.progress, from_, groups_);
    return outcome == Outcome::kDone ? weights.write(call_.progress, kernel->weights(), body())
                                     : outcome;
}

Outcome Packer::run() {
    // Without a header until the body is complete.
    std::memset(packed_.data, 0, ENPU_PACKED_HEADER_BYTES);
    const Outcome outcome = kind_ == ENPU_PACK_KIND_CONV2D   ? pack_conv()
                            : kind_ == ENPU_PACK_KIND_MATMUL ? pack_matrix()
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
