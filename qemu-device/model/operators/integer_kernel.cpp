// SPDX-License-Identifier: MIT
#include "integer_kernel.h"

#include <algorithm>
#include <cstring>

#include "plan_cache.h"
#include "scratch.h"

namespace enpu::ops {
namespace {

using dnnl::memory;
using Type = memory::data_type;

// What the trial multiplies: 255 by 127, and one weight of each sum is less by one, so that sums are odd where
// that term counts. Saturation and a way through f32 both show.
constexpr int kLargeX = 255, kLargeW = 127;

memory::desc bytes(const memory::dims& dims, const memory::dims& strides, Type type) {
    return {dims, type, strides};
}

memory::desc channels_last(int64_t n, int64_t c, int64_t h, int64_t w, Type type) {
    return bytes({n, c, h, w}, {h * w * c, 1, w * c, c}, type);
}

dnnl::primitive_attr user_scratch() {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attr;
}

void run_call(const PreparedCall& call, size_t scratch_bytes, const void* x, const void* w,
              int32_t* y) {
    Scratch scratch;
    if (scratch_bytes > 0) scratch = Scratch(scratch_bytes);
    call.run({x, w, y, scratch.data()});
}

// Called with x, weights, sums and scratch.
template <class Desc>
PreparedCall prepare(const dnnl::primitive& primitive, const Desc& desc) {
    return {primitive,
            {{DNNL_ARG_SRC, desc.src_desc()},
             {DNNL_ARG_WEIGHTS, desc.weights_desc()},
             {DNNL_ARG_DST, desc.dst_desc()},
             {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}}};
}

// Weights of the trial in the layout of a kernel; `odd(i)` says whether element i is less by one.
template <class Odd>
Scratch trial_weights(const memory::desc& plain, const memory::desc& layout, Odd&& odd) {
    const size_t count = plain.get_size();
    Scratch from(count), to(layout.get_size());
    auto* values = static_cast<int8_t*>(from.data());
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<int8_t>(kLargeW - odd(i));
    if (plain == layout) return from;
    dnnl::stream stream(dnnl_engine());
    memory source = memory_at(plain, from.data()), target = memory_at(layout, to.data());
    dnnl::reorder(source, target).execute(stream, source, target);
    stream.wait();
    return to;
}

// The terms along one axis of the kernel that lie inside the input, at each output index.
int64_t inside(const ConvSpec& s, int axis, int64_t index, int64_t& first_tap) {
    const int64_t size = axis ? s.w : s.h, taps = axis ? s.kw : s.kh;
    int64_t count = 0;
    first_tap = -1;
    for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t at = index * s.stride[axis] - s.pad[axis] + tap * s.dilation[axis];
        if (at < 0 || at >= size) continue;
        ++count;
        if (tap == 0) first_tap = 0;
    }
    return count;
}

}  // namespace

IntegerGemm::IntegerGemm(const IntegerGemmSpec& s) try {
    const bool own = s.b_k == 0 && s.b_n == 0;
    const memory::desc b = own ? memory::desc({s.k, s.n}, Type::s8, memory::format_tag::any)
                               : bytes({s.k, s.n}, {s.b_k, s.b_n}, Type::s8);
    const dnnl::matmul::primitive_desc desc(dnnl_engine(), bytes({s.m, s.k}, {s.a_m, 1}, Type::u8),
                                            b, bytes({s.m, s.n}, {s.n, 1}, Type::s32),
                                            user_scratch());
    b_ = desc.weights_desc();
    scratch_bytes_ = desc.scratchpad_desc().get_size();
    call_ = prepare(dnnl::matmul(desc), desc);

    const size_t x_bytes = desc.src_desc().get_size();
    Scratch x(x_bytes), y(desc.dst_desc().get_size());
    std::memset(x.data(), kLargeX, x_bytes);
    // The term with k = 0 is the odd one; only in a row-major b is it known where that lies.
    const memory::desc plain = own ? integer_desc({s.k, s.n}) : b_;
    const Scratch w = trial_weights(plain, b_, [&](size_t i) {
        if (own || s.b_n == 1) return static_cast<int64_t>(i) < s.n;
        return static_cast<int64_t>(i) % s.b_n == 0;
    });
    auto* sums = static_cast<int32_t*>(y.data());
    run(x.data(), w.data(), sums);
    const auto expected =
        static_cast<int32_t>(static_cast<uint32_t>(kLargeX) *
                             (static_cast<uint32_t>(kLargeW) * static_cast<uint32_t>(s.k) - 1));
    exact_ = std::all_of(sums, sums + s.m * s.n, [&](int32_t sum) { return sum == expected; });
} catch (const dnnl::error&) {
    exact_ = false;  // oneDNN has none
}

void IntegerGemm::run(const void* a, const void* b, int32_t* y) const {
    run_call(call_, scratch_bytes_, a, b, y);
}

IntegerConvKernel::IntegerConvKernel(const ConvSpec& s) try {
    const memory::dims dims = weight_dims(s.groups, s.o, s.c, s.kh, s.kw);
    const dnnl::convolution_forward::primitive_desc desc(
        dnnl_engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        channels_last(s.n, s.c, s.h, s.w, Type::u8),
        memory::desc(dims, Type::s8, memory::format_tag::any), memory::desc(),
        channels_last(s.n, s.o, s.oh, s.ow, Type::s32), memory::dims{s.stride[0], s.stride[1]},
        memory::dims{s.dilation[0] - 1, s.dilation[1] - 1}, memory::dims{s.pad[0], s.pad[1]},
        memory::dims{s.pad[2], s.pad[3]}, user_scratch());
    weights_ = desc.weights_desc();
    scratch_bytes_ = desc.scratchpad_desc().get_size();
    call_ = prepare(dnnl::convolution_forward(desc), desc);

    const size_t x_bytes = desc.src_desc().get_size();
    Scratch x(x_bytes), y(desc.dst_desc().get_size());
    std::memset(x.data(), kLargeX, x_bytes);
    // The first tap of the first channel is the odd one.
    const auto per_output = static_cast<size_t>(s.c / s.groups * s.kh * s.kw);
    const Scratch w =
        trial_weights(integer_desc(dims), weights_, [&](size_t i) { return i % per_output == 0; });
    auto* sums = static_cast<int32_t*>(y.data());
    run(x.data(), w.data(), sums);
    exact_ = true;
    for (int64_t pixel = 0; pixel < s.n * s.oh * s.ow && exact_; ++pixel) {
        int64_t row_tap = 0, col_tap = 0;
        const int64_t taps = inside(s, 0, pixel / s.ow % s.oh, row_tap) *
                             inside(s, 1, pixel % s.ow, col_tap) * (s.c / s.groups);
        const int64_t odd = row_tap == 0 && col_tap == 0 ? 1 : 0;
        const auto expected =
            static_cast<int32_t>(static_cast<uint32_t>(kLargeX * (kLargeW * taps - odd)));
        exact_ = std::all_of(sums + pixel * s.o, sums + (pixel + 1) * s.o,
                             [&](int32_t sum) { return sum == expected; });
    }
} catch (const dnnl::error&) {
    exact_ = false;
}

void IntegerConvKernel::run(const void* x, const void* weights, int32_t* y) const {
    run_call(call_, scratch_bytes_, x, weights, y);
}

dnnl::memory::desc integer_desc(const memory::dims& dims) {
    memory::dims strides(dims.size());
    int64_t stride = 1;
    for (size_t axis = dims.size(); axis-- > 0; stride *= dims[axis]) strides[axis] = stride;
    return bytes(dims, strides, Type::s8);
}

std::shared_ptr<const IntegerGemm> integer_gemm(const IntegerGemmSpec& spec) {
    static PlanCache<IntegerGemmSpec, IntegerGemm> cache(512);
    if (!has_integer_dot_products()) return nullptr;
    auto kernel = cache.get(spec, [&] { return std::make_shared<const IntegerGemm>(spec); });
    return kernel->is_exact() ? kernel : nullptr;
}

std::shared_ptr<const IntegerConvKernel> integer_conv_kernel(const ConvSpec& spec) {
    static PlanCache<ConvSpec, IntegerConvKernel> cache(512);
    if (!has_integer_dot_products()) return nullptr;
    auto kernel = cache.get(spec, [&] { return std::make_shared<const IntegerConvKernel>(spec); });
    return kernel->is_exact() ? kernel : nullptr;
}

}  // namespace enpu::ops
