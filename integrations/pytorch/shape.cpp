// SPDX-License-Identifier: MIT
// Joining, reversing, padding, resampling; numbers that count.
#include <ATen/WrapDimUtils.h>
#include <ATen/native/TypeProperties.h>
#include <torch/library.h>

#include <numeric>

#include "launch.h"

namespace enpu::pytorch {
namespace {

// ---- joining and reversing

bool skipped(const Tensor& t) {
    return t.dim() == 1 && t.numel() == 0;  // may be joined with anything
}

Tensor& cat_out(const at::ITensorListRef& list, int64_t dim, Tensor& out) {
    std::vector<Tensor> parts;
    for (const Tensor& t : list) parts.push_back(t);
    TORCH_CHECK(!parts.empty(), "torch.cat(): expected a non-empty list of Tensors");
    const ScalarType type = at::native::result_type(parts);
    const auto first = std::find_if_not(parts.begin(), parts.end(), skipped);
    if (first == parts.end()) {
        resize_out(out, {0});
        return out;
    }
    const int64_t axis = at::maybe_wrap_dim(dim, first->dim());
    c10::SmallVector<int64_t, 8> sizes(first->sizes().begin(), first->sizes().end());
    TORCH_CHECK(!sizes.empty(), "zero-dimensional tensor cannot be concatenated");
    sizes[static_cast<size_t>(axis)] = 0;
    for (const Tensor& t : parts) {
        if (skipped(t)) continue;
        TORCH_CHECK(t.dim() == first->dim(), "Tensors must have same number of dimensions");
        sizes[static_cast<size_t>(axis)] += t.size(axis);
        for (int64_t d = 0; d < t.dim(); ++d) {
            TORCH_CHECK(d == axis || t.size(d) == first->size(d),
                        "Sizes of tensors must match except in dimension ", axis, ". Expected ",
                        first->size(d), " but got ", t.size(d));
        }
    }
    return write_out(out, sizes, type, {}, [&](const Tensor& y) {
        int64_t start = 0;
        for (const Tensor& t : parts) {
            if (skipped(t)) continue;
            y.narrow(axis, start, t.size(axis)).copy_(t);
            start += t.size(axis);
        }
    });
}

Tensor flip(const Tensor& self, IntArrayRef dims) {
    const Tensor out = new_tensor(self.sizes(), self.scalar_type());
    uint32_t axes = 0;
    for (int64_t dim : dims) {
        const uint32_t bit = uint32_t{1} << at::maybe_wrap_dim(dim, self.dim());
        TORCH_CHECK(!(axes & bit), "dim ", dim, " appears multiple times in the list of dims");
        axes |= bit;
    }
    if (out.numel()) move_reversed(self, axes, out);
    return out;
}

Tensor roll(const Tensor& self, IntArrayRef shifts, IntArrayRef dims) {
    if (self.numel() == 0) return self.clone();
    if (dims.empty()) {
        TORCH_CHECK(shifts.size() == 1, "shifts and dimensions must align");
        return self.reshape({-1}).roll(shifts, 0).view(self.sizes());
    }
    TORCH_CHECK(shifts.size() == dims.size(), "shifts and dimensions must align");
    Tensor result = self;
    for (size_t i = 0; i < dims.size(); ++i) {
        const int64_t size = result.size(dims[i]);
        const int64_t start = ((-shifts[i] % size) + size) % size;
        result =
            at::cat({result.narrow(dims[i], start, size - start), result.narrow(dims[i], 0, start)},
                    dims[i]);
    }
    return result;
}

// ---- triangles

template <bool Upper>
Tensor& triangle_out(const Tensor& self, int64_t k, Tensor& out) {
    TORCH_CHECK(self.dim() >= 2, "tril and triu need at least 2 axes");
    const Tensor distance = iota(self.size(-1)) - iota(self.size(-2)).unsqueeze(1);
    return at::where_out(out, Upper ? distance.ge(k) : distance.le(k), self,
                         at::scalar_tensor(0, self.scalar_type()));
}

Tensor trace(const Tensor& self) {
    TORCH_CHECK(self.dim() == 2, "trace: expected a matrix");
    return self.diagonal().sum();
}

// Sums up to each element: a product with a triangle of ones.
Tensor& cumsum_out(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype, Tensor& out) {
    const ScalarType type = dtype.value_or(
        at::isIntegralType(self.scalar_type(), true) ? at::kLong : self.scalar_type());
    resize_out(out, self.sizes());
    if (self.dim() == 0 || self.numel() == 0) return out.copy_(self);
    const Tensor x = self.to(type).movedim(dim, -1);
    const Tensor ones = at::ones({x.size(-1), x.size(-1)}, x.options()).triu();
    return out.copy_(x.matmul(ones).movedim(-1, dim));
}

// ---- numbers that count, made on the host

template <class Make>
Tensor& from_host(Tensor& out, Make&& make) {
    const Tensor host = make(at::TensorOptions().dtype(out.scalar_type()));
    resize_out(out, host.sizes());
    return out.copy_(host);
}

Tensor& arange_out(const Scalar& start, const Scalar& end, const Scalar& step, Tensor& out) {
    return from_host(out, [&](const auto& o) { return at::arange(start, end, step, o); });
}
Tensor& linspace_out(const Scalar& start, const Scalar& end, int64_t steps, Tensor& out) {
    return from_host(out, [&](const auto& o) { return at::linspace(start, end, steps, o); });
}
Tensor& logspace_out(const Scalar& start, const Scalar& end, int64_t steps, double base,
                     Tensor& out) {
    return from_host(out, [&](const auto& o) { return at::logspace(start, end, steps, base, o); });
}
Tensor& eye_out(int64_t n, Tensor& out) {
    return from_host(out, [&](const auto& o) { return at::eye(n, o); });
}
Tensor& eye_m_out(int64_t n, int64_t m, Tensor& out) {
    return from_host(out, [&](const auto& o) { return at::eye(n, m, o); });
}
Tensor tril_indices(int64_t row, int64_t col, int64_t offset, std::optional<ScalarType> dtype,
                    std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
    return at::tril_indices(row, col, offset, dtype.value_or(at::kLong)).to(npu());
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, std::optional<ScalarType> dtype,
                    std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
    return at::triu_indices(row, col, offset, dtype.value_or(at::kLong)).to(npu());
}

// ---- padding: along each axis a product with a matrix of ones gives the gradient

enum class Border { kReflect, kEdge };

int64_t source_of(int64_t at, int64_t size, Border border) {
    if (border == Border::kEdge) return std::clamp<int64_t>(at, 0, size - 1);
    if (at < 0) at = -at;
    return at >= size ? 2 * (size - 1) - at : at;
}

void check_padding(const Tensor& self, IntArrayRef padding, size_t axes, Border border) {
    TORCH_CHECK(padding.size() == 2 * axes, "padding size is expected to be ", 2 * axes,
                ", but got: ", padding.size());
    TORCH_CHECK(self.dim() == static_cast<int64_t>(axes) + 1 ||
                    self.dim() == static_cast<int64_t>(axes) + 2,
                "pad: expected ", axes + 1, " or ", axes + 2, " axes, got ", self.dim());
    for (size_t i = 0; i < axes; ++i) {
        const int64_t size = self.size(-1 - static_cast<int64_t>(i));
        for (int64_t pad : {padding[2 * i], padding[2 * i + 1]}) {
            TORCH_CHECK(border == Border::kEdge || pad < size,
                        "Padding size should be less than the corresponding "
                        "input dimension, but got: padding ",
                        pad, " at an axis of ", size);
        }
        TORCH_CHECK(size + padding[2 * i] + padding[2 * i + 1] >= 1,
                    "pad: the result has no elements");
    }
}

template <size_t Axes, Border B>
Tensor pad(const Tensor& self, IntArrayRef padding) {
    check_padding(self, padding, Axes, B);
    check_operand(self, "pad");
    c10::SmallVector<int64_t, 8> sizes(self.sizes().begin(), self.sizes().end());
    enpu_op_pad_params params{};
    params.mode = B == Border::kEdge ? ENPU_OP_PAD_MODE_EDGE : ENPU_OP_PAD_MODE_REFLECT;
    for (size_t i = 0; i < Axes; ++i) {
        const size_t axis = sizes.size() - 1 - i;
        sizes[axis] += padding[2 * i] + padding[2 * i + 1];
        params.before[axis] = static_cast<int32_t>(padding[2 * i]);
    }
    const Tensor out = new_tensor(sizes, self.scalar_type());
    if (out.numel()) launch(ENPU_OP_PAD, params, {self, out});
    return out;
}
template <size_t Axes, Border B>
Tensor& pad_out(const Tensor& self, IntArrayRef padding, Tensor& out) {
    const Tensor result = pad<Axes, B>(self, padding);
    resize_out(out, result.sizes());
    return out.copy_(result);
}

// t multiplied along `axis` by a matrix [size of the axis, new size].
Tensor along(const Tensor& t, int64_t axis, const Tensor& matrix) {
    return t.movedim(axis, -1).matmul(matrix).movedim(-1, axis);
}

template <size_t Axes, Border B>
Tensor pad_backward(const Tensor& grad, const Tensor& self, IntArrayRef padding) {
    Tensor result = grad;
    for (size_t i = 0; i < Axes; ++i) {
        const int64_t axis = self.dim() - 1 - static_cast<int64_t>(i), size = self.size(axis);
        std::vector<float> matrix(static_cast<size_t>(grad.size(axis) * size), 0.0f);
        for (int64_t p = 0; p < grad.size(axis); ++p)
            matrix[static_cast<size_t>(p * size + source_of(p - padding[2 * i], size, B))] = 1.0f;
        result =
            along(result, axis,
                  at::tensor(matrix).view({grad.size(axis), size}).to(npu(), grad.scalar_type()));
    }
    return result.contiguous();
}
template <size_t Axes, Border B>
Tensor& pad_backward_out(const Tensor& grad, const Tensor& self, IntArrayRef padding, Tensor& out) {
    resize_out(out, self.sizes());
    return out.copy_(pad_backward<Axes, B>(grad, self, padding));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("cat.out", cat_out);
    m.impl("flip", flip);
    m.impl("roll", roll);
    m.impl("tril.out", triangle_out<false>);
    m.impl("triu.out", triangle_out<true>);
    m.impl("trace", trace);
    m.impl("cumsum.out", cumsum_out);
    m.impl("arange.start_out", arange_out);
    m.impl("linspace.out", linspace_out);
    m.impl("logspace.out", logspace_out);
    m.impl("eye.out", eye_out);
    m.impl("eye.m_out", eye_m_out);
    m.impl("tril_indices", tril_indices);
    m.impl("triu_indices", triu_indices);
    m.impl("reflection_pad1d.out", pad_out<1, Border::kReflect>);
    m.impl("reflection_pad2d", pad<2, Border::kReflect>);
    m.impl("reflection_pad2d.out", pad_out<2, Border::kReflect>);
    m.impl("reflection_pad3d.out", pad_out<3, Border::kReflect>);
    m.impl("replication_pad1d.out", pad_out<1, Border::kEdge>);
    m.impl("replication_pad2d.out", pad_out<2, Border::kEdge>);
    m.impl("replication_pad3d.out", pad_out<3, Border::kEdge>);
    m.impl("reflection_pad1d_backward.grad_input", pad_backward_out<1, Border::kReflect>);
    m.impl("reflection_pad2d_backward", pad_backward<2, Border::kReflect>);
    m.impl("reflection_pad3d_backward.grad_input", pad_backward_out<3, Border::kReflect>);
    m.impl("replication_pad1d_backward.grad_input", pad_backward_out<1, Border::kEdge>);
    m.impl("replication_pad2d_backward", pad_backward<2, Border::kEdge>);
    m.impl("replication_pad3d_backward", pad_backward<3, Border::kEdge>);
}

}  // namespace
}  // namespace enpu::pytorch
