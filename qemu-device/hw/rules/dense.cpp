// SPDX-License-Identifier: MIT
// Convolutions, matrix products, pooling and PACK.
#include "checker.h"

namespace enpu::rules {
namespace {

using Packet = enpu_operator_packet;

// Functions that commute with the scale of a quantised output.
bool is_integer_activation(uint32_t act) {
    return act == ENPU_UNARY_IDENTITY || act == ENPU_UNARY_RELU || act == ENPU_UNARY_LEAKY_RELU ||
           act == ENPU_UNARY_CLIP;
}

struct DenseOperands {
    unsigned x, weights, bias, residual, scale, y;
};
constexpr DenseOperands kConv{ENPU_CONV2D_OPERAND_X,     ENPU_CONV2D_OPERAND_WEIGHTS,
                              ENPU_CONV2D_OPERAND_BIAS,  ENPU_CONV2D_OPERAND_RESIDUAL,
                              ENPU_CONV2D_OPERAND_SCALE, ENPU_CONV2D_OPERAND_Y};
constexpr DenseOperands kMatmul{ENPU_MATMUL_OPERAND_A,     ENPU_MATMUL_OPERAND_B,
                                ENPU_MATMUL_OPERAND_BIAS,  ENPU_MATMUL_OPERAND_RESIDUAL,
                                ENPU_MATMUL_OPERAND_SCALE, ENPU_MATMUL_OPERAND_Y};

Violation check_float_bias(const Packet& p, unsigned bias, unsigned x) {
    const enpu_tensor& t = p.operands[bias];
    if (!present(t) || t.dtype == ENPU_DTYPE_F32) return kOk;
    return check_same_dtype(p, bias, x, "F32 or that of the input");
}

Violation check_float_dtypes(const Packet& p, const DenseOperands& o) {
    if (Violation v = check_same_dtype(p, o.weights, o.x, "that of the input")) return v;
    if (Violation v = check_float_bias(p, o.bias, o.x)) return v;
    if (present(p.operands[o.scale])) {
        return fail(Rule::kDtype, o.scale, p.operands[o.scale].dtype, "dtype",
                    "NONE: only an integer product is scaled");
    }
    if (p.operands[o.y].dtype != ENPU_DTYPE_F32) {
        if (Violation v = check_same_dtype(p, o.y, o.x, "F32 or that of the input")) return v;
    }
    if (!present(p.operands[o.residual])) return kOk;
    return check_same_dtype(p, o.residual, o.y, "that of the output");
}

Violation check_integer_dtypes(const Packet& p, const DenseOperands& o, uint32_t act) {
    const enpu_tensor* t = p.operands;
    if (Violation v = check_dtype(p, o.weights, kBytes, "I8 or U8, as the input")) return v;
    if (present(t[o.bias])) {
        if (Violation v = check_dtype(p, o.bias, bit(ENPU_DTYPE_I32), "I32 for an integer product"))
            return v;
    }
    if (present(t[o.residual])) {
        return fail(Rule::kDtype, o.residual, t[o.residual].dtype, "dtype",
                    "NONE for an integer product");
    }
    if (Violation v = check_dtype(p, o.y, kBytes | bit(ENPU_DTYPE_I32),
                                  "I32, I8 or U8 for an integer product"))
        return v;
    const bool raw = t[o.y].dtype == ENPU_DTYPE_I32;
    if (present(t[o.scale])) {
        if (raw)
            return fail(Rule::kDtype, o.scale, t[o.scale].dtype, "dtype", "NONE for an I32 output");
        if (Violation v = check_dtype(p, o.scale, bit(ENPU_DTYPE_F32), "F32")) return v;
    }
    if (raw ? act != ENPU_UNARY_IDENTITY : !is_integer_activation(act)) {
        return fail(Rule::kParameter, kPacketItself, act, "act",
                    raw ? "IDENTITY for an I32 output"
                        : "IDENTITY, RELU, LEAKY_RELU or CLIP for an integer product");
    }
    return kOk;
}

Violation check_dense_dtypes(const Packet& p, const DenseOperands& o, uint32_t act) {
    if (Violation v = check_dtype(p, o.x, kFloats | kBytes, "F32, F16, BF16, I8 or U8")) return v;
    return is_float(p.operands[o.x].dtype) ? check_float_dtypes(p, o)
                                           : check_integer_dtypes(p, o, act);
}

// Parameters that CONV2D and CONV_TRANSPOSE2D have in common; both structs begin alike.
template <class Params>
Violation check_conv_params(const Params& c) {
    for (int i = 0; i < 2; ++i) {
        if (Violation v = check_window(c.stride[i], false, i ? "stride[1]" : "stride[0]")) return v;
        if (Violation v = check_window(c.dilation[i], false, i ? "dilation[1]" : "dilation[0]"))
            return v;
    }
    static constexpr const char* kPads[4] = {"pad[0]", "pad[1]", "pad[2]", "pad[3]"};
    for (int i = 0; i < 4; ++i) {
        if (Violation v = check_window(c.pad[i], true, kPads[i])) return v;
    }
    if (c.groups == 0) return fail(Rule::kParameter, kPacketItself, 0, "groups", "at least 1");
    return check_activation(c.act, c.alpha, c.beta);
}

Violation check_kernel_dims(const Packet& p, unsigned weights) {
    for (unsigned axis = 2; axis < 4; ++axis) {
        const uint32_t dim = p.operands[weights].dims[axis];
        if (dim > kMaxWindow) {
            return fail_expected(Rule::kDims, weights, dim, dim_field(axis), "at most", kMaxWindow);
        }
    }
    return kOk;
}

Violation check_divides(const Packet& p, unsigned operand, unsigned axis, uint32_t groups,
                        const char* must) {
    const uint32_t dim = p.operands[operand].dims[axis];
    return dim % groups == 0
               ? kOk
               : fail_expected(Rule::kDims, operand, dim, dim_field(axis), must, groups);
}

// Spatial axis `i` (0: height, 1: width) of a convolution.
Violation check_conv_output(const Packet& p, unsigned i) {
    const auto& c = p.params.conv2d;
    const enpu_tensor* t = p.operands;
    const uint64_t input = uint64_t{t[ENPU_CONV2D_OPERAND_X].dims[2 + i]} + c.pad[i] + c.pad[2 + i];
    const uint64_t window =
        uint64_t{c.dilation[i]} * (t[ENPU_CONV2D_OPERAND_WEIGHTS].dims[2 + i] - 1) + 1;
    if (window > input) {
        return fail_expected(Rule::kDims, ENPU_CONV2D_OPERAND_WEIGHTS, window,
                             i ? "width with dilation" : "height with dilation",
                             "at most the padded input", input);
    }
    return check_dim(p, ENPU_CONV2D_OPERAND_Y, 2 + i, (input - window) / c.stride[i] + 1,
                     "(input + pads - dilated kernel) / stride + 1 =");
}

Violation check_scale(const Packet& p, unsigned scale, uint64_t channels, const char* must) {
    return present(p.operands[scale]) ? check_vector(p, scale, channels, true, must) : kOk;
}

}  // namespace

Violation check_conv2d(const Packet& p) {
    const auto& c = p.params.conv2d;
    const enpu_tensor* t = p.operands;
    if (Violation v = check_conv_params(c)) return v;
    if (Violation v = check_dense_dtypes(p, kConv, c.act)) return v;
    for (unsigned i : {kConv.x, kConv.weights, kConv.y}) {
        if (Violation v = check_rank(p, i, 4, "")) return v;
    }
    if (Violation v = check_kernel_dims(p, kConv.weights)) return v;
    const uint32_t channels = t[kConv.x].dims[1], outputs = t[kConv.weights].dims[0];
    if (Violation v = check_divides(p, kConv.x, 1, c.groups, "a multiple of groups =")) return v;
    if (Violation v = check_divides(p, kConv.weights, 0, c.groups, "a multiple of groups ="))
        return v;
    if (Violation v = check_dim(p, kConv.weights, 1, channels / c.groups, "C/groups =")) return v;
    if (Violation v = check_dim(p, kConv.y, 0, t[kConv.x].dims[0], "N of the input =")) return v;
    if (Violation v = check_dim(p, kConv.y, 1, outputs, "O of the weights =")) return v;
    for (unsigned i : {0u, 1u}) {
        if (Violation v = check_conv_output(p, i)) return v;
    }
    if (present(t[kConv.bias])) {
        if (Violation v = check_vector(p, kConv.bias, outputs, false, "O of the weights ="))
            return v;
    }
    if (present(t[kConv.residual])) {
        if (Violation v = check_same_dims(p, kConv.residual, kConv.y, "as the output")) return v;
    }
    return check_scale(p, kConv.scale, outputs, "1 or O of the weights =");
}

Violation check_conv_transpose2d(const Packet& p) {
    const auto& c = p.params.conv_transpose2d;
    const enpu_tensor* t = p.operands;
    constexpr unsigned kX = ENPU_CONV_TRANSPOSE2D_OPERAND_X,
                       kW = ENPU_CONV_TRANSPOSE2D_OPERAND_WEIGHTS;
    constexpr unsigned kBias = ENPU_CONV_TRANSPOSE2D_OPERAND_BIAS,
                       kY = ENPU_CONV_TRANSPOSE2D_OPERAND_Y;
    if (Violation v = check_conv_params(c)) return v;
    if (Violation v = check_dtype(p, kX, kFloats, "F32, F16 or BF16")) return v;
    if (Violation v = check_same_dtype(p, kW, kX, "that of the input")) return v;
    if (Violation v = check_float_bias(p, kBias, kX)) return v;
    if (t[kY].dtype != ENPU_DTYPE_F32) {
        if (Violation v = check_same_dtype(p, kY, kX, "F32 or that of the input")) return v;
    }
    for (unsigned i : {kX, kW, kY}) {
        if (Violation v = check_rank(p, i, 4, "")) return v;
    }
    if (Violation v = check_kernel_dims(p, kW)) return v;
    if (Violation v = check_divides(p, kX, 1, c.groups, "a multiple of groups =")) return v;
    if (Violation v = check_dim(p, kW, 0, t[kX].dims[1], "C of the input =")) return v;
    const uint64_t outputs = uint64_t{t[kW].dims[1]} * c.groups;
    if (Violation v = check_dim(p, kY, 0, t[kX].dims[0], "N of the input =")) return v;
    if (Violation v = check_dim(p, kY, 1, outputs, "dims[1] of the weights x groups =")) return v;
    for (unsigned i : {0u, 1u}) {
        const uint64_t full = (uint64_t{t[kX].dims[2 + i]} - 1) * c.stride[i] +
                              uint64_t{c.dilation[i]} * (t[kW].dims[2 + i] - 1) + 1;
        const uint64_t pads = uint64_t{c.pad[i]} + c.pad[2 + i];
        const uint64_t actual = t[kY].dims[2 + i] + pads;  // full … full + output padding
        const uint64_t slack = c.stride[i] > c.dilation[i] ? c.stride[i] : c.dilation[i];
        if (actual < full || actual - full >= slack) {
            return fail_expected(Rule::kDims, kY, t[kY].dims[2 + i], dim_field(2 + i),
                                 "between the output without padding and max(stride, dilation) - 1 "
                                 "more; with the pads that begins at",
                                 full);
        }
    }
    return present(t[kBias]) ? check_vector(p, kBias, outputs, false, "O =") : kOk;
}

Violation check_matmul(const Packet& p) {
    const auto& m = p.params.matmul;
    const enpu_tensor* t = p.operands;
    if (Violation v = check_activation(m.act, m.alpha, m.beta)) return v;
    if (Violation v = check_dense_dtypes(p, kMatmul, m.act)) return v;
    if (Violation v = check_number(m.scale, "scale")) return v;
    if (!is_float(t[kMatmul.x].dtype) && m.scale != 0 && m.scale != 1) {
        return fail_float(Rule::kParameter, kPacketItself, m.scale, "scale",
                          "0 or 1 for an integer product");
    }
    const unsigned rank = t[kMatmul.x].rank;
    if (rank < 2) return fail(Rule::kRank, kMatmul.x, rank, "rank", "at least 2");
    const bool packed = t[kMatmul.weights].format == ENPU_FORMAT_PACKED;
    const unsigned b_rank = packed ? 2 : rank;
    if (Violation v =
            check_rank(p, kMatmul.weights, b_rank, packed ? "for a packed matrix" : "that of a ="))
        return v;
    if (Violation v = check_rank(p, kMatmul.y, rank, "that of a =")) return v;
    for (unsigned axis = 0; axis + 2 < rank; ++axis) {
        const uint32_t batch = t[kMatmul.x].dims[axis];
        if (!packed) {
            if (Violation v = check_dim(p, kMatmul.weights, axis, batch, "the batch of a ="))
                return v;
        }
        if (Violation v = check_dim(p, kMatmul.y, axis, batch, "the batch of a =")) return v;
    }
    const uint32_t columns = t[kMatmul.weights].dims[b_rank - 1];
    if (Violation v =
            check_dim(p, kMatmul.weights, b_rank - 2, t[kMatmul.x].dims[rank - 1], "K of a ="))
        return v;
    if (Violation v = check_dim(p, kMatmul.y, rank - 2, t[kMatmul.x].dims[rank - 2], "M of a ="))
        return v;
    if (Violation v = check_dim(p, kMatmul.y, rank - 1, columns, "N of b =")) return v;
    for (unsigned i : {kMatmul.bias, kMatmul.residual}) {
        if (!present(t[i])) continue;
        if (Violation v = check_same_dims(p, i, kMatmul.y, "as the output (broadcast by stride 0)"))
            return v;
    }
    return check_scale(p, kMatmul.scale, columns, "1 or N of b =");
}

Violation check_pool(const Packet& p) {
    const auto& c = p.params.pool;
    const enpu_tensor* t = p.operands;
    constexpr unsigned kX = ENPU_POOL_OPERAND_X, kY = ENPU_POOL_OPERAND_Y;
    if (Violation v =
            check_below(c.function, ENPU_POOL_AVERAGE_INCLUDE_PAD + 1, "function", "below"))
        return v;
    if (Violation v = check_dtype(p, kX, kFloats | kBytes, "F32, F16, BF16, I8 or U8")) return v;
    if (Violation v = check_same_dtype(p, kY, kX, "that of the input")) return v;
    for (unsigned i : {kX, kY}) {
        if (Violation v = check_rank(p, i, 4, "")) return v;
    }
    if (Violation v = check_dim(p, kY, 0, t[kX].dims[0], "N of the input =")) return v;
    if (Violation v = check_dim(p, kY, 1, t[kX].dims[1], "C of the input =")) return v;
    static constexpr const char* kPads[4] = {"pad[0]", "pad[1]", "pad[2]", "pad[3]"};
    for (unsigned i : {0u, 1u}) {
        if (Violation v = check_window(c.kernel[i], false, i ? "kernel[1]" : "kernel[0]")) return v;
        if (Violation v = check_window(c.stride[i], false, i ? "stride[1]" : "stride[0]")) return v;
        if (Violation v = check_window(c.dilation[i], false, i ? "dilation[1]" : "dilation[0]"))
            return v;
        const uint64_t window = uint64_t{c.dilation[i]} * (c.kernel[i] - 1) + 1;
        for (unsigned side : {i, i + 2}) {
            if (Violation v = check_below(c.pad[side], window, kPads[side],
                                          "smaller than the dilated kernel ="))
                return v;
        }
        const uint64_t input = uint64_t{t[kX].dims[2 + i]} + c.pad[i] + c.pad[2 + i];
        const uint64_t whole = input < window ? 1 : (input - window) / c.stride[i] + 1;
        const uint64_t ceiled =
            input < window ? 1 : (input - window + c.stride[i] - 1) / c.stride[i] + 1;
        const uint32_t output = t[kY].dims[2 + i];
        if (output != whole && (output != ceiled || (ceiled - 1) * c.stride[i] >= input)) {
            return fail_expected(Rule::kDims, kY, output, dim_field(2 + i),
                                 "(input + pads - dilated kernel) / stride + 1, rounded down or "
                                 "up; rounded down it is",
                                 whole);
        }
    }
    return kOk;
}

Violation check_pack(const Packet& p) {
    const auto& k = p.params.pack;
    const enpu_tensor* t = p.operands;
    constexpr unsigned kWeights = ENPU_PACK_OPERAND_WEIGHTS, kPacked = ENPU_PACK_OPERAND_PACKED;
    if (Violation v = check_below(k.kind, ENPU_PACK_KIND_CONV_TRANSPOSE2D + 1, "kind", "below"))
        return v;
    const bool matmul = k.kind == ENPU_PACK_KIND_MATMUL;
    const uint32_t dtypes =
        k.kind == ENPU_PACK_KIND_CONV_TRANSPOSE2D ? kFloats : kFloats | bit(ENPU_DTYPE_I8);
    if (Violation v = check_dtype(p, kWeights, dtypes, "one that the operator takes as weights"))
        return v;
    if (Violation v = check_same_dtype(p, kPacked, kWeights, "that of the weights")) return v;
    if (t[kPacked].format != ENPU_FORMAT_PACKED) {
        return fail(Rule::kFormat, kPacked, t[kPacked].format, "format", "PACKED");
    }
    if (t[kPacked].zero_point != t[kWeights].zero_point) {
        return fail_expected(Rule::kQuantisation, kPacked,
                             static_cast<uint64_t>(int64_t{t[kPacked].zero_point}), "zero_point",
                             "that of the weights",
                             static_cast<uint64_t>(int64_t{t[kWeights].zero_point}));
    }
    if (Violation v = check_rank(p, kWeights, matmul ? 2 : 4, "for this kind")) return v;
    if (Violation v = check_same_dims(p, kPacked, kWeights, "as the weights")) return v;
    if (matmul) {
        return k.groups <= 1 ? kOk
                             : fail(Rule::kParameter, kPacketItself, k.groups, "groups",
                                    "0 or 1 for a matrix");
    }
    if (k.groups == 0) return fail(Rule::kParameter, kPacketItself, 0, "groups", "at least 1");
    if (Violation v = check_kernel_dims(p, kWeights)) return v;
    return check_divides(p, kWeights, 0, k.groups, "a multiple of groups =");
}

}  // namespace enpu::rules
