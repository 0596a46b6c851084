// SPDX-License-Identifier: MIT
// Operators along axes: softmax, norms, reductions, arg max.
#include "checker.h"

namespace enpu::rules {
namespace {

using Packet = enpu_operator_packet;

Violation check_float_map(const Packet& p, unsigned y) {
    if (Violation v = check_dtype(p, 0, kFloats, "F32, F16 or BF16")) return v;
    if (Violation v = check_same_dtype(p, y, 0, "that of the input")) return v;
    return check_same_dims(p, y, 0, "as the input");
}

Violation check_flag(uint32_t value, const char* field) {
    return value <= 1 ? kOk : fail(Rule::kParameter, kPacketItself, value, field, "0 or 1");
}

// Dims of x, but 1 on the axes of the mask.
Violation check_reduced_dims(const Packet& p, unsigned y, uint32_t axes) {
    const enpu_tensor& x = p.operands[0];
    if (Violation v = check_rank(p, y, x.rank, "that of the input =")) return v;
    for (unsigned axis = 0; axis < x.rank; ++axis) {
        const bool reduced = (axes & bit(axis)) != 0;
        if (Violation v = check_dim(p, y, axis, reduced ? 1 : x.dims[axis],
                                    reduced ? "on a reduced axis" : "as the input =")) {
            return v;
        }
    }
    return kOk;
}

// One of scale, bias, mean, variance of NORM: [C], or the dims of x for the norms over trailing
// dims.
Violation check_norm_operand(const Packet& p, unsigned i, bool per_channel) {
    if (!present(p.operands[i])) return kOk;
    if (p.operands[i].dtype != ENPU_DTYPE_F32) {
        if (Violation v = check_same_dtype(p, i, 0, "F32 or that of the input")) return v;
    }
    if (!per_channel) return check_same_dims(p, i, 0, "as the input (broadcast by stride 0)");
    return check_vector(p, i, p.operands[0].dims[1], false, "C of the input =");
}

Violation check_statistics(const Packet& p, bool wanted) {
    for (unsigned i : {ENPU_NORM_OPERAND_MEAN, ENPU_NORM_OPERAND_VARIANCE}) {
        if (wanted && !present(p.operands[i]))
            return fail(Rule::kOperandMissing, i, 0, "dtype", "given for BATCH");
        if (!wanted && present(p.operands[i])) {
            return fail(Rule::kDtype, i, p.operands[i].dtype, "dtype",
                        "NONE unless the kind is BATCH");
        }
    }
    return kOk;
}

}  // namespace

Violation check_softmax(const Packet& p) {
    if (Violation v = check_axis(p.params.softmax.axis, p.operands[0])) return v;
    if (Violation v = check_flag(p.params.softmax.log, "log")) return v;
    return check_float_map(p, 1);
}

Violation check_norm(const Packet& p) {
    const auto& n = p.params.norm;
    const enpu_tensor& x = p.operands[0];
    if (Violation v = check_below(n.kind, ENPU_NORM_GROUP + 1, "kind", "below")) return v;
    if (Violation v = check_activation(n.act, n.alpha, n.beta)) return v;
    if (!std::isfinite(n.epsilon) || n.epsilon < 0) {
        return fail_float(Rule::kParameter, kPacketItself, n.epsilon, "epsilon",
                          "finite and not negative");
    }
    if (Violation v = check_float_map(p, ENPU_NORM_OPERAND_Y)) return v;
    const bool trailing = n.kind == ENPU_NORM_LAYER || n.kind == ENPU_NORM_RMS;
    if (trailing) {
        if (Violation v = check_axis(n.axis, x)) return v;
    } else if (n.axis != 0) {
        return fail(Rule::kParameter, kPacketItself, n.axis, "axis",
                    "0 unless the kind is LAYER or RMS");
    }
    if (!trailing && x.rank < 2) return fail(Rule::kRank, 0, x.rank, "rank", "at least 2");
    if (n.kind == ENPU_NORM_GROUP) {
        if (n.groups == 0) return fail(Rule::kParameter, kPacketItself, 0, "groups", "at least 1");
        if (x.dims[1] % n.groups != 0) {
            return fail_expected(Rule::kDims, 0, x.dims[1], dim_field(1),
                                 "a multiple of groups =", n.groups);
        }
    } else if (n.groups > 1) {
        return fail(Rule::kParameter, kPacketItself, n.groups, "groups",
                    "0 or 1 unless the kind is GROUP");
    }
    if (Violation v = check_statistics(p, n.kind == ENPU_NORM_BATCH)) return v;
    for (unsigned i = ENPU_NORM_OPERAND_SCALE; i <= ENPU_NORM_OPERAND_VARIANCE; ++i) {
        if (Violation v = check_norm_operand(p, i, !trailing)) return v;
    }
    return kOk;
}

Violation check_reduce(const Packet& p) {
    const auto& r = p.params.reduce;
    const enpu_tensor& x = p.operands[0];
    if (Violation v = check_below(r.function, ENPU_REDUCE_LOG_SUM_EXP + 1, "function", "below"))
        return v;
    if (Violation v = check_below(r.axes, uint64_t{1} << x.rank, "axes",
                                  "a mask of axes below the rank, so below"))
        return v;
    if (x.dtype == ENPU_DTYPE_BOOL && r.function != ENPU_REDUCE_MAX &&
        r.function != ENPU_REDUCE_MIN) {
        return fail(Rule::kDtype, 0, x.dtype, "dtype",
                    "a number unless the function is MAX or MIN");
    }
    if (Violation v = check_same_dtype(p, 1, 0, "that of the input")) return v;
    return check_reduced_dims(p, 1, r.axes);
}

Violation check_arg(const Packet& p) {
    const auto& a = p.params.arg;
    if (Violation v = check_axis(a.axis, p.operands[0])) return v;
    if (Violation v = check_flag(a.smallest, "smallest")) return v;
    if (Violation v = check_flag(a.last, "last")) return v;
    if (Violation v = check_dtype(p, 0, kFloats | kIntegers, "a number")) return v;
    if (Violation v = check_dtype(p, 1, kIndices, "I32 or I64")) return v;
    return check_reduced_dims(p, 1, bit(a.axis));
}

}  // namespace enpu::rules
