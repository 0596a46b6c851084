// SPDX-License-Identifier: MIT
#include "lower.h"

#include <cstring>

namespace enpu::ggml {

using lowering::fail;

uint32_t dtype_of(ggml_type type) {
    switch (type) {
        case GGML_TYPE_F32:
            return ENPU_OP_F32;
        case GGML_TYPE_F16:
            return ENPU_OP_F16;
        case GGML_TYPE_BF16:
            return ENPU_OP_BF16;
        case GGML_TYPE_I8:
            return ENPU_OP_I8;
        case GGML_TYPE_I32:
            return ENPU_OP_I32;
        case GGML_TYPE_I64:
            return ENPU_OP_I64;
        default:
            return ENPU_OP_NONE;
    }
}

float param_f32(const ggml_tensor* node, int index) {
    float value;
    std::memcpy(&value, &node->op_params[index], sizeof(value));
    return value;
}

int32_t param_i32(const ggml_tensor* node, int index) {
    return node->op_params[index];
}

View slice(const View& view, size_t axis, int64_t start, int64_t count) {
    View result = view;
    result.offset += start * view.strides[axis];
    result.dims[axis] = count;
    return result;
}

namespace {

void split_axis(View& view, size_t axis, int64_t inner) {
    const int64_t stride = view.strides[axis];
    view.dims[axis] /= inner;
    view.strides[axis] = stride * inner;
    const auto at = static_cast<std::ptrdiff_t>(axis) + 1;
    view.dims.insert(view.dims.begin() + at, inner);
    view.strides.insert(view.strides.begin() + at, stride);
}

}  // namespace

View repeat_view(const View& x, Dims dims, std::vector<View*> others) {
    View result = x;
    for (size_t axis = dims.size(); axis-- > 0;) {
        const int64_t have = x.dims[axis], want = dims[axis];
        if (have == want) continue;
        if (have == 0 || want % have) fail("an operand does not repeat to the other's dims");
        if (have == 1) {
            result.dims[axis] = want;
            result.strides[axis] = 0;
            continue;
        }
        for (View* other : others) split_axis(*other, axis, have);
        const auto at = static_cast<std::ptrdiff_t>(axis);
        result.dims.insert(result.dims.begin() + at, want / have);
        result.strides.insert(result.strides.begin() + at, 0);
    }
    if (result.dims.size() > ENPU_OP_MAX_RANK) fail("an operand repeats along too many axes");
    return result;
}

View Lowering::tensor(const ggml_tensor* t) {
    const uint32_t dtype = dtype_of(t->type);
    if (dtype == ENPU_OP_NONE) {
        fail(std::string("type ") + ggml_type_name(t->type) + " is no element type of the device");
    }
    const auto found = tensors_.find(t);
    if (found != tensors_.end()) return found->second;
    const auto size = static_cast<int64_t>(ggml_type_size(t->type));
    Dims dims(4), strides(4);
    for (size_t i = 0; i < 4; ++i) {
        const int64_t bytes = static_cast<int64_t>(t->nb[3 - i]);
        if (t->ne[3 - i] < 1) fail("a tensor has no elements");
        if (bytes % size) fail("a stride is no multiple of the element size");
        dims[i] = t->ne[3 - i];
        strides[i] = bytes / size;
    }
    const View view = external(t->data, ggml_nbytes(t), dtype, dims, strides);
    tensors_.emplace(t, view);
    return view;
}

View Lowering::block_part(const ggml_tensor* t, uint32_t dtype, size_t offset, int64_t count) {
    const auto size = static_cast<int64_t>(lowering::dtype_bytes(dtype));
    Dims dims, strides;
    for (size_t i = 4; i-- > 1;) {
        dims.push_back(t->ne[i]);
        strides.push_back(static_cast<int64_t>(t->nb[i]) / size);
    }
    dims.push_back(t->ne[0] / ggml_blck_size(t->type));
    strides.push_back(static_cast<int64_t>(ggml_type_size(t->type)) / size);
    dims.push_back(count);
    strides.push_back(1);
    View view = external(t->data, ggml_nbytes(t), dtype, dims, strides);
    view.offset = static_cast<int64_t>(offset) / size;
    return view;
}

View Lowering::as_f32(const View& view) {
    if (view.dtype == ENPU_OP_F32) return view;
    View y = temporary(ENPU_OP_F32, view.dims);
    add(ENPU_OP_CAST, {view, y});
    return y;
}

View Lowering::floats(const ggml_tensor* t) {
    return ggml_is_quantized(t->type) ? dequantise(t) : as_f32(tensor(t));
}

View Lowering::floats_or_same(const ggml_tensor* t) {
    return ggml_is_quantized(t->type) ? dequantise(t) : tensor(t);
}

View Lowering::input_apart(const ggml_tensor* node) {
    const View x = tensor(node->src[0]);
    if (node->src[0]->data != node->data || x.dtype != ENPU_OP_F32) return as_f32(x);
    View copy = temporary(ENPU_OP_F32, x.dims);
    move(x, copy);
    return copy;
}

View Lowering::constant(const std::vector<float>& values, const Dims& dims) {
    return upload(lowering::host_f32(dims, values));
}

View Lowering::unary(uint32_t function, const View& x, float alpha, float beta) {
    View y = temporary(x.dtype, x.dims);
    add(ENPU_OP_UNARY, enpu_op_unary_params{function, alpha, beta}, {x, y});
    return y;
}

void Lowering::binary_into(uint32_t function, const View& a, const View& b, const View& y) {
    View left = a, out = y;
    const View right = repeat_view(b, a.dims, {&left, &out});
    add(ENPU_OP_BINARY, enpu_op_binary_params{function, ENPU_OP_UNARY_IDENTITY, 0, 0},
        {left, right, out});
}

View Lowering::binary(uint32_t function, const View& a, const View& b) {
    View y = temporary(a.dtype, a.dims);
    binary_into(function, a, b, y);
    return y;
}

void Lowering::store(const View& x, const View& y) {
    add(x.dtype == y.dtype ? ENPU_OP_MOVE : ENPU_OP_CAST, {x, y});
}

View Lowering::result_f32(const View& y) {
    return y.dtype == ENPU_OP_F32 ? y : temporary(ENPU_OP_F32, y.dims);
}

void Lowering::finish(const View& result, const View& y) {
    if (result.buffer != y.buffer) store(result, y);
}

void Lowering::node(const ggml_tensor* t) {
    set_origin(std::string(ggml_op_desc(t)) + " '" + t->name + "'");
    switch (t->op) {
        case GGML_OP_NONE:
        case GGML_OP_VIEW:
        case GGML_OP_RESHAPE:
        case GGML_OP_PERMUTE:
        case GGML_OP_TRANSPOSE:
            return;
        case GGML_OP_ADD:
        case GGML_OP_ADD1:
        case GGML_OP_SUB:
        case GGML_OP_MUL:
        case GGML_OP_DIV:
        case GGML_OP_SQR:
        case GGML_OP_SQRT:
        case GGML_OP_LOG:
        case GGML_OP_SIN:
        case GGML_OP_COS:
        case GGML_OP_SCALE:
        case GGML_OP_CLAMP:
        case GGML_OP_LEAKY_RELU:
        case GGML_OP_UNARY:
            return elementwise(t);
        case GGML_OP_GLU:
            return glu(t);
        case GGML_OP_MUL_MAT:
            return mul_mat(t);
        case GGML_OP_OUT_PROD:
            return out_prod(t);
        case GGML_OP_NORM:
        case GGML_OP_RMS_NORM:
        case GGML_OP_L2_NORM:
        case GGML_OP_GROUP_NORM:
            return norm(t);
        case GGML_OP_SOFT_MAX:
            return soft_max(t);
        case GGML_OP_ROPE:
        case GGML_OP_ROPE_BACK:
            return rope(t);
        case GGML_OP_SUM:
        case GGML_OP_SUM_ROWS:
        case GGML_OP_MEAN:
        case GGML_OP_ARGMAX:
            return reduce(t);
        case GGML_OP_DUP:
        case GGML_OP_CPY:
        case GGML_OP_CONT:
            return copy(t);
        case GGML_OP_REPEAT:
            return repeat(t);
        case GGML_OP_CONCAT:
            return concat(t);
        case GGML_OP_GET_ROWS:
            return get_rows(t);
        case GGML_OP_PAD:
        case GGML_OP_PAD_REFLECT_1D:
            return pad(t);
        case GGML_OP_POOL_2D:
            return pool(t);
        case GGML_OP_ROLL:
            return roll(t);
        case GGML_OP_MUL_MAT_ID:
            return mul_mat_id(t);
        case GGML_OP_FLASH_ATTN_EXT:
            return flash_attention(t);
        case GGML_OP_SET_ROWS:
            return set_rows(t);
        case GGML_OP_DIAG_MASK_INF:
        case GGML_OP_DIAG_MASK_ZERO:
            return diag_mask(t);
        case GGML_OP_CUMSUM:
            return cumulative_sum(t);
        case GGML_OP_CONV_2D:
        case GGML_OP_CONV_2D_DW:
            return conv_2d(t);
        case GGML_OP_IM2COL:
            return im2col(t);
        case GGML_OP_UPSCALE:
            return upscale(t);
        default:
            fail("there is no kernel for it");
    }
}

}  // namespace enpu::ggml
