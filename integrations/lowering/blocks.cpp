// SPDX-License-Identifier: MIT
#include "blocks.h"

#include <algorithm>

#include "shapes.h"

namespace enpu::lowering {

namespace {

// Operands of a model have the rank that they like.
void need_axis(const Dims& dims, size_t axis) {
    if (axis >= dims.size())
        fail("an operand of " + to_string(dims) + " has no axis " + std::to_string(axis));
}

}  // namespace

View part(const View& view, size_t axis, int64_t start, int64_t count, int64_t step) {
    need_axis(view.dims, axis);
    const int64_t size = view.dims[axis], last = start + (count - 1) * step;
    if (count < 1 || start < 0 || start >= size || last < 0 || last >= size)
        fail("axis " + std::to_string(axis) + " of " + to_string(view.dims) + " is too short");
    View result = view;
    result.offset += start * view.strides[axis];
    result.dims[axis] = count;
    result.strides[axis] *= step;
    return result;
}

View with_axis(View view, size_t axis) {
    if (axis > view.dims.size()) need_axis(view.dims, axis);
    const auto at = static_cast<std::ptrdiff_t>(axis);
    view.dims.insert(view.dims.begin() + at, 1);
    view.strides.insert(view.strides.begin() + at, 1);
    return view;
}

View without_axis(View view, size_t axis) {
    need_axis(view.dims, axis);
    const auto at = static_cast<std::ptrdiff_t>(axis);
    view.dims.erase(view.dims.begin() + at);
    view.strides.erase(view.strides.begin() + at);
    return view;
}

View swapped(const View& view, size_t a, size_t b) {
    need_axis(view.dims, std::max(a, b));
    View result = view;
    std::swap(result.dims[a], result.dims[b]);
    std::swap(result.strides[a], result.strides[b]);
    return result;
}

View scalar(PlanBuilder& b, uint32_t dtype, double value) {
    HostTensor tensor = make_host_tensor(dtype, {});
    store(tensor, 0, value);
    return b.upload(std::make_shared<const HostTensor>(std::move(tensor)));
}

View count_up(PlanBuilder& b, uint32_t dtype, int64_t count) {
    HostTensor tensor = make_table(dtype, {count});
    for (int64_t i = 0; i < count; ++i) store(tensor, i, i);
    return b.upload(std::make_shared<const HostTensor>(std::move(tensor)));
}

Dims result_strides(const View& a, const View& b, const Dims& dims) {
    if (a.dims == dims) return strides_like(a, dims);
    if (b.dims == dims) return strides_like(b, dims);
    return a.dims.size() == dims.size() ? strides_like(a, dims) : row_major_strides(dims);
}

View unary(PlanBuilder& b, uint32_t function, const View& x, float alpha, float beta) {
    const bool test = function == ENPU_OP_UNARY_ISNAN || function == ENPU_OP_UNARY_ISINF;
    const View y =
        b.temporary(test ? uint32_t{ENPU_OP_BOOL} : x.dtype, x.dims, strides_like(x, x.dims));
    b.add(ENPU_OP_UNARY, enpu_op_unary_params{function, alpha, beta}, {x, y});
    return y;
}

View activate(PlanBuilder& b, const Activation& a, const View& x) {
    return unary(b, a.function, x, a.alpha, a.beta);
}

View binary(PlanBuilder& b, uint32_t function, const View& x, const View& y,
            const Activation& activation) {
    if (x.dtype != y.dtype) fail("operands of different element types");
    const bool test = function >= ENPU_OP_BINARY_EQ && function <= ENPU_OP_BINARY_GE;
    const Dims dims = broadcast_dims(x.dims, y.dims);
    const View z =
        b.temporary(test ? uint32_t{ENPU_OP_BOOL} : x.dtype, dims, result_strides(x, y, dims));
    const enpu_op_binary_params p{function, activation.function, activation.alpha, activation.beta};
    b.add(ENPU_OP_BINARY, p, {b.broadcast(x, dims), b.broadcast(y, dims), z});
    return z;
}

View select(PlanBuilder& b, const View& condition, const View& x, const View& y) {
    if (x.dtype != y.dtype) fail("operands of different element types");
    const Dims dims = broadcast_dims(broadcast_dims(condition.dims, x.dims), y.dims);
    const View z = b.temporary(x.dtype, dims, result_strides(x, y, dims));
    b.add(ENPU_OP_SELECT,
          {b.broadcast(condition, dims), b.broadcast(x, dims), b.broadcast(y, dims), z});
    return z;
}

View cast(PlanBuilder& b, const View& x, uint32_t dtype) {
    if (dtype == x.dtype) return x;
    const View y = b.temporary(dtype, x.dims, strides_like(x, x.dims));
    b.add(ENPU_OP_CAST, {x, y});
    return y;
}

View reduce(PlanBuilder& b, uint32_t function, const View& x, uint32_t axes) {
    Dims dims = x.dims;
    for (size_t i = 0; i < dims.size(); ++i) {
        if (axes >> i & 1) dims[i] = 1;
    }
    const View y = b.temporary(x.dtype, dims, strides_like(x, dims));
    b.add(ENPU_OP_REDUCE, enpu_op_reduce_params{function, axes}, {x, y});
    return y;
}

View softmax(PlanBuilder& b, const View& x, size_t axis, bool log) {
    need_axis(x.dims, axis);
    const View y = b.temporary(x.dtype, x.dims, strides_like(x, x.dims));
    b.add(ENPU_OP_SOFTMAX_FWD, enpu_op_softmax_params{static_cast<uint32_t>(axis), log}, {x, y});
    return y;
}

View matmul(PlanBuilder& b, const View& x, const View& y, float scale, const View& bias) {
    if (std::min(x.dims.size(), y.dims.size()) < 2)
        fail("a product of " + to_string(x.dims) + " and " + to_string(y.dims) + ", no matrices");
    const Dims batch = broadcast_dims(Dims(x.dims.begin(), x.dims.end() - 2),
                                      Dims(y.dims.begin(), y.dims.end() - 2));
    const auto widened = [&](const View& view) {
        Dims dims = batch;
        dims.insert(dims.end(), view.dims.end() - 2, view.dims.end());
        return b.broadcast(view, dims);
    };
    const View left = widened(x), right = widened(y);
    if (left.dims.back() != right.dims[right.dims.size() - 2]) {
        fail("the inner dims of " + to_string(x.dims) + " and " + to_string(y.dims) + " differ");
    }
    Dims dims(left.dims.begin(), left.dims.end() - 1);
    dims.push_back(right.dims.back());
    const View z = b.temporary(x.dtype, dims);
    const View added = bias.absent() ? View{} : b.broadcast(bias, dims);
    b.add(ENPU_OP_MATMUL_FWD, enpu_op_matmul_params{ENPU_OP_UNARY_IDENTITY, 0, 0, scale},
          {left, right, added, View{}, View{}, z});
    return z;
}

View arg_reduce(PlanBuilder& b, const View& x, size_t axis, bool smallest, bool last) {
    need_axis(x.dims, axis);
    Dims dims = x.dims;
    dims[axis] = 1;
    const View y = b.temporary(ENPU_OP_I64, dims);
    b.add(ENPU_OP_ARG_REDUCE, enpu_op_arg_params{smallest, static_cast<uint32_t>(axis), last},
          {x, y});
    return y;
}

View gather_elements(PlanBuilder& b, const View& x, const View& indices, size_t axis) {
    need_axis(x.dims, axis);
    const View y = b.temporary(x.dtype, indices.dims);
    b.add(ENPU_OP_GATHER,
          enpu_op_gather_params{ENPU_OP_GATHER_MODE_ELEMENTS, static_cast<uint32_t>(axis)},
          {x, indices, y});
    return y;
}

View take(PlanBuilder& b, const View& x, const View& indices, size_t axis) {
    need_axis(x.dims, axis);
    const auto split = x.dims.begin() + static_cast<std::ptrdiff_t>(axis);
    Dims dims(x.dims.begin(), split);
    dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
    dims.insert(dims.end(), split + 1, x.dims.end());
    const View y = b.temporary(x.dtype, dims);
    b.add(ENPU_OP_GATHER,
          enpu_op_gather_params{ENPU_OP_GATHER_MODE_TAKE, static_cast<uint32_t>(axis)},
          {x, indices, y});
    return y;
}

View join(PlanBuilder& b, const std::vector<View>& parts, size_t axis) {
    if (parts.empty()) fail("there is nothing to join");
    Dims dims = parts[0].dims;
    need_axis(dims, axis);
    dims[axis] = 0;
    for (const View& piece : parts) {
        Dims others = piece.dims;
        if (others.size() != dims.size()) fail("operands of different rank");
        dims[axis] += others[axis];
        others[axis] = parts[0].dims[axis];
        if (others != parts[0].dims) fail("operands whose other dims differ");
    }
    const View y = b.temporary(parts[0].dtype, dims, strides_like(parts[0], dims));
    int64_t at = 0;
    for (const View& piece : parts) {
        b.move(piece, part(y, axis, at, piece.dims[axis]));
        at += piece.dims[axis];
    }
    return y;
}

View filled(PlanBuilder& b, uint32_t dtype, const Dims& dims, double value) {
    const View y = b.temporary(dtype, dims);
    b.move(b.broadcast(scalar(b, dtype, value), dims), y);
    return y;
}

View copied(PlanBuilder& b, const View& x) {
    const View y = b.temporary(x.dtype, x.dims);
    b.move(x, y);
    return y;
}

}  // namespace enpu::lowering
