// SPDX-License-Identifier: MIT
// Shape rules that host evaluation and kernels share.
#ifndef ENPU_LOWERING_SHAPES_H
#define ENPU_LOWERING_SHAPES_H

#include "graph.h"

namespace enpu::lowering {

// The device has 32 bits for a dim: what a model file asks for beyond is refused before it is
// multiplied.
constexpr int64_t kMaxDim = int64_t{1} << 32;

// Numpy broadcasting; fails when dims do not match.
Dims broadcast_dims(const Dims& a, const Dims& b);
// Strides of `from` seen as `to`: 0 where an element repeats. `strides` are those of `from`.
Dims broadcast_strides(const Dims& from, const Dims& strides, const Dims& to);
Dims row_major_strides(const Dims& dims);

// Reshape: 0 copies (unless allow_zero), one -1 is computed.
Dims reshape_dims(const Dims& from, const std::vector<int64_t>& wanted, bool allow_zero);
Dims squeeze_dims(const Dims& from, const std::vector<int64_t>& axes, bool all_ones);
Dims unsqueeze_dims(const Dims& from, const std::vector<int64_t>& axes);
Dims transpose_dims(const Dims& from, const std::vector<int64_t>& permutation);
std::vector<int64_t> default_permutation(size_t rank);  // reversed

struct SliceAxis {
    int64_t start = 0;
    int64_t step = 1;
    int64_t count = 0;
};
// One entry an axis of `dims`; axes not named are whole.
std::vector<SliceAxis> slice_axes(const Dims& dims, const std::vector<int64_t>& starts,
                                  const std::vector<int64_t>& ends,
                                  const std::vector<int64_t>& axes,
                                  const std::vector<int64_t>& steps);

}  // namespace enpu::lowering
#endif
