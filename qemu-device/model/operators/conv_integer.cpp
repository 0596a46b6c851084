// SPDX-License-Identifier: MIT
// CONV2D of i8 and u8 for every processor. Values less their zero point are small integers, so an f32
// convolution over few enough of them is exact; such partial sums are added as i32.
#include <array>
#include <vector>

#include "conv2d.h"
#include "convert.h"
#include "requantise.h"
#include "weights.h"

namespace enpu::ops {
namespace {

constexpr unsigned kX = ENPU_CONV2D_OPERAND_X, kW = ENPU_CONV2D_OPERAND_WEIGHTS;

// A part of the terms of each sum: channels of every group and a window of the kernel.
struct Chunk {
    int64_t channel, channels;  // of a group
    int64_t row, rows, col, cols;
};

std::vector<Chunk> make_chunks(const ConvShape& s, int64_t terms) {
    const int64_t cols = std::min(s.kw, terms);
    const int64_t rows = std::min(s.kh, std::max<int64_t>(terms / cols, 1));
    const bool whole = cols == s.kw && rows == s.kh;
    const int64_t per_group = s.c / s.groups;
    int64_t channels = whole ? std::min(per_group, terms / (rows * cols)) : 1;
    if (channels > 8 && channels < per_group) channels = channels / 8 * 8;
    std::vector<Chunk> chunks;
    for (int64_t c = 0; c < per_group; c += channels) {
        for (int64_t y = 0; y < s.kh; y += rows) {
            for (int64_t x = 0; x < s.kw; x += cols) {
                chunks.push_back({c, std::min(channels, per_group - c), y, std::min(rows, s.kh - y),
                                  x, std::min(cols, s.kw - x)});
            }
        }
    }
    return chunks;
}

// The convolution of a chunk alone. Its window begins inside the kernel, which moves the padding;
// that may become negative.
ConvShape chunk_shape(ConvShape s, const Chunk& chunk) {
    s.c = chunk.channels * s.groups;
    s.kh = chunk.rows;
    s.kw = chunk.cols;
    s.pad[0] -= chunk.row * s.dilation[0];
    s.pad[1] -= chunk.col * s.dilation[1];
    return s;
}

class IntegerConv {
  public:
    explicit IntegerConv(const Call& call);
    Outcome run();

  private:
    Outcome open_weights();
    Outcome run_tile(const ConvTile& tile);
    Outcome add_chunk(const ConvTile& tile, size_t index);
    const float* input(const ConvTile& tile, const Chunk& chunk, const ConvShape& shape);
    int64_t work_of(const ConvTile& tile, const Chunk& chunk) const;

    const Call& call_;
    const ConvShape shape_;
    const View x_, y_;
    const std::vector<Chunk> chunks_;
    const Requantiser requantiser_;
    std::vector<ConvWeights> weights_;  // of each chunk
    Scratch x_tile_, partial_, sums_, scratch_;
};

IntegerConv::IntegerConv(const Call& call)
    : call_(call),
      shape_(conv_shape(call.packet)),
      x_(view_of(call.operands[kX])),
      y_(view_of(call.operands[ENPU_CONV2D_OPERAND_Y])),
      chunks_(make_chunks(shape_, exact_terms(call.packet.operands[kX], call.packet.operands[kW]))),
      requantiser_(call, kX, kW, ENPU_CONV2D_OPERAND_BIAS, ENPU_CONV2D_OPERAND_SCALE,
                   ENPU_CONV2D_OPERAND_Y, shape_.o,
                   {call.packet.params.conv2d.act, call.packet.params.conv2d.alpha,
                    call.packet.params.conv2d.beta}),
      weights_(chunks_.size()) {}

Outcome IntegerConv::open_weights() {
    const Operand& operand = call_.operands[kW];
    View view = view_of(operand);
    if (operand.desc->format == ENPU_FORMAT_PACKED) {
        const auto groups = static_cast<uint32_t>(shape_.groups);
        const auto header = read_header(operand, ENPU_PACK_KIND_CONV2D, groups);
        if (!header || !begins_plain(*header)) {
            call_.progress.detail(kW, header ? header->layout : 0);
            return Outcome::kBadOperand;
        }
        view = plain_behind_header(view);
    }
    for (size_t i = 0; i < chunks_.size(); ++i) {
        const Chunk& c = chunks_[i];
        const View part =
            slice(slice(slice(view, 1, c.channel, c.channels), 2, c.row, c.rows), 3, c.col, c.cols);
        const Outcome outcome = weights_[i].gather(
            call_.progress, part, static_cast<uint32_t>(shape_.groups), operand.desc->zero_point);
        if (outcome != Outcome::kDone) return outcome;
        if (i + 1 < chunks_.size() && i % 64 == 63 && !call_.progress.proceed())
            return Outcome::kStopped;
    }
    return Outcome::kDone;
}

// The channels of a chunk, group by group, in the window of a tile.
const float* IntegerConv::input(const ConvTile& t, const Chunk& chunk, const ConvShape& s) {
    const int64_t count = t.images * s.c * t.rows.size * t.cols.size;
    x_tile_ = {};
    x_tile_ = scratch_floats(count);
    if (t.rows.empty || t.cols.empty) {
        std::fill_n(x_tile_.floats(), count, 0.0f);
        return x_tile_.floats();
    }
    View from = slice(x_, 0, t.image, t.images);
    from = slice(slice(from, 2, t.rows.first, t.rows.size), 3, t.cols.first, t.cols.size);
    View to = channels_last_view(x_tile_.floats(), t.images, s.c, t.rows.size, t.cols.size);
    const int64_t per_group = shape_.c / shape_.groups;
    for (View* view : {&from, &to}) {  // [n,c,h,w] to [n,h,w,groups,c/groups]
        const int64_t channels = view == &from ? per_group : chunk.channels;
        const int64_t step = view->strides[1];
        view->rank = 5;
        view->dims = {t.images, t.rows.size, t.cols.size, shape_.groups, channels};
        view->strides = {view->strides[0], view->strides[2], view->strides[3], step * channels,
                         step};
    }
    convert(slice(from, 4, chunk.channel, chunk.channels), to, call_.operands[kX].desc->zero_point);
    return x_tile_.floats();
}

Outcome IntegerConv::add_chunk(const ConvTile& tile, size_t index) {
    const Chunk& chunk = chunks_[index];
    const ConvShape shape = chunk_shape(shape_, chunk);
    const ConvTile window{tile.image, tile.images,
                          input_range(shape, 0, tile.rows.begin, tile.rows.count),
                          input_range(shape, 1, tile.cols.begin, tile.cols.count)};
    const unsigned threads = call_.progress.threads();
    const ConvSpec spec = conv_spec(shape, window, threads);
    std::shared_ptr<const ConvKernel> kernel;
    in_arena(threads, [&] { kernel = conv_kernel(spec); });
    const float* weights = nullptr;
    const Outcome outcome = weights_[index].as(call_.progress, kernel->weights(), weights);
    if (outcome != Outcome::kDone) return outcome;
    in_arena(threads, [&] {
        if (kernel->scratch_bytes() > 0) {
            scratch_ = {};
            scratch_ = Scratch(kernel->scratch_bytes());
        }
        kernel->run(input(window, chunk, shape), weights, nullptr, partial_.floats(),
                    scratch_.data());
        const int64_t count = tile.images * tile.rows.count * tile.cols.count * shape_.o;
        add_exact(partial_.floats(), static_cast<int32_t*>(sums_.data()), count, index == 0);
    });
    return Outcome::kDone;
}

// Of a chunk alone, as ConvShape::work_per_output_pixel counts it; and its partial sums are written, read and
// added.
int64_t IntegerConv::work_of(const ConvTile& tile, const Chunk& chunk) const {
    const int64_t pixels = tile.images * tile.rows.count * tile.cols.count;
    return pixels * (chunk_shape(shape_, chunk).work_per_output_pixel() + 8 * shape_.o) + kCallWork;
}

// Chunks are where a tile that costs more than its products can be told to stop: its outputs are still in
// scratch.
Outcome IntegerConv::run_tile(const ConvTile& tile) {
    const int64_t pixels = tile.images * tile.rows.count * tile.cols.count;
    partial_ = {};
    partial_ = scratch_floats(pixels * shape_.o);
    sums_ = {};
    sums_ = scratch_floats(pixels * shape_.o);
    int64_t work = 0;
    for (size_t i = 0; i < chunks_.size(); ++i) {
        const int64_t next = work_of(tile, chunks_[i]);
        if (i > 0 && work + next > kTileWork) {
            if (!call_.progress.proceed()) return Outcome::kStopped;
            work = 0;
        }
        work += next;
        const Outcome outcome = add_chunk(tile, i);
        if (outcome != Outcome::kDone) return outcome;
    }
    in_arena(call_.progress.threads(), [&] {
        auto* sums = static_cast<int32_t*>(sums_.data());
        requantiser_.finish(sums, pixels, 0, shape_.o);
        View window = slice(y_, 0, tile.image, tile.images);
        window = slice(window, 2, tile.rows.begin, tile.rows.count);
        window = slice(window, 3, tile.cols.begin, tile.cols.count);
        const View dense =
            channels_last_view(nullptr, tile.images, shape_.o, tile.rows.count, tile.cols.count);
        store_integers(integer_view(dense, sums), window);
    });
    return Outcome::kDone;
}

Outcome IntegerConv::run() {
    const Outcome outcome = open_weights();
    if (outcome != Outcome::kDone) return outcome;
    return for_conv_tiles(shape_, call_.progress,
                          [&](const ConvTile& tile) { return run_tile(tile); });
}

}  // namespace

Outcome conv2d_integer(const Call& call) {
    if (const auto outcome = conv2d_dot_products(call)) return *outcome;
    return IntegerConv(call).run();
}

}  // namespace enpu::ops
