// SPDX-License-Identifier: MIT
// CONV2D of f32, f16 and bf16: tiles of the output, computed in f32 on channels-last data.
#include "conv2d.h"

#include "convert.h"
#include "element.h"
#include "gemm.h"
#include "weights.h"

namespace enpu::ops {
namespace {

// One convolution under way: what its tiles have in common.
class FloatConv {
  public:
    explicit FloatConv(const Call& call);
    Outcome run();

  private:
    Outcome run_tile(const ConvTile& tile);
    Outcome run_kernel(const ConvTile& tile);
    Outcome run_pointwise(const ConvTile& tile);
    const float* input(const ConvTile& tile);
    const float* pixels(const ConvTile& tile);
    // Makes the output of a tile: compute(y) writes it, or adds to the residual that it finds
    // there, channels last and dense.
    template <class Compute>
    void produce(const ConvTile& tile, Compute&& compute);
    View output_window(const View& view, const ConvTile& tile) const;
    bool computes_in_place(const ConvTile& tile) const;

    const Call& call_;
    const ConvShape shape_;
    const View x_, y_, residual_;
    const Activation act_;
    ConvWeights weights_;
    Scratch bias_, x_tile_, y_tile_, scratch_;
};

Activation activation_of(const enpu_conv2d_params& p) {
    return {p.act, p.alpha, p.beta};
}

FloatConv::FloatConv(const Call& call)
    : call_(call),
      shape_(conv_shape(call.packet)),
      x_(view_of(call.operands[ENPU_CONV2D_OPERAND_X])),
      y_(view_of(call.operands[ENPU_CONV2D_OPERAND_Y])),
      residual_(call.operands[ENPU_CONV2D_OPERAND_RESIDUAL]
                    ? view_of(call.operands[ENPU_CONV2D_OPERAND_RESIDUAL])
                    : View{}),
      act_(activation_of(call.packet.params.conv2d)) {}

View FloatConv::output_window(const View& view, const ConvTile& t) const {
    View window = slice(view, 0, t.image, t.images);
    window = slice(window, 2, t.rows.begin, t.rows.count);
    return slice(window, 3, t.cols.begin, t.cols.count);
}

// Dense over the images and whole rows of a tile.
bool is_dense_tile(const View& view, const ConvTile& tile, bool whole_rows) {
    return is_channels_last(view) && whole_rows &&
           (tile.images == 1 || view.strides[0] == view.dims[1] * view.dims[2] * view.dims[3]);
}

bool FloatConv::computes_in_place(const ConvTile& tile) const {
    const bool whole =
        tile.cols.count == shape_.ow && (tile.images == 1 || tile.rows.count == shape_.oh);
    return is_dense_tile(y_, tile, whole);
}

const float* FloatConv::input(const ConvTile& t) {
    const bool whole = t.cols.size == shape_.w && (t.images == 1 || t.rows.size == shape_.h);
    if (t.rows.empty || t.cols.empty) {
        const int64_t count = t.images * shape_.c * t.rows.size * t.cols.size;
        x_tile_ = scratch_floats(count);
        std::fill_n(x_tile_.floats(), count, 0.0f);
        return x_tile_.floats();
    }
    View window = slice(x_, 0, t.image, t.images);
    window = slice(slice(window, 2, t.rows.first, t.rows.size), 3, t.cols.first, t.cols.size);
    if (is_dense_tile(x_, t, whole)) return reinterpret_cast<const float*>(window.data);
    x_tile_ = {};
    x_tile_ = scratch_floats(element_count(window));
    convert(window,
            channels_last_view(x_tile_.floats(), t.images, shape_.c, t.rows.size, t.cols.size));
    return x_tile_.floats();
}

template <class Compute>
void FloatConv::produce(const ConvTile& tile, Compute&& compute) {
    const View window = output_window(y_, tile);
    const bool in_place = computes_in_place(tile);
    if (!in_place) {
        y_tile_ = {};
        y_tile_ = scratch_floats(element_count(window));
    }
    auto* y = in_place ? reinterpret_cast<float*>(window.data) : y_tile_.floats();
    const View dense =
        channels_last_view(y, tile.images, shape_.o, tile.rows.count, tile.cols.count);
    if (residual_.data != nullptr) {
        const View from = output_window(residual_, tile);
        if (from.data != dense.data) convert(from, dense);
    }
    compute(y);
    if (!can_fuse(act_)) activate(act_, y, element_count(window));
    if (!in_place) convert(dense, window);
}

Outcome FloatConv::run_kernel(const ConvTile& tile) {
    const unsigned threads = call_.progress.threads();
    ConvSpec spec = conv_spec(shape_, tile, threads);
    spec.bias = bias_.data() != nullptr;
    spec.sum = residual_.data != nullptr;
    if (can_fuse(act_)) spec.act = key_of(act_);
    std::shared_ptr<const ConvKernel> kernel;
    in_arena(threads, [&] { kernel = conv_kernel(spec); });
    const float* weights = nullptr;
    const Outcome outcome = weights_.as(call_.progress, kernel->weights(), weights);
    if (outcome != Outcome::kDone) return outcome;
    in_arena(threads, [&] {
        produce(tile, [&](float* y) {
            if (kernel->scratch_bytes() > 0) {
                scratch_ = {};
                scratch_ = Scratch(kernel->scratch_bytes());
            }
            kernel->run(input(tile), weights, bias_.floats(), y, scratch_.data());
        });
    });
    return Outcome::kDone;
}

// The input pixels that the output pixels of a tile look at, one each.
const float* FloatConv::pixels(const ConvTile& t) {
    if (shape_.stride[0] == 1 && shape_.stride[1] == 1) return input(t);
    View window = slice(x_, 0, t.image, t.images);
    window = slice(window, 2, t.rows.begin * shape_.stride[0], t.rows.count);
    window = slice(window, 3, t.cols.begin * shape_.stride[1], t.cols.count);
    window.strides[2] *= shape_.stride[0];
    window.strides[3] *= shape_.stride[1];
    x_tile_ = {};
    x_tile_ = scratch_floats(element_count(window));
    convert(window,
            channels_last_view(x_tile_.floats(), t.images, shape_.c, t.rows.count, t.cols.count));
    return x_tile_.floats();
}

Outcome FloatConv::run_pointwise(const ConvTile& tile) {
    const float* weights = nullptr;
    const Outcome outcome = weights_.as_matrix(call_.progress, weights);
    if (outcome != Outcome::kDone) return outcome;
    GemmSpec spec{};
    spec.m = tile.images * tile.rows.count * tile.cols.count;
    spec.n = spec.y_m = shape_.o;
    spec.k = spec.a_m = spec.b_n = shape_.c;
    spec.a_k = spec.b_k = 1;
    spec.bias = bias_.data() != nullptr;
    spec.sum = residual_.data != nullptr;
    spec.threads = call_.progress.threads();
    spec.alpha = std::bit_cast<uint32_t>(1.0f);
    if (can_fuse(act_)) spec.act = key_of(act_);
    in_arena(call_.progress.threads(), [&] {
        produce(tile, [&](float* y) { gemm(spec, pixels(tile), weights, bias_.floats(), y); });
    });
    return Outcome::kDone;
}

Outcome FloatConv::run_tile(const ConvTile& tile) {
    return shape_.is_pointwise() && weights_.is_row_major() ? run_pointwise(tile)
                                                            : run_kernel(tile);
}

Outcome FloatConv::run() {
    const Operand& bias = call_.operands[ENPU_CONV2D_OPERAND_BIAS];
    if (bias) {
        bias_ = scratch_floats(shape_.o);
        convert(view_of(bias), dense_view(bias_.floats(), std::array{shape_.o}));
    }
    const Outcome outcome =
        weights_.open(call_.progress, call_.operands[ENPU_CONV2D_OPERAND_WEIGHTS],
                      ENPU_CONV2D_OPERAND_WEIGHTS, static_cast<uint32_t>(shape_.groups));
    if (outcome != Outcome::kDone) return outcome;
    return for_conv_tiles(shape_, call_.progress,
                          [&](const ConvTile& tile) { return run_tile(tile); });
}

}  // namespace

Range input_range(const ConvShape& s, int axis, int64_t begin, int64_t count) {
    const int64_t stride = s.stride[axis], size = axis ? s.w : s.h;
    const int64_t first = begin * stride - s.pad[axis];
    const int64_t last = first + (count - 1) * stride + s.window(axis);
    const int64_t low = std::clamp<int64_t>(first, 0, size);
    const int64_t high = std::clamp<int64_t>(last, 0, size);
    if (low >= high) return {begin, count, 0, 1, 0, last - first - 1, true};
    return {begin, count, low, high - low, low - first, last - high, false};
}

ConvShape conv_shape(const enpu_operator_packet& packet) {
    const auto& p = packet.params.conv2d;
    const auto& x = packet.operands[ENPU_CONV2D_OPERAND_X].dims;
    const auto& w = packet.operands[ENPU_CONV2D_OPERAND_WEIGHTS].dims;
    const auto& y = packet.operands[ENPU_CONV2D_OPERAND_Y].dims;
    ConvShape s{x[0], x[1], x[2], x[3], w[0], w[2], w[3], y[2], y[3], p.groups, {}, {}, {}};
    for (int i = 0; i < 2; ++i) {
        s.stride[i] = p.stride[i];
        s.dilation[i] = p.dilation[i];
    }
    std::copy(std::begin(p.pad), std::end(p.pad), s.pad);
    return s;
}

ConvSpec conv_spec(const ConvShape& s, const ConvTile& t, unsigned threads) {
    ConvSpec spec{};
    spec.n = t.images;
    spec.c = s.c;
    spec.h = t.rows.size;
    spec.w = t.cols.size;
    spec.o = s.o;
    spec.kh = s.kh;
    spec.kw = s.kw;
    spec.oh = t.rows.count;
    spec.ow = t.cols.count;
    spec.groups = s.groups;
    for (int i = 0; i < 2; ++i) {
        spec.stride[i] = s.stride[i];
        spec.dilation[i] = s.dilation[i];
    }
    spec.pad[0] = t.rows.pad_before;
    spec.pad[1] = t.cols.pad_before;
    spec.pad[2] = t.rows.pad_after;
    spec.pad[3] = t.cols.pad_after;
    spec.threads = threads;
    return spec;
}

Outcome conv2d_float(const Call& call) {
    if (conv_shape(call.packet).products_per_output_pixel() > kTileWork) return conv2d_large(call);
    return FloatConv(call).run();
}

Outcome run_conv2d(const Call& call) {
    const bool floats = is_float(call.packet.operands[ENPU_CONV2D_OPERAND_X].dtype);
    return floats ? conv2d_float(call) : conv2d_integer(call);
}

}  // namespace enpu::ops
