// SPDX-License-Identifier: MIT
#include "measure.h"

#include <algorithm>
#include <cmath>

#include "failure.h"
#include "output.h"

namespace enpu::tools {
namespace {

constexpr uint64_t kDeadlineNs = 30'000'000'000;

int64_t now_ns() {
    return enpu_deadline_after(0);
}

Buffer make(const Device& device, uint64_t bytes, Place place) {
    return Buffer::create(device, bytes,
                          place == Place::kLocal ? ENPU_BUFFER_LOCAL : ENPU_BUFFER_HOST);
}

void nops(Builder& builder, unsigned count) {
    for (unsigned i = 0; i < count; ++i)
        check([&](enpu_error* e) { return enpu_build_nop(builder.get(), e); });
}

// Words of a job that measures itself: a gate, its begin, its end.
constexpr uint64_t kGate = 0, kBegin = 8, kEnd = 16;

void open_with(Builder& builder, const Buffer& words) {
    check([&](enpu_error* e) {
        return enpu_build_wait(builder.get(), words.get(), kGate, 1, 20'000'000, e);
    });
    check(
        [&](enpu_error* e) { return enpu_build_timestamp(builder.get(), words.get(), kBegin, e); });
}

void close_with(Builder& builder, const Buffer& words) {
    check([&](enpu_error* e) { return enpu_build_timestamp(builder.get(), words.get(), kEnd, e); });
}

double seconds_of(const Buffer& words) {
    const auto* word = words.map<uint64_t>().data();
    return std::max(1.0, static_cast<double>(word[kEnd / 8] - word[kBegin / 8])) / 1e9;
}

}  // namespace

Spread spread_of(std::vector<double> values) {
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    return {values[values.size() / 2], values.front(), values.back(),
            static_cast<unsigned>(values.size())};
}

Measure::Measure(const std::string& spec)
    : device_(Device::open(spec.c_str())),
      context_(Context::create(device_)),
      timeline_(Timeline::create(device_)) {}

int64_t Measure::deadline() const {
    return enpu_deadline_after(kDeadlineNs);
}

Spread Measure::chain_latency(unsigned packets, unsigned jobs) {
    Builder builder(device_, ENPU_ENGINE_KIND_COMPUTE);
    nops(builder, packets);
    const Command command = builder.finish();
    std::vector<double> times;
    for (unsigned i = 0; i < jobs + 2; ++i) {
        const int64_t begin = now_ns();
        context_.submit(0, command, {}, {timeline_.at(++point_)});
        context_.wait(timeline_, point_, deadline());
        if (i >= 2) times.push_back(static_cast<double>(now_ns() - begin));  // after a warm-up
    }
    return spread_of(times);
}

Spread Measure::latency(unsigned jobs) {
    return chain_latency(1, jobs);
}

double Measure::throughput(unsigned jobs, unsigned depth) {
    Builder builder(device_, ENPU_ENGINE_KIND_COMPUTE);
    nops(builder, 1);
    const Command command = builder.finish();
    const uint64_t first = point_;
    const int64_t begin = now_ns();
    for (unsigned i = 0; i < jobs; ++i) {
        context_.submit(0, command, {}, {timeline_.at(++point_)});
        if (i >= depth) context_.wait(timeline_, first + 1 + i - depth, deadline());
    }
    context_.wait(timeline_, point_, deadline());
    return jobs / (static_cast<double>(std::max<int64_t>(1, now_ns() - begin)) / 1e9);
}

Spread Measure::copy_rate(Place from, Place to, uint64_t bytes, unsigned copies, unsigned samples) {
    const Buffer src = make(device_, bytes, from), dst = make(device_, bytes, to);
    const Buffer words = make(device_, 64, Place::kHost);
    Builder builder(device_, ENPU_ENGINE_KIND_COPY), gate(device_, ENPU_ENGINE_KIND_COMPUTE);
    open_with(builder, words);
    for (unsigned i = 0; i < copies; ++i)
        check([&](enpu_error* e) {
            return enpu_build_copy(builder.get(), dst.get(), 0, src.get(), 0, bytes, e);
        });
    close_with(builder, words);
    check([&](enpu_error* e) { return enpu_build_signal(gate.get(), words.get(), kGate, 1, e); });
    const Command command = builder.finish(), opener = gate.finish();
    std::vector<double> rates;
    for (unsigned i = 0; i < samples + 1; ++i) {
        words.map<uint64_t>()[0] = 0;
        context_.submit(copy_engine(0), command, {}, {timeline_.at(++point_)});
        const Timeline opened = Timeline::create(device_);
        context_.submit(0, opener, {}, {opened.at(1)});
        context_.wait(timeline_, point_, deadline());
        if (i > 0) rates.push_back(static_cast<double>(bytes) * copies / seconds_of(words));
    }
    return spread_of(rates);
}

Spread Measure::duplex_rate(uint64_t bytes, unsigned samples) {
    const Place places[2] = {Place::kHost, Place::kLocal};
    Command commands[2];
    Buffer words[2], buffers[4];
    const Buffer opened = make(device_, 64, Place::kHost);
    for (unsigned i = 0; i < 2; ++i) {
        words[i] = make(device_, 64, Place::kHost);
        buffers[2 * i] = make(device_, bytes, places[i]);
        buffers[2 * i + 1] = make(device_, bytes, places[1 - i]);
        Builder builder(device_, ENPU_ENGINE_KIND_COPY);
        open_with(builder, words[i]);
        check([&](enpu_error* e) {
            return enpu_build_copy(builder.get(), buffers[2 * i + 1].get(), 0, buffers[2 * i].get(),
                                   0, bytes, e);
        });
        close_with(builder, words[i]);
        commands[i] = builder.finish();
    }
    Builder gate(device_, ENPU_ENGINE_KIND_COMPUTE);
    for (const Buffer& word : words)
        check(
            [&](enpu_error* e) { return enpu_build_signal(gate.get(), word.get(), kGate, 1, e); });
    const Command opener = gate.finish();
    std::vector<double> rates;
    for (unsigned i = 0; i < samples; ++i) {
        const Timeline ends[2] = {Timeline::create(device_), Timeline::create(device_)};
        for (unsigned k = 0; k < 2; ++k) {
            words[k].map<uint64_t>()[0] = 0;
            context_.submit(copy_engine(k), commands[k], {}, {ends[k].at(1)});
        }
        context_.submit(0, opener, {}, {timeline_.at(++point_)});
        for (const Timeline& end : ends) context_.wait(end, 1, deadline());
        context_.wait(timeline_, point_, deadline());
        rates.push_back(static_cast<double>(bytes) / seconds_of(words[0]) +
                        static_cast<double>(bytes) / seconds_of(words[1]));
    }
    return spread_of(rates);
}

Spread Measure::gemm_rate(uint32_t size, unsigned samples) {
    const uint32_t dims[2] = {size, size};
    const uint64_t bytes = uint64_t{size} * size * 4;
    enpu_operand operands[3] = {};
    const Buffer buffers[3] = {make(device_, bytes, Place::kLocal),
                               make(device_, bytes, Place::kLocal),
                               make(device_, bytes, Place::kLocal)};
    for (unsigned i = 0; i < 3; ++i) {
        operands[i].buffer = buffers[i].get();
        check([&](enpu_error* e) {
            return enpu_tensor_init(&operands[i].tensor, ENPU_DTYPE_F32, 2, dims, e);
        });
    }
    // Small integers: every sum is exact.
    auto a = [](uint32_t i, uint32_t k) { return static_cast<float>((i * 7 + k * 3) % 5) - 2; };
    auto b = [](uint32_t k, uint32_t j) { return static_cast<float>((k * 5 + j * 11) % 7) - 3; };
    for (uint32_t i = 0; i < size; ++i)
        for (uint32_t k = 0; k < size; ++k) {
            buffers[0].map<float>()[uint64_t{i} * size + k] = a(i, k);
            buffers[1].map<float>()[uint64_t{i} * size + k] = b(i, k);
        }
    const Buffer words = make(device_, 64, Place::kHost);
    words.map<uint64_t>()[0] = 1;
    Builder builder(device_, ENPU_ENGINE_KIND_COMPUTE);
    open_with(builder, words);
    const enpu_matmul_params params{0, 0, 0, 1};
    check([&](enpu_error* e) {
        return enpu_build_matmul(builder.get(), &params, &operands[0], &operands[1], nullptr,
                                 nullptr, nullptr, &operands[2], e);
    });
    close_with(builder, words);
    const Command command = builder.finish();
    std::vector<double> rates;
    for (unsigned i = 0; i < samples + 1; ++i) {
        context_.submit(0, command, {}, {timeline_.at(++point_)});
        context_.wait(timeline_, point_, deadline());
        if (i > 0) rates.push_back(std::pow(size, 3) / seconds_of(words));
    }
    for (uint32_t at = 0; at < size; at += 13) {
        float sum = 0;
        for (uint32_t k = 0; k < size; ++k) sum += a(at, k) * b(k, size - 1 - at);
        const float got = buffers[2].map<float>()[uint64_t{at} * size + (size - 1 - at)];
        if (got != sum)
            throw Failure(kCheckFailed, format("gemm: y[%u,%u] is %g, must be %g", at,
                                               size - 1 - at, double(got), double(sum)));
    }
    return spread_of(rates);
}

Spread Measure::wakeup(unsigned jobs) {
    const Buffer words = make(device_, 64, Place::kHost);
    words.map<uint64_t>()[0] = 1;
    Builder builder(device_, ENPU_ENGINE_KIND_COMPUTE);
    open_with(builder, words);
    nops(builder, 64);
    close_with(builder, words);
    const Command command = builder.finish();
    std::vector<double> times;
    for (unsigned i = 0; i < jobs; ++i) {
        uint64_t device_ns = 0, host_ns = 0;
        check([&](enpu_error* e) {
            return enpu_device_get_clock(device_.get(), &device_ns, &host_ns, e);
        });
        context_.submit(0, command, {}, {timeline_.at(++point_)});
        context_.wait(timeline_, point_, deadline());
        const double woken = static_cast<double>(now_ns()) - static_cast<double>(host_ns);
        const double ended =
            static_cast<double>(words.map<uint64_t>()[kEnd / 8]) - static_cast<double>(device_ns);
        times.push_back(std::max(0.0, woken - ended));
    }
    return spread_of(times);
}

}  // namespace enpu::tools
