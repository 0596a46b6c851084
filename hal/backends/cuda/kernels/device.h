// SPDX-License-Identifier: MIT
// What all kernels use: elements, walks and blocks. Everything is compiled for the GPU by nvcc and
// for the host by tests, where a block is a loop over its threads.
#pragma once

#include "args.h"
#include "scalar.h"

#ifdef __CUDACC__
#define ENPU_DEVICE __device__ inline
#define ENPU_UNROLL _Pragma("unroll")
// For what is long and called from unrolled loops.
#define ENPU_DEVICE_CALL __device__ __noinline__ inline
#else
#define ENPU_DEVICE inline
#define ENPU_UNROLL
#define ENPU_DEVICE_CALL inline
#endif

namespace enpu::hal::cuda {

// The elements that one thread of a grid takes: first, first + step, …
struct Lane {
    uint32_t first, step;
};

// The threads of a block, one phase after the other: `each` runs f(thread) for all of them, and
// what one phase wrote to shared memory the next one sees.
#ifdef __CUDACC__
struct Block {
    uint32_t index;
    template <class F>
    __device__ void each(F&& f) const {
        f(threadIdx.x);
        __syncthreads();
    }
};
// A variable of every thread that lives from phase to phase.
template <class T, unsigned threads>
struct PerThread {
    T value;
    __device__ T& operator[](uint32_t) { return value; }
};
#else
struct Block {
    uint32_t index;
    uint32_t threads;
    template <class F>
    void each(F&& f) const {
        for (uint32_t thread = 0; thread < threads; ++thread) f(thread);
    }
};
template <class T, unsigned threads>
struct PerThread {
    T values[threads];
    T& operator[](uint32_t thread) { return values[thread]; }
};
#endif

ENPU_DEVICE bool is_float(uint32_t dtype) {
    return dtype == ENPU_DTYPE_F32 || dtype == ENPU_DTYPE_F16 || dtype == ENPU_DTYPE_BF16;
}

template <class T>
ENPU_DEVICE T* element(const Ref& ref, int32_t index) {
    return reinterpret_cast<T*>(ref.address) + index;
}

template <class C>
ENPU_DEVICE C load(const Ref& ref, int32_t index) {
    switch (ref.dtype) {
        case ENPU_DTYPE_F16:
            return ops::load<C>(*element<ops::Half>(ref, index));
        case ENPU_DTYPE_BF16:
            return ops::load<C>(*element<ops::Bfloat>(ref, index));
        case ENPU_DTYPE_I8:
            return ops::load<C>(*element<int8_t>(ref, index));
        case ENPU_DTYPE_U8:
            return ops::load<C>(*element<uint8_t>(ref, index));
        case ENPU_DTYPE_I32:
            return ops::load<C>(*element<int32_t>(ref, index));
        case ENPU_DTYPE_I64:
            return ops::load<C>(*element<int64_t>(ref, index));
        case ENPU_DTYPE_BOOL:
            return ops::load<C>(*element<ops::Bool>(ref, index));
        default:
            return ops::load<C>(*element<float>(ref, index));
    }
}

template <class C>
ENPU_DEVICE void store(const Ref& ref, int32_t index, C value) {
    switch (ref.dtype) {
        case ENPU_DTYPE_F16:
            *element<ops::Half>(ref, index) = ops::store<ops::Half>(value);
            return;
        case ENPU_DTYPE_BF16:
            *element<ops::Bfloat>(ref, index) = ops::store<ops::Bfloat>(value);
            return;
        case ENPU_DTYPE_I8:
            *element<int8_t>(ref, index) = ops::store<int8_t>(value);
            return;
        case ENPU_DTYPE_U8:
            *element<uint8_t>(ref, index) = ops::store<uint8_t>(value);
            return;
        case ENPU_DTYPE_I32:
            *element<int32_t>(ref, index) = ops::store<int32_t>(value);
            return;
        case ENPU_DTYPE_I64:
            *element<int64_t>(ref, index) = ops::store<int64_t>(value);
            return;
        case ENPU_DTYPE_BOOL:
            *element<ops::Bool>(ref, index) = ops::store<ops::Bool>(value);
            return;
        default:
            *element<float>(ref, index) = ops::store<float>(value);
    }
}

ENPU_DEVICE uint32_t bytes_of(uint32_t dtype) {
    switch (dtype) {
        case ENPU_DTYPE_I8:
        case ENPU_DTYPE_U8:
        case ENPU_DTYPE_BOOL:
            return 1;
        case ENPU_DTYPE_F16:
        case ENPU_DTYPE_BF16:
            return 2;
        case ENPU_DTYPE_I64:
            return 8;
        default:
            return 4;
    }
}

// An element as it is, whatever it means.
ENPU_DEVICE uint64_t load_bits(const Ref& ref, int32_t index) {
    switch (bytes_of(ref.dtype)) {
        case 1:
            return *element<uint8_t>(ref, index);
        case 2:
            return *element<uint16_t>(ref, index);
        case 8:
            return *element<uint64_t>(ref, index);
        default:
            return *element<uint32_t>(ref, index);
    }
}
ENPU_DEVICE void store_bits(const Ref& ref, int32_t index, uint64_t bits) {
    switch (bytes_of(ref.dtype)) {
        case 1:
            *element<uint8_t>(ref, index) = static_cast<uint8_t>(bits);
            return;
        case 2:
            *element<uint16_t>(ref, index) = static_cast<uint16_t>(bits);
            return;
        case 8:
            *element<uint64_t>(ref, index) = bits;
            return;
        default:
            *element<uint32_t>(ref, index) = static_cast<uint32_t>(bits);
    }
}

// Offsets of position `index` of a walk in each of its tensors.
template <unsigned N>
ENPU_DEVICE void locate(const Walk<N>& walk, uint32_t index, int32_t (&offsets)[N]) {
    for (unsigned k = 0; k < N; ++k) offsets[k] = 0;
    for (uint32_t axis = walk.rank - 1; axis > 0; --axis) {
        const uint32_t rest = index / walk.dims[axis];
        const auto at = static_cast<int32_t>(index - rest * walk.dims[axis]);
        for (unsigned k = 0; k < N; ++k) offsets[k] += at * walk.strides[k][axis];
        index = rest;
    }
    for (unsigned k = 0; k < N; ++k) offsets[k] += static_cast<int32_t>(index) * walk.strides[k][0];
}

// The first offender to be told; any of several will do.
ENPU_DEVICE void report(uint64_t offence, uint32_t operand, int64_t value) {
    auto* words = reinterpret_cast<volatile Offence*>(offence);
    words->operand = operand;
    words->value = value;
    words->found = 1;
}

}  // namespace enpu::hal::cuda
