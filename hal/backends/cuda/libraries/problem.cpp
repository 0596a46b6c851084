// SPDX-License-Identifier: MIT
#include "problem.h"

#include <algorithm>
#include <cstring>

#include "../plan.h"

namespace enpu::hal::cuda {
namespace {

template <typename Problem>
ShapeKey key_of(const Problem& problem) {
    static_assert(std::has_unique_object_representations_v<Problem> &&
                  sizeof(Problem) <= sizeof(ShapeKey));
    ShapeKey key;
    std::memcpy(key.of.data(), &problem, sizeof(Problem));
    return key;
}

int64_t alignment_of(uint64_t address) {
    return static_cast<int64_t>(std::min<uint64_t>(address & (~address + 1), 256));
}

bool is_float(uint32_t dtype) {
    return dtype == ENPU_DTYPE_F32 || dtype == ENPU_DTYPE_F16 || dtype == ENPU_DTYPE_BF16;
}

// A matrix by its steps, in elements.
struct Steps {
    int64_t rows, columns, row, column;

    Steps transposed() const { return {columns, rows, column, row}; }
    // Whether its rows lie next to each other, and how far its columns are apart then.
    bool by_columns(int64_t* leading) const {
        if (rows != 1 && row != 1) return false;
        if (columns != 1 && column < rows) return false;
        *leading = columns == 1 ? rows : column;
        return true;
    }
};

bool store(const Steps& steps, bool may_transpose, MatmulProblem::Matrix& matrix) {
    int64_t leading = 0;
    const bool plain = steps.by_columns(&leading);
    if (!plain && !(may_transpose && steps.transposed().by_columns(&leading))) return false;
    matrix.rows = plain ? steps.rows : steps.columns;
    matrix.columns = plain ? steps.columns : steps.rows;
    matrix.leading = leading;
    matrix.transposed = !plain;
    return true;
}

Steps steps_of(const MatmulGeometry& g, MatmulStream stream, int64_t rows, int64_t columns) {
    return {rows, columns, g.row[stream], g.col[stream]};
}

// All matrices for an output whose rows (swap: whose columns) lie next to each other.
bool arrange(const MatmulGeometry& g, bool swap, MatmulProblem& p) {
    Steps a = steps_of(g, kMatmulA, g.m, g.k), b = steps_of(g, kMatmulB, g.k, g.n);
    Steps d = steps_of(g, kMatmulY, g.m, g.n), c = steps_of(g, kMatmulResidual, g.m, g.n);
    Steps bias = steps_of(g, kMatmulBias, g.m, g.n);
    unsigned first = kMatmulA, second = kMatmulB;
    if (swap) {  // transposed: D' = B' A'
        std::swap(a, b);
        std::swap(first, second);
        for (Steps* each : {&a, &b, &c, &d, &bias}) *each = each->transposed();
    }
    if (!store(a, true, p.a) || !store(b, true, p.b) || !store(d, false, p.d)) return false;
    if (p.residual && !store(c, false, p.c)) return false;
    if (p.bias && ((bias.rows != 1 && bias.row != 1) || (bias.columns != 1 && bias.column != 0)))
        return false;
    const auto batch_stride = [&](unsigned stream) { return g.batches.strides[stream][0]; };
    p.a.batch_stride = batch_stride(first);
    p.b.batch_stride = batch_stride(second);
    p.d.batch_stride = batch_stride(kMatmulY);
    if (p.residual) p.c.batch_stride = batch_stride(kMatmulResidual);
    if (!p.residual) p.c = p.d;
    return !p.bias || p.batch == 1 || batch_stride(kMatmulBias) == 0;
}

}  // namespace

ShapeKey MatmulProblem::key() const {
    return key_of(*this);
}
ShapeKey ConvProblem::key() const {
    return key_of(*this);
}

const char* matmul_problem(const enpu_operator_packet& packet, MatmulProblem& p,
                           LibraryCall& call) {
    const auto& params = packet.params.matmul;
    const enpu_tensor* t = packet.operands;
    const enpu_tensor &bias = t[ENPU_MATMUL_OPERAND_BIAS], &y = t[ENPU_MATMUL_OPERAND_Y];
    const enpu_tensor& residual = t[ENPU_MATMUL_OPERAND_RESIDUAL];
    p.dtype = t[ENPU_MATMUL_OPERAND_A].dtype;
    p.out_dtype = y.dtype;
    if (!is_float(t[ENPU_MATMUL_OPERAND_A].dtype)) return "integers: the sums must be exact";
    if (params.act != ENPU_UNARY_IDENTITY && params.act != ENPU_UNARY_RELU)
        return "it has no such activation";
    p.relu = params.act == ENPU_UNARY_RELU;
    p.bias = bias.dtype != ENPU_DTYPE_NONE;
    p.residual = residual.dtype != ENPU_DTYPE_NONE;
    if (p.bias && bias.dtype != y.dtype) return "the bias is not of the output's type";
    const MatmulGeometry geometry = matmul_geometry(packet);
    if (geometry.batches.rank > 1) return "batches that one stride does not reach";
    p.batch = geometry.batches.rank == 1 ? geometry.batches.dims[0] : 1;
    const bool swap = arrange(geometry, true, p);
    if (!swap && !arrange(geometry, false, p)) return "a layout that it does not have";
    // What works in place must be the same matrix.
    if (p.residual && residual.addr == y.addr && p.c.leading != p.d.leading)
        return "a residual in place with other strides";
    call = {t[ENPU_MATMUL_OPERAND_A].addr,
            t[ENPU_MATMUL_OPERAND_B].addr,
            bias.addr,
            residual.addr,
            y.addr,
            params.scale == 0 ? 1.0f : params.scale};
    if (swap) std::swap(call.x, call.weights);
    p.a.alignment = alignment_of(call.x);
    p.b.alignment = alignment_of(call.weights);
    p.d.alignment = alignment_of(y.addr);
    p.c.alignment = p.residual ? alignment_of(residual.addr) : p.d.alignment;
    if (p.bias && alignment_of(bias.addr) < 16) return "the bias is not aligned to 16 bytes";
    return nullptr;
}

namespace {

enum class Packed { kNo, kChannelsFirst, kChannelsLast };

// Whether a tensor lies densely in one of the two orders; its strides are then written out, also
// those of dims of 1.
Packed packing(const enpu_tensor& t, int64_t* strides) {
    const int64_t c = t.dims[1], h = t.dims[2], w = t.dims[3];
    const int64_t orders[2][4] = {{c * h * w, h * w, w, 1}, {h * w * c, 1, w * c, c}};
    for (unsigned order = 0; order < 2; ++order) {
        bool fits = true;
        for (unsigned axis = 0; axis < 4; ++axis)
            fits &= t.dims[axis] == 1 || t.strides[axis] == orders[order][axis];
        if (!fits) continue;
        std::copy_n(orders[order], 4, strides);
        return order == 0 ? Packed::kChannelsFirst : Packed::kChannelsLast;
    }
    return Packed::kNo;
}

bool fits_int(std::initializer_list<uint64_t> factors) {
    uint64_t product = 1;
    for (uint64_t factor : factors)
        if (__builtin_mul_overflow(product, factor, &product) || product > INT32_MAX) return false;
    return true;
}

}  // namespace

const char* conv_problem(const enpu_operator_packet& packet, ConvProblem& p, LibraryCall& call) {
    const auto& params = packet.params.conv2d;
    const enpu_tensor* t = packet.operands;
    const enpu_tensor &x = t[ENPU_CONV2D_OPERAND_X], &w = t[ENPU_CONV2D_OPERAND_WEIGHTS];
    const enpu_tensor &bias = t[ENPU_CONV2D_OPERAND_BIAS], &y = t[ENPU_CONV2D_OPERAND_Y];
    const enpu_tensor& residual = t[ENPU_CONV2D_OPERAND_RESIDUAL];
    p.dtype = x.dtype;
    p.bias = bias.dtype != ENPU_DTYPE_NONE;
    p.residual = residual.dtype != ENPU_DTYPE_NONE;
    p.relu = params.act == ENPU_UNARY_RELU;
    p.groups = params.groups;
    if (!is_float(x.dtype)) return "integers: the sums must be exact";
    if (y.dtype != x.dtype || (p.bias && bias.dtype != x.dtype)) return "types differ";
    if (params.act != ENPU_UNARY_IDENTITY && !p.relu) return "it has no such activation";
    if ((p.relu || p.residual) && !p.bias) return "without a bias nothing is fused";
    if (p.residual && residual.addr == y.addr) return "a residual in place";
    if (!fits_int({x.dims[0], x.dims[1], x.dims[2], x.dims[3]}) ||
        !fits_int({y.dims[0], y.dims[1], y.dims[2], y.dims[3]}) ||
        !fits_int({w.dims[0], w.dims[1], w.dims[2], w.dims[3]}))
        return "more elements than an int counts";
    int64_t w_strides[4], residual_strides[4];
    const Packed x_order = packing(x, p.x_strides), y_order = packing(y, p.y_strides);
    const Packed w_order = packing(w, w_strides);
    if (x_order == Packed::kNo || y_order == Packed::kNo || w_order == Packed::kNo)
        return "a layout that is not dense";
    p.channels_last_weights = w_order == Packed::kChannelsLast;
    if (p.channels_last_weights && (x_order != w_order || y_order != w_order))
        return "weights with channels last and others not";
    if (p.residual && (packing(residual, residual_strides) != y_order)) return "layouts differ";
    if (p.bias && bias.dims[0] != 1 && bias.strides[0] != 1) return "a bias with gaps";
    for (unsigned i = 0; i < 2; ++i) {
        p.pad[i] = params.pad[i];
        p.stride[i] = params.stride[i];
        p.dilation[i] = params.dilation[i];
        // It knows one padding for both sides: what it makes of that must be this output.
        const int64_t window = p.dilation[i] * (int64_t{w.dims[2 + i]} - 1) + 1;
        const int64_t room = int64_t{x.dims[2 + i]} + 2 * p.pad[i] - window;
        if (room < 0 || room / p.stride[i] + 1 != y.dims[2 + i]) return "uneven padding";
    }
    std::copy_n(x.dims, 4, p.x);
    std::copy_n(w.dims, 4, p.w);
    std::copy_n(y.dims, 4, p.y);
    call = {x.addr, w.addr, bias.addr, residual.addr, y.addr, 1};
    return nullptr;
}

}  // namespace enpu::hal::cuda
