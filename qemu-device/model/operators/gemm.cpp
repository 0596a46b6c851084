// SPDX-License-Identifier: MIT
#include "gemm.h"

#include <memory>

#include "packed.h"
#include "plan_cache.h"
#include "prepared_call.h"
#include "scratch.h"

namespace enpu::ops {
namespace {

using dnnl::memory;

// Strides on axes of one index mean nothing, but oneDNN looks at them.
memory::desc matrix(int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride) {
    if (cols == 1) col_stride = 1;
    if (rows == 1) row_stride = col_stride == 1 ? cols : 1;
    if (cols == 1 && row_stride < 1) row_stride = 1;
    return f32_desc({rows, cols}, {row_stride, col_stride});
}

class Plan {
  public:
    explicit Plan(const GemmSpec& s) {
        dnnl::primitive_attr attr;
        attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
        dnnl::post_ops ops;
        const float alpha = std::bit_cast<float>(s.alpha);
        if (alpha != 1.0f) ops.append_eltwise(dnnl::algorithm::eltwise_linear, alpha, 0);
        if (s.sum) ops.append_sum(1.0f);
        append_activation(ops, s.act);
        attr.set_post_ops(ops);
        const memory::desc a = matrix(s.m, s.k, s.a_m, s.a_k), y = matrix(s.m, s.n, s.y_m, 1);
        const memory::desc b =
            s.b_block ? *block_desc(s.b_block, {s.k, s.n}) : matrix(s.k, s.n, s.b_k, s.b_n);
        const memory::desc bias = s.bias ? f32_desc({1, s.n}, {s.n, 1}) : memory::desc();
        const dnnl::matmul::primitive_desc desc(dnnl_engine(), a, b, bias, y, attr);
        scratch_bytes_ = desc.scratchpad_desc().get_size();
        call_ = PreparedCall(dnnl::matmul(desc), {{DNNL_ARG_SRC, a},
                                                  {DNNL_ARG_WEIGHTS, b},
                                                  {DNNL_ARG_BIAS, bias},
                                                  {DNNL_ARG_DST, y},
                                                  {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
    }

    void run(const float* a, const float* b, const float* bias, float* y) const {
        Scratch scratch;
        if (scratch_bytes_ > 0) scratch = Scratch(scratch_bytes_);
        call_.run({a, b, bias, y, scratch.data()});
    }

  private:
    size_t scratch_bytes_ = 0;
    PreparedCall call_;
};

}  // namespace

bool is_gemm_matrix(int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride) {
    if (cols == 1 && rows == 1) return true;
    if (cols == 1) return row_stride >= 1;
    if (rows == 1) return col_stride >= 1;
    return (col_stride == 1 && row_stride >= cols) || (row_stride == 1 && col_stride >= rows);
}

memory::desc gemm_layout(int64_t k, int64_t n) {
    constexpr int64_t kRows = 128;
    const memory::desc b({k, n}, memory::data_type::f32, memory::format_tag::any);
    return dnnl::matmul::primitive_desc(dnnl_engine(), matrix(kRows, k, k, 1), b,
                                        matrix(kRows, n, n, 1))
        .weights_desc();
}

void gemm(const GemmSpec& spec, const float* a, const float* b, const float* bias, float* y) {
    static PlanCache<GemmSpec, Plan> cache(1024);
    cache.get(spec, [&] { return std::make_shared<const Plan>(spec); })->run(a, b, bias, y);
}

}  // namespace enpu::ops
