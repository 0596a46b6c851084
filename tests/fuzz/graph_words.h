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
};
inline constexpr const char* kAttributes[] = {
    "axis", "axes", "alpha", "beta", "auto_pad", "blocksize", "ceil_mode", "count_include_pad",
    "dilations", "epsilon", "exclusive", "group", "keepdims", "kernel_shape", "mode",
    "noop_with_empty_axes", "output_padding", "output_shape", "pads", "perm", "scales",
    "select_last_index", "split", "starts", "ends", "storage_order", "strides", "to", "transA",
    "transB", "allowzero", "coordinate_transformation_mode", "nearest_mode", "num_outputs",
    "num_groups", "direction", "value", "approximate", "fmod", "detect_negative", "steps",
};
inline constexpr const char* kTexts[] = {
    "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "constant", "reflect", "edge", "wrap",
    "nearest", "linear", "cubic", "half_pixel", "align_corners", "asymmetric", "LEFT", "RIGHT",
    "DCR", "CRD", "tanh", "floor", "ceil", "",
};

}  // namespace enpu::fuzz
