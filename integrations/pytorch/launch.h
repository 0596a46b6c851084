// SPDX-License-Identifier: MIT
// Tensors as operands of device kernels. Kernels are enqueued on the current stream and nothing
// waits; errors in flight are found by the next copy to the host or synchronisation.
#ifndef ENPU_PYTORCH_LAUNCH_H
#define ENPU_PYTORCH_LAUNCH_H

#include <ATen/MemoryOverlap.h>

#include <initializer_list>

#include "device.h"

namespace enpu::pytorch {

using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

// ---- operands

// enum enpu_op_dtype of a PyTorch dtype; ENPU_OP_NONE when the device cannot compute with it.
uint32_t device_dtype(ScalarType type);
// The same tensor for kernels that only move elements: any dtype of 1, 2, 4 or 8 bytes.
Tensor as_bits(const Tensor& t);
bool on_device(const Tensor& t);
// Throws NotImplementedError, naming `op`, unless the tensor is on the device with a dtype that it
// computes with.
void check_operand(const Tensor& t, const char* op);

// ---- kernels

void launch_bytes(enpu_op op, const void* params, size_t bytes, c10::ArrayRef<Tensor> operands);
// Undefined tensors are left out. The last operand is written and must have elements.
template <class Params>
void launch(enpu_op op, const Params& params, std::initializer_list<Tensor> operands) {
    launch_bytes(op, &params, sizeof(params), operands);
}
inline void launch(enpu_op op, std::initializer_list<Tensor> operands) {
    launch_bytes(op, nullptr, 0, operands);
}
// Elementwise kernels: all operands have the same sizes. Axes that lie together in all of them are
// one, so that more axes than the device has are no matter as long as they are laid out alike.
void launch_elementwise(enpu_op op, const void* params, size_t bytes,
                        std::initializer_list<Tensor> operands);

// ---- helpers of the operators

// New device tensors, row-major or with the layout of a tensor of the same sizes.
Tensor new_tensor(IntArrayRef sizes, ScalarType type);
Tensor new_like(const Tensor& layout, ScalarType type);
// A device tensor without axes that holds the number; made once for each number.
Tensor constant(const Scalar& value, ScalarType type);
// The tensor on the device with this dtype; numbers on the CPU without axes become constants.
Tensor to_operand(const Tensor& t, ScalarType type, const char* op);
void cast_into(const Tensor& from, const Tensor& to);  // same sizes, any dtypes of the device
// to = from, same sizes, any layouts; memory may overlap.
void move_into(const Tensor& from, const Tensor& to);
// Whether writing `out` element by element could change what is read from `in` later.
bool overlaps(const Tensor& out, const Tensor& in);
Tensor contiguous(const Tensor& t);
// out = from, backwards along the axes of the mask; same sizes, no overlap.
void move_reversed(const Tensor& from, uint32_t axes, const Tensor& out);
// 0, 1, 2 … as int64, made once for the largest count; read only.
Tensor iota(int64_t count);

// Resizes an out= tensor as PyTorch does, and calls `compute` with a tensor of `type` that overlaps
// none of `inputs`: the out tensor itself when it serves, else one that is then copied to it.
template <class Compute>
Tensor& write_out(Tensor& out, IntArrayRef sizes, ScalarType type,
                  std::initializer_list<Tensor> inputs, Compute&& compute);

bool resize_out(Tensor& out, IntArrayRef sizes);

template <class Compute>
Tensor& write_out(Tensor& out, IntArrayRef sizes, ScalarType type,
                  std::initializer_list<Tensor> inputs, Compute&& compute) {
    resize_out(out, sizes);
    if (out.numel() == 0) return out;
    bool direct = out.scalar_type() == type && on_device(out) &&
                  at::has_internal_overlap(out) != at::MemOverlap::Yes;
    for (const Tensor& in : inputs) direct = direct && !(in.defined() && overlaps(out, in));
    if (direct) {
        compute(out);
        return out;
    }
    TORCH_CHECK(c10::canCast(type, out.scalar_type()), "result type ", type,
                " can't be cast to the desired output type ", out.scalar_type());
    Tensor result = new_tensor(sizes, type);
    compute(result);
    out.copy_(result);
    return out;
}

}  // namespace enpu::pytorch
#endif
