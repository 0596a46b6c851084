// SPDX-License-Identifier: MIT
// The dense operators against oneDNN's own choice of layout for the same shape, one thread. Rows of
// the form CONV2D/<shape>/device and CONV2D/<shape>/onednn; their ratio is what counts.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include <tbb/task_arena.h>

#include "conv_kernel.h"
#include "operator.h"
#include "rules.h"

namespace enpu::ops {
namespace {

class OneThread : public Progress {
  public:
    bool proceed() override { return true; }
    void detail(unsigned, int64_t) override {}
    unsigned threads() const override { return 1; }
};

struct Shape {
    const char* name;
    uint32_t c, size, o, kernel, stride, groups;
};
constexpr Shape kConvs[] = {
    {"3x3 64-64 56", 64, 56, 64, 3, 1, 1},        {"3x3 3-32 224 s2", 3, 224, 32, 3, 2, 1},
    {"1x1 128-256 28", 128, 28, 256, 1, 1, 1},    {"1x1 512-512 7", 512, 7, 512, 1, 1, 1},
    {"dw3x3 96 56", 96, 56, 96, 3, 1, 96},        {"dw5x5 96 56", 96, 56, 96, 5, 1, 96},
    {"dw3x3 256 28 s2", 256, 28, 256, 3, 2, 256}, {"3x3 g4 64 56", 64, 56, 64, 3, 1, 4},
    {"3x3 256-256 14", 256, 14, 256, 3, 1, 1},
};

// A packet with storage for its operands, as the command processor would hand it over.
class Job {
  public:
    explicit Job(uint16_t opcode) : words_(enpu_opcode_bytes(opcode) / 8) {
        packet().header.opcode = opcode;
        packet().header.size = static_cast<uint32_t>(words_.size() * 8);
        operands_.resize((packet().header.size - 128) / 96);
    }
    enpu_operator_packet& packet() {
        return *reinterpret_cast<enpu_operator_packet*>(words_.data());
    }

    // dims in order; `last` is the axis stored innermost, the others follow in order.
    float* add(unsigned i, std::vector<uint32_t> dims, bool channels_last) {
        enpu_tensor& t = packet().operands[i];
        t.addr = (i + 1) * 0x100000000ull;
        t.dtype = ENPU_DTYPE_F32;
        t.rank = static_cast<uint8_t>(dims.size());
        std::vector<unsigned> order;
        for (unsigned axis = 0; axis < dims.size(); ++axis) {
            if (!channels_last || axis != 1) order.push_back(axis);
        }
        if (channels_last) order.push_back(1);
        int32_t stride = 1;
        for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
            t.strides[*axis] = stride;
            stride *= static_cast<int32_t>(dims[*axis]);
        }
        std::copy(dims.begin(), dims.end(), t.dims);
        return store(i, static_cast<size_t>(stride));
    }
    float* add_packed(unsigned i, const std::vector<uint32_t>& dims, uint64_t bytes) {
        enpu_tensor& t = packet().operands[i];
        add(i, dims, false);
        std::memset(t.strides, 0, sizeof(t.strides));
        t.format = ENPU_FORMAT_PACKED;
        t.bytes = bytes;
        return store(i, bytes / 4);
    }
    void share(unsigned i, const Job& from, unsigned other) {
        operands_[i].data = from.operands_[other].data;
    }
    Outcome run() {
        OneThread progress;
        return ops::run(packet(), operands_, progress);
    }

  private:
    static size_t enpu_opcode_bytes(uint16_t opcode) {
        return opcode == ENPU_OPCODE_PACK ? 320 : 704;
    }
    float* store(unsigned i, size_t count) {
        storage_.emplace_back(count);
        for (size_t n = 0; n < count; ++n)
            storage_.back()[n] = static_cast<float>(n % 13) * 0.1f - 0.5f;
        operands_[i] = {&packet().operands[i],
                        reinterpret_cast<std::byte*>(storage_.back().data())};
        return storage_.back().data();
    }
    std::vector<uint64_t> words_;
    std::vector<std::vector<float>> storage_;
    std::vector<Operand> operands_;
};

void conv_on_device(benchmark::State& state, const Shape& s) {
    const uint32_t pad = s.kernel / 2, out = (s.size + 2 * pad - s.kernel) / s.stride + 1;
    const std::vector<uint32_t> dims{s.o, s.c / s.groups, s.kernel, s.kernel};
    Job pack(ENPU_OPCODE_PACK);
    pack.add(0, dims, false);
    const uint64_t bytes =
        rules::packed_bytes(pack.packet().operands[0], ENPU_PACK_KIND_CONV2D, s.groups);
    pack.add_packed(1, dims, bytes);
    pack.packet().params.pack = {ENPU_PACK_KIND_CONV2D, s.groups};
    if (pack.run() != Outcome::kDone) return state.SkipWithError("PACK failed");
    Job job(ENPU_OPCODE_CONV2D);
    job.add(0, {1, s.c, s.size, s.size}, true);
    job.add_packed(1, dims, bytes);
    job.share(1, pack, 1);
    job.add(2, {s.o}, false);
    job.add(5, {1, s.o, out, out}, true);
    job.packet().params.conv2d = {
        {s.stride, s.stride}, {pad, pad, pad, pad}, {1, 1}, s.groups, ENPU_UNARY_RELU, 0, 0};
    for (auto _ : state) {
        if (job.run() != Outcome::kDone) return state.SkipWithError("CONV2D failed");
    }
    state.counters["GFLOP/s"] =
        benchmark::Counter(2e-9 * out * out * s.o * (s.c / s.groups) * s.kernel * s.kernel,
                           benchmark::Counter::kIsIterationInvariantRate);
}

// The same convolution with every layout left to oneDNN, bias and RELU fused too.
void conv_by_onednn(benchmark::State& state, const Shape& s) {
    using dnnl::memory;
    const int64_t pad = s.kernel / 2, out = (s.size + 2 * pad - s.kernel) / s.stride + 1;
    const auto any = [](const memory::dims& dims) {
        return memory::desc(dims, memory::data_type::f32, memory::format_tag::any);
    };
    dnnl::primitive_attr attr;
    dnnl::post_ops post;
    post.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
    attr.set_post_ops(post);
    tbb::task_arena arena(1);
    arena.execute([&] {
        const dnnl::convolution_forward::primitive_desc desc(
            dnnl_engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
            any({1, s.c, s.size, s.size}), any(weight_dims(s.groups, s.o, s.c, s.kernel, s.kernel)),
            any({s.o}), any({1, s.o, out, out}), {s.stride, s.stride}, {0, 0}, {pad, pad},
            {pad, pad}, attr);
        const dnnl::convolution_forward primitive(desc);
        std::unordered_map<int, memory> arguments;
        for (const auto& [argument, md] : {std::pair(DNNL_ARG_SRC, desc.src_desc()),
                                           std::pair(DNNL_ARG_WEIGHTS, desc.weights_desc()),
                                           std::pair(DNNL_ARG_BIAS, desc.bias_desc()),
                                           std::pair(DNNL_ARG_DST, desc.dst_desc())}) {
            memory m(md, dnnl_engine());
            std::fill_n(static_cast<float*>(m.get_data_handle()), md.get_size() / 4, 0.1f);
            arguments.emplace(argument, m);
        }
        dnnl::stream stream(dnnl_engine());
        for (auto _ : state) {
            primitive.execute(stream, arguments);
            stream.wait();
        }
    });
}

struct Product {
    const char* name;
    uint32_t m, n, k;
};
constexpr Product kProducts[] = {{"256x256x256", 256, 256, 256},
                                 {"40x6625x120", 40, 6625, 120},
                                 {"128x768x768", 128, 768, 768},
                                 {"1x1000x1024", 1, 1000, 1024}};

void matmul_on_device(benchmark::State& state, const Product& p) {
    Job job(ENPU_OPCODE_MATMUL);
    job.add(0, {p.m, p.k}, false);
    job.add(1, {p.k, p.n}, false);
    job.add(5, {p.m, p.n}, false);
    for (auto _ : state) {
        if (job.run() != Outcome::kDone) return state.SkipWithError("MATMUL failed");
    }
    state.counters["GFLOP/s"] =
        benchmark::Counter(2e-9 * p.m * p.n * p.k, benchmark::Counter::kIsIterationInvariantRate);
}

void matmul_by_onednn(benchmark::State& state, const Product& p) {
    using dnnl::memory;
    const auto any = [](int64_t rows, int64_t cols) {
        return memory::desc({rows, cols}, memory::data_type::f32, memory::format_tag::any);
    };
    tbb::task_arena arena(1);
    arena.execute([&] {
        const dnnl::matmul::primitive_desc desc(dnnl_engine(), any(p.m, p.k), any(p.k, p.n),
                                                any(p.m, p.n));
        const dnnl::matmul primitive(desc);
        std::unordered_map<int, memory> arguments;
        for (const auto& [argument, md] : {std::pair(DNNL_ARG_SRC, desc.src_desc()),
                                           std::pair(DNNL_ARG_WEIGHTS, desc.weights_desc()),
                                           std::pair(DNNL_ARG_DST, desc.dst_desc())}) {
            memory m(md, dnnl_engine());
            std::fill_n(static_cast<float*>(m.get_data_handle()), md.get_size() / 4, 0.1f);
            arguments.emplace(argument, m);
        }
        dnnl::stream stream(dnnl_engine());
        for (auto _ : state) {
            primitive.execute(stream, arguments);
            stream.wait();
        }
    });
}

void register_all() {
    for (const Shape& s : kConvs) {
        const std::string name = std::string("CONV2D/") + s.name;
        benchmark::RegisterBenchmark((name + "/device").c_str(), conv_on_device, s);
        benchmark::RegisterBenchmark((name + "/onednn").c_str(), conv_by_onednn, s);
    }
    for (const Product& p : kProducts) {
        const std::string name = std::string("MATMUL/") + p.name;
        benchmark::RegisterBenchmark((name + "/device").c_str(), matmul_on_device, p);
        benchmark::RegisterBenchmark((name + "/onednn").c_str(), matmul_by_onednn, p);
    }
}

}  // namespace
}  // namespace enpu::ops

int main(int argc, char** argv) {
    enpu::ops::register_all();
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
