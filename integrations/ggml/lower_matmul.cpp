// SPDX-License-Identifier: MIT
// Products of matrices, and the quantised types that weights have.
#include "lower.h"

namespace enpu::ggml {
namespace {

using lowering::fail;

View transposed(View view) {
    std::swap(view.dims[2], view.dims[3]);
    std::swap(view.strides[2], view.strides[3]);
    return view;
}

// Batch axes of ggml: `view` serves want/have neighbours one after the other.
View spread_batch(const View& view, const Dims& want) {
    View result{view.buffer, view.offset, view.dtype, {}, {}};
    for (size_t axis = 0; axis < 2; ++axis) {
        if (want[axis] % view.dims[axis]) fail("the batches of the operands do not fit");
        result.dims.insert(result.dims.end(), {view.dims[axis], want[axis] / view.dims[axis]});
        result.strides.insert(result.strides.end(), {view.strides[axis], 0});
    }
    for (size_t axis = 2; axis < 4; ++axis) {
        result.dims.push_back(view.dims[axis]);
        result.strides.push_back(view.strides[axis]);
    }
    return result;
}

// The batch axes of `view` divided as spread_batch divides them for `like`.
View split_batch(const View& view, const View& like) {
    View result{view.buffer, view.offset, view.dtype, {}, {}};
    for (size_t axis = 0; axis < 2; ++axis) {
        const int64_t repeats = view.dims[axis] / like.dims[axis];
        result.dims.insert(result.dims.end(), {like.dims[axis], repeats});
        result.strides.insert(result.strides.end(),
                              {view.strides[axis] * repeats, view.strides[axis]});
    }
    for (size_t axis = 2; axis < 4; ++axis) {
        result.dims.push_back(view.dims[axis]);
        result.strides.push_back(view.strides[axis]);
    }
    return result;
}

constexpr enpu_op_matmul_params kPlain{ENPU_OP_UNARY_IDENTITY, 0, 0, 0};

}  // namespace

// softmax(scale * q k + mask) v, with heads of k and v shared by neighbouring heads of q. The result
// has heads and rows exchanged.
void Lowering::flash_attention(const ggml_tensor* node) {
    const View q = floats(node->src[0]), k = floats(node->src[1]), v = floats(node->src[2]);
    float scale = param_f32(node, 0);
    const float max_bias = param_f32(node, 1), cap = param_f32(node, 2);
    if (cap != 0) scale /= cap;
    const View scores = temporary(ENPU_OP_F32, {q.dims[0], q.dims[1], q.dims[2], k.dims[2]});
    add(ENPU_OP_MATMUL_FWD, enpu_op_matmul_params{ENPU_OP_UNARY_IDENTITY, 0, 0, scale},
        {split_batch(q, k), spread_batch(transposed(k), q.dims), View{}, View{}, View{},
         split_batch(scores, k)});
    View x = scores;
    if (cap != 0) x = unary(ENPU_OP_UNARY_SCALE, unary(ENPU_OP_UNARY_TANH, x), cap, 0);
    const View shares = masked_softmax(x, node->src[3], node->src[4], max_bias);
    const View mixed = temporary(ENPU_OP_F32, {q.dims[0], q.dims[1], q.dims[2], v.dims[3]});
    add(ENPU_OP_MATMUL_FWD, kPlain,
        {split_batch(shares, v), spread_batch(v, shares.dims), View{}, View{}, View{},
         split_batch(mixed, v)});
    View y = tensor(node);
    std::swap(y.dims[1], y.dims[2]);
    std::swap(y.strides[1], y.strides[2]);
    store(mixed, y);
}

// src0 [K, M], src1 [K, N], result [M, N]: the rows of src1 times the transposed src0.
void Lowering::mul_mat(const ggml_tensor* node) {
    const View weights = floats(node->src[0]);
    const View x = floats(node->src[1]);
    const View y = tensor(node);
    if (y.dtype != ENPU_OP_F32) fail("the result of a product must be f32");
    add(ENPU_OP_MATMUL_FWD, kPlain,
        {split_batch(x, weights), spread_batch(transposed(weights), x.dims), View{}, View{}, View{},
         split_batch(y, weights)});
}

// src0 [M, K], src1 [N, K], result [M, N].
void Lowering::out_prod(const ggml_tensor* node) {
    const View a = floats(node->src[0]), b = floats(node->src[1]), y = tensor(node);
    if (y.dtype != ENPU_OP_F32) fail("the result of a product must be f32");
    add(ENPU_OP_MATMUL_FWD, kPlain,
        {split_batch(transposed(b), a), spread_batch(a, b.dims), View{}, View{}, View{},
         split_batch(y, a)});
}

namespace {

enum : size_t { kQ4KScales = 4, kQ4KValues = 16 };  // byte offsets in a block of Q4_K

class Blocks {
  public:
    Blocks(Lowering& to, const ggml_tensor* tensor) : to_(to), tensor_(tensor) {}

    View half(size_t offset) { return to_.as_f32(to_.block_part(tensor_, ENPU_OP_F16, offset, 1)); }
    View bytes(size_t offset, int64_t count) {
        return to_.block_part(tensor_, ENPU_OP_U8, offset, count);
    }
    View with(uint32_t function, const View& x, uint8_t value) {
        auto constant = lowering::make_host_tensor(ENPU_OP_U8, Dims(x.dims.size(), 1));
        constant.bytes[0] = std::byte{value};
        return to_.binary(function, x,
                          to_.upload(std::make_shared<lowering::HostTensor>(std::move(constant))));
    }
    View low(const View& x) { return with(ENPU_OP_BINARY_BIT_AND, x, 15); }
    View high(const View& x) { return with(ENPU_OP_BINARY_SHIFT_RIGHT, x, 4); }
    View join(const View& a, const View& b) { return to_.binary(ENPU_OP_BINARY_BIT_OR, a, b); }

    // The low and then the high halves of `count` bytes, as floats in two runs of `count`.
    View nibbles(size_t offset, int64_t count) {
        const View q = bytes(offset, count);
        Dims dims = q.dims;
        dims.back() = 2 * count;
        const View y = to_.temporary(ENPU_OP_F32, dims);
        to_.store(low(q), slice(y, 4, 0, count));
        to_.store(high(q), slice(y, 4, count, count));
        return y;
    }
    View q4_k();

  private:
    Lowering& to_;
    const ggml_tensor* tensor_;
};

// 256 values in 8 runs of 32; each run has a scale and a minimum of 6 bits: those of runs 0 … 3 lie in
// the low bits of bytes 0 … 7, those of runs 4 … 7 in bytes 8 … 11 with their upper bits in the
// high bits of bytes 0 … 7.
View Blocks::q4_k() {
    const auto in_bytes = [&](size_t first) { return bytes(kQ4KScales + first, 4); };
    const auto upper = [&](const View& x) {
        return with(ENPU_OP_BINARY_SHIFT_LEFT, with(ENPU_OP_BINARY_SHIFT_RIGHT, x, 6), 4);
    };
    Dims dims = in_bytes(0).dims;
    dims.back() = 8;
    const View scales = to_.temporary(ENPU_OP_F32, dims);
    const View minima = to_.temporary(ENPU_OP_F32, dims);
    to_.store(with(ENPU_OP_BINARY_BIT_AND, in_bytes(0), 63), slice(scales, 4, 0, 4));
    to_.store(with(ENPU_OP_BINARY_BIT_AND, in_bytes(4), 63), slice(minima, 4, 0, 4));
    to_.store(join(low(in_bytes(8)), upper(in_bytes(0))), slice(scales, 4, 4, 4));
    to_.store(join(high(in_bytes(8)), upper(in_bytes(4))), slice(minima, 4, 4, 4));
    const View d = to_.binary(ENPU_OP_BINARY_MUL, scales, half(0));
    const View m = to_.binary(ENPU_OP_BINARY_MUL, minima, half(2));

    dims.back() = 256;
    View y = to_.temporary(ENPU_OP_F32, dims);
    for (int64_t run = 0; run < 4; ++run) {  // 32 bytes: values 64 run … 64 run + 63
        const View values = nibbles(kQ4KValues + static_cast<size_t>(32 * run), 32);
        to_.store(values, slice(y, 4, 64 * run, 64));
    }
    Dims runs = dims;
    runs.back() = 8;
    runs.push_back(32);
    const View by_run = to_.reshape(y, runs);
    const auto along = [&](const View& x) {
        Dims one = x.dims;
        one.push_back(1);
        return to_.reshape(x, one);
    };
    to_.binary_into(ENPU_OP_BINARY_MUL, by_run, along(d), by_run);
    to_.binary_into(ENPU_OP_BINARY_SUB, by_run, along(m), by_run);
    return y;
}

}  // namespace

View Lowering::dequantise(const ggml_tensor* t) {
    Blocks blocks(*this, t);
    View y;
    switch (t->type) {
        case GGML_TYPE_Q8_0: {  // f16 scale, 32 bytes
            const View q = as_f32(block_part(t, ENPU_OP_I8, 2, 32));
            y = binary(ENPU_OP_BINARY_MUL, q, blocks.half(0));
            break;
        }
        case GGML_TYPE_Q4_0: {  // f16 scale, 16 bytes: (nibble - 8) * scale
            const View q = unary(ENPU_OP_UNARY_SCALE, blocks.nibbles(2, 16), 1, -8);
            y = binary(ENPU_OP_BINARY_MUL, q, blocks.half(0));
            break;
        }
        case GGML_TYPE_Q4_1: {  // f16 scale, f16 minimum, 16 bytes
            const View q = binary(ENPU_OP_BINARY_MUL, blocks.nibbles(4, 16), blocks.half(0));
            y = binary(ENPU_OP_BINARY_ADD, q, blocks.half(2));
            break;
        }
        case GGML_TYPE_Q4_K:
            y = blocks.q4_k();
            break;
        default:
            fail(std::string("quantised type ") + ggml_type_name(t->type) + " has no kernels");
    }
    return reshape(y, {t->ne[3], t->ne[2], t->ne[1], t->ne[0]});
}

}  // namespace enpu::ggml
