// SPDX-License-Identifier: MIT
#include <cmath>

#include "graph_seeds.h"

namespace enpu::fuzz {
namespace {

using Tensor = SeedTensor;
using Attribute = SeedAttribute;

struct Case {
    const char* op;
    std::vector<Tensor> inputs, constants;
    std::vector<Attribute> attributes = {};
    std::vector<uint8_t> outputs = {};  // none: one of the type of the first input
    uint8_t opset = 0;
};

Tensor integers(std::vector<int64_t> values) {
    return {{static_cast<uint8_t>(values.size())}, ENPU_OP_I64, std::move(values)};
}
Tensor integer(int64_t value) {
    return {{}, ENPU_OP_I64, {value}};
}
Tensor number(float value) {
    return {{}, ENPU_OP_F32, {}, {value}};
}
Tensor floats(std::vector<float> values) {
    return {{static_cast<uint8_t>(values.size())}, ENPU_OP_F32, {}, std::move(values)};
}
Tensor of(std::vector<uint8_t> dims, uint8_t dtype = ENPU_OP_F32) {
    return {std::move(dims), dtype};
}
Attribute text(const char* name, const char* word) {
    return {name, {}, {}, {word}};
}
Attribute real(const char* name, float value) {
    return {name, {}, {value}};
}

const Tensor kImage = of({1, 4, 6, 6}), kVector = of({4}), kMatrix = of({5, 7}), kNone = of({0});
const Tensor kScale = number(0.5f), kByteZero = of({}, ENPU_OP_U8),
             kSignedZero = of({}, ENPU_OP_I8);
constexpr uint8_t kF32 = ENPU_OP_F32, kI64 = ENPU_OP_I64, kU8 = ENPU_OP_U8, kI8 = ENPU_OP_I8;

// Products, windows and norms.
const std::vector<Case> kDense = {
    {"Conv", {kImage}, {of({6, 4, 3, 3}), of({6})}, {{"pads", {1, 1, 1, 1}}, {"strides", {2, 2}}}},
    {"Conv", {kImage}, {of({4, 1, 3, 3})}, {{"group", {4}}, {"dilations", {2, 2}}}},
    {"Conv", {of({1, 4, 8})}, {of({6, 4, 3})}, {{"pads", {1, 1}}}},
    {"Conv", {kImage}, {of({6, 4, 3, 3})}, {text("auto_pad", "SAME_UPPER")}},
    {"Conv", {kImage}, {of({6, 4, 3, 3})}, {text("auto_pad", "SAME_LOWER")}},
    {"ConvTranspose", {kImage}, {of({4, 6, 2, 2})}, {{"strides", {2, 2}}}},
    {"ConvTranspose",
     {kImage},
     {of({4, 6, 3, 3})},
     {{"strides", {2, 2}}, {"output_padding", {1, 1}}, {"output_shape", {12, 12}}}},
    {"ConvInteger", {of({1, 4, 6, 6}, kU8)}, {of({6, 4, 3, 3}, kI8), kByteZero, kSignedZero}},
    {"QLinearConv",
     {of({1, 4, 6, 6}, kU8)},
     {kScale, kByteZero, of({6, 4, 3, 3}, kI8), kScale, kSignedZero, kScale, kByteZero,
      of({6}, ENPU_OP_I32)}},
    {"MatMul", {kMatrix}, {of({7, 9})}},
    {"MatMul", {of({2, 5, 7}), of({2, 7, 3})}, {}},
    {"MatMul", {of({7}), of({7})}, {}},
    {"MatMulInteger", {of({5, 7}, kU8)}, {of({7, 9}, kI8), kByteZero, kSignedZero}},
    {"QLinearMatMul",
     {of({5, 7}, kU8)},
     {kScale, kByteZero, of({7, 9}, kU8), kScale, kByteZero, kScale, kByteZero}},
    {"Gemm", {kMatrix}, {of({9, 7}), of({9})}, {{"transB", {1}}}},
    {"Gemm",
     {of({7, 5})},
     {of({7, 9}), of({9})},
     {{"transA", {1}}, real("alpha", 2), real("beta", 3)}},
    {"BatchNormalization", {kImage, kVector, kVector}, {kVector, kVector}},
    {"LayerNormalization", {of({2, 8})}, {of({8}), of({8})}, {{"axis", {-1}}}, {kF32, kF32, kF32}},
    {"RMSNormalization", {of({2, 8})}, {of({8})}},
    {"InstanceNormalization", {kImage}, {kVector, kVector}},
    {"GroupNormalization", {kImage}, {kVector, kVector}, {{"num_groups", {2}}}},
    {"MeanVarianceNormalization", {kImage}, {}},
    {"LRN", {kImage}, {}, {{"size", {3}}}},
    {"AveragePool", {kImage}, {}, {{"kernel_shape", {3, 3}}, {"pads", {1, 1, 1, 1}}}},
    {"MaxPool", {kImage}, {}, {{"kernel_shape", {2, 2}}, {"strides", {2, 2}}, {"ceil_mode", {1}}}},
    {"LpPool", {kImage}, {}, {{"kernel_shape", {2, 2}}, {"p", {2}}}},
    {"Softmax", {kMatrix}, {}, {{"axis", {1}}}},
    {"Softmax", {kImage}, {}, {{"axis", {1}}}, {kF32}, 11},
    {"LogSoftmax", {kMatrix}, {}, {{"axis", {-1}}}},
    {"Attention",
     {of({1, 3, 8}), of({1, 5, 8}), of({1, 5, 8})},
     {},
     {{"q_num_heads", {2}}, {"kv_num_heads", {2}}, {"is_causal", {1}}, real("softcap", 2)}},
    {"Attention",
     {of({1, 4, 3, 8}), of({1, 2, 5, 8}), of({1, 2, 5, 8})},
     {of({3, 5}, ENPU_OP_BOOL), of({1, 2, 2, 8}), of({1, 2, 2, 8})},
     {{"qk_matmul_output_mode", {3}}},
     {kF32, kF32, kF32, kF32}},
    {"RotaryEmbedding", {of({1, 2, 3, 8})}, {of({9, 4}), of({9, 4}), {{1, 3}, kI64, {0, 1, 2}}}},
    {"RotaryEmbedding",
     {of({1, 3, 8})},
     {of({1, 3, 2}), of({1, 3, 2})},
     {{"num_heads", {2}}, {"interleaved", {1}}, {"rotary_embedding_dim", {4}}}},
    {"LSTM", {of({3, 2, 4})}, {of({1, 8, 4}), of({1, 8, 2})}, {}, {kF32, kF32, kF32}},
    {"LSTM",
     {of({3, 2, 4})},
     {of({1, 4, 4}),
      of({1, 4, 1}),
      of({1, 8}),
      {{2}, ENPU_OP_I64, {3, 2}},
      of({1, 2, 1}),
      of({1, 2, 1}),
      of({1, 3})},
     {text("direction", "reverse")},
     {kF32, kF32, kF32}},
    {"LSTM",
     {of({3, 2, 4})},
     {of({2, 4, 4}), of({2, 4, 1}), of({2, 8})},
     {text("direction", "bidirectional")},
     {kF32, kF32, kF32}},
    {"LSTM",
     {of({3, 2, 4})},
     {of({1, 4, 4}), of({1, 4, 1})},
     {{"layout", {1}}, {"activations", {}, {}, {"Sigmoid", "Tanh", "Relu"}}},
     {kF32, kF32, kF32}},
    {"GRU",
     {of({3, 2, 4})},
     {of({1, 3, 4}), of({1, 3, 1}), of({1, 6})},
     {{"linear_before_reset", {1}}},
     {kF32, kF32}},
    {"GRU", {of({3, 2, 4})}, {of({1, 6, 4}), of({1, 6, 2})}, {}, {kF32, kF32}},
    {"RNN", {of({3, 2, 4})}, {of({1, 5, 4}), of({1, 5, 5})}, {}, {kF32, kF32}},
};

// Movement, selection, reductions, types, losses.
const std::vector<Case> kOthers = {
    {"Reshape", {kImage}, {integers({1, 4, -1})}},
    {"Transpose", {kImage}, {}, {{"perm", {0, 2, 3, 1}}}},
    {"Concat", {kImage, kImage}, {}, {{"axis", {1}}}},
    {"Slice", {kImage}, {integers({0, 1}), integers({4, 5}), integers({1, 2})}},
    {"Slice", {kImage}, {integers({5}), integers({-9}), integers({3}), integers({-2})}},
    {"Slice", {kImage}, {}, {{"starts", {0, 1}}, {"ends", {4, 5}}}, {kF32}, 9},
    {"Split", {kImage}, {integers({2, 2})}, {{"axis", {1}}}, {kF32, kF32}},
    {"Split", {kImage}, {}, {{"axis", {3}}, {"num_outputs", {4}}}, {kF32, kF32, kF32, kF32}},
    {"Squeeze", {of({1, 4, 1})}, {integers({0, 2})}},
    {"Unsqueeze", {kVector}, {integers({0, 2})}},
    {"Pad", {kMatrix}, {integers({1, 0, 0, 2})}},
    {"Pad", {kMatrix}, {integers({1, 2}), number(1), integers({1})}, {text("mode", "reflect")}},
    {"Pad", {kMatrix}, {integers({1, 0, 0, 2})}, {text("mode", "wrap")}},
    {"Tile", {kMatrix}, {integers({2, 3})}},
    {"Expand", {of({5, 1})}, {integers({5, 7})}},
    {"Gather", {kMatrix}, {integers({0, 2, 4})}, {{"axis", {0}}}},
    {"GatherElements", {kMatrix, of({2, 7}, kI64)}, {}, {{"axis", {0}}}},
    {"GatherND", {of({2, 3, 4})}, {{{2, 1, 1}, kI64, {1, 2}}}, {{"batch_dims", {1}}}},
    {"GatherND", {of({2, 3, 4})}, {{{3, 2}, kI64, {0, 1, 1, -1, 1, 2}}}},
    {"ScatterND", {of({4, 3})}, {{{2, 1}, kI64, {1, 3}}, of({2, 3})}},
    {"ScatterND", {of({4, 3})}, {{{2, 1}, kI64, {1, 3}}, of({2, 3})}, {text("reduction", "add")}},
    {"ScatterElements",
     {of({4, 3})},
     {{{2, 3}, kI64, {1, 3, 0, 0, 2, 1}}, of({2, 3})},
     {{"axis", {0}}}},
    {"ScatterElements",
     {of({4, 3})},
     {{{1, 2}, kI64, {1, 2}}, of({1, 2})},
     {{"axis", {1}}, text("reduction", "max")}},
    {"Compress", {kMatrix}, {of({5}, ENPU_OP_BOOL)}, {{"axis", {0}}}},
    {"Compress", {kMatrix}, {of({5}, ENPU_OP_BOOL)}},
    {"ReverseSequence",
     {of({4, 3})},
     {integers({4, 2, 1})},
     {{"time_axis", {0}}, {"batch_axis", {1}}}},
    {"Trilu", {kMatrix}, {integer(1)}},
    {"Trilu", {kMatrix}, {}, {{"upper", {0}}}},
    {"Hardmax", {kMatrix}, {}},
    {"Hardmax", {kImage}, {}, {{"axis", {2}}}, {kF32}, 11},
    {"OneHot", {of({3}, kI64)}, {integer(5), floats({0, 1})}, {}, {kF32}},
    {"OneHot", {of({3, 2}, kI64)}, {integer(5), floats({0, 1})}, {{"axis", {0}}}, {kF32}},
    {"TopK", {kMatrix}, {integers({3})}, {}, {kF32, kI64}},
    {"TopK", {of({5, 7}, kI64)}, {integers({2})}, {{"largest", {0}}, {"axis", {0}}}, {kI64, kI64}},
    {"CumSum", {kMatrix}, {integer(1)}},
    {"CumSum", {kMatrix}, {integer(0)}, {{"exclusive", {1}}, {"reverse", {1}}}},
    {"ReduceSum", {kImage}, {integers({2, 3})}, {{"keepdims", {1}}}},
    {"ReduceL2", {kImage}, {integers({1})}, {{"keepdims", {0}}}},
    {"ReduceLogSumExp", {kImage}, {integers({1, 3})}, {{"keepdims", {0}}}},
    {"ArgMax", {kMatrix}, {}, {{"axis", {1}}}, {kI64}},
    {"ArgMin",
     {kMatrix},
     {},
     {{"axis", {0}}, {"select_last_index", {1}}, {"keepdims", {0}}},
     {kI64}},
    {"Resize", {kImage}, {kNone, kNone, integers({1, 4, 9, 9})}},
    {"Resize",
     {kImage},
     {kNone, floats({1, 1, 2, 2})},
     {text("mode", "linear"), text("coordinate_transformation_mode", "align_corners")}},
    {"Resize",
     {kImage},
     {kNone, floats({0.5f, 0.6f})},
     {text("mode", "cubic"), {"antialias", {1}}, {"axes", {2, 3}}, {"exclude_outside", {1}}}},
    {"Upsample", {kImage}, {floats({1, 1, 2, 2})}, {text("mode", "nearest")}},
    {"Cast", {kMatrix}, {}, {{"dtype", {ENPU_OP_F16}}}, {ENPU_OP_F16}},
    {"CastLike", {kMatrix}, {of({2}, kI64)}, {}, {kI64}},
    {"Where", {of({5, 7}, ENPU_OP_BOOL), kMatrix, kMatrix}, {}, {}, {kF32}},
    {"Clip", {kMatrix}, {number(-1), number(2)}},
    {"Clip", {kMatrix}, {}, {real("min", -1), real("max", 2)}, {kF32}, 6},
    {"PRelu", {kImage}, {of({4, 1, 1})}},
    {"Mod", {of({5, 7}, kI64), of({5, 7}, kI64)}, {}},
    {"Mod", {kMatrix, kMatrix}, {}, {{"fmod", {1}}}},
    {"BitShift", {of({5}, kU8), of({5}, kU8)}, {}, {text("direction", "LEFT")}},
    {"BitShift", {of({5}, kU8), of({5}, kU8)}, {}, {text("direction", "RIGHT")}},
    {"IsInf", {kMatrix}, {}, {{"detect_negative", {0}}}, {ENPU_OP_BOOL}},
    {"QuantizeLinear", {kMatrix}, {kScale, kSignedZero}, {}, {kI8}},
    {"QuantizeLinear", {kMatrix}, {of({7}), of({7}, kI8)}, {{"axis", {1}}}, {kI8}},
    {"DequantizeLinear", {of({5, 7}, kI8)}, {kScale, kSignedZero}, {}, {kF32}},
    {"DequantizeLinear",
     {of({5, 8}, kI8)},
     {of({5, 2}), of({5, 2}, kI8)},
     {{"axis", {1}}, {"block_size", {4}}},
     {kF32}},
    {"DynamicQuantizeLinear", {kMatrix}, {}, {}, {kU8, kF32, kU8}},
    {"DepthToSpace", {kImage}, {}, {{"blocksize", {2}}}},
    {"DepthToSpace", {kImage}, {}, {{"blocksize", {2}}, text("mode", "CRD")}},
    {"SpaceToDepth", {kImage}, {}, {{"blocksize", {2}}}},
    {"Flatten", {kImage}, {}, {{"axis", {2}}}},
    {"NegativeLogLikelihoodLoss", {of({3, 5}), of({3}, kI64)}, {of({5})}},
    {"NegativeLogLikelihoodLoss",
     {of({3, 5, 2}), of({3, 2}, kI64)},
     {},
     {{"ignore_index", {1}}, text("reduction", "none")}},
    {"SoftmaxCrossEntropyLoss",
     {of({3, 5}), of({3}, kI64)},
     {of({5})},
     {{"ignore_index", {-1}}, text("reduction", "sum")},
     {kF32, kF32}},
    {"SoftmaxCrossEntropyLoss", {of({3, 5}), of({3}, kI64)}, {of({5})}, {{"ignore_index", {2}}}},
};

// One that shrinks with each way to place the result's coordinates.
std::vector<Case> shrinking() {
    std::vector<Case> all;
    for (const char* mode :
         {"half_pixel_symmetric", "asymmetric", "align_corners", "pytorch_half_pixel"})
        all.push_back({"Resize",
                       {kImage},
                       {kNone, floats({1, 1, 0.5f, 0.6f})},
                       {text("mode", "linear"),
                        {"antialias", {1}},
                        text("coordinate_transformation_mode", mode)}});
    return all;
}

SeedGraph graph_of(const Case& one, int index) {
    SeedGraph graph{
        one.op + std::string("-") + std::to_string(index), one.inputs, one.constants, {}};
    SeedNode node{one.op, {}, one.attributes, one.outputs, one.opset};
    if (node.outputs.empty()) node.outputs = {one.inputs[0].dtype};
    for (size_t i = 0; i < one.inputs.size() + one.constants.size(); ++i)
        node.inputs.push_back(static_cast<int>(i));
    graph.nodes.push_back(std::move(node));
    return graph;
}

// What takes its operands where graph_of does not put them.
std::vector<SeedGraph> placed() {
    const uint8_t boolean = ENPU_OP_BOOL;
    return {
        {"constant-of-shape", {kMatrix}, {integers({3, 3})}, {{"ConstantOfShape", {1}}}},
        {"range",
         {kMatrix},
         {integer(0), integer(9), integer(2)},
         {{"Range", {1, 2, 3}, {}, {kI64}}}},
        {"shape-arithmetic",
         {kImage},
         {integers({0, 2}), integers({-1}), integers({0})},
         {{"Shape", {0}, {{"start", {1}}, {"end", {3}}}, {kI64}},
          {"Gather", {4, 3}, {{"axis", {0}}}, {kI64}},
          {"Concat", {5, 2}, {{"axis", {0}}}, {kI64}},
          {"Reshape", {0, 6}, {}, {kF32}},
          {"Size", {0}, {}, {kI64}},
          {"ReduceProd", {4}, {{"keepdims", {0}}}, {kI64}}}},
        {"host-slice",
         {kMatrix},
         {{{2, 3}, kI64, {1, 2, 3, 4, 5, 6}}, integers({0}), integers({2}), integers({3, 2})},
         {{"Slice", {1, 2, 3}, {}, {kI64}},
          {"Transpose", {5}, {}, {kI64}},
          {"Squeeze", {6}, {}, {kI64}},
          {"Unsqueeze", {6, 2}, {}, {kI64}},
          {"Expand", {2, 3}, {}, {kI64}},
          {"Where", {1, 1, 1}, {}, {kI64}},
          {"Cast", {1}, {{"dtype", {ENPU_OP_F32}}}, {kF32}},
          {"Reshape", {1, 4}, {}, {kI64}}}},
        {"host-where",
         {kMatrix},
         {of({3}, boolean), floats({1, 2, 3}), floats({4, 5, 6})},
         {{"Where", {1, 2, 3}},
          {"Less", {2, 3}, {}, {boolean}},
          {"Cast", {2}, {{"dtype", {kI64}}}, {kI64}},
          {"Min", {2, 3}},
          {"Pow", {2, 3}},
          {"Div", {2, 3}},
          {"Sqrt", {2}},
          {"Floor", {2}}}},
    };
}

// Groups that the passes fold, fuse or match. x is value 0.
std::vector<SeedGraph> groups() {
    const Tensor three = number(3), six = number(6), zero = number(0), half = number(0.5f),
                 one = number(1), root = number(std::sqrt(2.0f)), two = number(2),
                 small = number(1e-5f);
    std::vector<SeedGraph> all = {
        {"hard-sigmoid",
         {kMatrix},
         {three, zero, six},
         {{"Add", {0, 1}}, {"Clip", {4, 2, 3}}, {"Div", {5, 3}}}},
        {"hard-swish",
         {kMatrix},
         {three, zero, six},
         {{"Add", {0, 1}}, {"Clip", {4, 2, 3}}, {"Mul", {0, 5}}, {"Div", {6, 3}}}},
        {"hard-swish-gate",
         {kMatrix},
         {},
         {{"HardSigmoid", {0}, {real("alpha", 1.0f / 6), real("beta", 0.5f)}}, {"Mul", {0, 1}}}},
        {"silu", {kMatrix}, {}, {{"Sigmoid", {0}}, {"Mul", {1, 0}}}},
        {"gelu-whole",
         {kMatrix},
         {root, one, half},
         {{"Div", {0, 1}}, {"Erf", {4}}, {"Add", {5, 2}}, {"Mul", {0, 6}}, {"Mul", {7, 3}}}},
        {"gelu-half-x",
         {kMatrix},
         {root, one, half},
         {{"Mul", {0, 3}}, {"Div", {0, 1}}, {"Erf", {5}}, {"Add", {6, 2}}, {"Mul", {4, 7}}}},
        {"gelu-half-gate",
         {kMatrix},
         {root, one, half},
         {{"Div", {0, 1}}, {"Erf", {4}}, {"Add", {5, 2}}, {"Mul", {6, 3}}, {"Mul", {0, 7}}}},
        {"layer-norm",
         {kMatrix},
         {two, small, of({7}), of({7})},
         {{"ReduceMean", {0}, {{"axes", {-1}, {}, {}, true}}},
          {"Sub", {0, 5}},
          {"Pow", {6, 1}},
          {"ReduceMean", {7}, {{"axes", {-1}, {}, {}, true}}},
          {"Add", {8, 2}},
          {"Sqrt", {9}},
          {"Div", {6, 10}},
          {"Mul", {11, 3}}}},
        {"conv-batch-norm",
         {kImage},
         {of({6, 4, 3, 3}), of({6}), of({6}), of({6}), of({6}), of({6})},
         {{"Conv", {0, 1, 2}}, {"BatchNormalization", {7, 3, 4, 5, 6}}, {"Relu", {8}}}},
        {"conv-scale-bias",
         {kImage},
         {of({6, 4, 3, 3}), of({6, 1, 1}), of({1, 6, 1, 1})},
         {{"Conv", {0, 1}}, {"Mul", {4, 2}}, {"Add", {5, 3}}, {"LeakyRelu", {6}}}},
        {"conv-transpose-scale",
         {kImage},
         {of({4, 6, 2, 2}), of({6, 1, 1})},
         {{"ConvTranspose", {0, 1}}, {"Mul", {3, 2}}, {"Tanh", {4}}}},
        {"conv-residual",
         {kImage},
         {of({4, 4, 1, 1})},
         {{"Conv", {0, 1}}, {"Add", {2, 0}}, {"Relu", {3}}}},
        {"matmul-bias",
         {kMatrix},
         {of({7, 9}), of({9}), number(2), number(3)},
         {{"MatMul", {0, 1}},
          {"Add", {5, 2}},
          {"Mul", {6, 3}},
          {"Add", {7, 4}},
          {"HardSigmoid", {8}}}},
        {"scalars",
         {kMatrix},
         {two, half},
         {{"Sub", {0, 1}}, {"Sub", {1, 3}}, {"Div", {4, 1}}, {"Pow", {5, 1}}, {"Pow", {6, 2}}}},
        {"activations",
         {kMatrix},
         {},
         {{"Elu", {0}},
          {"Celu", {1}},
          {"Selu", {2}},
          {"ThresholdedRelu", {3}},
          {"Shrink", {4}},
          {"Swish", {5}},
          {"Gelu", {6}, {text("approximate", "tanh")}},
          {"Softplus", {7}}}},
    };
    // QDQ around each product; the bias is quantised by the product of the scales.
    const Tensor scale = number(1), bias = of({6}, ENPU_OP_I32), bias_zero = of({}, ENPU_OP_I32);
    for (const bool relu : {false, true}) {
        SeedGraph graph{relu ? "qdq-conv-relu" : "qdq-conv",
                        {of({1, 4, 6, 6}, kU8)},
                        {scale, kByteZero, of({6, 4, 3, 3}, kI8), kSignedZero, bias, bias_zero},
                        {{"DequantizeLinear", {0, 1, 2}},
                         {"DequantizeLinear", {3, 1, 4}},
                         {"DequantizeLinear", {5, 1, 6}},
                         {"Conv", {7, 8, 9}}}};
        if (relu) graph.nodes.push_back({"Relu", {10}});
        graph.nodes.push_back({"QuantizeLinear", {relu ? 11 : 10, 1, 2}, {}, {kU8}});
        all.push_back(std::move(graph));
    }
    all.push_back({"qdq-matmul",
                   {of({5, 7}, kU8)},
                   {scale, kByteZero, of({7, 9}, kI8)},
                   {{"DequantizeLinear", {0, 1, 2}},
                    {"DequantizeLinear", {3, 1}},
                    {"MatMul", {4, 5}},
                    {"QuantizeLinear", {6, 1, 2}, {}, {kU8}}}});
    all.push_back({"qdq-gemm",
                   {of({5, 7}, kU8)},
                   {scale, kByteZero, of({9, 7}, kI8)},
                   {{"DequantizeLinear", {0, 1, 2}},
                    {"DequantizeLinear", {3, 1}},
                    {"Gemm", {4, 5}, {{"transB", {1}}}},
                    {"QuantizeLinear", {6, 1}, {}, {kU8}}}});
    return all;
}

}  // namespace

std::vector<SeedGraph> seed_graphs() {
    std::vector<SeedGraph> all = groups();
    for (SeedGraph& graph : placed()) all.push_back(std::move(graph));
    int index = 0;
    const std::vector<Case> more = shrinking();
    for (const auto* cases : {&kDense, &kOthers, &more})
        for (const Case& one : *cases) all.push_back(graph_of(one, index++));
    return all;
}

}  // namespace enpu::fuzz
