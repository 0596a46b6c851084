/* SPDX-License-Identifier: MIT */
/*
 * The operator contract of the HAL: names, operands, parameters and numerics of every kernel that a
 * backend may offer, independent of any chip. The data sheet (docs/hardware.md) is the reference
 * for what each operator computes and how exactly; this header says the same in terms that another
 * chip can fill in. Numbers are part of the ABI and only appended.
 *
 * Plain data: no function here, no state, nothing to free.
 */
#ifndef ENPU_HAL_OPS_H
#define ENPU_HAL_OPS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ENPU_OP_MAX_RANK 8u
#define ENPU_OP_MAX_OPERANDS 6u
#define ENPU_OP_MAX_PARAM_BYTES 112u

/* Element types. NONE marks an operand that is left out. */
enum enpu_op_dtype {
    ENPU_OP_NONE = 0,
    ENPU_OP_F32 = 1,
    ENPU_OP_F16 = 2,
    ENPU_OP_BF16 = 3,
    ENPU_OP_I8 = 4,
    ENPU_OP_U8 = 5,
    ENPU_OP_I32 = 6,
    ENPU_OP_I64 = 7,
    ENPU_OP_BOOL = 8, /* one byte, 0 or 1 */
    ENPU_OP_DTYPES = 9,
};

/* PLAIN follows dims and strides. PACKED is a layout of the backend's own that pack_weights wrote;
 * it fits that device only. */
enum enpu_op_format {
    ENPU_OP_PLAIN = 0,
    ENPU_OP_PACKED = 1,
};

/*
 * Shape and layout of a tensor. Dims are at least 1. Strides count elements; 0 repeats an element
 * (broadcast, inputs only), negative ones run backwards: the address that goes with the tensor is
 * that of the element whose indices are all 0. Broadcast operands have the dims of the output and
 * stride 0.
 */
struct enpu_op_tensor {
    uint32_t dtype;                    /* enum enpu_op_dtype */
    uint32_t rank;                     /* 0 (a scalar) … ENPU_OP_MAX_RANK */
    uint32_t format;                   /* enum enpu_op_format */
    int32_t zero_point;                /* I8 and U8: value that stands for 0 */
    float scale;                       /* I8 and U8: real value of one step; 0 reads as 1 */
    uint32_t reserved;                 /* 0 */
    uint64_t packed_bytes;             /* PACKED: size of the packed buffer; else 0 */
    int64_t dims[ENPU_OP_MAX_RANK];    /* unused ones are 0 */
    int64_t strides[ENPU_OP_MAX_RANK]; /* unused ones are 0 */
};

/*
 * Kernels. The comment gives the name for rt_kernel_lookup, the operands in order ("?" may be left
 * out) and the parameter structure. x, a, b: inputs; y, packed: outputs. An output may not overlap
 * an input, save that the elementwise kernels work in place.
 */
enum enpu_op {
    ENPU_OP_PACK_WEIGHTS = 0, /* "pack_weights": weights, packed; enpu_op_pack_params */
    ENPU_OP_CONV2D_FWD =
        1, /* "conv2d_fwd": x, weights, bias?, residual?, scale?, y; enpu_op_conv_params */
    ENPU_OP_CONV_TRANSPOSE2D_FWD =
        2, /* "conv_transpose2d_fwd": x, weights, bias?, y; enpu_op_conv_params */
    ENPU_OP_MATMUL_FWD =
        3, /* "matmul_fwd": a, b, bias?, residual?, scale?, y; enpu_op_matmul_params */
    ENPU_OP_POOL2D_FWD = 4,  /* "pool2d_fwd": x, y; enpu_op_pool_params */
    ENPU_OP_UNARY = 5,       /* "unary": x, y; enpu_op_unary_params */
    ENPU_OP_BINARY = 6,      /* "binary": a, b, y; enpu_op_binary_params */
    ENPU_OP_SELECT = 7,      /* "select": condition, a, b, y; no parameters */
    ENPU_OP_SOFTMAX_FWD = 8, /* "softmax_fwd": x, y; enpu_op_softmax_params */
    ENPU_OP_NORM_FWD =
        9, /* "norm_fwd": x, scale?, bias?, mean?, variance?, y; enpu_op_norm_params */
    ENPU_OP_REDUCE = 10,     /* "reduce": x, y; enpu_op_reduce_params */
    ENPU_OP_ARG_REDUCE = 11, /* "arg_reduce": x, y; enpu_op_arg_params */
    ENPU_OP_MOVE = 12,       /* "move": x, y; no parameters */
    ENPU_OP_PAD = 13,        /* "pad": x, y; enpu_op_pad_params */
    ENPU_OP_GATHER = 14,     /* "gather": x, indices, y; enpu_op_gather_params */
    ENPU_OP_RESIZE = 15,     /* "resize": x, y; enpu_op_resize_params */
    ENPU_OP_CAST = 16,       /* "cast": x, y; no parameters */
    ENPU_OP_QUANTIZE = 17,   /* "quantize": x, scale, zero_point?, y; no parameters */
    ENPU_OP_DEQUANTIZE = 18, /* "dequantize": x, scale, zero_point?, y; no parameters */
    ENPU_OPS = 19,
};

/* Number of operands of each kernel, left-out ones counted. */
enum enpu_op_operands {
    ENPU_OP_PACK_OPERANDS = 2,
    ENPU_OP_CONV2D_OPERANDS = 6,
    ENPU_OP_CONV_TRANSPOSE2D_OPERANDS = 4,
    ENPU_OP_MATMUL_OPERANDS = 6,
    ENPU_OP_POOL2D_OPERANDS = 2,
    ENPU_OP_UNARY_OPERANDS = 2,
    ENPU_OP_BINARY_OPERANDS = 3,
    ENPU_OP_SELECT_OPERANDS = 4,
    ENPU_OP_SOFTMAX_OPERANDS = 2,
    ENPU_OP_NORM_OPERANDS = 6,
    ENPU_OP_REDUCE_OPERANDS = 2,
    ENPU_OP_ARG_REDUCE_OPERANDS = 2,
    ENPU_OP_MOVE_OPERANDS = 2,
    ENPU_OP_PAD_OPERANDS = 2,
    ENPU_OP_GATHER_OPERANDS = 3,
    ENPU_OP_RESIZE_OPERANDS = 2,
    ENPU_OP_CAST_OPERANDS = 2,
    ENPU_OP_QUANTIZE_OPERANDS = 4,
    ENPU_OP_DEQUANTIZE_OPERANDS = 4,
};

/* Elementwise functions, and the activation fused into other operators; alpha and beta are its
 * parameters. */
enum enpu_op_unary {
    ENPU_OP_UNARY_IDENTITY = 0,
    ENPU_OP_UNARY_RELU = 1,
    ENPU_OP_UNARY_LEAKY_RELU = 2,
    ENPU_OP_UNARY_CLIP = 3,
    ENPU_OP_UNARY_SIGMOID = 4,
    ENPU_OP_UNARY_TANH = 5,
    ENPU_OP_UNARY_GELU = 6,
    ENPU_OP_UNARY_GELU_TANH = 7,
    ENPU_OP_UNARY_SILU = 8,
    ENPU_OP_UNARY_HARD_SIGMOID = 9,
    ENPU_OP_UNARY_HARD_SWISH = 10,
    ENPU_OP_UNARY_ELU = 11,
    ENPU_OP_UNARY_SELU = 12,
    ENPU_OP_UNARY_CELU = 13,
    ENPU_OP_UNARY_SOFTPLUS = 14,
    ENPU_OP_UNARY_SOFTSIGN = 15,
    ENPU_OP_UNARY_MISH = 16,
    ENPU_OP_UNARY_THRESHOLDED_RELU = 17,
    ENPU_OP_UNARY_EXP = 18,
    ENPU_OP_UNARY_LOG = 19,
    ENPU_OP_UNARY_SQRT = 20,
    ENPU_OP_UNARY_RSQRT = 21,
    ENPU_OP_UNARY_RECIPROCAL = 22,
    ENPU_OP_UNARY_ABS = 23,
    ENPU_OP_UNARY_NEG = 24,
    ENPU_OP_UNARY_SIGN = 25,
    ENPU_OP_UNARY_FLOOR = 26,
    ENPU_OP_UNARY_CEIL = 27,
    ENPU_OP_UNARY_ROUND = 28,
    ENPU_OP_UNARY_ERF = 29,
    ENPU_OP_UNARY_SIN = 30,
    ENPU_OP_UNARY_COS = 31,
    ENPU_OP_UNARY_TAN = 32,
    ENPU_OP_UNARY_ASIN = 33,
    ENPU_OP_UNARY_ACOS = 34,
    ENPU_OP_UNARY_ATAN = 35,
    ENPU_OP_UNARY_SINH = 36,
    ENPU_OP_UNARY_COSH = 37,
    ENPU_OP_UNARY_ASINH = 38,
    ENPU_OP_UNARY_ACOSH = 39,
    ENPU_OP_UNARY_ATANH = 40,
    ENPU_OP_UNARY_NOT = 41,
    ENPU_OP_UNARY_ISNAN = 42,
    ENPU_OP_UNARY_ISINF = 43,
    ENPU_OP_UNARY_SQUARE = 44,
    ENPU_OP_UNARY_SCALE = 45,
    ENPU_OP_UNARY_BIT_NOT = 46,
    ENPU_OP_UNARY_QUICK_GELU = 47,
    ENPU_OP_UNARY_SHRINK = 48,
};

/* Functions of binary. Comparisons and logic give BOOL. */
enum enpu_op_binary {
    ENPU_OP_BINARY_ADD = 0,
    ENPU_OP_BINARY_SUB = 1,
    ENPU_OP_BINARY_MUL = 2,
    ENPU_OP_BINARY_DIV = 3,
    ENPU_OP_BINARY_MIN = 4,
    ENPU_OP_BINARY_MAX = 5,
    ENPU_OP_BINARY_POW = 6,
    ENPU_OP_BINARY_MOD = 7,
    ENPU_OP_BINARY_FMOD = 8,
    ENPU_OP_BINARY_PRELU = 9,
    ENPU_OP_BINARY_EQ = 16,
    ENPU_OP_BINARY_NE = 17,
    ENPU_OP_BINARY_LT = 18,
    ENPU_OP_BINARY_LE = 19,
    ENPU_OP_BINARY_GT = 20,
    ENPU_OP_BINARY_GE = 21,
    ENPU_OP_BINARY_AND = 22,
    ENPU_OP_BINARY_OR = 23,
    ENPU_OP_BINARY_XOR = 24,
    ENPU_OP_BINARY_BIT_AND = 25,
    ENPU_OP_BINARY_BIT_OR = 26,
    ENPU_OP_BINARY_BIT_XOR = 27,
    ENPU_OP_BINARY_SHIFT_LEFT = 28,
    ENPU_OP_BINARY_SHIFT_RIGHT = 29,
};

/* Functions of pool2d_fwd. */
enum enpu_op_pool {
    ENPU_OP_POOL_MAX = 0,
    ENPU_OP_POOL_AVERAGE = 1,
    ENPU_OP_POOL_AVERAGE_INCLUDE_PAD = 2,
};

/* Kinds of norm_fwd. */
enum enpu_op_norm {
    ENPU_OP_NORM_LAYER = 0,
    ENPU_OP_NORM_RMS = 1,
    ENPU_OP_NORM_BATCH = 2,
    ENPU_OP_NORM_INSTANCE = 3,
    ENPU_OP_NORM_GROUP = 4,
};

/* Functions of reduce. */
enum enpu_op_reduce {
    ENPU_OP_REDUCE_SUM = 0,
    ENPU_OP_REDUCE_MEAN = 1,
    ENPU_OP_REDUCE_MAX = 2,
    ENPU_OP_REDUCE_MIN = 3,
    ENPU_OP_REDUCE_PROD = 4,
    ENPU_OP_REDUCE_L1 = 5,
    ENPU_OP_REDUCE_L2 = 6,
    ENPU_OP_REDUCE_SUM_SQUARE = 7,
    ENPU_OP_REDUCE_LOG_SUM = 8,
    ENPU_OP_REDUCE_LOG_SUM_EXP = 9,
};

/* Modes of pad. */
enum enpu_op_pad_mode {
    ENPU_OP_PAD_MODE_CONSTANT = 0,
    ENPU_OP_PAD_MODE_EDGE = 1,
    ENPU_OP_PAD_MODE_REFLECT = 2,
    ENPU_OP_PAD_MODE_WRAP = 3,
};

/* TAKE is ONNX Gather (one axis), ELEMENTS is ONNX GatherElements. */
enum enpu_op_gather_mode {
    ENPU_OP_GATHER_MODE_TAKE = 0,
    ENPU_OP_GATHER_MODE_ELEMENTS = 1,
};

/* Interpolation of resize. */
enum enpu_op_resize_mode {
    ENPU_OP_RESIZE_MODE_NEAREST = 0,
    ENPU_OP_RESIZE_MODE_LINEAR = 1,
    ENPU_OP_RESIZE_MODE_CUBIC = 2,
};

/* ONNX coordinate_transformation_mode. */
enum enpu_op_resize_coord {
    ENPU_OP_RESIZE_COORD_HALF_PIXEL = 0,
    ENPU_OP_RESIZE_COORD_PYTORCH_HALF_PIXEL = 1,
    ENPU_OP_RESIZE_COORD_ALIGN_CORNERS = 2,
    ENPU_OP_RESIZE_COORD_ASYMMETRIC = 3,
    ENPU_OP_RESIZE_COORD_HALF_PIXEL_SYMMETRIC = 4,
    ENPU_OP_RESIZE_COORD_TF_CROP_AND_RESIZE = 5,
};

/* ONNX nearest_mode. */
enum enpu_op_resize_round {
    ENPU_OP_RESIZE_ROUND_PREFER_FLOOR = 0,
    ENPU_OP_RESIZE_ROUND_PREFER_CEIL = 1,
    ENPU_OP_RESIZE_ROUND_FLOOR = 2,
    ENPU_OP_RESIZE_ROUND_CEIL = 3,
};

/* What pack_weights prepares weights for. */
enum enpu_op_pack_kind {
    ENPU_OP_PACK_KIND_CONV2D = 0,
    ENPU_OP_PACK_KIND_MATMUL = 1,
    ENPU_OP_PACK_KIND_CONV_TRANSPOSE2D = 2,
};

/* pack_weights: weights [as the kernel of `kind` takes them], packed has the same dims, format
 * PACKED and the size that the backend's packed_size query gave. The packed tensor then stands for
 * the weights in conv2d_fwd, conv_transpose2d_fwd (b of matmul_fwd). */
struct enpu_op_pack_params {
    uint32_t kind; /* enum enpu_op_pack_kind */
    uint32_t groups;
};

/*
 * conv2d_fwd: x [N,C,H,W], weights [O,C/groups,KH,KW], bias [O], residual as y, y [N,O,OH,OW]: y =
 * act(conv + bias + residual). Channels-last is a matter of strides. Integers: exact 32-bit sums of
 * (x - zp)(w - zp); y I32, or I8/U8 = saturate(round_half_even((sum + bias) * scale[o]) + zp) with
 * scale F32 [O] or [1]. conv_transpose2d_fwd: weights [C,O/groups,KH,KW]; OH = (H-1)*stride - pads
 * + dilation*(KH-1) + 1 + output padding, the output padding (0 … max(stride,dilation)-1) being
 * what the dims of y leave.
 */
struct enpu_op_conv_params {
    uint32_t stride[2];   /* h, w; at least 1 */
    uint32_t pad[4];      /* top, left, bottom, right */
    uint32_t dilation[2]; /* h, w; at least 1 */
    uint32_t groups;      /* at least 1 */
    uint32_t act;         /* enum enpu_op_unary, IDENTITY for none */
    float alpha;
    float beta;
};

/* matmul_fwd: a [...,M,K], b [...,K,N], y [...,M,N] with equal batch dims (broadcast and
 * transposition by strides), bias and residual broadcast to y: y = act(scale * a b + bias +
 * residual). Integers as conv2d_fwd, operand scale [N] or [1]. */
struct enpu_op_matmul_params {
    uint32_t act;
    float alpha;
    float beta;
    float scale; /* 0 reads as 1 */
};

/* pool2d_fwd: x [N,C,H,W], y [N,C,OH,OW]. Ceil mode is a larger y: windows start inside the padded
 * input but may pass its end. */
struct enpu_op_pool_params {
    uint32_t function; /* enum enpu_op_pool */
    uint32_t kernel[2];
    uint32_t stride[2];
    uint32_t pad[4]; /* top, left, bottom, right */
    uint32_t dilation[2];
};

/* unary: y = f(x), same dims. */
struct enpu_op_unary_params {
    uint32_t function; /* enum enpu_op_unary */
    float alpha;
    float beta;
};

/* binary: y = act(f(a, b)). select: y = condition ? a : b, condition BOOL. */
struct enpu_op_binary_params {
    uint32_t function; /* enum enpu_op_binary */
    uint32_t act;
    float alpha;
    float beta;
};

struct enpu_op_softmax_params {
    uint32_t axis;
    uint32_t log; /* 1: the logarithm of the softmax */
};

/* norm_fwd: y = act((x - mean) / sqrt(variance + epsilon) * scale + bias). LAYER and RMS over the
 * dims from axis on, scale and bias broadcast to x; BATCH with mean and variance [C]; INSTANCE over
 * the dims after C; GROUP over groups of C and the dims after it. */
struct enpu_op_norm_params {
    uint32_t kind; /* enum enpu_op_norm */
    uint32_t axis;
    uint32_t groups;
    float epsilon;
    uint32_t act;
    float alpha;
    float beta;
};

/* reduce: y has dim 1 on the reduced axes. */
struct enpu_op_reduce_params {
    uint32_t function; /* enum enpu_op_reduce */
    uint32_t axes;     /* bit n: axis n */
};

/* arg_reduce: index of the largest (or smallest) element along an axis, the first (or last) of
 * equal ones; y I32 or I64, dim 1 there. */
struct enpu_op_arg_params {
    uint32_t smallest;
    uint32_t axis;
    uint32_t last;
};

/* pad: before[n] elements in front of axis n, what follows comes from the dims of y. Negative
 * numbers crop. move: y[i] = x[i] with any strides: transpose, slice, concat into a part of y,
 * expand. */
struct enpu_op_pad_params {
    uint32_t mode; /* enum enpu_op_pad_mode */
    int32_t before[ENPU_OP_MAX_RANK];
    uint32_t reserved;
    uint64_t value; /* bits of the constant in the dtype of x */
};

/* gather: TAKE gives y [x before axis, indices dims, x after axis]; ELEMENTS has y as indices. I32
 * or I64 indices, negative ones count from the end; one out of range fails the work with
 * ENPU_HAL_WORK_FAILED. */
struct enpu_op_gather_params {
    uint32_t mode; /* enum enpu_op_gather_mode */
    uint32_t axis;
};

/* resize: ONNX Resize, opset 19. */
struct enpu_op_resize_params {
    uint32_t mode;  /* enum enpu_op_resize_mode */
    uint32_t coord; /* enum enpu_op_resize_coord */
    uint32_t round; /* enum enpu_op_resize_round */
    float cubic_a;
    uint32_t exclude_outside;
    float extrapolation;
    float scale[ENPU_OP_MAX_RANK]; /* per axis; 0 reads as y/x */
    float roi_start[4];            /* of the last four axes */
    float roi_end[4];
};

#ifdef __cplusplus
}
#endif
#endif
