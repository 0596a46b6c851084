// SPDX-License-Identifier: MIT
// CONV_TRANSPOSE2D: each input pixel times the weights gives a window of contributions (one matrix
// product for many pixels); every output line then collects those that fall on it, always in the
// same order.
#include <algorithm>
#include <array>

#include "conv2d.h"
#include "convert.h"
#include "element.h"
#include "gemm.h"
#include "packed.h"
#include "parallel.h"
#include "scratch.h"

namespace enpu::ops {
namespace {

constexpr unsigned kX = ENPU_CONV_TRANSPOSE2D_OPERAND_X, kW = ENPU_CONV_TRANSPOSE2D_OPERAND_WEIGHTS;
constexpr unsigned kBias = ENPU_CONV_TRANSPOSE2D_OPERAND_BIAS, kY = ENPU_CONV_TRANSPOSE2D_OPERAND_Y;
constexpr int64_t kWindowFloats = int64_t{8} << 20;  // contributions held at once

class TransposedConv {
  public:
    explicit TransposedConv(const Call& call);
    Outcome run();

  private:
    struct Lines {  // of the output, and the input lines that reach them
        int64_t image, begin, end, first, last;
        int64_t pixels(int64_t width) const { return (last - first) * width; }
    };
    Outcome open_weights();
    Lines input_lines(int64_t image, int64_t begin, int64_t end) const;
    Outcome run_lines(const Lines& lines);
    Outcome multiply(const Lines& lines, int64_t group, const float* x);
    void collect_line(const Lines& lines, int64_t line, int64_t group, float* y) const;
    int64_t window() const { return s_.kh * s_.kw * outputs_; }

    const Call& call_;
    ConvShape s_;
    int64_t inputs_, outputs_;  // channels of a group
    const View x_, y_;
    const Activation act_;
    const float* weights_ = nullptr;  // [c][kh][kw][o / groups]
    Scratch weights_copy_, bias_, x_tile_, y_tile_, windows_;
};

ConvShape shape_of(const enpu_operator_packet& packet) {
    const auto& p = packet.params.conv_transpose2d;
    const auto& x = packet.operands[kX].dims;
    const auto& w = packet.operands[kW].dims;
    const auto& y = packet.operands[kY].dims;
    ConvShape s{x[0], x[1], x[2], x[3], y[1], w[2], w[3], y[2], y[3], p.groups, {}, {}, {}};
    for (int i = 0; i < 2; ++i) {
        s.stride[i] = p.stride[i];
        s.dilation[i] = p.dilation[i];
    }
    std::copy(std::begin(p.pad), std::end(p.pad), s.pad);
    return s;
}

TransposedConv::TransposedConv(const Call& call)
    : call_(call),
      s_(shape_of(call.packet)),
      inputs_(s_.c / s_.groups),
      outputs_(s_.o / s_.groups),
      x_(view_of(call.operands[kX])),
      y_(view_of(call.operands[kY])),
      act_{call.packet.params.conv_transpose2d.act, call.packet.params.conv_transpose2d.alpha,
           call.packet.params.conv_transpose2d.beta} {}

Outcome TransposedConv::open_weights() {
    const Operand& operand = call_.operands[kW];
    View view = view_of(operand);
    if (operand.desc->format == ENPU_FORMAT_PACKED) {
        const auto groups = static_cast<uint32_t>(s_.groups);
        const auto header = read_header(operand, ENPU_PACK_KIND_CONV_TRANSPOSE2D, groups);
        const uint64_t bytes = static_cast<uint64_t>(element_count(view)) * sizeof(float);
        const auto layout = header ? static_cast<PackedLayout>(header->layout) : PackedLayout{};
        if (layout == PackedLayout::kMatrix &&
            bytes <= operand.desc->bytes - ENPU_PACKED_HEADER_BYTES) {
            weights_ = reinterpret_cast<const float*>(operand.data + ENPU_PACKED_HEADER_BYTES);
            return Outcome::kDone;
        }
        if (layout != PackedLayout::kPlain) {
            call_.progress.detail(kW, static_cast<int64_t>(layout));
            return Outcome::kBadOperand;
        }
        view = plain_behind_header(view);
    }
    weights_copy_ = scratch_floats(element_count(view));
    weights_ = weights_copy_.floats();
    return convert_tiled(call_.progress, view,
                         channels_last_view(weights_copy_.floats(), s_.c, outputs_, s_.kh, s_.kw));
}

TransposedConv::Lines TransposedConv::input_lines(int64_t image, int64_t begin, int64_t end) const {
    const int64_t stride = s_.stride[0];
    const int64_t low = begin + s_.pad[0] - (s_.window(0) - 1);  // of input line x stride
    const int64_t first = low <= 0 ? 0 : std::min(divide_up(low, stride), s_.h);
    const int64_t last = std::min((end - 1 + s_.pad[0]) / stride + 1, s_.h);
    return {image, begin, end, first, std::max(first, last)};
}

// windows[pixel] = x[pixel] * weights of a group, in pieces of a tile.
Outcome TransposedConv::multiply(const Lines& lines, int64_t group, const float* x) {
    const int64_t pixels = lines.pixels(s_.w);
    const int64_t step = pixels == 0 ? 1 : even_part(pixels, kTileWork / (inputs_ * window()));
    GemmSpec spec{};
    spec.n = window();
    spec.k = inputs_;
    spec.a_m = s_.c;
    spec.a_k = 1;
    spec.b_k = spec.y_m = spec.n;
    spec.b_n = 1;
    spec.threads = call_.progress.threads();
    spec.alpha = std::bit_cast<uint32_t>(1.0f);
    for (int64_t pixel = 0; pixel < pixels; pixel += step) {
        if (pixel > 0 && !call_.progress.proceed()) return Outcome::kStopped;
        spec.m = std::min(step, pixels - pixel);
        in_arena(call_.progress.threads(), [&] {
            gemm(spec, x + pixel * s_.c + group * inputs_, weights_ + group * inputs_ * spec.n,
                 nullptr, windows_.floats() + pixel * spec.n);
        });
    }
    return Outcome::kDone;
}

void TransposedConv::collect_line(const Lines& lines, int64_t line, int64_t group, float* y) const {
    for (int64_t i = lines.first; i < lines.last; ++i) {
        const int64_t offset = line + s_.pad[0] - i * s_.stride[0];
        if (offset < 0 || offset % s_.dilation[0] != 0 || offset / s_.dilation[0] >= s_.kh)
            continue;
        const int64_t kernel_row = offset / s_.dilation[0];
        const float* from =
            windows_.floats() + (i - lines.first) * s_.w * window() + kernel_row * s_.kw * outputs_;
        for (int64_t j = 0; j < s_.w; ++j, from += window()) {
            for (int64_t k = 0; k < s_.kw; ++k) {
                const int64_t col = j * s_.stride[1] - s_.pad[1] + k * s_.dilation[1];
                if (col < 0 || col >= s_.ow) continue;
                float* to = y + col * s_.o + group * outputs_;
                for (int64_t o = 0; o < outputs_; ++o) to[o] += from[k * outputs_ + o];
            }
        }
    }
}

Outcome TransposedConv::run_lines(const Lines& lines) {
    const unsigned threads = call_.progress.threads();
    const View window =
        slice(slice(y_, 0, lines.image, 1), 2, lines.begin, lines.end - lines.begin);
    const bool in_place = is_channels_last(y_);
    const View from = slice(slice(x_, 0, lines.image, 1), 2, lines.first, lines.last - lines.first);
    const float* x = reinterpret_cast<const float*>(from.data);
    if (!is_channels_last(x_) && lines.first < lines.last) {
        x_tile_ = {};
        x_tile_ = scratch_floats(element_count(from));
        x = x_tile_.floats();
        const View to =
            channels_last_view(x_tile_.floats(), 1, s_.c, lines.last - lines.first, s_.w);
        in_arena(threads, [&] { convert(from, to); });
    }
    if (!in_place) {
        y_tile_ = {};
        y_tile_ = scratch_floats(element_count(window));
    }
    float* y = in_place ? reinterpret_cast<float*>(window.data) : y_tile_.floats();
    const int64_t line_floats = s_.ow * s_.o;
    windows_ = {};
    windows_ = scratch_floats(lines.pixels(s_.w) * this->window());

    const auto for_lines = [&](auto&& body) {
        in_arena(threads, [&] {
            parallel_each(lines.begin, lines.end, [&](int64_t line) {
                body(line, y + (line - lines.begin) * line_floats);
            });
        });
    };
    for_lines([&](int64_t, float* to) {
        for (int64_t i = 0; i < s_.ow; ++i) std::copy_n(bias_.floats(), s_.o, to + i * s_.o);
    });
    for (int64_t group = 0; group < s_.groups; ++group) {
        if (group > 0 && group % 64 == 0 && !call_.progress.proceed()) return Outcome::kStopped;
        const Outcome outcome = multiply(lines, group, x);
        if (outcome != Outcome::kDone) return outcome;
        for_lines([&](int64_t line, float* to) { collect_line(lines, line, group, to); });
    }
    for_lines([&](int64_t, float* to) { apply_unary(act_, to, to, line_floats); });
    if (!in_place) {
        const View dense = channels_last_view(y, 1, s_.o, lines.end - lines.begin, s_.ow);
        in_arena(threads, [&] { convert(dense, window); });
    }
    return Outcome::kDone;
}

Outcome TransposedConv::run() {
    bias_ = scratch_floats(s_.o);
    std::fill_n(bias_.floats(), s_.o, 0.0f);
    const Operand& bias = call_.operands[kBias];
    if (bias) convert(view_of(bias), dense_view(bias_.floats(), std::array{s_.o}));
    Outcome outcome = open_weights();
    if (outcome != Outcome::kDone) return outcome;
    const int64_t per_line = s_.w * window() * std::max<int64_t>(s_.c / 8, 1);
    const int64_t limit =
        std::min(kTileWork / 8 / std::max<int64_t>(per_line, 1), kWindowFloats / (s_.w * window()));
    const int64_t step = even_part(s_.oh, std::max<int64_t>(limit, 1) * s_.stride[0]);
    for (int64_t image = 0; image < s_.n; ++image) {
        for (int64_t line = 0; line < s_.oh; line += step) {
            if ((image > 0 || line > 0) && !call_.progress.proceed()) return Outcome::kStopped;
            outcome = run_lines(input_lines(image, line, std::min(line + step, s_.oh)));
            if (outcome != Outcome::kDone) return outcome;
        }
    }
    return Outcome::kDone;
}

}  // namespace

Outcome run_conv_transpose2d(const Call& call) {
    return TransposedConv(call).run();
}

}  // namespace enpu::ops
