// SPDX-License-Identifier: MIT
// Operators on one core of the device beside oneDNN on one thread. Ours is the device's time for packets of
// one command; weights are packed beforehand, activations lie channels-last, where other operators leave them.
#include <algorithm>
#include <memory>
#include <string_view>

#include "onednn_peer.h"
#include "operands.h"

namespace enpu::bench {
namespace {

constexpr ConvShape kConvs[] = {
    {"conv 3x3 64-64 56", 64, 56, 64, 3, 1, 1},
    {"conv 3x3 256-256 14", 256, 14, 256, 3, 1, 1},
    {"conv 1x1 128-256 28", 128, 28, 256, 1, 1, 1},
    {"conv 1x1 512-512 14", 512, 14, 512, 1, 1, 1},
    {"conv depthwise 3x3 96 56", 96, 56, 96, 3, 1, 96},
    {"conv depthwise 5x5 96 56", 96, 56, 96, 5, 1, 96},
};
constexpr ConvShape kIntegerConvs[] = {
    {"conv i8 3x3 64-64 56", 64, 56, 64, 3, 1, 1},
    {"conv i8 3x3 256-256 14", 256, 14, 256, 3, 1, 1},
    {"conv i8 1x1 128-256 28", 128, 28, 256, 1, 1, 1},
    {"conv i8 depthwise 3x3 96 56", 96, 56, 96, 3, 1, 96},
};
constexpr MatmulShape kMatmuls[] = {{"matmul 512", 512, 512, 512},
                                    {"matmul 1024", 1024, 1024, 1024},
                                    {"matmul 2048", 2048, 2048, 2048}};
constexpr MatmulShape kIntegerMatmuls[] = {{"matmul i8 512", 512, 512, 512},
                                           {"matmul i8 1024", 1024, 1024, 1024}};
// Work of a sample, which takes 5 to 10 ms on a processor of 100 to 200 GFLOP/s and of 1 to 2 TOPS: a thread that has just
// been woken finds its caches cold and the units that it needs asleep, which is not the operator's cost.
constexpr double kFloatSample = 1e9, kIntegerSample = 8e9;
constexpr uint32_t kRows = 1024, kColumns = 1024;

class Operators {
  public:
    explicit Operators(const Options& options)
        : options_(options), stand_(std::make_shared<Stand>(options.device)) {}
    std::vector<Result> run();

  private:
    void add(const char* name, double work, const std::function<void(enpu_builder*)>& build,
             const std::function<Peer()>& peer, double sample = kFloatSample);
    void add_conv(const ConvShape& shape, bool integer);
    void add_matmul(const MatmulShape& shape, bool integer);
    void add_rows();

    const Options& options_;
    std::shared_ptr<Stand> stand_;
    std::vector<Case> cases_;
};

void Operators::add(const char* name, double work, const std::function<void(enpu_builder*)>& build,
                    const std::function<Peer()>& peer, double sample) {
    if (std::string_view(name).find(options_.only) == std::string_view::npos) return;
    const auto count = static_cast<unsigned>(std::clamp(sample / work, 1.0, 200.0));
    const Command command = stand_->timed(ENPU_ENGINE_KIND_COMPUTE, count, build);
    Case c{{name, "ns", work, {}, {}}, {}, {}};
    c.ours = [stand = stand_, command, count] {
        stand->run(0, command);
        return stand->device_ns() / count;
    };
    if (options_.peer) {
        const Peer other = peer();
        c.result.note = other.note;
        c.peer = [other, count] {
            double sum = 0;
            for (unsigned i = 0; i < count; ++i) sum += other.run();
            return sum / count;
        };
    }
    cases_.push_back(std::move(c));
}

void Operators::add_conv(const ConvShape& s, bool integer) {
    const auto type = [&](uint32_t small, uint32_t plain) { return integer ? small : plain; };
    const Tensor x = with_scale(make_tensor(*stand_, type(ENPU_DTYPE_U8, ENPU_DTYPE_F32),
                                            {1, s.channels, s.size, s.size}, true),
                                integer ? 0.02f : 0.0f);
    const Tensor plain =
        with_scale(make_tensor(*stand_, type(ENPU_DTYPE_I8, ENPU_DTYPE_F32),
                               {s.outputs, s.channels / s.groups, s.kernel, s.kernel}),
                   integer ? 0.01f : 0.0f);
    const Tensor weights = pack(*stand_, plain, ENPU_PACK_KIND_CONV2D, s.groups);
    const Tensor bias = make_tensor(*stand_, type(ENPU_DTYPE_I32, ENPU_DTYPE_F32), {s.outputs});
    const Tensor y = with_scale(make_tensor(*stand_, type(ENPU_DTYPE_U8, ENPU_DTYPE_F32),
                                            {1, s.outputs, s.out(), s.out()}, true),
                                integer ? 0.5f : 0.0f);
    const enpu_conv2d_params params{{s.stride, s.stride},
                                    {s.pad(), s.pad(), s.pad(), s.pad()},
                                    {1, 1},
                                    s.groups,
                                    ENPU_UNARY_RELU,
                                    0,
                                    0};
    const double work =
        2.0 * s.out() * s.out() * s.outputs * (s.channels / s.groups) * s.kernel * s.kernel;
    add(
        s.name, work,
        [=](enpu_builder* builder) {
            check([&](enpu_error* e) {
                return enpu_build_conv2d(builder, &params, &x.operand, &weights.operand,
                                         &bias.operand, nullptr, nullptr, &y.operand, e);
            });
        },
        [&] { return integer ? onednn_conv_integer(s) : onednn_conv(s); },
        integer ? kIntegerSample : kFloatSample);
}

void Operators::add_matmul(const MatmulShape& s, bool integer) {
    const uint32_t in = integer ? ENPU_DTYPE_U8 : ENPU_DTYPE_F32,
                   out = integer ? ENPU_DTYPE_I32 : ENPU_DTYPE_F32;
    const Tensor a = make_tensor(*stand_, in, {s.m, s.k}),
                 y = make_tensor(*stand_, out, {s.m, s.n});
    const Tensor b =
        pack(*stand_, make_tensor(*stand_, integer ? ENPU_DTYPE_I8 : ENPU_DTYPE_F32, {s.k, s.n}),
             ENPU_PACK_KIND_MATMUL);
    const enpu_matmul_params params{ENPU_UNARY_IDENTITY, 0, 0, 1};
    add(
        s.name, 2.0 * s.m * s.n * s.k,
        [=](enpu_builder* builder) {
            check([&](enpu_error* e) {
                return enpu_build_matmul(builder, &params, &a.operand, &b.operand, nullptr, nullptr,
                                         nullptr, &y.operand, e);
            });
        },
        [&] { return integer ? onednn_matmul_integer(s) : onednn_matmul(s); },
        integer ? kIntegerSample : kFloatSample);
}

void Operators::add_rows() {
    const Tensor x = make_tensor(*stand_, ENPU_DTYPE_F32, {kRows, kColumns}),
                 y = make_tensor(*stand_, ENPU_DTYPE_F32, {kRows, kColumns});
    // Repeated along the rows by stride 0.
    const auto parameter = [&] {
        Tensor t = make_tensor(*stand_, ENPU_DTYPE_F32, {1, kColumns});
        t.operand.tensor.dims[0] = kRows;
        t.operand.tensor.strides[0] = 0;
        return t;
    };
    const Tensor scale = parameter(), shift = parameter();
    const enpu_softmax_params softmax{1, 0};
    const enpu_norm_params norm{ENPU_NORM_LAYER, 1, 0, 1e-5f, ENPU_UNARY_IDENTITY, 0, 0};
    const double work = 32.0 * kRows * kColumns;
    add(
        "softmax 1024x1024", work,
        [=](enpu_builder* builder) {
            check([&](enpu_error* e) {
                return enpu_build_softmax(builder, &softmax, &x.operand, &y.operand, e);
            });
        },
        [] { return onednn_softmax(kRows, kColumns); });
    add(
        "layer norm 1024x1024", work,
        [=](enpu_builder* builder) {
            check([&](enpu_error* e) {
                return enpu_build_norm(builder, &norm, &x.operand, &scale.operand, &shift.operand,
                                       nullptr, nullptr, &y.operand, e);
            });
        },
        [] { return onednn_layer_norm(kRows, kColumns); });
}

std::vector<Result> Operators::run() {
    for (const MatmulShape& s : kMatmuls)
        if (!options_.quick || s.m < 2048) add_matmul(s, false);
    for (const ConvShape& s : kConvs) add_conv(s, false);
    add_rows();
    for (const MatmulShape& s : kIntegerMatmuls) add_matmul(s, true);
    for (const ConvShape& s : kIntegerConvs) add_conv(s, true);
    return measure(std::move(cases_), options_.runs);
}

}  // namespace

std::vector<Result> bench_operators(const Options& options) {
    return Operators(options).run();
}

}  // namespace enpu::bench
