// SPDX-License-Identifier: MIT
// The words that a graph of the lowering fuzzer is made of; an input names them by their place.
#pragma once

namespace enpu::fuzz {

inline constexpr const char* kOps[] = {
    "Abs", "Add", "And", "ArgMax", "ArgMin", "AveragePool", "BatchNormalization", "BitShift",
    "BitwiseAnd", "Cast", "Clip", "Concat", "ConstantOfShape", "Conv", "ConvInteger",
    "ConvTranspose", "DepthToSpace", "DequantizeLinear", "Div", "Dropout", "Equal", "Erf",
    "Expand", "Flatten", "Gather", "GatherElements", "Gemm", "GlobalAveragePool",
    "GlobalMaxPool", "Greater", "GroupNormalization", "HardSigmoid", "HardSwish", "Identity",
    "InstanceNormalization", "IsInf", "LayerNormalization", "LeakyRelu", "LogSoftmax", "MatMul",
    "MatMulInteger", "Max", "MaxPool", "Mean", "Min", "Mod", "Mul", "Neg", "Not", "PRelu",
    "Pad", "Pow", "QLinearConv", "QLinearMatMul", "QuantizeLinear", "RMSNormalization", "Range",
    "ReduceL2", "ReduceMax", "ReduceMean", "ReduceSum", "Relu", "Reshape", "Resize", "Shape",
    "Sigmoid", "Size", "Slice", "Softmax", "SpaceToDepth", "Split", "Sqrt", "Squeeze", "Sub",
    "Sum", "Tanh", "Tile", "Transpose", "Unsqueeze", "Upsample", "Where", "NoSuchOperator",
    // New ones at the end: inputs of the corpus keep their meaning.
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Attention", "BitwiseNot", "BitwiseOr",
    "BitwiseXor", "CastLike", "Ceil", "Celu", "Compress", "Cos", "Cosh", "CumSum",
    "DynamicQuantizeLinear", "Elu", "Exp", "Floor", "GRU", "GatherND", "Gelu", "GreaterOrEqual",
    "Hardmax", "IsNaN", "LRN", "LSTM", "Less", "LessOrEqual", "Log", "LpPool",
    "MeanVarianceNormalization", "Mish", "NegativeLogLikelihoodLoss", "OneHot", "Or", "RNN",
    "Reciprocal", "ReduceL1", "ReduceLogSum", "ReduceLogSumExp", "ReduceMin", "ReduceProd",
    "ReduceSumSquare", "ReverseSequence", "RotaryEmbedding", "Round", "Scatter", "ScatterElements",
    "ScatterND", "Selu", "Shrink", "Sign", "Silu", "Sin", "Sinh", "SoftmaxCrossEntropyLoss",
    "Softplus", "Softsign", "Square", "Swish", "Tan", "ThresholdedRelu", "TopK", "Trilu", "Unary",
    "Xor",
};
inline constexpr const char* kAttributes[] = {
    "axis", "axes", "alpha", "beta", "auto_pad", "blocksize", "ceil_mode", "count_include_pad",
    "dilations", "epsilon", "exclusive", "group", "keepdims", "kernel_shape", "mode",
    "noop_with_empty_axes", "output_padding", "output_shape", "pads", "perm", "scales",
    "select_last_index", "split", "starts", "ends", "storage_order", "strides", "to", "transA",
    "transB", "allowzero", "coordinate_transformation_mode", "nearest_mode", "num_outputs",
    "num_groups", "direction", "value", "approximate", "fmod", "detect_negative", "steps",
    "activation_alpha", "activation_beta", "activations", "antialias", "batch_axis", "batch_dims",
    "bias", "block_size", "clip", "cubic_coeff_a", "detect_positive", "dtype", "end",
    "exclude_outside", "extrapolation_value", "gamma", "ignore_index", "input_forget",
    "interleaved", "is_causal", "k", "keep_aspect_ratio_policy", "kv_num_heads", "lambd", "largest",
    "layout", "linear_before_reset", "max", "min", "num_heads", "p", "q_num_heads",
    "qk_matmul_output_mode", "reduction", "reverse", "rotary_embedding_dim", "scale", "size",
    "softcap", "spatial", "start", "time_axis", "training_mode", "upper", "shape",
};
inline constexpr const char* kTexts[] = {
    "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "constant", "reflect", "edge", "wrap",
    "nearest", "linear", "cubic", "half_pixel", "align_corners", "asymmetric", "LEFT", "RIGHT",
    "DCR", "CRD", "tanh", "floor", "ceil", "",
    "pytorch_half_pixel", "half_pixel_symmetric", "tf_crop_and_resize", "round_prefer_floor",
    "round_prefer_ceil", "stretch", "not_larger", "mean", "sum", "none", "add", "mul", "max", "min",
    "forward", "reverse", "bidirectional", "Tanh", "Sigmoid", "Relu", "HardSigmoid",
};

}  // namespace enpu::fuzz
