// SPDX-License-Identifier: MIT
#include "integer_tiles.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <immintrin.h>

#include "onednn.h"
#include "parallel.h"
#include "tiles.h"

#define ENPU_TILES [[gnu::target("amx-tile,amx-int8")]]

namespace enpu::ops {
namespace {

constexpr int64_t kSide = 16;  // rows of a tile, and 32-bit columns
constexpr int64_t kTileBytes = kSide * kTileTerms;
constexpr int64_t kHalf = 2 * kSide;  // outputs that are summed up together

constexpr int64_t kPackedElements = int64_t{4} << 20;  // of a tile of work

// The linux uAPI of Intel's tiles.
constexpr long kRequestPermission = 0x1023, kTileData = 18;

struct alignas(64) TileConfig {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t bytes_a_row[16] = {};
    uint8_t rows[16] = {};
};

int64_t steps_of(int64_t lines, int64_t terms) {
    return lines * ((terms + kTileTerms - 1) / kTileTerms);
}

// First output of a block; the last overlaps the one before where there are not enough.
int64_t first_output(int64_t outputs, int64_t block) {
    return std::min(block * kTileOutputs, outputs - kTileOutputs);
}
int64_t blocks_of(int64_t outputs) {
    return (outputs + kTileOutputs - 1) / kTileOutputs;
}

// The sums of two times 16 pixels and two times 16 outputs: tiles 0 to 3; x in 4 and 5, weights in 6 and 7. With `both`
// false the second 16 pixels are left out. `row`: bytes from the sums of a pixel to those of the next. between() is called after each step: the tiles go on meanwhile.
template <bool both, class Between>
ENPU_TILES void sum_up(const TileProduct& p, const uint8_t* x, const std::byte* weights,
                       int32_t* sums, int64_t row, Between&& between) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    const int64_t next = kSide * p.pixel_step;
    for (const int64_t line : p.lines) {
        for (int64_t term = 0; term < p.terms; term += kTileTerms) {
            const uint8_t* at = x + line + term;
            _tile_loadd(6, weights, kTileTerms);
            _tile_loadd(4, at, p.pixel_step);
            _tile_dpbusd(0, 4, 6);
            if constexpr (both) {
                _tile_loadd(5, at + next, p.pixel_step);
                _tile_dpbusd(2, 5, 6);
            }
            _tile_loadd(7, weights + kTileBytes, kTileTerms);
            _tile_dpbusd(1, 4, 7);
            if constexpr (both) _tile_dpbusd(3, 5, 7);
            weights += 2 * kTileBytes;
            between();
        }
    }
    auto* to = reinterpret_cast<std::byte*>(sums);
    const auto right = static_cast<int64_t>(kSide * sizeof(int32_t));
    _tile_stored(0, to, row);
    _tile_stored(1, to + right, row);
    if constexpr (both) {
        _tile_stored(2, to + kSide * row, row);
        _tile_stored(3, to + kSide * row + right, row);
    }
}

// A block of sums to its places.
void finish(const TileOutput& out, const int32_t* sums, int64_t first, int64_t pixel,
            int64_t pixels) {
    const int64_t* places = out.places + pixel;
    if (out.scale != nullptr) {
        RequantiseRow row = out.rule;
        row.sums = sums;
        row.addends = out.addends + first;
        row.scale = out.scale + first;
        row.to = out.y + first;
        row.count = kTileOutputs;
        return requantise_rows(row, out.act, {places, static_cast<size_t>(pixels)});
    }
    for (int64_t i = 0; i < pixels; ++i) {
        if (places[i] < 0) continue;
        auto* to = reinterpret_cast<int32_t*>(out.y + places[i]) + first;
        const int32_t* from = sums + i * kTileOutputs;
        for (int64_t n = 0; n < kTileOutputs; ++n)
            to[n] = static_cast<int32_t>(static_cast<uint32_t>(from[n]) +
                                         static_cast<uint32_t>(out.addends[first + n]));
    }
}

// The weights of 32 outputs from `o` for the terms of a line.
void pack_run(const PlainWeights& plain, int64_t o, int64_t line, int64_t terms, int8_t* to) {
    const int8_t* from = plain.from + o * plain.o_step + line * plain.line_step;
    for (int64_t term = 0; term < terms; term += kTileTerms) {
        for (int64_t i = 0; i < kHalf * kTileTerms; ++i) {
            // Four terms of an output lie together.
            const int64_t tile = i / kTileBytes, row = i % kTileBytes / kTileTerms;
            const int64_t output = tile * kSide + i % kTileTerms / 4, t = term + row * 4 + i % 4;
            *to++ = t < terms ? from[output * plain.o_step + t * plain.term_step] : int8_t{0};
        }
    }
}

// A block that is finished bit by bit, in so many steps.
class Finisher {
  public:
    explicit Finisher(const TileOutput& out) : out_(out) {}
    // What is left of the block before is finished first.
    void begin(const int32_t* sums, int64_t first, int64_t pixel, int64_t pixels, int64_t steps) {
        complete();
        sums_ = sums;
        first_ = first;
        pixel_ = pixel;
        pixels_ = pixels;
        steps_ = steps;
        step_ = done_ = 0;
    }
    void advance() {
        // A few pixels together are cheaper than one by one.
        const int64_t end = pixels_ * ++step_ / steps_;
        if (end - done_ >= kTogether) upto(end);
    }
    void complete() { upto(pixels_); }

  private:
    static constexpr int64_t kTogether = 8;

    void upto(int64_t end) {
        if (end <= done_) return;
        finish(out_, sums_ + done_ * kTileOutputs, first_, pixel_ + done_, end - done_);
        done_ = end;
    }

    const TileOutput& out_;
    const int32_t* sums_ = nullptr;
    int64_t first_ = 0, pixel_ = 0, pixels_ = 0, done_ = 0, step_ = 0, steps_ = 1;
};

ENPU_TILES void load_config(const TileConfig& config) {
    _tile_loadconfig(&config);
}
ENPU_TILES void release() {
    _tile_release();
}

// By one thread: its tiles are set up, used and let go of.
void run_part(const TileProduct& p, const uint8_t* x, const std::byte* weights,
              const TileOutput& out) {
    TileConfig config;
    for (int tile = 0; tile < 8; ++tile) {
        config.bytes_a_row[tile] = kTileTerms;
        config.rows[tile] = kSide;
    }
    load_config(config);
    const auto half = static_cast<int64_t>(steps_of(static_cast<int64_t>(p.lines.size()), p.terms) *
                                           kTileTerms * kHalf);
    // While the tiles of a block are summed up, the block before is finished: the processor does both at once.
    alignas(64) int32_t sums[2][kTilePixels * kTileOutputs];
    Finisher before{out};
    const int64_t steps = 2 * steps_of(static_cast<int64_t>(p.lines.size()), p.terms);
    const auto between = [&] { before.advance(); };
    // Whole blocks of sums that are the result are made where they belong.
    const bool plain = out.plain_step != 0 && p.pixels >= kTilePixels;
    const auto row = plain ? out.plain_step : static_cast<int64_t>(kTileOutputs * sizeof(int32_t));
    unsigned turn = 0;
    for (int64_t pixel = 0; pixel < p.pixels; pixel += kTilePixels) {
        // The last block overlaps the one before.
        const int64_t first = std::max<int64_t>(std::min(pixel, p.pixels - kTilePixels), 0);
        const int64_t pixels = std::min(kTilePixels, p.pixels);
        const uint8_t* from = x + first * p.pixel_step;
        for (int64_t block = 0; block < blocks_of(p.outputs); ++block, turn ^= 1) {
            const std::byte* w = weights + 2 * block * half;
            int32_t* to = sums[turn];
            if (plain)
                to = reinterpret_cast<int32_t*>(out.y + out.places[first]) +
                     first_output(p.outputs, block);
            for (const int64_t n : {0, 1}) {
                if (pixels > kSide) {
                    sum_up<true>(p, from, w + n * half, to + n * kHalf, row, between);
                } else {
                    sum_up<false>(p, from, w + n * half, to + n * kHalf, row, between);
                }
            }
            if (plain) continue;
            before.begin(sums[turn], first_output(p.outputs, block), first, pixels, steps);
        }
    }
    before.complete();
    release();
}

}  // namespace

bool has_integer_tiles() {
    static const bool has = [] {
        dnnl_engine();
        const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
        const auto wanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_amx);
        return (isa & wanted) == wanted &&
               syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
    }();
    return has;
}

int64_t TileProduct::input_bytes() const {
    const int64_t farthest = *std::max_element(lines.begin(), lines.end());
    const int64_t read = (terms + kTileTerms - 1) / kTileTerms * kTileTerms;
    return (std::max(pixels, kTilePixels) - 1) * pixel_step + farthest + read;
}

size_t tile_weights_bytes(int64_t outputs, int64_t lines, int64_t terms) {
    return static_cast<size_t>(blocks_of(outputs) * steps_of(lines, terms) * kTileTerms *
                               kTileOutputs);
}

Outcome tile_weights(Progress& progress, int64_t outputs, int64_t lines, int64_t terms,
                     const PlainWeights& plain, std::byte* to) {
    const int64_t steps = (terms + kTileTerms - 1) / kTileTerms;
    // A run of steps of 32 outputs each.
    const auto body = [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
            const int64_t line = n % lines, half = n / lines * kHalf;
            const int64_t o = first_output(outputs, half / kTileOutputs) + half % kTileOutputs;
            pack_run(plain, o, line, terms,
                     reinterpret_cast<int8_t*>(to) + n * steps * kHalf * kTileTerms);
        }
    };
    const int64_t runs = 2 * blocks_of(outputs) * lines;
    return for_tiles(progress, runs,
                     std::max<int64_t>(kPackedElements / (steps * kHalf * kTileTerms), 1), body);
}

void run_tiles(const TileProduct& product, unsigned threads, const uint8_t* x,
               const std::byte* weights, const TileOutput& out) {
    // No part is so small that it reads further than the whole.
    const int64_t parts = std::clamp<int64_t>(product.pixels / (4 * kTilePixels), 1, threads);
    if (parts == 1) return run_part(product, x, weights, out);
    parallel_each(0, parts, [&](int64_t part) {
        const int64_t begin = product.pixels * part / parts;
        TileProduct own = product;
        own.pixels = product.pixels * (part + 1) / parts - begin;
        TileOutput to = out;
        to.places += begin;
        run_part(own, x + begin * product.pixel_step, weights, to);
    });
}

}  // namespace enpu::ops
