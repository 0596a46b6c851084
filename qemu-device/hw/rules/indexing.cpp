// SPDX-License-Identifier: MIT
// Operators that compute where to read: pad, gather, resize.
#include "checker.h"

namespace enpu::rules {
namespace {

using Packet = enpu_operator_packet;

Violation check_finite(const float* values, unsigned count, bool positive, const char* field) {
    for (unsigned i = 0; i < count; ++i) {
        if (!std::isfinite(values[i]) || (positive && values[i] < 0)) {
            return fail_float(Rule::kParameter, kPacketItself, values[i], field,
                              positive ? "finite and not negative" : "finite");
        }
    }
    return kOk;
}

Violation check_take_dims(const Packet& p, unsigned axis) {
    const enpu_tensor& x = p.operands[ENPU_GATHER_OPERAND_X];
    const enpu_tensor& indices = p.operands[ENPU_GATHER_OPERAND_INDICES];
    constexpr unsigned kY = ENPU_GATHER_OPERAND_Y;
    if (Violation v =
            check_rank(p, kY, x.rank - 1u + indices.rank, "rank of x - 1 + rank of indices ="))
        return v;
    for (unsigned i = 0; i < p.operands[kY].rank; ++i) {
        const bool before = i < axis, inside = !before && i < axis + indices.rank;
        const uint32_t expected = before   ? x.dims[i]
                                  : inside ? indices.dims[i - axis]
                                           : x.dims[i - indices.rank + 1];
        if (Violation v = check_dim(p, kY, i, expected, inside ? "as the indices =" : "as x ="))
            return v;
    }
    return kOk;
}

Violation check_elements_dims(const Packet& p, unsigned axis) {
    const enpu_tensor& x = p.operands[ENPU_GATHER_OPERAND_X];
    constexpr unsigned kIndices_ = ENPU_GATHER_OPERAND_INDICES, kY = ENPU_GATHER_OPERAND_Y;
    if (Violation v = check_rank(p, kIndices_, x.rank, "that of x =")) return v;
    if (Violation v = check_same_dims(p, kY, kIndices_, "as the indices")) return v;
    for (unsigned i = 0; i < x.rank; ++i) {
        const uint32_t dim = p.operands[kIndices_].dims[i];
        if (i != axis && dim > x.dims[i]) {
            return fail_expected(Rule::kDims, kIndices_, dim, dim_field(i),
                                 "at most that of x =", x.dims[i]);
        }
    }
    return kOk;
}

}  // namespace

Violation check_pad(const Packet& p) {
    const auto& pad = p.params.pad;
    const enpu_tensor& x = p.operands[0];
    if (Violation v = check_below(pad.mode, ENPU_PAD_MODE_WRAP + 1, "mode", "below")) return v;
    if (pad.reserved != 0) return fail(Rule::kFlags, kPacketItself, pad.reserved, "reserved", "0");
    static constexpr const char* kBefore[ENPU_MAX_RANK] = {"before[0]", "before[1]", "before[2]",
                                                           "before[3]", "before[4]", "before[5]",
                                                           "before[6]", "before[7]"};
    for (unsigned axis = x.rank; axis < ENPU_MAX_RANK; ++axis) {
        if (pad.before[axis] != 0) {
            return fail(Rule::kParameter, kPacketItself,
                        static_cast<uint64_t>(int64_t{pad.before[axis]}), kBefore[axis],
                        "0, it is past the rank");
        }
    }
    if (Violation v = check_same_dtype(p, 1, 0, "that of the input")) return v;
    return check_rank(p, 1, x.rank, "that of the input =");
}

Violation check_gather(const Packet& p) {
    const auto& g = p.params.gather;
    if (Violation v = check_below(g.mode, ENPU_GATHER_MODE_ELEMENTS + 1, "mode", "below")) return v;
    if (Violation v = check_axis(g.axis, p.operands[ENPU_GATHER_OPERAND_X])) return v;
    if (Violation v = check_dtype(p, ENPU_GATHER_OPERAND_INDICES, kIndices, "I32 or I64")) return v;
    if (Violation v =
            check_same_dtype(p, ENPU_GATHER_OPERAND_Y, ENPU_GATHER_OPERAND_X, "that of x"))
        return v;
    return g.mode == ENPU_GATHER_MODE_TAKE ? check_take_dims(p, g.axis)
                                           : check_elements_dims(p, g.axis);
}

Violation check_resize(const Packet& p) {
    const auto& r = p.params.resize;
    const enpu_tensor& x = p.operands[0];
    if (Violation v = check_below(r.mode, ENPU_RESIZE_MODE_CUBIC + 1, "mode", "below")) return v;
    if (Violation v =
            check_below(r.coord, ENPU_RESIZE_COORD_TF_CROP_AND_RESIZE + 1, "coord", "below"))
        return v;
    if (Violation v = check_below(r.round, ENPU_RESIZE_ROUND_CEIL + 1, "round", "below")) return v;
    if (Violation v = check_below(r.exclude_outside, 2, "exclude_outside", "below")) return v;
    if (Violation v = check_finite(&r.cubic_a, 1, false, "cubic_a")) return v;
    if (Violation v = check_finite(r.scale, ENPU_MAX_RANK, true, "scale")) return v;
    if (Violation v = check_finite(r.roi_start, 4, false, "roi_start")) return v;
    if (Violation v = check_finite(r.roi_end, 4, false, "roi_end")) return v;
    if (Violation v = check_dtype(p, 0, kFloats | kBytes, "F32, F16, BF16, I8 or U8")) return v;
    if (Violation v = check_same_dtype(p, 1, 0, "that of the input")) return v;
    return check_rank(p, 1, x.rank, "that of the input =");
}

}  // namespace enpu::rules
