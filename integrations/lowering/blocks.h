// SPDX-License-Identifier: MIT
// Kernels that write a new temporary: what operators that the device has no kernel for are made of.
#ifndef ENPU_LOWERING_BLOCKS_H
#define ENPU_LOWERING_BLOCKS_H

#include "builder.h"
#include "graph.h"

namespace enpu::lowering {

// ---- views of the same memory
View part(const View& view, size_t axis, int64_t start, int64_t count, int64_t step = 1);
View with_axis(View view, size_t axis);     // one of 1 element more, in front of `axis`
View without_axis(View view, size_t axis);  // of one that has 1 element
View swapped(const View& view, size_t a, size_t b);

// ---- constants
View scalar(PlanBuilder& b, uint32_t dtype, double value);     // rank 0
View count_up(PlanBuilder& b, uint32_t dtype, int64_t count);  // 0, 1, 2 …

// ---- kernels; operands broadcast as numpy does
View unary(PlanBuilder& b, uint32_t function, const View& x, float alpha = 0, float beta = 0);
View activate(PlanBuilder& b, const Activation& activation, const View& x);
View binary(PlanBuilder& b, uint32_t function, const View& x, const View& y,
            const Activation& activation = {});
View select(PlanBuilder& b, const View& condition, const View& x, const View& y);
View cast(PlanBuilder& b, const View& x, uint32_t dtype);  // x itself when it has the type
View reduce(PlanBuilder& b, uint32_t function, const View& x, uint32_t axes);  // axes stay, as 1
View softmax(PlanBuilder& b, const View& x, size_t axis, bool log = false);
// scale * x y [+ bias]
View matmul(PlanBuilder& b, const View& x, const View& y, float scale = 1, const View& bias = {});
View arg_reduce(PlanBuilder& b, const View& x, size_t axis, bool smallest, bool last);  // I64
View gather_elements(PlanBuilder& b, const View& x, const View& indices, size_t axis);
View take(PlanBuilder& b, const View& x, const View& indices, size_t axis);
View join(PlanBuilder& b, const std::vector<View>& parts, size_t axis);
View filled(PlanBuilder& b, uint32_t dtype, const Dims& dims, double value);  // memory of its own
View copied(PlanBuilder& b, const View& x);

struct Moments {
    View mean, centred, variance;  // centred: x - mean
};
Moments moments(PlanBuilder& b, const View& x, uint32_t axes);
View inverse_deviation(PlanBuilder& b, const View& variance, float epsilon);

// Strides for a result of `dims`: those of the operand that is not broadcast.
Dims result_strides(const View& a, const View& b, const Dims& dims);

}  // namespace enpu::lowering
#endif
