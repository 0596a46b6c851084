// SPDX-License-Identifier: MIT
// CONV2D of floats where a single output pixel is more work than a tile: its window of the input is laid out as
// a row, and multiplied with the weights in pieces that can be stopped in between.
#include <utility>

#include "conv2d.h"
#include "convert.h"
#include "element.h"
#include "gemm.h"
#include "weights.h"

namespace enpu::ops {
namespace {

// Weights are read once, so memory sets the pace: 100 MB of them are 10 ms.
constexpr int64_t kPieceTerms = 25'000'000;

class LargeConv {
  public:
    explicit LargeConv(const Call& call)
        : call_(call),
          shape_(conv_shape(call.packet)),
          x_(view_of(call.operands[ENPU_CONV2D_OPERAND_X])),
          y_(view_of(call.operands[ENPU_CONV2D_OPERAND_Y])),
          inputs_(shape_.c / shape_.groups),
          outputs_(shape_.o / shape_.groups),
          terms_(inputs_ * shape_.kh * shape_.kw) {}
    Outcome run();

  private:
    bool proceed() { return std::exchange(first_, false) || call_.progress.proceed(); }
    Outcome run_pixel(int64_t image, int64_t row, int64_t col);
    Outcome gather(int64_t image, int64_t row, int64_t col, int64_t group);
    Outcome multiply(int64_t group);
    void finish(int64_t image, int64_t row, int64_t col);

    const Call& call_;
    const ConvShape shape_;
    const View x_, y_;
    const int64_t inputs_, outputs_, terms_;  // of a group
    ConvWeights weights_;
    const float* matrix_ = nullptr;  // [o][c / groups][kh][kw]
    Scratch window_, sums_;
    bool first_ = true;
};

View pixel_of(const View& view, int64_t image, int64_t row, int64_t col) {
    return slice(slice(slice(view, 0, image, 1), 2, row, 1), 3, col, 1);
}

// window_[c][ky][kx] of a group; zeros where it looks at padding.
Outcome LargeConv::gather(int64_t image, int64_t row, int64_t col, int64_t group) {
    const int64_t taps = shape_.kh * shape_.kw;
    const int64_t together =
        std::max<int64_t>(kTileWork / 16 / (inputs_ + 32), 1);  // strided: slow
    const int64_t dims[4] = {1, inputs_, 1, 1};
    for (int64_t tap = 0; tap < taps; ++tap) {
        if (tap % together == 0 && !proceed()) return Outcome::kStopped;
        const int64_t y =
            row * shape_.stride[0] - shape_.pad[0] + tap / shape_.kw * shape_.dilation[0];
        const int64_t x =
            col * shape_.stride[1] - shape_.pad[1] + tap % shape_.kw * shape_.dilation[1];
        float* to = window_.floats() + tap;
        if (y < 0 || y >= shape_.h || x < 0 || x >= shape_.w) {
            for (int64_t c = 0; c < inputs_; ++c) to[c * taps] = 0;
            continue;
        }
        View target = dense_view(to, dims);
        target.strides[1] = taps;
        convert(slice(pixel_of(x_, image, y, x), 1, group * inputs_, inputs_), target);
    }
    return Outcome::kDone;
}

Outcome LargeConv::multiply(int64_t group) {
    const int64_t step = even_part(terms_, kPieceTerms);
    const int64_t rows = std::clamp<int64_t>(kPieceTerms / step, 1, outputs_);
    for (int64_t o = 0; o < outputs_; o += rows) {
        for (int64_t k = 0; k < terms_; k += step) {
            if (!proceed()) return Outcome::kStopped;
            GemmSpec spec{};
            spec.m = 1;
            spec.n = spec.y_m = std::min(rows, outputs_ - o);
            spec.k = spec.a_m = std::min(step, terms_ - k);
            spec.a_k = spec.b_k = 1;
            spec.b_n = terms_;
            spec.sum = k > 0;
            spec.threads = call_.progress.threads();
            spec.alpha = std::bit_cast<uint32_t>(1.0f);
            const int64_t output = group * outputs_ + o;
            in_arena(call_.progress.threads(), [&] {
                gemm(spec, window_.floats() + k, matrix_ + output * terms_ + k, nullptr,
                     sums_.floats() + output);
            });
        }
    }
    return Outcome::kDone;
}

void LargeConv::finish(int64_t image, int64_t row, int64_t col) {
    const int64_t dims[4] = {1, shape_.o, 1, 1};
    const View sums = dense_view(sums_.floats(), dims);
    const Operand& bias = call_.operands[ENPU_CONV2D_OPERAND_BIAS];
    const Operand& residual = call_.operands[ENPU_CONV2D_OPERAND_RESIDUAL];
    if (bias) accumulate(view_of(bias), dense_view(sums_.floats(), {dims + 1, 1}));
    if (residual) accumulate(pixel_of(view_of(residual), image, row, col), sums);
    const auto& p = call_.packet.params.conv2d;
    activate({p.act, p.alpha, p.beta}, sums_.floats(), shape_.o);
    convert(sums, pixel_of(y_, image, row, col));
}

Outcome LargeConv::run_pixel(int64_t image, int64_t row, int64_t col) {
    for (int64_t group = 0; group < shape_.groups; ++group) {
        Outcome outcome = gather(image, row, col, group);
        if (outcome == Outcome::kDone) outcome = multiply(group);
        if (outcome != Outcome::kDone) return outcome;
    }
    in_arena(call_.progress.threads(), [&] { finish(image, row, col); });
    return Outcome::kDone;
}

Outcome LargeConv::run() {
    Outcome outcome =
        weights_.open(call_.progress, call_.operands[ENPU_CONV2D_OPERAND_WEIGHTS],
                      ENPU_CONV2D_OPERAND_WEIGHTS, static_cast<uint32_t>(shape_.groups));
    if (outcome == Outcome::kDone) outcome = weights_.as_matrix(call_.progress, matrix_);
    if (outcome != Outcome::kDone) return outcome;
    window_ = scratch_floats(terms_);
    sums_ = scratch_floats(shape_.o);
    for (int64_t image = 0; image < shape_.n; ++image) {
        for (int64_t row = 0; row < shape_.oh; ++row) {
            for (int64_t col = 0; col < shape_.ow; ++col) {
                outcome = run_pixel(image, row, col);
                if (outcome != Outcome::kDone) return outcome;
            }
        }
    }
    return Outcome::kDone;
}

}  // namespace

Outcome conv2d_large(const Call& call) {
    return LargeConv(call).run();
}

}  // namespace enpu::ops
