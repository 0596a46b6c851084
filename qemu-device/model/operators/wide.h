// SPDX-License-Identifier: MIT
// Functions that are compiled a second time for AVX-512. The caller asks has_wide_vectors() first. What they
// compute is the same: lanes are independent and each operation is rounded as it is in narrow vectors.
#pragma once

#ifdef __clang__  // ignores the whole attribute for a word that it does not know
#define ENPU_WIDE_ISA "avx512f,avx512bw,avx512dq,avx512vl"
#else
#define ENPU_WIDE_ISA "avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"
#endif
#define ENPU_WIDE __attribute__((target(ENPU_WIDE_ISA)))
// For what is inlined into them; the second form goes behind the parameters of a lambda.
#define ENPU_WIDE_INLINE ENPU_WIDE __attribute__((always_inline)) inline
#define ENPU_WIDE_LAMBDA __attribute__((target(ENPU_WIDE_ISA), always_inline))
