// SPDX-License-Identifier: MIT
// Matrix products.
#include <algorithm>

#include "blocks.h"
#include "emit_common.h"
#include "shapes.h"

namespace enpu::lowering {
namespace {

struct Product {
    View a, b, bias;
    float scale = 1;
    bool vector_a = false, vector_b = false;  // operands of rank 1: their axis goes from the result
};

// Equal batch dims by broadcasting.
void align_batches(Product& p) {
    const Dims a(p.a.dims.begin(), p.a.dims.end() - 2), b(p.b.dims.begin(), p.b.dims.end() - 2);
    const Dims batch = broadcast_dims(a, b);
    auto widen = [&](View& view) {
        Dims dims = batch;
        dims.insert(dims.end(), view.dims.end() - 2, view.dims.end());
        const Dims own(view.dims.begin(), view.dims.end());
        view = broadcast_view(view, dims);
    };
    widen(p.a);
    widen(p.b);
}

View result_view(const View& y, const Product& p) {
    View result = y;
    if (p.vector_a) result = without_axis(result, result.dims.size() - 2);
    if (p.vector_b) result = without_axis(result, result.dims.size() - 1);
    return result;
}

// Many rows against one matrix are one product: [.., M, K] becomes [rows, K].
bool collapse_rows(Product& p, Dims& outer) {
    outer.assign(p.a.dims.begin(), p.a.dims.end() - 1);
    if (p.b.dims.size() != 2 || p.a.dims.size() <= 2) return false;
    const auto rows = reshape_view(p.a, {element_count(outer), p.a.dims.back()});
    if (!rows) return false;
    p.a = *rows;
    return true;
}

void emit_product(Emitter& e, const Node& node, Product p) {
    const int64_t k = p.a.dims.back();
    if (p.b.dims[p.b.dims.size() - 2] != k) {
        fail("the inner dims of " + to_string(p.a.dims) + " and " + to_string(p.b.dims) +
             " differ");
    }
    Dims outer;
    const bool collapsed = collapse_rows(p, outer);
    align_batches(p);
    p.b = e.packable(p.b, ENPU_OP_PACK_KIND_MATMUL, 1);
    Dims dims(p.a.dims.begin(), p.a.dims.end() - 1);
    dims.push_back(p.b.dims.back());
    Dims whole = outer;  // dims of the result before rank-1 axes go
    whole.push_back(p.b.dims.back());
    if (!collapsed) whole = dims;

    const View y = e.temporary(p.a.dtype, dims);
    View logical = y;
    logical.dims = whole;
    logical.strides = row_major_strides(whole);
    const View result = result_view(logical, p);
    const bool fused =
        e.fits(node, result.dims) && (node.residual < 0 || !(p.vector_a || p.vector_b));
    const Activation activation = fused ? node.activation : Activation{};
    View residual;
    if (fused && node.residual >= 0) {
        residual = e.reshape(e.broadcast(e.device(node.residual), whole), dims);
    }
    View bias;
    if (!p.bias.absent()) bias = e.broadcast(p.bias, dims);
    const enpu_op_matmul_params params{activation.function, activation.alpha, activation.beta,
                                       p.scale};
    e.add(ENPU_OP_MATMUL_FWD, params, {p.a, p.b, bias, residual, View{}, y});
    if (fused) {
        e.define(node.outputs[0], result);
    } else {
        e.finish(node, result);
    }
}

void emit_matmul(Emitter& e, const Node& node) {
    Product p;
    p.a = e.device(node.input(0));
    p.b = e.device(node.input(1));
    if (p.a.dims.empty() || p.b.dims.empty()) fail("a matrix product of a scalar");
    p.vector_a = p.a.dims.size() == 1;
    p.vector_b = p.b.dims.size() == 1;
    if (p.vector_a) p.a = with_axis(p.a, 0);
    if (p.vector_b) p.b = with_axis(p.b, 1);
    p.bias = e.optional_device(node.input(2));
    emit_product(e, node, p);
}

// beta * C as a view, by a kernel when beta is not 1.
View scaled_bias(Emitter& e, const View& c, float beta) {
    if (beta == 1) return c;
    const View y = e.temporary(c.dtype, c.dims);
    const enpu_op_unary_params params{ENPU_OP_UNARY_SCALE, beta, 0};
    e.add(ENPU_OP_UNARY, params, {c, y});
    return y;
}

void emit_gemm(Emitter& e, const Node& node) {
    Product p;
    p.a = e.device(node.input(0));
    p.b = e.device(node.input(1));
    if (p.a.dims.size() != 2 || p.b.dims.size() != 2) fail("Gemm takes matrices");
    if (node.integer("transA", 0)) p.a = transpose_view(p.a, {1, 0});
    if (node.integer("transB", 0)) p.b = transpose_view(p.b, {1, 0});
    p.scale = node.real("alpha", 1);
    if (p.scale == 0) fail("Gemm with alpha 0 is unsupported");
    const float beta = node.real("beta", 1);
    if (node.input(2) >= 0 && beta != 0) p.bias = scaled_bias(e, e.device(node.inputs[2]), beta);
    emit_product(e, node, p);
}

}  // namespace

const EmitTable& matmul_emitters() {
    static const EmitTable kTable = {{"MatMul", emit_matmul}, {"Gemm", emit_gemm}};
    return kTable;
}

}  // namespace enpu::lowering
