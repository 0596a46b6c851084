// SPDX-License-Identifier: MIT
// For functions of single elements that are also compiled for GPUs: the same source gives the same
// numbers there.
#pragma once

#ifdef __CUDACC__
#define ENPU_PORTABLE_MEMBER __host__ __device__
#else
#define ENPU_PORTABLE_MEMBER
#endif
#define ENPU_PORTABLE ENPU_PORTABLE_MEMBER inline
