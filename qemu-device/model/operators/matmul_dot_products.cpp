// SPDX-License-Identifier: MIT
// MATMUL of i8 and u8 by kernels for integers, where the processor has them: sum a b in 32 bits, corrected for
// the zero points by the sums of rows and columns.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "conv2d.h"
#include "element.h"
#include "gemm.h"
#include "integer_tiles.h"
#include "integer_weights.h"
#include "matmul.h"
#include "requantise.h"

namespace enpu::ops {
namespace {

constexpr unsigned kOperandA = ENPU_MATMUL_OPERAND_A, kOperandB = ENPU_MATMUL_OPERAND_B;
constexpr unsigned kOperandY = ENPU_MATMUL_OPERAND_Y;

uint32_t wrapping(int64_t value) {
    return static_cast<uint32_t>(value);
}

int32_t add(int32_t a, int32_t b) {
    return static_cast<int32_t>(wrapping(a) + wrapping(b));
}

class DotProductMatmul {
  public:
    explicit DotProductMatmul(const Call& call);
    // Nothing if there is no kernel.
    std::optional<Outcome> run();

  private:
    struct Part {
        int64_t row, rows, col, cols;
        std::array<int64_t, kMaxStreams> offset;  // of the batch
    };
    Outcome open_a();
    Outcome open_b();
    Outcome run_part(const Part& part);
    // By tiles of the processor.
    void open_tiles();
    const uint8_t* tile_input(const Part& part, TileProduct& product);
    Outcome run_on_tiles(const Part& part);
    void correct(const Part& part, const uint8_t* a, int32_t* sums);
    void finish(const Part& part, int32_t* sums);
    View part_view(const View& view, Stream stream, const Part& part) const;
    IntegerGemmSpec spec_of(const Part& part) const;
    Outcome column_sums(const Part& part);

    const Call& call_;
    const View y_;
    const int64_t n_;
    const Requantiser requantiser_;
    View a_, b_, bias_;
    Scratch a_copy_, b_copy_, a_part_, sums_, bytes_;
    IntegerWeights weights_{ENPU_PACK_KIND_MATMUL};
    bool packed_ = false, no_kernel_ = false;
    int32_t zero_a_ = 0, zero_b_ = 0;  // of u8 and s8
    int64_t k_ = 0;
    BatchLoop loop_{};
    std::vector<int32_t> corrections_;
    const std::byte* tiles_ = nullptr;  // weights for them
    std::vector<int32_t> addends_;      // corrections and bias
};

DotProductMatmul::DotProductMatmul(const Call& call)
    : call_(call),
      y_(view_of(call.operands[kOperandY])),
      n_(y_.dims[y_.rank - 1]),
      requantiser_(call, kOperandA, kOperandB, Requantiser::kNone, ENPU_MATMUL_OPERAND_SCALE,
                   kOperandY, n_,
                   {call.packet.params.matmul.act, call.packet.params.matmul.alpha,
                    call.packet.params.matmul.beta}) {}

// A dense row-major copy of `from`, flipped; batches that repeat are copied once.
Outcome copy_dense(Progress& progress, const View& from, uint8_t flip, Scratch& memory, View& to) {
    to = from;
    int64_t count = 1;
    View source = from;
    for (unsigned axis = from.rank; axis-- > 0;) {
        const bool repeated = axis + 2 < from.rank && from.strides[axis] == 0;
        to.strides[axis] = repeated ? 0 : count;
        if (repeated) source.dims[axis] = 1;
        if (!repeated) count *= from.dims[axis];
    }
    memory = Scratch(static_cast<size_t>(count));
    to.data = memory.bytes();
    View target = to;
    target.dims = source.dims;
    return copy_bytes_tiled(progress, source, target, flip);
}

// u8 rows without gaps between their elements.
Outcome DotProductMatmul::open_a() {
    const enpu_tensor& desc = call_.packet.operands[kOperandA];
    const bool is_signed = desc.dtype == ENPU_DTYPE_I8;
    zero_a_ = desc.zero_point + (is_signed ? 128 : 0);
    a_ = view_of(call_.operands[kOperandA]);
    k_ = a_.dims[a_.rank - 1];
    const int64_t rows = a_.dims[a_.rank - 2];
    const bool dense =
        (k_ == 1 || a_.strides[a_.rank - 1] == 1) && (rows == 1 || a_.strides[a_.rank - 2] >= k_);
    if (dense && !is_signed) return Outcome::kDone;
    const View from = a_;
    return copy_dense(call_.progress, from, is_signed ? 0x80 : 0, a_copy_, a_);
}

Outcome DotProductMatmul::open_b() {
    const Operand& operand = call_.operands[kOperandB];
    const bool is_unsigned = operand.desc->dtype == ENPU_DTYPE_U8;
    zero_b_ = operand.desc->zero_point - (is_unsigned ? 128 : 0);
    if (operand.desc->format == ENPU_FORMAT_PACKED) {
        // It serves every batch.
        packed_ = true;
        b_ = a_;
        b_.data = nullptr;
        b_.strides = {};
        return weights_.open(call_.progress, operand, kOperandB, 1);
    }
    b_ = view_of(operand);
    const unsigned r = b_.rank;
    if (!is_unsigned &&
        is_gemm_matrix(b_.dims[r - 2], b_.dims[r - 1], b_.strides[r - 2], b_.strides[r - 1]))
        return Outcome::kDone;
    const View from = b_;
    return copy_dense(call_.progress, from, is_unsigned ? 0x80 : 0, b_copy_, b_);
}

View DotProductMatmul::part_view(const View& view, Stream stream, const Part& part) const {
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

IntegerGemmSpec DotProductMatmul::spec_of(const Part& part) const {
    IntegerGemmSpec spec{
        part.rows, part.cols, k_, loop_.row_stride[kA], 0, 0, call_.progress.threads()};
    if (part.rows == 1) spec.a_m = k_;
    if (packed_) return spec;
    spec.b_k = b_.strides[b_.rank - 2];
    spec.b_n = b_.strides[b_.rank - 1];
    // Strides on an axis of one index mean nothing.
    if (part.cols == 1) spec.b_n = 1;
    if (k_ == 1) spec.b_k = spec.b_n == 1 ? part.cols : 1;
    if (part.cols == 1 && spec.b_k < 1) spec.b_k = 1;
    return spec;
}

// corrections_ = k za zb - za * (sum of each column of b).
Outcome DotProductMatmul::column_sums(const Part& part) {
    const uint32_t both = wrapping(k_) * wrapping(zero_a_) * wrapping(zero_b_);
    corrections_.assign(static_cast<size_t>(part.cols), static_cast<int32_t>(both));
    if (zero_a_ == 0) return Outcome::kDone;
    std::vector<int32_t> columns(static_cast<size_t>(part.cols));
    const int32_t* sums = columns.data();
    if (packed_) {
        const Outcome outcome = weights_.sums(call_.progress, sums);
        if (outcome != Outcome::kDone) return outcome;
    } else {
        const View& b = b_;
        const int64_t step_k = b.strides[b.rank - 2], step_n = b.strides[b.rank - 1];
        const auto* from =
            reinterpret_cast<const int8_t*>(b.data) + part.offset[kB] + part.col * step_n;
        for (int64_t k = 0; k < k_; ++k) {
            const int8_t* line = from + k * step_k;
            if (step_n == 1) {
                for (int64_t n = 0; n < part.cols; ++n) columns[n] = add(columns[n], line[n]);
            } else {
                for (int64_t n = 0; n < part.cols; ++n)
                    columns[n] = add(columns[n], line[n * step_n]);
            }
        }
    }
    for (int64_t n = 0; n < part.cols; ++n)
        corrections_[n] = static_cast<int32_t>(both - wrapping(zero_a_) * wrapping(sums[n]));
    return Outcome::kDone;
}

// What differs from row to row: the sum of a's row times the zero point of b, and the bias.
void DotProductMatmul::correct(const Part& part, const uint8_t* a, int32_t* sums) {
    for (int64_t row = 0; row < part.rows && zero_b_ != 0; ++row) {
        const uint8_t* line = a + row * loop_.row_stride[kA];
        uint32_t sum = 0;
        for (int64_t k = 0; k < k_; ++k) sum += line[k];
        const auto less = static_cast<int32_t>(wrapping(zero_b_) * sum);
        for (int64_t n = 0; n < part.cols; ++n) {
            int32_t& value = sums[row * part.cols + n];
            value = static_cast<int32_t>(wrapping(value) - wrapping(less));
        }
    }
    if (bias_.data == nullptr) return;
    add_integers(part_view(bias_, kBias, part),
                 integer_view(dense_view(nullptr, std::array{part.rows, part.cols}), sums));
}

void DotProductMatmul::finish(const Part& part, int32_t* sums) {
    const View window = part_view(y_, kY, part);
    const View dense = dense_view(nullptr, std::array{part.rows, part.cols});
    if (!requantiser_.makes_bytes()) {
        if (zero_a_ != 0) add_to_channels(sums, corrections_.data(), part.rows, part.cols);
        auto* y = reinterpret_cast<int32_t*>(window.data);
        if (sums != y) store_integers(integer_view(dense, sums), window);
        return;
    }
    bytes_ = {};
    bytes_ = Scratch(static_cast<size_t>(part.rows * part.cols));
    requantiser_.finish_bytes(sums, corrections_.data(), part.rows, part.col, part.cols,
                              bytes_.bytes());
    View from = dense;
    from.dtype = window.dtype;
    from.data = bytes_.bytes();
    copy_bytes(from, window, 0);
}

Outcome DotProductMatmul::run_part(const Part& part) {
    const IntegerGemmSpec spec = spec_of(part);
    std::shared_ptr<const IntegerGemm> kernel;
    in_arena(call_.progress.threads(), [&] { kernel = integer_gemm(spec); });
    if (!kernel) {
        no_kernel_ = true;
        return Outcome::kStopped;
    }
    const void* b = nullptr;
    Outcome outcome = Outcome::kDone;
    if (packed_) {
        outcome = weights_.as(call_.progress, kernel->weights(), b);
    } else {
        b = b_.data + part.offset[kB] + part.col * b_.strides[b_.rank - 1];
    }
    if (outcome == Outcome::kDone && corrections_.empty()) outcome = column_sums(part);
    if (outcome != Outcome::kDone) return outcome;
    // Sums that stay 32 bits wide are made where they belong, if that is dense.
    const View window = part_view(y_, kY, part);
    const bool in_place = !requantiser_.makes_bytes() &&
                          (part.cols == 1 || window.strides[1] == 1) &&
                          (part.rows == 1 || window.strides[0] == part.cols);
    if (!in_place) {
        sums_ = {};
        sums_ = Scratch(static_cast<size_t>(part.rows * part.cols) * sizeof(int32_t));
    }
    auto* sums =
        in_place ? reinterpret_cast<int32_t*>(window.data) : static_cast<int32_t*>(sums_.data());
    const auto* a = reinterpret_cast<const uint8_t*>(a_.data) + part.offset[kA] +
                    part.row * loop_.row_stride[kA];
    in_arena(call_.progress.threads(), [&] {
        kernel->run(a, b, sums);
        correct(part, a, sums);
        finish(part, sums);
    });
    return Outcome::kDone;
}

// A zero point of b, or a bias for each element, is more than the same addend for every row.
void DotProductMatmul::open_tiles() {
    if (!packed_ || zero_b_ != 0 || !suits_tiles(n_, k_)) return;
    if (bias_.data != nullptr) {
        for (unsigned axis = 0; axis + 1 < bias_.rank; ++axis)
            if (bias_.dims[axis] != 1 && bias_.strides[axis] != 0) return;
    }
    tiles_ = weights_.tiles(tile_weights_bytes(n_, 1, k_));
}

// Rows that may be read as far as tiles do.
const uint8_t* DotProductMatmul::tile_input(const Part& part, TileProduct& product) {
    const auto* a = reinterpret_cast<const uint8_t*>(a_.data) + part.offset[kA] +
                    part.row * loop_.row_stride[kA];
    const int64_t own = (part.rows - 1) * product.pixel_step + k_;
    if (product.input_bytes() <= own) return a;
    const int64_t step = product.pixel_step;
    product.pixel_step = k_;
    a_part_ = {};
    a_part_ = Scratch(static_cast<size_t>(product.input_bytes()));
    auto* to = static_cast<uint8_t*>(a_part_.data());
    for (int64_t row = 0; row < part.rows; ++row) std::copy_n(a + row * step, k_, to + row * k_);
    return to;
}

Outcome DotProductMatmul::run_on_tiles(const Part& part) {
    if (corrections_.empty()) {
        const Outcome outcome = column_sums(part);
        if (outcome != Outcome::kDone) return outcome;
        addends_ = corrections_;
        const auto* bias = reinterpret_cast<const int32_t*>(bias_.data);
        for (int64_t n = 0; bias != nullptr && n < n_; ++n)
            addends_[n] = add(addends_[n], bias[n * bias_.strides[bias_.rank - 1]]);
    }
    constexpr int64_t kOneLine[] = {0};
    TileProduct product{part.rows, n_, k_, part.rows == 1 ? k_ : loop_.row_stride[kA], kOneLine};
    const View window = part_view(y_, kY, part);
    const int64_t element = requantiser_.makes_bytes() ? 1 : sizeof(int32_t);
    const bool in_place = window.strides[1] == 1 && (part.rows == 1 || window.strides[0] >= 0);
    View to = window;
    if (!in_place) {
        bytes_ = {};
        bytes_ = Scratch(static_cast<size_t>(part.rows * n_ * element));
        to.strides = {n_, 1};
        to.data = bytes_.bytes();
    }
    std::vector<int64_t> places(static_cast<size_t>(part.rows));
    for (int64_t row = 0; row < part.rows; ++row)
        places[row] = part.rows == 1 ? 0 : row * to.strides[0] * element;
    const bool plain =
        !requantiser_.makes_bytes() && part.rows > 1 && to.strides[0] > 0 &&
        std::all_of(addends_.begin(), addends_.end(), [](int32_t a) { return a == 0; });
    in_arena(call_.progress.threads(), [&] {
        const uint8_t* a = tile_input(part, product);
        run_tiles(
            product, call_.progress.threads(), a, tiles_,
            {requantiser_.scales(), addends_.data(), requantiser_.rule(), requantiser_.activation(),
             to.data, places.data(), plain ? to.strides[0] * element : 0});
        if (in_place) return;
        if (requantiser_.makes_bytes()) return copy_bytes(to, window, 0);
        store_integers(to, window);
    });
    return Outcome::kDone;
}

std::optional<Outcome> DotProductMatmul::run() {
    Outcome outcome = open_a();
    if (outcome == Outcome::kDone) outcome = open_b();
    if (outcome != Outcome::kDone) return outcome;
    const Operand& bias = call_.operands[ENPU_MATMUL_OPERAND_BIAS];
    if (bias) bias_ = view_of(bias);
    loop_ = make_batches({a_, b_, y_, bias_, View{}});
    open_tiles();
    const int64_t m = loop_.rows;
    // A packed b has a layout that is not cut along its columns.
    const int64_t cols = packed_ ? n_ : even_part(n_, std::max<int64_t>(kTileWork / k_, 1));
    const int64_t rows = even_part(m, std::max<int64_t>(kTileWork / (k_ * cols), 1));
    bool first = true;
    for (int64_t batch = 0; batch < loop_.batches.count; ++batch) {
        const auto offset = block_at(loop_.batches, batch, 1).offset;
        for (int64_t col = 0; col < n_; col += cols) {
            if (!packed_ || batch == 0) corrections_.clear();
            for (int64_t row = 0; row < m; row += rows) {
                if (!std::exchange(first, false) && !call_.progress.proceed())
                    return Outcome::kStopped;
                const Part part{row, std::min(rows, m - row), col, std::min(cols, n_ - col),
                                offset};
                outcome = tiles_ != nullptr ? run_on_tiles(part) : run_part(part);
                if (no_kernel_) return std::nullopt;
                if (outcome != Outcome::kDone) return outcome;
            }
        }
    }
    return Outcome::kDone;
}

}  // namespace

std::optional<Outcome> matmul_dot_products(const Call& call) {
    if (!has_integer_dot_products()) return std::nullopt;
    const enpu_tensor& a = call.packet.operands[kOperandA];
    const enpu_tensor& y = call.packet.operands[kOperandY];
    const int64_t k = a.dims[a.rank - 1], n = y.dims[y.rank - 1];
    const bool packed = call.packet.operands[kOperandB].format == ENPU_FORMAT_PACKED;
    // Too large to be stopped in time.
    if (k > kTileWork || (packed && k * n > kTileWork)) return std::nullopt;
    return DotProductMatmul(call).run();
}

}  // namespace enpu::ops
