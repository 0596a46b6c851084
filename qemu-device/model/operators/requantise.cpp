// SPDX-License-Identifier: MIT
#include "requantise.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "convert.h"
#include "element.h"
#include "parallel.h"
#include "quantise_one.h"
#include "requantise_row.h"

namespace enpu::ops {
namespace {

constexpr int64_t kGrain = 32768;
constexpr int64_t kLongRow = 1024;

template <class Body>
void parallel(int64_t count, int64_t grain, Body&& body) {
    if (count <= 2 * grain) return body(0, count);
    parallel_ranges(0, count, grain, body);
}

float scale_of(const enpu_tensor& tensor) {
    return tensor.scale == 0 ? 1.0f : tensor.scale;
}

// Sums are 32-bit and wrap.
int32_t add(int32_t a, int32_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

}  // namespace

int64_t largest_magnitude(const enpu_tensor& tensor) {
    const int64_t low = tensor.dtype == ENPU_DTYPE_I8 ? -128 : 0;
    return std::max(tensor.zero_point - low, low + 255 - tensor.zero_point);
}

int64_t exact_terms(const enpu_tensor& a, const enpu_tensor& b) {
    return ((int64_t{1} << 24) - 1) / (largest_magnitude(a) * largest_magnitude(b));
}

Requantiser::Requantiser(const Call& call, unsigned a, unsigned b, unsigned bias, unsigned scale,
                         unsigned y, int64_t channels, const Activation& act)
    : act_(act) {
    const auto copy = [&](unsigned operand, auto* to, int64_t count, int64_t repeat) {
        const View view = view_of(call.operands[operand]);
        const auto* from = reinterpret_cast<const std::remove_pointer_t<decltype(to)>*>(view.data);
        for (int64_t i = 0; i < count; ++i)
            to[i] = from[(repeat ? 0 : i) * view.strides[view.rank - 1]];
    };
    const enpu_tensor& out = call.packet.operands[y];
    zero_point_ = out.zero_point;
    low_ = out.dtype == ENPU_DTYPE_I8 ? -128 : 0;
    high_ = low_ + 255;
    if (bias != kNone && call.operands[bias]) {
        bias_.resize(channels);
        copy(bias, bias_.data(), channels, false);
    }
    if (out.dtype == ENPU_DTYPE_I32) return;
    scale_.resize(channels);
    if (call.operands[scale]) {
        copy(scale, scale_.data(), channels, call.packet.operands[scale].dims[0] == 1);
    } else {
        const float product = scale_of(call.packet.operands[a]) * scale_of(call.packet.operands[b]);
        std::fill(scale_.begin(), scale_.end(), product / scale_of(out));
    }
}

void Requantiser::finish_pixel(int32_t* sums, int64_t channel, int64_t count) const {
    if (!bias_.empty()) {
        for (int64_t i = 0; i < count; ++i) sums[i] = add(sums[i], bias_[channel + i]);
    }
    if (scale_.empty()) return;
    const double alpha = act_.alpha, beta = act_.beta;
    for (int64_t i = 0; i < count; ++i) {
        sums[i] = requantise_one(sums[i], scale_[channel + i], act_.function, alpha, beta,
                                 zero_point_, low_, high_);
    }
}

void Requantiser::finish(int32_t* sums, int64_t pixels, int64_t channel, int64_t count) const {
    if (bias_.empty() && scale_.empty()) return;
    parallel(pixels, std::max<int64_t>(kGrain / 4 / count, 1), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) finish_pixel(sums + i * count, channel, count);
    });
}

RequantiseRow Requantiser::rule() const {
    RequantiseRow row{};
    row.alpha = act_.alpha;
    row.beta = act_.beta;
    row.low = low_;
    row.high = high_;
    row.zero_point = zero_point_;
    row.quick = f32_may_round(scale_.data(), static_cast<int64_t>(scale_.size()), act_.alpha);
    return row;
}

void Requantiser::add_bias(int64_t channel, std::span<int32_t> addends) const {
    if (bias_.empty()) return;
    for (size_t i = 0; i < addends.size(); ++i)
        addends[i] = add(addends[i], bias_[static_cast<size_t>(channel) + i]);
}

void Requantiser::finish_bytes(const int32_t* sums, const int32_t* addends, int64_t pixels,
                               int64_t channel, int64_t count, std::byte* to) const {
    // Pixels of few channels go together as one long row.
    const int64_t together = std::clamp<int64_t>(kLongRow / count, 1, pixels);
    std::vector<int32_t> all(static_cast<size_t>(together * count));
    std::vector<float> scale(all.size());
    std::copy_n(addends, count, all.data());
    add_bias(channel, {all.data(), static_cast<size_t>(count)});
    for (int64_t i = 0; i < together * count; i += count) {
        if (i > 0) std::copy_n(all.data(), count, &all[i]);
        std::copy_n(&scale_[channel], count, &scale[i]);
    }
    RequantiseRow pattern = rule();
    pattern.addends = all.data();
    pattern.scale = scale.data();
    const int64_t rows = (pixels + together - 1) / together;
    parallel(rows, std::max<int64_t>(kGrain / (together * count), 1),
             [&](int64_t begin, int64_t end) {
                 RequantiseRow row = pattern;
                 for (int64_t i = begin; i < end; ++i) {
                     const int64_t first = i * together;
                     row.sums = sums + first * count;
                     row.to = to + first * count;
                     row.count = std::min(together, pixels - first) * count;
                     requantise_row(row, act_.function);
                 }
             });
}

void add_to_channels(int32_t* sums, const int32_t* addends, int64_t pixels, int64_t count) {
    parallel(pixels, std::max<int64_t>(kGrain / count, 1), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            for (int64_t c = 0; c < count; ++c)
                sums[i * count + c] = add(sums[i * count + c], addends[c]);
        }
    });
}

void add_exact(const float* from, int32_t* sums, int64_t count, bool first) {
    parallel(count, kGrain, [&](int64_t begin, int64_t end) {
        if (first) {
            for (int64_t i = begin; i < end; ++i) sums[i] = static_cast<int32_t>(from[i]);
        } else {
            for (int64_t i = begin; i < end; ++i)
                sums[i] = add(sums[i], static_cast<int32_t>(from[i]));
        }
    });
}

View integer_view(View floats, int32_t* data) {
    floats.dtype = ENPU_DTYPE_I32;
    floats.data = reinterpret_cast<std::byte*>(data);
    return floats;
}

void add_integers(const View& from, const View& to) {
    const Loop loop = make_loop(std::array{from, to});
    parallel(loop.count, kGrain, [&](int64_t begin, int64_t end) {
        alignas(64) int64_t a[kBlockElements];
        alignas(64) int64_t b[kBlockElements];
        for_blocks(loop, begin, end, [&](const Block& block) {
            const int64_t* x = fetch<int64_t>(from, block, 0, a);
            const int64_t* y = fetch<int64_t>(to, block, 1, b);
            for (int64_t i = 0; i < block.size(); ++i) b[i] = x[i] + y[i];
            put<int64_t>(b, to, block, 1);
        });
    });
}

void store_integers(const View& from, const View& to) {
    const Loop loop = make_loop(std::array{from, to});
    parallel(loop.count, kGrain, [&](int64_t begin, int64_t end) {
        alignas(64) int64_t values[kBlockElements];
        for_blocks(loop, begin, end, [&](const Block& block) {
            put<int64_t>(fetch<int64_t>(from, block, 0, values), to, block, 1);
        });
    });
}

}  // namespace enpu::ops
