// SPDX-License-Identifier: MIT
#include "onednn_peer.h"

#include <cstring>
#include <memory>
#include <unordered_map>

#include <tbb/task_arena.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "stand.h"

namespace enpu::bench {
namespace {

using dnnl::memory;
using Type = memory::data_type;
using Tag = memory::format_tag;

const dnnl::engine& engine() {
    static const dnnl::engine e(dnnl::engine::kind::cpu, 0);
    return e;
}

memory filled(const memory::desc& desc) {
    memory m(desc, engine());
    if (desc.get_data_type() == Type::f32) {
        auto* x = static_cast<float*>(m.get_data_handle());
        for (size_t i = 0; i < desc.get_size() / 4; ++i)
            x[i] = static_cast<float>(i % 13) * 0.1f - 0.6f;
    } else {
        std::memset(m.get_data_handle(), 3, desc.get_size());
    }
    return m;
}

using Arguments = std::unordered_map<int, memory>;

// One thread: an arena of one slot, in which the primitive is made too, because it plans for its arena.
template <class Primitive, class Make>
Peer peer_of(Make&& make, const std::vector<std::pair<int, memory::desc>>& more = {}) {
    auto arena = std::make_shared<tbb::task_arena>(1);
    return arena->execute([&]() -> Peer {
        const auto desc = make();
        auto primitive = std::make_shared<Primitive>(desc);
        auto arguments = std::make_shared<Arguments>();
        arguments->emplace(DNNL_ARG_SRC, filled(desc.src_desc()));
        arguments->emplace(DNNL_ARG_DST, filled(desc.dst_desc()));
        for (const auto& [argument, md] : more) arguments->emplace(argument, filled(md));
        if constexpr (requires { desc.weights_desc(); }) {
            if (desc.weights_desc().get_size() > 0)
                arguments->emplace(DNNL_ARG_WEIGHTS, filled(desc.weights_desc()));
        }
        auto stream = std::make_shared<dnnl::stream>(engine());
        const auto run = [=] {
            return arena->execute([&] {
                const double begin = now_ns();
                primitive->execute(*stream, *arguments);
                stream->wait();
                return now_ns() - begin;
            });
        };
        return {run, desc.impl_info_str()};
    });
}

Peer conv_of(const ConvShape& s, Type x, Type w, Type y) {
    const auto c = [](uint32_t v) { return static_cast<memory::dim>(v); };
    const memory::dims weights =
        s.groups == 1 ? memory::dims{c(s.outputs), c(s.channels), c(s.kernel), c(s.kernel)}
                      : memory::dims{c(s.groups), c(s.outputs / s.groups), c(s.channels / s.groups),
                                     c(s.kernel), c(s.kernel)};
    const memory::dims stride{c(s.stride), c(s.stride)}, pad{c(s.pad()), c(s.pad())};
    const memory::desc bias({c(s.outputs)}, x == Type::f32 ? Type::f32 : Type::s32, Tag::x);
    const memory::desc scale({1}, Type::f32, Tag::x);
    dnnl::primitive_attr attr;
    dnnl::post_ops post;
    post.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
    attr.set_post_ops(post);
    std::vector<std::pair<int, memory::desc>> more{{DNNL_ARG_BIAS, bias}};
    if (x != Type::f32) {
        for (const int argument : {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}) {
            attr.set_scales_mask(argument, 0);
            more.emplace_back(DNNL_ARG_ATTR_SCALES | argument, scale);
        }
    }
    return peer_of<dnnl::convolution_forward>(
        [&] {
            return dnnl::convolution_forward::primitive_desc(
                engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_auto,
                memory::desc({1, c(s.channels), c(s.size), c(s.size)}, x, Tag::any),
                memory::desc(weights, w, Tag::any), bias,
                memory::desc({1, c(s.outputs), c(s.out()), c(s.out())}, y, Tag::any), stride,
                {0, 0}, pad, pad, attr);
        },
        more);
}

Peer matmul_of(const MatmulShape& s, Type a, Type b, Type y) {
    const auto desc = [](uint32_t rows, uint32_t cols, Type type) {
        return memory::desc({static_cast<memory::dim>(rows), static_cast<memory::dim>(cols)}, type,
                            Tag::any);
    };
    return peer_of<dnnl::matmul>([&] {
        return dnnl::matmul::primitive_desc(engine(), desc(s.m, s.k, a), desc(s.k, s.n, b),
                                            desc(s.m, s.n, y));
    });
}

// Sums of 255 * 127 over 64 terms: what saturates in 16 bits gives something else.
bool integers_are_exact() {
    constexpr memory::dim kTerms = 64;
    tbb::task_arena arena(1);
    return arena.execute([&] {
        const auto desc = [](memory::dim rows, memory::dim cols, Type type) {
            return memory::desc({rows, cols}, type, Tag::ab);
        };
        const dnnl::matmul::primitive_desc pd(engine(), desc(1, kTerms, Type::u8),
                                              desc(kTerms, 1, Type::s8), desc(1, 1, Type::s32));
        memory a(pd.src_desc(), engine()), b(pd.weights_desc(), engine()),
            y(pd.dst_desc(), engine());
        std::memset(a.get_data_handle(), 255, kTerms);
        std::memset(b.get_data_handle(), 127, kTerms);
        dnnl::stream stream(engine());
        dnnl::matmul(pd).execute(stream,
                                 {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, y}});
        stream.wait();
        return *static_cast<int32_t*>(y.get_data_handle()) == 255 * 127 * kTerms;
    });
}

}  // namespace

Peer onednn_conv(const ConvShape& shape) {
    return conv_of(shape, Type::f32, Type::f32, Type::f32);
}

Peer onednn_matmul(const MatmulShape& shape) {
    return matmul_of(shape, Type::f32, Type::f32, Type::f32);
}

Peer onednn_conv_integer(const ConvShape& shape) {
    if (!integers_are_exact()) return onednn_conv(shape);
    return conv_of(shape, Type::u8, Type::s8, Type::u8);
}

Peer onednn_matmul_integer(const MatmulShape& shape) {
    if (!integers_are_exact()) return onednn_matmul(shape);
    return matmul_of(shape, Type::u8, Type::s8, Type::s32);
}

Peer onednn_softmax(uint32_t rows, uint32_t columns) {
    const memory::desc desc({rows, columns}, Type::f32, Tag::ab);
    return peer_of<dnnl::softmax_forward>([&] {
        return dnnl::softmax_forward::primitive_desc(engine(), dnnl::prop_kind::forward_inference,
                                                     dnnl::algorithm::softmax_accurate, desc, desc,
                                                     1);
    });
}

Peer onednn_layer_norm(uint32_t rows, uint32_t columns) {
    const memory::desc desc({rows, columns}, Type::f32, Tag::ab),
        scale({columns}, Type::f32, Tag::a);
    using Flags = dnnl::normalization_flags;
    return peer_of<dnnl::layer_normalization_forward>(
        [&] {
            return dnnl::layer_normalization_forward::primitive_desc(
                engine(), dnnl::prop_kind::forward_inference, desc, desc, 1e-5f,
                Flags::use_scale | Flags::use_shift);
        },
        {{DNNL_ARG_SCALE, scale}, {DNNL_ARG_SHIFT, scale}});
}

}  // namespace enpu::bench
