// SPDX-License-Identifier: MIT
// Functions that are compiled a second time for AVX-512. The caller asks has_wide_vectors() first. What they
// compute is the same: lanes are independent and each operation is rounded as it is in narrow vectors.
#pragma once

#ifdef __clang__  // ignores the whole attribute for a word that it does not know
#define ENPU_WIDE [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]]
#else
#define ENPU_WIDE [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]]
#endif
// For what is inlined into them.
#define ENPU_WIDE_INLINE ENPU_WIDE [[gnu::always_inline]] inline
