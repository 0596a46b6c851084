// SPDX-License-Identifier: MIT
// Helpers of the emit functions; one map an operator family.
#ifndef ENPU_LOWERING_EMIT_COMMON_H
#define ENPU_LOWERING_EMIT_COMMON_H

#include "emitter.h"

namespace enpu::lowering {

using EmitTable = std::map<std::string, EmitFunction>;

const EmitTable& conv_emitters();         // Conv, ConvTranspose, pools
const EmitTable& resize_emitters();       // Resize, Upsample
const EmitTable& matmul_emitters();       // MatMul, Gemm
const EmitTable& elementwise_emitters();  // functions, arithmetic, compare, Where, Cast, quantise
const EmitTable& reduction_emitters();    // softmax, norms, Reduce*, Arg*
const EmitTable& integer_emitters();      // ConvInteger, MatMulInteger, QLinearConv, QLinearMatMul
const EmitTable& movement_emitters();     // Reshape … Gather
const EmitTable& loss_emitters();         // NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss
const EmitTable& attention_emitters();    // Attention, RotaryEmbedding
const EmitTable& recurrent_emitters();    // LSTM, GRU, RNN
const EmitTable& selection_emitters();    // Trilu, OneHot, TopK, CumSum, GatherND …
const EmitTable& statistics_emitters();   // MeanVarianceNormalization, LRN, DynamicQuantizeLinear

enpu_op_unary_params unary_params(const Activation& activation);

// Spatial window of a convolution or pool, from the attributes of ONNX.
struct Window {
    int64_t kernel[2] = {1, 1};
    int64_t stride[2] = {1, 1};
    int64_t dilation[2] = {1, 1};
    int64_t pad[4] = {0, 0, 0, 0};  // top, left, bottom, right
};
// One or two spatial dims; one is taken as width. Checks ranges. `input` are N,C,H,W.
Window read_window(const Node& node, size_t spatial, const std::vector<int64_t>& kernel);
// auto_pad of a convolution or pool over `input`.
void resolve_auto_pad(const Node& node, const Dims& input, Window& window);

enpu_op_conv_params conv_params(const Window& window, int64_t groups, const Activation& activation);
// Dims of the result of a convolution of `x` with weights of the dims `w`; fails when they do not
// fit.
Dims conv_output(const Dims& x, const Dims& w, int64_t groups, const Window& window);

// [N,C,W] as [N,C,1,W]; fails for other ranks than 3 and 4.
View as_image(const Emitter& emitter, const View& view, const char* what);
// The result [N,C,1,W] back to rank `rank`.
View from_image(const View& view, size_t rank);

}  // namespace enpu::lowering
#endif
