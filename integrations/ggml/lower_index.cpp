// SPDX-License-Identifier: MIT
// Rows and experts by number, masks by place, running sums.
#include <limits>

#include "lower.h"

namespace enpu::ggml {
namespace {

using lowering::fail;

constexpr int64_t kMaxBatches = 64;
constexpr int64_t kMaxAsked = int64_t{1} << 26;     // rows of the table times rows that are written
constexpr int64_t kMaxGathered = int64_t{1} << 26;  // elements of the experts that are chosen

View without_axes(const View& view, size_t count) {
    View result = view;
    const auto n = static_cast<std::ptrdiff_t>(count);
    result.dims.erase(result.dims.begin(), result.dims.begin() + n);
    result.strides.erase(result.strides.begin(), result.strides.begin() + n);
    return result;
}

}  // namespace

View Lowering::counted(uint32_t dtype, int64_t count) {
    lowering::HostTensor tensor = lowering::make_table(dtype, {count});
    for (int64_t i = 0; i < count; ++i) lowering::store(tensor, i, i);
    return upload(std::make_shared<const lowering::HostTensor>(std::move(tensor)));
}

// The rows of src0 go into the table that the result is a view of, at the places that src1 names.
// The device reads by index but does not write by it, so the question is turned round: each row of
// the table asks which row it gets, the last one that names it or itself.
void Lowering::set_rows(const ggml_tensor* node) {
    const View table = tensor(node), names = tensor(node->src[1]), rows = tensor(node->src[0]);
    const bool shared = names.dims[1] == 1 && names.dims[2] == 1;  // one list for all batches
    const int64_t outer = shared ? 1 : table.dims[0], inner = shared ? 1 : table.dims[1];
    if (outer * inner > kMaxBatches) fail("more than 64 batches with lists of their own");
    if (names.dims[3] > kMaxAsked / table.dims[2]) fail("too many rows for a table of this size");
    for (int64_t i = 0; i < outer; ++i) {
        for (int64_t j = 0; j < inner; ++j) {
            const auto batch = [&](const View& v) {
                return shared ? v : slice(slice(v, 0, i, 1), 1, j, 1);
            };
            const View list = without_axes(
                slice(slice(names, 1, i % names.dims[1], 1), 2, j % names.dims[2], 1), 3);
            put_rows(batch(rows), list, batch(table));
        }
    }
}

void Lowering::put_rows(const View& rows, const View& list, const View& table) {
    const int64_t size = table.dims[2], count = list.dims[0];
    const View place = counted(ENPU_OP_I32, size + count);
    const View own = slice(place, 0, 0, size), of_rows = slice(place, 0, size, count);
    // A number out of range fails here.
    const View named = temporary(ENPU_OP_I32, {count});
    add(ENPU_OP_GATHER, enpu_op_gather_params{ENPU_OP_GATHER_MODE_TAKE, 0}, {own, list, named});
    const Dims asked{size, count};
    const auto down = [&](View v) {
        v.dims = {v.dims[0], 1};
        v.strides = {v.strides[0], 0};
        return broadcast(v, asked);
    };
    const View equal = temporary(ENPU_OP_BOOL, asked), answers = temporary(ENPU_OP_I32, asked);
    add(ENPU_OP_BINARY, enpu_op_binary_params{ENPU_OP_BINARY_EQ, 0, 0, 0},
        {down(own), broadcast(named, asked), equal});
    add(ENPU_OP_SELECT, {equal, broadcast(of_rows, asked), down(own), answers});
    const View last = temporary(ENPU_OP_I32, {size, 1});
    add(ENPU_OP_REDUCE, enpu_op_reduce_params{ENPU_OP_REDUCE_MAX, 1u << 1}, {answers, last});

    Dims both = table.dims;
    both[2] += count;
    const View source = temporary(table.dtype, both), result = temporary(table.dtype, table.dims);
    move(table, slice(source, 2, 0, size));
    store(rows, slice(source, 2, size, count));
    add(ENPU_OP_GATHER, enpu_op_gather_params{ENPU_OP_GATHER_MODE_TAKE, 2},
        {source, reshape(last, {size}), result});
    move(result, table);
}

// src0: experts, matrices [K, M]; src2 names some for each column of src1.
void Lowering::mul_mat_id(const ggml_tensor* node) {
    const View experts = dense(floats(node->src[0])), x = floats(node->src[1]);
    const View names = tensor(node->src[2]), y = tensor(node);
    if (y.dtype != ENPU_OP_F32) fail("the result of a product must be f32");
    const int64_t count = experts.dims[1], rows = experts.dims[2], columns = experts.dims[3];
    const int64_t tokens = names.dims[2], used = names.dims[3];
    if (experts.dims[0] != 1 || x.dims[0] != 1) fail("batches of experts are unsupported");
    if (tokens * used > kMaxGathered / (rows * columns))
        fail("too many experts are chosen at once");
    const View chosen = temporary(ENPU_OP_F32, {tokens, used, rows * columns});
    add(ENPU_OP_GATHER, enpu_op_gather_params{ENPU_OP_GATHER_MODE_TAKE, 0},
        {reshape(experts, {count, rows * columns}), without_axes(names, 2), chosen});
    View right = reshape(chosen, {tokens, used, rows, columns});
    std::swap(right.dims[2], right.dims[3]);
    std::swap(right.strides[2], right.strides[3]);
    const auto as_rows = [](View view) {  // [1, tokens, n, K] as [tokens, n, 1, K]
        view.dims.erase(view.dims.begin());
        view.strides.erase(view.strides.begin());
        view.dims.insert(view.dims.begin() + 2, 1);
        view.strides.insert(view.strides.begin() + 2, view.strides[1]);
        return view;
    };
    const View left = broadcast(as_rows(x), {tokens, used, 1, columns});
    add(ENPU_OP_MATMUL_FWD, enpu_op_matmul_params{ENPU_OP_UNARY_IDENTITY, 0, 0, 0},
        {left, right, View{}, View{}, View{}, as_rows(y)});
}

void Lowering::diag_mask(const ggml_tensor* node) {
    const View x = tensor(node->src[0]), y = tensor(node);
    const int64_t rows = x.dims[2], columns = x.dims[3], past = param_i32(node, 0);
    if (rows > (int64_t{1} << 24) / columns) fail("the mask is too large");
    lowering::HostTensor kept = lowering::make_table(ENPU_OP_BOOL, {rows, columns});
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
            lowering::store(kept, r * columns + c, int64_t{c <= past + r});
        }
    }
    const View mask = upload(std::make_shared<const lowering::HostTensor>(std::move(kept)));
    const float hidden =
        node->op == GGML_OP_DIAG_MASK_INF ? -std::numeric_limits<float>::infinity() : 0;
    add(ENPU_OP_SELECT,
        {broadcast(mask, y.dims), x, broadcast(constant({hidden}, {1}), y.dims), y});
}

// Sums of ever longer stretches: each round adds the element 1, 2, 4 … places before.
void Lowering::cumulative_sum(const ggml_tensor* node) {
    View x = tensor(node->src[0]);
    const View y = tensor(node);
    const int64_t size = x.dims[3];
    for (int64_t step = 1; step < size; step *= 2) {
        const View next = temporary(x.dtype, x.dims);
        move(slice(x, 3, 0, step), slice(next, 3, 0, step));
        add(ENPU_OP_BINARY, enpu_op_binary_params{ENPU_OP_BINARY_ADD, 0, 0, 0},
            {slice(x, 3, step, size - step), slice(x, 3, 0, size - step),
             slice(next, 3, step, size - step)});
        x = next;
    }
    store(x, y);
}

}  // namespace enpu::ggml
