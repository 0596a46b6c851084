// SPDX-License-Identifier: MIT
#include "onednn.h"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace enpu::ops {

namespace {

// ENPU_MODEL_ISA: for who wants the very bits of another host, or its speed.
void limit_isa() {
    const char* limit = std::getenv("ENPU_MODEL_ISA");
    if (limit == nullptr || *limit == 0) return;
    const std::string_view name(limit);
    if (name == "avx2") {
        dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
    } else if (name == "avx512") {
        dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core);
    } else {
        throw std::runtime_error("ENPU_MODEL_ISA is '" + std::string(name) +
                                 "'; it may be avx2 or avx512");
    }
}

bool may_use(dnnl::cpu_isa isa) {
    dnnl_engine();
    const auto has = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    return (has & static_cast<unsigned>(isa)) == static_cast<unsigned>(isa);
}

}  // namespace

const dnnl::engine& dnnl_engine() {
    static const dnnl::engine engine = [] {
        limit_isa();
        return dnnl::engine(dnnl::engine::kind::cpu, 0);
    }();
    return engine;
}

bool has_wide_vectors() {
    static const bool has = may_use(dnnl::cpu_isa::avx512_core);
    return has;
}

bool has_integer_dot_products() {
    static const bool has =
        may_use(dnnl::cpu_isa::avx512_core_vnni) || may_use(dnnl::cpu_isa::avx2_vnni);
    return has;
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
