// SPDX-License-Identifier: MIT
// What the dense operators share of oneDNN.
#pragma once

#include <bit>
#include <cstdint>

#include <oneapi/dnnl/dnnl.hpp>

#include "functions.h"

namespace enpu::ops {

// The CPU engine. It uses what the host's processor has, or less where ENPU_MODEL_ISA says so: what the
// data sheet promises of a result holds on all of them.
const dnnl::engine& dnnl_engine();
// The host has AVX-512, and it may be used.
bool has_wide_vectors();
// The host multiplies 8-bit integers and adds the products up in 32 bits (VNNI, AMX), and may use that.
bool has_integer_dot_products();

// An activation as part of a plan's key.
struct ActivationKey {
    uint32_t function = ENPU_UNARY_IDENTITY;
    uint32_t alpha = 0;
    uint32_t beta = 0;
    uint32_t reserved = 0;
};
inline ActivationKey key_of(const Activation& act) {
    return {act.function, std::bit_cast<uint32_t>(act.alpha), std::bit_cast<uint32_t>(act.beta), 0};
}

// True when oneDNN computes the same function as apply_unary, so that it can be fused.
bool can_fuse(const Activation& act);
void append_activation(dnnl::post_ops& ops, const ActivationKey& act);

inline dnnl::memory memory_at(const dnnl::memory::desc& desc, const void* data) {
    return dnnl::memory(desc, dnnl_engine(), const_cast<void*>(data));
}
dnnl::memory::desc f32_desc(const dnnl::memory::dims& dims, const dnnl::memory::dims& strides);

}  // namespace enpu::ops
