// SPDX-License-Identifier: MIT
// Arithmetic, functions, gated units.
#include <limits>

#include "lower.h"

namespace enpu::ggml {
namespace {

using lowering::fail;

struct Function {
    uint32_t unary;
    float alpha = 0;
    float beta = 0;
};

// Functions that are one kernel. The formulas behind the names: docs/hardware.md and ggml.h.
bool function_of(const ggml_tensor* node, Function& f) {
    switch (node->op) {
        case GGML_OP_SQR:
            f = {ENPU_OP_UNARY_SQUARE};
            return true;
        case GGML_OP_SQRT:
            f = {ENPU_OP_UNARY_SQRT};
            return true;
        case GGML_OP_LOG:
            f = {ENPU_OP_UNARY_LOG};
            return true;
        case GGML_OP_SIN:
            f = {ENPU_OP_UNARY_SIN};
            return true;
        case GGML_OP_COS:
            f = {ENPU_OP_UNARY_COS};
            return true;
        case GGML_OP_SCALE:
            f = {ENPU_OP_UNARY_SCALE, param_f32(node, 0), param_f32(node, 1)};
            return true;
        case GGML_OP_CLAMP:
            f = {ENPU_OP_UNARY_CLIP, param_f32(node, 0), param_f32(node, 1)};
            return true;
        case GGML_OP_LEAKY_RELU:
            f = {ENPU_OP_UNARY_LEAKY_RELU, param_f32(node, 0)};
            return true;
        case GGML_OP_UNARY:
            break;
        default:
            return false;
    }
    constexpr float kSixth = 1.0f / 6.0f;
    switch (ggml_get_unary_op(node)) {
        case GGML_UNARY_OP_ABS:
            f = {ENPU_OP_UNARY_ABS};
            return true;
        case GGML_UNARY_OP_SGN:
            f = {ENPU_OP_UNARY_SIGN};
            return true;
        case GGML_UNARY_OP_NEG:
            f = {ENPU_OP_UNARY_NEG};
            return true;
        case GGML_UNARY_OP_TANH:
            f = {ENPU_OP_UNARY_TANH};
            return true;
        case GGML_UNARY_OP_ELU:
            f = {ENPU_OP_UNARY_ELU, 1};
            return true;
        case GGML_UNARY_OP_RELU:
            f = {ENPU_OP_UNARY_RELU};
            return true;
        case GGML_UNARY_OP_SIGMOID:
            f = {ENPU_OP_UNARY_SIGMOID};
            return true;
        case GGML_UNARY_OP_GELU:
            f = {ENPU_OP_UNARY_GELU_TANH};
            return true;
        case GGML_UNARY_OP_GELU_ERF:
            f = {ENPU_OP_UNARY_GELU};
            return true;
        case GGML_UNARY_OP_GELU_QUICK:
            f = {ENPU_OP_UNARY_QUICK_GELU, 1.702f};
            return true;
        case GGML_UNARY_OP_SILU:
            f = {ENPU_OP_UNARY_SILU};
            return true;
        case GGML_UNARY_OP_HARDSWISH:
            f = {ENPU_OP_UNARY_HARD_SWISH};
            return true;
        case GGML_UNARY_OP_HARDSIGMOID:
            f = {ENPU_OP_UNARY_HARD_SIGMOID, kSixth, 0.5f};
            return true;
        case GGML_UNARY_OP_EXP:
            f = {ENPU_OP_UNARY_EXP};
            return true;
        case GGML_UNARY_OP_SOFTPLUS:
            f = {ENPU_OP_UNARY_SOFTPLUS};
            return true;
        case GGML_UNARY_OP_FLOOR:
            f = {ENPU_OP_UNARY_FLOOR};
            return true;
        case GGML_UNARY_OP_CEIL:
            f = {ENPU_OP_UNARY_CEIL};
            return true;
        default:
            return false;
    }
}

bool binary_of(ggml_op op, uint32_t& function) {
    switch (op) {
        case GGML_OP_ADD:
        case GGML_OP_ADD1:
            function = ENPU_OP_BINARY_ADD;
            return true;
        case GGML_OP_SUB:
            function = ENPU_OP_BINARY_SUB;
            return true;
        case GGML_OP_MUL:
            function = ENPU_OP_BINARY_MUL;
            return true;
        case GGML_OP_DIV:
            function = ENPU_OP_BINARY_DIV;
            return true;
        default:
            return false;
    }
}

}  // namespace

void Lowering::elementwise(const ggml_tensor* node) {
    const View y = tensor(node);
    uint32_t function = 0;
    if (binary_of(node->op, function)) {
        const View a = tensor(node->src[0]), b = tensor(node->src[1]);
        if (a.dtype == b.dtype && a.dtype == y.dtype) return binary_into(function, a, b, y);
        const View result = result_f32(y);
        binary_into(function, as_f32(a), as_f32(b), result);
        return finish(result, y);
    }
    const View x = tensor(node->src[0]);
    if (x.dtype != y.dtype) fail("input and output have different types");
    Function f;
    if (function_of(node, f)) {
        add(ENPU_OP_UNARY, enpu_op_unary_params{f.unary, f.alpha, f.beta}, {x, y});
        return;
    }
    if (node->op == GGML_OP_UNARY && ggml_get_unary_op(node) == GGML_UNARY_OP_STEP) {
        // 1 where x > 0: the sign, without the negative ones.
        const View sign = unary(ENPU_OP_UNARY_SIGN, x);
        add(ENPU_OP_UNARY, enpu_op_unary_params{ENPU_OP_UNARY_RELU, 0, 0}, {sign, y});
        return;
    }
    fail("there is no kernel for this function");
}

void Lowering::glu(const ggml_tensor* node) {
    uint32_t function = 0;
    float alpha = 0;
    switch (ggml_get_glu_op(node)) {
        case GGML_GLU_OP_REGLU:
            function = ENPU_OP_UNARY_RELU;
            break;
        case GGML_GLU_OP_GEGLU:
            function = ENPU_OP_UNARY_GELU_TANH;
            break;
        case GGML_GLU_OP_SWIGLU:
            function = ENPU_OP_UNARY_SILU;
            break;
        case GGML_GLU_OP_GEGLU_ERF:
            function = ENPU_OP_UNARY_GELU;
            break;
        case GGML_GLU_OP_GEGLU_QUICK:
            function = ENPU_OP_UNARY_QUICK_GELU;
            alpha = 1.702f;
            break;
        default:
            fail("there is no kernel for this gated unit");
    }
    if (param_f32(node, 3) != 0) fail("a limit on the gate has no kernel");
    const View y = tensor(node);
    View x = tensor(node->src[0]), gate;
    if (node->src[1]) {
        gate = tensor(node->src[1]);
    } else {
        const bool swapped = param_i32(node, 1) != 0;
        const View whole = x;
        x = slice(whole, 3, swapped ? y.dims[3] : 0, y.dims[3]);
        gate = slice(whole, 3, swapped ? 0 : y.dims[3], y.dims[3]);
    }
    const View result = result_f32(y);
    const View active = unary(function, as_f32(x), alpha);
    binary_into(ENPU_OP_BINARY_MUL, active, as_f32(gate), result);
    finish(result, y);
}

}  // namespace enpu::ggml
