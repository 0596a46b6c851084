// SPDX-License-Identifier: MIT
#include "onednn.h"

namespace enpu::ops {

const dnnl::engine& dnnl_engine() {
    static const dnnl::engine engine = [] {
        dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
        return dnnl::engine(dnnl::engine::kind::cpu, 0);
    }();
    return engine;
}

bool can_fuse(const Activation& act) {
    switch (act.function) {
        case ENPU_UNARY_IDENTITY:
        case ENPU_UNARY_RELU:
        case ENPU_UNARY_LEAKY_RELU:
        case ENPU_UNARY_HARD_SIGMOID:
        case ENPU_UNARY_HARD_SWISH:
            return true;
        case ENPU_UNARY_CLIP:
            return act.alpha <= act.beta;
        default:
            return false;
    }
}

void append_activation(dnnl::post_ops& ops, const ActivationKey& act) {
    const float alpha = std::bit_cast<float>(act.alpha), beta = std::bit_cast<float>(act.beta);
    using dnnl::algorithm;
    switch (act.function) {
        case ENPU_UNARY_RELU:
            return ops.append_eltwise(algorithm::eltwise_relu, 0, 0);
        case ENPU_UNARY_LEAKY_RELU:
            return ops.append_eltwise(algorithm::eltwise_relu, alpha, 0);
        case ENPU_UNARY_CLIP:
            return ops.append_eltwise(algorithm::eltwise_clip, alpha, beta);
        case ENPU_UNARY_HARD_SIGMOID:
            return ops.append_eltwise(algorithm::eltwise_hardsigmoid, alpha, beta);
        case ENPU_UNARY_HARD_SWISH:
            return ops.append_eltwise(algorithm::eltwise_hardswish, 1.0f / 6, 0.5f);
        default:
            return;
    }
}

dnnl::memory::desc f32_desc(const dnnl::memory::dims& dims, const dnnl::memory::dims& strides) {
    return {dims, dnnl::memory::data_type::f32, strides};
}

}  // namespace enpu::ops
