// SPDX-License-Identifier: MIT
// How the families of kernels are planned: one function an opcode. Each takes a packet that passed
// the rules, with its addresses.
#pragma once

#include <span>

#include "kernels.h"
#include "kernels/args.h"
#include "strided.h"

namespace enpu::hal::cuda {

struct Plan {
    const enpu_operator_packet& packet;
    uint64_t offence;  // address on the GPU
    KernelCall& call;
    enpu_hal_status* status;

    const enpu_tensor& operand(unsigned index) const { return packet.operands[index]; }
    Ref ref(unsigned index) const;
    // Without data and strides when the operand is left out.
    ops::View view(unsigned index) const;
};

// An operand as a view; without data and strides when it is left out.
ops::View view_of_operand(const enpu_operator_packet& packet, unsigned index);

// A product of matrices by its steps in elements; dims of 1 have step 0.
struct MatmulGeometry {
    int64_t m = 0, n = 0, k = 0;
    ops::Loop batches;              // of kMatmulStreams, merged
    int64_t row[kMatmulStreams]{};  // along m (of b: along k)
    int64_t col[kMatmulStreams]{};  // along n (of a: along k)
};
MatmulGeometry matmul_geometry(const enpu_operator_packet& packet);

constexpr uint32_t kThreads = 256;
// Blocks for `count` elements; a thread takes more than one when there are very many.
uint32_t blocks_for(uint64_t count);
// UNSUPPORTED when a walk does not fit the kernels' 32-bit indices.
uint32_t too_large(const Plan& plan);

template <unsigned N>
bool to_walk(const ops::Loop& loop, Walk<N>& walk) {
    int64_t count = 1;
    if (loop.rank > kAxes) return false;
    walk.rank = loop.rank;
    for (unsigned axis = 0; axis < loop.rank; ++axis) {
        if (__builtin_mul_overflow(count, loop.dims[axis], &count) || count > INT32_MAX)
            return false;
        walk.dims[axis] = static_cast<uint32_t>(loop.dims[axis]);
        for (unsigned k = 0; k < N; ++k) {
            if (loop.strides[k][axis] != static_cast<int32_t>(loop.strides[k][axis])) return false;
            walk.strides[k][axis] = static_cast<int32_t>(loop.strides[k][axis]);
        }
    }
    walk.count = static_cast<uint32_t>(count);
    return true;
}

uint32_t plan_reduction(const Plan& plan, uint32_t op);
uint32_t plan_dense(const Plan& plan, uint32_t op);

}  // namespace enpu::hal::cuda
