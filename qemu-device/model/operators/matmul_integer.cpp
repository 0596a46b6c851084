// SPDX-License-Identifier: MIT
// MATMUL of i8 and u8 for every processor: exact f32 products over short stretches of K, summed as i32.
#include <algorithm>
#include <array>
#include <utility>

#include "conv2d.h"
#include "element.h"
#include "gemm.h"
#include "matmul.h"
#include "requantise.h"

namespace enpu::ops {
namespace {

constexpr unsigned kOperandA = ENPU_MATMUL_OPERAND_A, kOperandB = ENPU_MATMUL_OPERAND_B;
constexpr unsigned kOperandY = ENPU_MATMUL_OPERAND_Y;

Activation activation_of(const enpu_matmul_params& p) {
    return {p.act, p.alpha, p.beta};
}

class IntegerMatmul {
  public:
    explicit IntegerMatmul(const Call& call)
        : call_(call),
          y_(view_of(call.operands[kOperandY])),
          n_(y_.dims[y_.rank - 1]),
          terms_(exact_terms(call.packet.operands[kOperandA], call.packet.operands[kOperandB])),
          requantiser_(call, kOperandA, kOperandB, Requantiser::kNone, ENPU_MATMUL_OPERAND_SCALE,
                       kOperandY, n_, activation_of(call.packet.params.matmul)) {}
    Outcome run();

  private:
    struct Part {
        int64_t row, rows, col, cols;
        std::array<int64_t, kMaxStreams> offset;  // of the batch
    };
    Outcome open();
    Outcome run_part(const Part& part);
    void multiply(const Part& part, int64_t begin, int64_t count);
    View part_view(const View& view, Stream stream, const Part& part) const;

    const Call& call_;
    const View y_;
    const int64_t n_, terms_;
    const Requantiser requantiser_;
    int64_t k_ = 0;
    View bias_;
    MatrixOperand a_, b_;
    BatchLoop loop_{};
    Scratch partial_, sums_;
};

Outcome IntegerMatmul::open() {
    const View a = view_of(call_.operands[kOperandA]);
    k_ = a.dims[a.rank - 1];
    View b;
    bool has_zero_point = true;
    uint32_t blocked = 0;
    Outcome outcome = view_of_b(call_, b, has_zero_point, blocked);
    if (outcome == Outcome::kDone) {
        outcome = open_matrix(call_.progress, a, call_.packet.operands[kOperandA].zero_point, a_);
    }
    if (outcome == Outcome::kDone) {
        const int32_t zero_point = call_.packet.operands[kOperandB].zero_point;
        outcome = open_matrix(call_.progress, b, has_zero_point ? zero_point : 0, b_);
    }
    const Operand& bias = call_.operands[ENPU_MATMUL_OPERAND_BIAS];
    if (bias) bias_ = view_of(bias);
    return outcome;
}

View IntegerMatmul::part_view(const View& view, Stream stream, const Part& part) const {
    View result = view;
    result.rank = 2;
    result.dims = {part.rows, part.cols};
    result.strides = {loop_.row_stride[stream], view.strides[view.rank - 1]};
    const auto size = static_cast<int64_t>(
        with_dtype(view.dtype, [](auto tag) { return sizeof(typename decltype(tag)::Type); }));
    result.data +=
        size * (part.offset[stream] + part.row * result.strides[0] + part.col * result.strides[1]);
    return result;
}

// partial = a[rows, begin …] b[begin …, cols]; exact because `count` is at most terms_.
void IntegerMatmul::multiply(const Part& part, int64_t begin, int64_t count) {
    const View& b = b_.view;
    GemmSpec spec{};
    spec.m = part.rows;
    spec.n = part.cols;
    spec.k = count;
    spec.a_m = loop_.row_stride[kA];
    spec.a_k = a_.view.strides[a_.view.rank - 1];
    spec.b_k = b.strides[b.rank - 2];
    spec.b_n = b.strides[b.rank - 1];
    spec.y_m = part.cols;
    spec.threads = call_.progress.threads();
    spec.alpha = std::bit_cast<uint32_t>(1.0f);
    const auto* pa =
        reinterpret_cast<const float*>(a_.view.data) + part.offset[kA] + part.row * spec.a_m;
    const auto* pb = reinterpret_cast<const float*>(b.data) + part.offset[kB] + part.col * spec.b_n;
    gemm(spec, pa + begin * spec.a_k, pb + begin * spec.b_k, nullptr, partial_.floats());
}

Outcome IntegerMatmul::run_part(const Part& part) {
    const int64_t count = part.rows * part.cols;
    partial_ = {};
    partial_ = scratch_floats(count);
    sums_ = {};
    sums_ = scratch_floats(count);
    auto* sums = static_cast<int32_t*>(sums_.data());
    // A product of few numbers costs its call.
    const int64_t work = count * terms_ + kCallWork;
    const int64_t together = std::max<int64_t>(kTileWork / work, 1) * terms_;
    for (int64_t from = 0; from < k_; from += together) {
        if (from > 0 && !call_.progress.proceed()) return Outcome::kStopped;
        in_arena(call_.progress.threads(), [&] {
            for (int64_t begin = from; begin < std::min(from + together, k_); begin += terms_) {
                multiply(part, begin, std::min(terms_, k_ - begin));
                add_exact(partial_.floats(), sums, count, begin == 0);
            }
        });
    }
    in_arena(call_.progress.threads(), [&] {
        const View dense =
            integer_view(dense_view(nullptr, std::array{part.rows, part.cols}), sums);
        if (bias_.data != nullptr) add_integers(part_view(bias_, kBias, part), dense);
        requantiser_.finish(sums, part.rows, part.col, part.cols);
        store_integers(dense, part_view(y_, kY, part));
    });
    return Outcome::kDone;
}

Outcome IntegerMatmul::run() {
    const Outcome opened = open();
    if (opened != Outcome::kDone) return opened;
    loop_ = make_batches({a_.view, b_.view, y_, bias_, View{}});
    const int64_t m = loop_.rows;
    const int64_t cols = even_part(n_, std::max<int64_t>(kTileWork / k_, 1));
    const int64_t rows = even_part(m, std::max<int64_t>(kTileWork / (k_ * cols), 1));
    bool first = true;
    for (int64_t batch = 0; batch < loop_.batches.count; ++batch) {
        const auto offset = block_at(loop_.batches, batch, 1).offset;
        for (int64_t row = 0; row < m; row += rows) {
            for (int64_t col = 0; col < n_; col += cols) {
                if (!std::exchange(first, false) && !call_.progress.proceed())
                    return Outcome::kStopped;
                const Outcome outcome =
                    run_part({row, std::min(rows, m - row), col, std::min(cols, n_ - col), offset});
                if (outcome != Outcome::kDone) return outcome;
            }
        }
    }
    return Outcome::kDone;
}

}  // namespace

Outcome matmul_integer(const Call& call) {
    if (const auto outcome = matmul_dot_products(call)) return *outcome;
    return IntegerMatmul(call).run();
}

}  // namespace enpu::ops
