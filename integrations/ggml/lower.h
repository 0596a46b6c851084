// SPDX-License-Identifier: MIT
// ggml's operators as kernels of the device. A tensor of ggml has four dims, the first one fastest;
// a View has the same dims in the opposite order.
#ifndef ENPU_GGML_LOWER_H
#define ENPU_GGML_LOWER_H

#include <ggml.h>

#include "builder.h"

namespace enpu::ggml {

using lowering::Dims;
using lowering::View;

uint32_t dtype_of(ggml_type type);  // ENPU_OP_NONE: no element type of the device

class Lowering : public lowering::PlanBuilder {
  public:
    using PlanBuilder::PlanBuilder;

    // Appends the kernels of one node. Throws lowering::Error with the reason when the device has
    // no way to compute it.
    void node(const ggml_tensor* tensor);

    // ---- operands
    View tensor(const ggml_tensor* tensor);          // fails for quantised types
    View as_f32(const View& view);                   // by a cast if need be
    View floats(const ggml_tensor* tensor);          // any type, quantised ones too, as F32
    View floats_or_same(const ggml_tensor* tensor);  // quantised ones as F32, others as they are
    // The first input as F32, in other memory than the result: for kernels that cannot work in place.
    View input_apart(const ggml_tensor* node);
    View constant(const std::vector<float>& values, const Dims& dims);
    // The bytes of a quantised tensor as elements: `dims` inside one block come after those of
    // the blocks.
    View block_part(const ggml_tensor* tensor, uint32_t dtype, size_t offset, int64_t count);

    // ---- kernels that give a new temporary
    View unary(uint32_t function, const View& x, float alpha = 0, float beta = 0);
    View binary(uint32_t function, const View& a, const View& b);  // b broadcasts to a
    void binary_into(uint32_t function, const View& a, const View& b, const View& y);
    // Writes x to y of the same dims, with a change of type.
    void store(const View& x, const View& y);
    // Where a result of type F32 is computed: y itself, or a temporary that finish() stores.
    View result_f32(const View& y);
    void finish(const View& result, const View& y);

    // One per family, in lower_*.cpp.
    void elementwise(const ggml_tensor* node);
    void glu(const ggml_tensor* node);
    void mul_mat(const ggml_tensor* node);
    void out_prod(const ggml_tensor* node);
    void mul_mat_id(const ggml_tensor* node);
    void flash_attention(const ggml_tensor* node);
    void norm(const ggml_tensor* node);
    void soft_max(const ggml_tensor* node);
    void rope(const ggml_tensor* node);
    void reduce(const ggml_tensor* node);
    void copy(const ggml_tensor* node);
    void repeat(const ggml_tensor* node);
    void concat(const ggml_tensor* node);
    void get_rows(const ggml_tensor* node);
    void pad(const ggml_tensor* node);
    void pool(const ggml_tensor* node);
    void roll(const ggml_tensor* node);
    void set_rows(const ggml_tensor* node);
    void diag_mask(const ggml_tensor* node);
    void cumulative_sum(const ggml_tensor* node);
    void conv_2d(const ggml_tensor* node);
    void im2col(const ggml_tensor* node);
    void upscale(const ggml_tensor* node);

    View masked_softmax(View x, const ggml_tensor* mask, const ggml_tensor* sinks, float max_bias);
    void put_rows(const View& rows, const View& list, const View& table);
    View counted(uint32_t dtype, int64_t count);  // 0, 1, 2 …
    // F32 values of a quantised tensor, as rows of blocks: dims of the tensor.
    View dequantise(const ggml_tensor* tensor);

  private:
    std::map<const void*, View> tensors_;
};

float param_f32(const ggml_tensor* node, int index);
int32_t param_i32(const ggml_tensor* node, int index);
// x repeated to `dims` as ggml repeats: whole copies one after the other. Both get more axes where
// that is no plain broadcast; `others` are split in the same way. Fails past eight axes.
View repeat_view(const View& x, Dims dims, std::vector<View*> others);
View slice(const View& view, size_t axis, int64_t start, int64_t count);

}  // namespace enpu::ggml
#endif
