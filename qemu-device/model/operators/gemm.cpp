// SPDX-License-Identifier: MIT
#include "gemm.h"

#include <memory>

#include "packed.h"
#include "plan_cache.h"
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
        a_ = matrix(s.m, s.k, s.a_m, s.a_k);
        b_ = s.b_block ? *block_desc(s.b_block, {s.k, s.n}) : matrix(s.k, s.n, s.b_k, s.b_n);
        y_ = matrix(s.m, s.n, s.y_m, 1);
        if (s.bias) bias_ = f32_desc({1, s.n}, {s.n, 1});
        const dnnl::matmul::primitive_desc desc(dnnl_engine(), a_, b_, bias_, y_, attr);
        scratch_ = desc.scratchpad_desc();
        primitive_ = dnnl::matmul(desc);
    }

    void run(const float* a, const float* b, const float* bias, float* y) const {
        dnnl::stream stream(dnnl_engine());
        Scratch scratch;
        if (scratch_.get_size() > 0) scratch = Scratch(scratch_.get_size());
        std::unordered_map<int, memory> arguments{
            {DNNL_ARG_SRC, memory_at(a_, a)},
            {DNNL_ARG_WEIGHTS, memory_at(b_, b)},
            {DNNL_ARG_DST, memory_at(y_, y)},
            {DNNL_ARG_SCRATCHPAD, memory_at(scratch_, scratch.data())}};
        if (bias != nullptr) arguments.emplace(DNNL_ARG_BIAS, memory_at(bias_, bias));
        primitive_.execute(stream, arguments);
        stream.wait();
    }

  private:
    memory::desc a_, b_, y_, bias_, scratch_;
    dnnl::matmul primitive_;
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
