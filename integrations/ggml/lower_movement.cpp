// SPDX-License-Identifier: MIT
// Copies, rows, padding, windows.
#include "lower.h"

namespace enpu::ggml {
namespace {

using lowering::fail;

}  // namespace

// The elements in ggml's order: the dims may differ, not their product.
void Lowering::copy(const ggml_tensor* node) {
    const View y = tensor(node);
    View x = floats_or_same(node->src[0]);
    if (x.dims != y.dims) {
        if (const auto same = lowering::reshape_view(x, y.dims)) {
            x = *same;
        } else if (const auto target = lowering::reshape_view(y, x.dims)) {
            return store(x, *target);
        } else {
            x = reshape(x, y.dims);
        }
    }
    store(x, y);
}

void Lowering::repeat(const ggml_tensor* node) {
    View y = tensor(node);
    const View x = repeat_view(tensor(node->src[0]), y.dims, {&y});
    move(x, y);
}

void Lowering::concat(const ggml_tensor* node) {
    const int32_t dim = param_i32(node, 0);
    if (dim < 0 || dim > 3) fail("the dim is out of range");
    const auto axis = static_cast<size_t>(3 - dim);
    const View a = tensor(node->src[0]), b = tensor(node->src[1]), y = tensor(node);
    move(a, slice(y, axis, 0, a.dims[axis]));
    move(b, slice(y, axis, a.dims[axis], b.dims[axis]));
}

// Rows of src0 named by src1; each batch has its own rows and names.
void Lowering::get_rows(const ggml_tensor* node) {
    const View x = floats_or_same(node->src[0]);
    const View names = tensor(node->src[1]), y = tensor(node);
    const int64_t batches = names.dims[1] * names.dims[2];
    if (batches > 256) fail("more than 256 batches of rows");
    const enpu_op_gather_params take{ENPU_OP_GATHER_MODE_TAKE, 0};
    for (int64_t i = 0; i < names.dims[1]; ++i) {
        for (int64_t j = 0; j < names.dims[2]; ++j) {
            const auto part = [&](const View& v, size_t first, size_t second) {
                View r = slice(slice(v, first, first == 1 || v.dims[first] > 1 ? i : 0, 1), second,
                               j, 1);
                return r;
            };
            View table = part(x, 0, 1), index = part(names, 1, 2), rows = part(y, 0, 1);
            table.dims.erase(table.dims.begin(), table.dims.begin() + 2);
            table.strides.erase(table.strides.begin(), table.strides.begin() + 2);
            index.dims = {index.dims[3]};
            index.strides = {index.strides[3]};
            rows.dims.erase(rows.dims.begin(), rows.dims.begin() + 2);
            rows.strides.erase(rows.strides.begin(), rows.strides.begin() + 2);
            if (table.dtype == rows.dtype) {
                add(ENPU_OP_GATHER, take, {table, index, rows});
            } else {
                const View found = temporary(table.dtype, rows.dims);
                add(ENPU_OP_GATHER, take, {table, index, found});
                store(found, rows);
            }
        }
    }
}

void Lowering::pad(const ggml_tensor* node) {
    const View x = tensor(node->src[0]), y = tensor(node);
    enpu_op_pad_params params{};
    if (node->op == GGML_OP_PAD_REFLECT_1D) {
        params.mode = ENPU_OP_PAD_MODE_REFLECT;
        params.before[3] = param_i32(node, 0);
    } else {
        if (param_i32(node, 8)) params.mode = ENPU_OP_PAD_MODE_WRAP;
        for (int i = 0; i < 4; ++i) params.before[3 - i] = param_i32(node, 2 * i);
    }
    add(ENPU_OP_PAD, params, {x, y});
}

void Lowering::pool(const ggml_tensor* node) {
    const int32_t kind = param_i32(node, 0);
    const auto at = [&](int i) { return static_cast<uint32_t>(param_i32(node, i)); };
    enpu_op_pool_params params{};
    params.function =
        kind == GGML_OP_POOL_MAX ? ENPU_OP_POOL_MAX : ENPU_OP_POOL_AVERAGE_INCLUDE_PAD;
    params.kernel[0] = at(2), params.kernel[1] = at(1);
    params.stride[0] = at(4), params.stride[1] = at(3);
    params.pad[0] = params.pad[2] = at(6);
    params.pad[1] = params.pad[3] = at(5);
    params.dilation[0] = params.dilation[1] = 1;
    const View y = tensor(node), result = result_f32(y);
    add(ENPU_OP_POOL2D_FWD, params, {as_f32(tensor(node->src[0])), result});
    finish(result, y);
}

void Lowering::roll(const ggml_tensor* node) {
    const View x = tensor(node->src[0]), y = tensor(node);
    // One axis after the other would need copies; each axis cuts both into two parts instead.
    int64_t cut[4];
    for (size_t axis = 0; axis < 4; ++axis) {
        const int64_t size = x.dims[axis], by = param_i32(node, static_cast<int>(3 - axis)) % size;
        cut[axis] = by < 0 ? by + size : by;
    }
    for (unsigned part = 0; part < 16; ++part) {
        View from = x, to = y;
        bool empty = false;
        for (size_t axis = 0; axis < 4; ++axis) {
            const int64_t head = x.dims[axis] - cut[axis];
            const bool wrapped = part >> axis & 1;
            const int64_t count = wrapped ? cut[axis] : head;
            empty = empty || count == 0;
            from = slice(from, axis, wrapped ? head : 0, count);
            to = slice(to, axis, wrapped ? 0 : cut[axis], count);
        }
        if (!empty) move(from, to);
    }
}

}  // namespace enpu::ggml
