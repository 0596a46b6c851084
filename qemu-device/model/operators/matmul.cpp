// SPDX-License-Identifier: MIT
// MATMUL: operands, batches, and the float product.
#include "matmul.h"

#include <array>
#include <utility>

#include "conv2d.h"
#include "element.h"
#include "gemm.h"
#include "packed.h"
#include "parallel.h"

namespace enpu::ops {
namespace {

float* floats(const View& view, int64_t offset) {
    return reinterpret_cast<float*>(view.data) + offset;
}

bool fits_gemm(const View& v) {
    const unsigned r = v.rank;
    return v.dtype == ENPU_DTYPE_F32 &&
           is_gemm_matrix(v.dims[r - 2], v.dims[r - 1], v.strides[r - 2], v.strides[r - 1]);
}

// A dense view of `from` that keeps repeated axes repeated.
View dense_like(const View& from, int64_t& count) {
    View view = from;
    view.dtype = ENPU_DTYPE_F32;
    count = 1;
    for (unsigned axis = from.rank; axis-- > 0;) {
        const bool repeated = axis + 2 < from.rank && from.strides[axis] == 0;
        view.strides[axis] = repeated ? 0 : count;
        if (!repeated) count *= from.dims[axis];
    }
    return view;
}

// The same with one index on the repeated axes: what has to be copied.
View without_repeats(View view, const View& dense) {
    for (unsigned axis = 0; axis + 2 < view.rank; ++axis) {
        if (dense.strides[axis] == 0) view.dims[axis] = 1;
    }
    return view;
}

}  // namespace

Outcome open_matrix(Progress& progress, const View& from, int32_t zero_point,
                    MatrixOperand& matrix) {
    matrix.view = from;
    if (zero_point == 0 && fits_gemm(from)) return Outcome::kDone;
    int64_t count = 0;
    matrix.view = dense_like(from, count);
    matrix.copy = scratch_floats(count);
    matrix.view.data = matrix.copy.bytes();
    return convert_tiled(progress, without_repeats(from, matrix.view),
                         without_repeats(matrix.view, matrix.view), zero_point);
}

namespace {

// Bytes of f32 behind the header of a packed b; 0 when they follow in their own dtype, nothing when the layout
// is none of a matrix.
std::optional<uint64_t> float_bytes(const PackedHeader& header, const View& b) {
    if (begins_plain(header)) return 0;
    if (header.layout == static_cast<uint32_t>(PackedLayout::kMatrix))
        return static_cast<uint64_t>(element_count(b)) * sizeof(float);
    if (header.layout != static_cast<uint32_t>(PackedLayout::kBlocked)) return std::nullopt;
    const auto desc = block_desc(header.block, {b.dims[0], b.dims[1]});
    return desc ? std::optional<uint64_t>(desc->get_size()) : std::nullopt;
}

}  // namespace

Outcome view_of_b(const Call& call, View& view, bool& has_zero_point, uint32_t& blocked) {
    const Operand& b = call.operands[ENPU_MATMUL_OPERAND_B];
    view = view_of(b);
    has_zero_point = true;
    blocked = 0;
    if (b.desc->format == ENPU_FORMAT_PLAIN) return Outcome::kDone;
    const auto header = read_header(b, ENPU_PACK_KIND_MATMUL, 1);
    const auto bytes = header ? float_bytes(*header, view) : std::nullopt;
    if (!bytes || *bytes > b.desc->bytes - ENPU_PACKED_HEADER_BYTES) {
        call.progress.detail(ENPU_MATMUL_OPERAND_B, header ? header->layout : 0);
        return Outcome::kBadOperand;
    }
    if (header->layout == static_cast<uint32_t>(PackedLayout::kBlocked)) blocked = header->block;
    const unsigned rank = call.operands[ENPU_MATMUL_OPERAND_A].desc->rank;
    const View dense = view;  // [K, N]; a packed matrix serves all batches
    view.rank = rank;
    for (unsigned axis = 0; axis < rank; ++axis) {
        const bool batch = axis + 2 < rank;
        view.dims[axis] = batch ? call.operands[ENPU_MATMUL_OPERAND_A].desc->dims[axis]
                                : dense.dims[axis + 2 - rank];
        view.strides[axis] = 0;
    }
    view.strides[rank - 2] = dense.dims[1];
    view.strides[rank - 1] = 1;
    view.data += ENPU_PACKED_HEADER_BYTES;
    if (*bytes > 0) {
        view.dtype = ENPU_DTYPE_F32;
        has_zero_point = false;
    }
    return Outcome::kDone;
}

namespace {

// The axes before the last `kept` ones of a, as a loop over all streams. b does not move along
// rows.
Loop outer_axes(const View (&views)[kStreams], unsigned kept) {
    const View& a = views[kA];
    const unsigned rows = a.rank - 2;
    Loop loop;
    loop.rank = a.rank - kept;
    loop.streams = kStreams;
    for (unsigned axis = 0; axis < loop.rank; ++axis) {
        loop.dims[axis] = a.dims[axis];
        loop.count *= a.dims[axis];
        for (unsigned k = 0; k < kStreams; ++k) {
            loop.strides[k][axis] = k == kB && axis == rows ? 0 : views[k].strides[axis];
        }
    }
    merge_axes(loop);
    return loop;
}

}  // namespace

BatchLoop make_batches(const View (&views)[kStreams]) {
    const View& a = views[kA];
    const View& y = views[kY];
    // First with batches merged into rows: the last axis is rows if b is the same along it and the
    // merged matrices are ones for gemm.
    BatchLoop merged{outer_axes(views, 1), 1, {}};
    Loop& loop = merged.batches;
    const unsigned last = loop.rank - 1;
    merged.rows = loop.dims[last];
    for (unsigned k = 0; k < kStreams; ++k) merged.row_stride[k] = loop.strides[k][last];
    const bool a_fits = is_gemm_matrix(merged.rows, a.dims[a.rank - 1], merged.row_stride[kA],
                                       a.strides[a.rank - 1]);
    const bool y_fits = merged.rows == 1 || merged.row_stride[kY] >= y.dims[y.rank - 1];
    if (loop.strides[kB][last] == 0 && a_fits && y_fits) {
        loop.count /= merged.rows;
        loop.dims[last] = 1;
        return merged;
    }
    BatchLoop plain{outer_axes(views, 2), a.dims[a.rank - 2], {}};
    for (unsigned k = 0; k < kStreams; ++k) {
        plain.row_stride[k] = k == kB ? 0 : views[k].rank == 0 ? 0 : views[k].strides[a.rank - 2];
    }
    return plain;
}

namespace {

class FloatMatmul {
  public:
    explicit FloatMatmul(const Call& call) : call_(call) {}
    Outcome run();

  private:
    struct Part {  // of one batch: rows and columns of y
        int64_t row, rows, col, cols;
        std::array<int64_t, kMaxStreams> offset;  // of the batch
    };
    Outcome open();
    void open_bias();
    Outcome run_batches();
    void run_part(const Part& part);
    View part_view(const View& view, Stream stream, const Part& part) const;

    const Call& call_;
    View bias_, residual_;
    MatrixOperand a_, b_, y_;
    Activation act_;
    float alpha_ = 1;
    bool row_bias_ = false;  // bias_ is one contiguous row for all rows
    bool y_copied_ = false;
    Scratch bias_row_;
    BatchLoop loop_{};
    uint32_t blocked_ = 0;  // b is in the block layout of that number
    int64_t m_ = 0, n_ = 0, k_ = 0;
};

Outcome FloatMatmul::open() {
    const auto& p = call_.packet.params.matmul;
    act_ = {p.act, p.alpha, p.beta};
    alpha_ = p.scale == 0 ? 1 : p.scale;
    const View a = view_of(call_.operands[ENPU_MATMUL_OPERAND_A]);
    View b;
    bool unused = false;
    Outcome outcome = view_of_b(call_, b, unused, blocked_);
    if (outcome == Outcome::kDone) outcome = open_matrix(call_.progress, a, 0, a_);
    b_.view = b;
    if (outcome == Outcome::kDone && blocked_ == 0) outcome = open_matrix(call_.progress, b, 0, b_);
    if (outcome != Outcome::kDone) return outcome;
    k_ = a.dims[a.rank - 1];
    n_ = b.dims[b.rank - 1];

    y_.view = view_of(call_.operands[ENPU_MATMUL_OPERAND_Y]);
    View& y = y_.view;
    const bool rows_dense = n_ == 1 || y.strides[y.rank - 1] == 1;
    const bool steps = y.dims[y.rank - 2] == 1 || y.strides[y.rank - 2] >= n_;
    if (y.dtype != ENPU_DTYPE_F32 || !rows_dense || !steps) {
        y_.copy = scratch_floats(element_count(y));
        y = dense_view(y_.copy.floats(), {y.dims.data(), y.rank});
        y_copied_ = true;
    }
    return Outcome::kDone;
}

// A bias that is one row of numbers is left to gemm; any other is put into y first, like the
// residual.
void FloatMatmul::open_bias() {
    const Operand& residual = call_.operands[ENPU_MATMUL_OPERAND_RESIDUAL];
    if (residual) residual_ = view_of(residual);
    const Operand& bias = call_.operands[ENPU_MATMUL_OPERAND_BIAS];
    if (!bias) return;
    bias_ = view_of(bias);
    for (unsigned axis = 0; axis + 1 < bias_.rank; ++axis) {
        if (bias_.dims[axis] != 1 && bias_.strides[axis] != 0) return;
    }
    if (alpha_ != 1.0f) return;
    View row = bias_;
    for (unsigned axis = 0; axis + 1 < row.rank; ++axis) row = slice(row, axis, 0, 1);
    bias_row_ = scratch_floats(n_);
    convert(row, dense_view(bias_row_.floats(), {row.dims.data(), row.rank}));
    row_bias_ = true;
    bias_ = {};
}

View FloatMatmul::part_view(const View& view, Stream stream, const Part& part) const {
    const auto size = static_cast<int64_t>(
        with_dtype(view.dtype, [](auto tag) { return sizeof(typename decltype(tag)::Type); }));
    View result;
    result.dtype = view.dtype;
    result.rank = 2;
    result.dims = {part.rows, part.cols};
    result.strides = {loop_.row_stride[stream], view.strides[view.rank - 1]};
    result.data = view.data + size * (part.offset[stream] + part.row * result.strides[0] +
                                      part.col * result.strides[1]);
    return result;
}

void FloatMatmul::run_part(const Part& part) {
    const View y = part_view(y_.view, kY, part);
    bool filled = false;
    for (const Stream stream : {kBias, kResidual}) {
        const View& from = stream == kBias ? bias_ : residual_;
        if (from.data == nullptr) continue;
        const View values = part_view(from, stream, part);
        if (filled) {
            accumulate(values, y);
        } else if (values.data != y.data) {
            convert(values, y);
        }
        filled = true;
    }
    const View& b = b_.view;
    GemmSpec spec{};
    spec.m = part.rows;
    spec.n = part.cols;
    spec.k = k_;
    spec.a_m = loop_.row_stride[kA];
    spec.a_k = a_.view.strides[a_.view.rank - 1];
    spec.b_k = b.strides[b.rank - 2];
    spec.b_n = b.strides[b.rank - 1];
    spec.b_block = blocked_;
    spec.y_m = part.rows == 1 ? part.cols : loop_.row_stride[kY];
    spec.bias = row_bias_;
    spec.sum = filled;
    spec.threads = call_.progress.threads();
    spec.alpha = std::bit_cast<uint32_t>(alpha_);
    if (can_fuse(act_)) spec.act = key_of(act_);
    gemm(spec, floats(a_.view, part.offset[kA] + part.row * spec.a_m),
         floats(b, part.offset[kB] + part.col * spec.b_n),
         row_bias_ ? bias_row_.floats() + part.col : nullptr, reinterpret_cast<float*>(y.data));
    if (can_fuse(act_)) return;
    for (int64_t row = 0; row < part.rows; ++row) {
        activate(act_, reinterpret_cast<float*>(y.data) + row * y.strides[0], part.cols);
    }
}

// Tiles: several small batches, or rows (and columns) of a large one.
Outcome FloatMatmul::run_batches() {
    // What is written is work too. A block layout is not cut along its columns.
    const int64_t per_output = k_ + 8;
    const int64_t cols =
        blocked_ ? n_ : even_part(n_, std::max<int64_t>(kTileWork / per_output, 1));
    const int64_t rows = even_part(m_, std::max<int64_t>(kTileWork / (per_output * cols), 1));
    const int64_t batches = std::max<int64_t>(kTileWork / (m_ * n_ * per_output + kCallWork), 1);
    const bool whole = rows == m_ && cols == n_;
    const unsigned threads = call_.progress.threads();
    const auto offset = [&](int64_t batch) { return block_at(loop_.batches, batch, 1).offset; };
    bool first = true;
    const auto proceed = [&] { return std::exchange(first, false) || call_.progress.proceed(); };
    for (int64_t batch = 0; batch < loop_.batches.count; batch += whole ? batches : 1) {
        if (whole) {
            if (!proceed()) return Outcome::kStopped;
            const int64_t end = std::min(batch + batches, loop_.batches.count);
            in_arena(threads, [&] {
                parallel_each(batch, end, [&](int64_t i) { run_part({0, m_, 0, n_, offset(i)}); });
            });
            continue;
        }
        for (int64_t row = 0; row < m_; row += rows) {
            for (int64_t col = 0; col < n_; col += cols) {
                if (!proceed()) return Outcome::kStopped;
                in_arena(threads, [&] {
                    run_part({row, std::min(rows, m_ - row), col, std::min(cols, n_ - col),
                              offset(batch)});
                });
            }
        }
    }
    return Outcome::kDone;
}

Outcome FloatMatmul::run() {
    Outcome outcome = open();
    if (outcome != Outcome::kDone) return outcome;
    in_arena(call_.progress.threads(), [&] { open_bias(); });
    loop_ = make_batches({a_.view, b_.view, y_.view, bias_, residual_});
    m_ = loop_.rows;
    outcome = run_batches();
    if (outcome != Outcome::kDone || !y_copied_) return outcome;
    return convert_tiled(call_.progress, y_.view, view_of(call_.operands[ENPU_MATMUL_OPERAND_Y]));
}

}  // namespace

Outcome matmul_float(const Call& call) {
    return FloatMatmul(call).run();
}

Outcome run_matmul(const Call& call) {
    const bool is_float_product = is_float(call.packet.operands[ENPU_MATMUL_OPERAND_A].dtype);
    return is_float_product ? matmul_float(call) : matmul_integer(call);
}

}  // namespace enpu::ops
