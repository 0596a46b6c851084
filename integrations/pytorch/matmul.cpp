// SPDX-License-Identifier: MIT
// Matrix products, softmax.
#include <ATen/ExpandUtils.h>
#include <torch/library.h>

#include "launch.h"

namespace enpu::pytorch {
namespace {

// out = alpha a b + beta bias; a [..,M,K], b [..,K,N], bias broadcast to the result.
Tensor& product_into(const Tensor& a, const Tensor& b, const Tensor& bias, const Scalar& beta,
                     const Scalar& alpha, Tensor& out) {
    TORCH_CHECK(a.scalar_type() == b.scalar_type(),
                "expected m1 and m2 to have the same dtype, but got: ", a.scalar_type(),
                " != ", b.scalar_type());
    c10::SmallVector<int64_t, 3> sizes(a.sizes().begin(), a.sizes().end());
    sizes.back() = b.size(-1);
    const bool with_bias = bias.defined() && !beta.equal(0);
    Tensor added;
    if (with_bias) added = beta.equal(1) ? bias : bias.mul(beta);
    const float scale = alpha.to<float>();
    if (a.size(-1) == 0 || scale == 0) {
        resize_out(out, sizes);
        return with_bias ? out.copy_(added.expand(sizes)) : out.zero_();
    }
    TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(a.scalar_type()),
                                "enpu: products of matrices of dtype ", a.scalar_type(),
                                " are not computed by the device");
    if (with_bias) added = to_operand(added, a.scalar_type(), "matmul").expand(sizes);
    // The kernel does not write over what it reads.
    const bool aliased = (with_bias && out.storage().is_alias_of(added.storage())) ||
                         out.storage().is_alias_of(a.storage()) ||
                         out.storage().is_alias_of(b.storage());
    if (aliased) {
        Tensor result = new_tensor(sizes, a.scalar_type());
        product_into(a, b, added, 1, alpha, result);
        resize_out(out, sizes);
        return out.copy_(result);
    }
    return write_out(out, sizes, a.scalar_type(), {}, [&](const Tensor& y) {
        const enpu_op_matmul_params params{ENPU_OP_UNARY_IDENTITY, 0, 0, scale};
        launch(ENPU_OP_MATMUL_FWD, params, {a, b, added, Tensor(), Tensor(), y});
    });
}

void check_matrices(const Tensor& a, const Tensor& b, int64_t rank, const char* op) {
    TORCH_CHECK(a.dim() == rank && b.dim() == rank, op, ": both operands must have ", rank,
                " axes, not ", a.dim(), " and ", b.dim());
    TORCH_CHECK(a.size(-1) == b.size(-2) && (rank == 2 || a.size(0) == b.size(0)), op,
                ": shapes cannot be multiplied: ", a.sizes(), " and ", b.sizes());
}

Tensor& mm_out(const Tensor& a, const Tensor& b, Tensor& out) {
    check_matrices(a, b, 2, "mm");
    return product_into(a, b, {}, 0, 1, out);
}

Tensor& bmm_out(const Tensor& a, const Tensor& b, Tensor& out) {
    check_matrices(a, b, 3, "bmm");
    return product_into(a, b, {}, 0, 1, out);
}

Tensor& addmm_out(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
                  const Scalar& alpha, Tensor& out) {
    check_matrices(a, b, 2, "addmm");
    return product_into(a, b, self, beta, alpha, out);
}

Tensor& addmm_activation_out(const Tensor& self, const Tensor& a, const Tensor& b,
                             const Scalar& beta, const Scalar& alpha, bool gelu, Tensor& out) {
    addmm_out(self, a, b, beta, alpha, out);
    return gelu ? at::gelu_(out, "tanh") : at::relu_(out);
}

Tensor& baddbmm_out(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
                    const Scalar& alpha, Tensor& out) {
    check_matrices(a, b, 3, "baddbmm");
    return product_into(a, b, self, beta, alpha, out);
}

Tensor& addmv_out(const Tensor& self, const Tensor& a, const Tensor& x, const Scalar& beta,
                  const Scalar& alpha, Tensor& out) {
    TORCH_CHECK(a.dim() == 2 && x.dim() == 1 && a.size(1) == x.size(0),
                "addmv: shapes cannot be multiplied: ", a.sizes(), " and ", x.sizes());
    Tensor result = new_tensor({0}, a.scalar_type());
    product_into(a, x.unsqueeze(1), self.dim() ? self.unsqueeze(1) : self, beta, alpha, result);
    resize_out(out, {a.size(0)});
    return out.copy_(result.squeeze(1));
}

Tensor dot(const Tensor& a, const Tensor& b) {
    TORCH_CHECK(a.dim() == 1 && b.dim() == 1 && a.size(0) == b.size(0),
                "dot: expected two vectors of one length, got ", a.sizes(), " and ", b.sizes());
    TORCH_CHECK(a.scalar_type() == b.scalar_type(),
                "dot: expected both vectors to have same dtype");
    return a.mul(b).sum();
}

// The batch axis is summed over: one product with batch and K joined.
Tensor addbmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
              const Scalar& alpha) {
    check_matrices(a, b, 3, "addbmm");
    const Tensor rows = a.permute({1, 0, 2}).reshape({a.size(1), a.size(0) * a.size(2)});
    return at::addmm(self, rows, b.reshape({b.size(0) * b.size(1), b.size(2)}), beta, alpha);
}
Tensor& addbmm_out(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
                   const Scalar& alpha, Tensor& out) {
    const Tensor result = at::addbmm(self, a, b, beta, alpha);
    resize_out(out, result.sizes());
    return out.copy_(result);
}
Tensor& addbmm_(Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
                const Scalar& alpha) {
    return self.copy_(at::addbmm(self, a, b, beta, alpha));
}

// ---- softmax

template <uint32_t Log>
Tensor& softmax_out(const Tensor& self, int64_t dim, bool half_to_float, Tensor& out) {
    const ScalarType type = half_to_float ? at::kFloat : self.scalar_type();
    const Tensor x = self.dim() ? to_operand(self, type, "softmax") : self.reshape({1});
    const auto axis = static_cast<uint32_t>(at::maybe_wrap_dim(dim, self.dim()));
    return write_out(out, self.sizes(), type, {x}, [&](const Tensor& y) {
        const enpu_op_softmax_params params{axis, Log};
        launch(ENPU_OP_SOFTMAX_FWD, params, {x, self.dim() ? y : y.view({1})});
    });
}

Tensor& softmax_backward_out(const Tensor& grad, const Tensor& output, int64_t dim,
                             ScalarType input_type, Tensor& out) {
    const Tensor weighted = grad * output;
    const Tensor result = weighted - output * weighted.sum(dim, true);
    resize_out(out, grad.sizes());
    return out.copy_(result);
}

Tensor& log_softmax_backward_out(const Tensor& grad, const Tensor& output, int64_t dim,
                                 ScalarType input_type, Tensor& out) {
    const Tensor share = output.exp() * grad.sum(dim, true);
    return at::sub_out(out, grad, share);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("mm.out", mm_out);
    m.impl("bmm.out", bmm_out);
    m.impl("addmm.out", addmm_out);
    m.impl("_addmm_activation.out", addmm_activation_out);
    m.impl("baddbmm.out", baddbmm_out);
    m.impl("addmv.out", addmv_out);
    m.impl("dot", dot);
    m.impl("vdot", dot);
    m.impl("addbmm", addbmm);
    m.impl("addbmm.out", addbmm_out);
    m.impl("addbmm_", addbmm_);
    m.impl("_softmax.out", softmax_out<0>);
    m.impl("_log_softmax.out", softmax_out<1>);
    m.impl("_softmax_backward_data.out", softmax_backward_out);
    m.impl("_log_softmax_backward_data.out", log_softmax_backward_out);
}

}  // namespace
}  // namespace enpu::pytorch
