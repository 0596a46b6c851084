// SPDX-License-Identifier: MIT
#include "conv_kernel.h"

#include "plan_cache.h"

namespace enpu::ops {
namespace {

using dnnl::memory;

memory::desc channels_last(int64_t n, int64_t c, int64_t h, int64_t w) {
    return f32_desc({n, c, h, w}, {h * w * c, 1, w * c, c});
}

dnnl::convolution_forward::primitive_desc describe(const ConvSpec& s) {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::post_ops ops;
    if (s.sum) ops.append_sum(1.0f);
    append_activation(ops, s.act);
    attr.set_post_ops(ops);
    const memory::desc weights(weight_dims(s.groups, s.o, s.c, s.kh, s.kw), memory::data_type::f32,
                               memory::format_tag::any);
    const memory::desc bias = s.bias ? f32_desc({s.o}, {1}) : memory::desc();
    return {dnnl_engine(),
            dnnl::prop_kind::forward_inference,
            dnnl::algorithm::convolution_direct,
            channels_last(s.n, s.c, s.h, s.w),
            weights,
            bias,
            channels_last(s.n, s.o, s.oh, s.ow),
            {s.stride[0], s.stride[1]},
            {s.dilation[0] - 1, s.dilation[1] - 1},
            {s.pad[0], s.pad[1]},
            {s.pad[2], s.pad[3]},
            attr};
}

}  // namespace

memory::dims weight_dims(int64_t groups, int64_t o, int64_t c, int64_t kh, int64_t kw) {
    if (groups == 1) return {o, c, kh, kw};
    return {groups, o / groups, c / groups, kh, kw};
}

ConvKernel::ConvKernel(const ConvSpec& spec) {
    const auto desc = describe(spec);
    weights_ = desc.weights_desc();
    scratch_ = desc.scratchpad_desc();
    call_ = PreparedCall(dnnl::convolution_forward(desc),
                         {{DNNL_ARG_SRC, desc.src_desc()},
                          {DNNL_ARG_WEIGHTS, weights_},
                          {DNNL_ARG_BIAS, spec.bias ? desc.bias_desc() : memory::desc()},
                          {DNNL_ARG_DST, desc.dst_desc()},
                          {DNNL_ARG_SCRATCHPAD, scratch_}});
}

void ConvKernel::run(const float* x, const float* weights, const float* bias, float* y,
                     void* scratch) const {
    call_.run({x, weights, bias, y, scratch});
}

std::shared_ptr<const ConvKernel> conv_kernel(const ConvSpec& spec) {
    static PlanCache<ConvSpec, ConvKernel> cache(1024);
    return cache.get(spec, [&] { return std::make_shared<const ConvKernel>(spec); });
}

}  // namespace enpu::ops
