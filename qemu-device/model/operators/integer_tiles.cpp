// SPDX-License-Identifier: MIT
#include "integer_tiles.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "onednn.h"
#include "parallel.h"
#include "requantise_wide.h"
#include "tiles.h"

#define ENPU_TILES __attribute__((target(ENPU_WIDE_ISA ",amx-tile,amx-int8")))
#define ENPU_TILES_INLINE ENPU_TILES __attribute__((always_inline)) inline

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

// What becomes of the sums of a pixel: they go to their place, with their addends.
class SumsFinish {
  public:
    ENPU_TILES_INLINE explicit SumsFinish(const TileOutput& out) : out_(out) {}
    ENPU_TILES_INLINE void operator()(const int32_t* sums, int64_t first, int64_t pixel) const {
        const int64_t place = out_.places[pixel];
        if (place < 0) return;
        auto* to = reinterpret_cast<int32_t*>(out_.y + place) + first;
        for (int64_t n = 0; n < kTileOutputs; ++n)
            to[n] = static_cast<int32_t>(static_cast<uint32_t>(sums[n]) +
                                         static_cast<uint32_t>(out_.addends[first + n]));
    }

  private:
    const TileOutput& out_;
};

// Or they become bytes, by f32 if that tells how.
template <uint32_t act, bool is_signed>
class BytesFinish {
  public:
    ENPU_TILES_INLINE explicit BytesFinish(const TileOutput& out)
        : out_(out), rule_(wide_rule(out.rule)) {}
    ENPU_TILES_INLINE void operator()(const int32_t* sums, int64_t first, int64_t pixel) const {
        const int64_t place = out_.places[pixel];
        if (place < 0) return;
        const float* scale = out_.scale + first;
        std::byte* to = out_.y + place + first;
        const int32_t* addends = out_.addends + first;
        if (!out_.rule.quick || !quick_step_wide<act, is_signed>(rule_, sums, addends, scale, to))
            exactly(out_, sums, addends, scale, to);
    }

  private:
    [[gnu::noinline]] static void exactly(const TileOutput& out, const int32_t* sums,
                                          const int32_t* addends, const float* scale,
                                          std::byte* to) {
        RequantiseRow row = out.rule;
        row.sums = sums;
        row.addends = addends;
        row.scale = scale;
        row.to = to;
        row.count = kTileOutputs;
        row.quick = false;
        requantise_row(row, act);
    }

    const TileOutput& out_;
    const WideRule rule_;
};
static_assert(kTileOutputs == kRequantiseStep);

// A block that is finished bit by bit, a part after each step of the sums of the next: so short that the processor, which
// goes on with the tiles meanwhile, always has both at hand.
template <class Finish>
class Finisher {
  public:
    ENPU_TILES_INLINE explicit Finisher(const TileOutput& out) : finish_(out) {}
    // What is left of the block before is finished first.
    ENPU_TILES_INLINE void begin(const int32_t* sums, int64_t first, int64_t pixel, int64_t pixels,
                                 int64_t steps) {
        complete();
        sums_ = sums;
        first_ = first;
        pixel_ = pixel;
        pixels_ = pixels;
        pace_ = pixels * kWhole / steps + 1;
        due_ = done_ = 0;
    }
    ENPU_TILES_INLINE void advance() {
        due_ += pace_;
        upto(std::min(due_ / kWhole, pixels_));
    }
    ENPU_TILES_INLINE void complete() { upto(pixels_); }

  private:
    static constexpr int64_t kWhole = 1 << 16;  // pixels a step are counted in such parts

    ENPU_TILES_INLINE void upto(int64_t end) {
        for (; done_ < end; ++done_) finish_(sums_ + done_ * kTileOutputs, first_, pixel_ + done_);
    }

    const Finish finish_;
    const int32_t* sums_ = nullptr;
    int64_t first_ = 0, pixel_ = 0, pixels_ = 0, done_ = 0, due_ = 0, pace_ = 0;
};

// The sums of two times 16 pixels and two times 16 outputs: tiles 0 to 3; x in 4 and 5, weights in 6
// and 7. With `both` false the second 16 pixels are left out. `row`: bytes from the sums of a pixel to those of the
// next.
template <bool both, class Finish>
ENPU_TILES_INLINE void sum_up(const TileProduct& p, const uint8_t* x, const std::byte* weights,
                              int32_t* sums, int64_t row, Finisher<Finish>& before) {
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
            before.advance();
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

// By one thread: its tiles are set up, used and let go of.
template <class Finish>
ENPU_TILES void run_part(const TileProduct& p, const uint8_t* x, const std::byte* weights,
                         const TileOutput& out) {
    TileConfig config;
    for (int tile = 0; tile < 8; ++tile) {
        config.bytes_a_row[tile] = kTileTerms;
        config.rows[tile] = kSide;
    }
    _tile_loadconfig(&config);
    const int64_t steps = steps_of(static_cast<int64_t>(p.lines.size()), p.terms);
    const int64_t half = steps * kTileTerms * kHalf;
    // While the tiles of a block are summed up, the block before is finished: the processor does both at once.
    alignas(64) int32_t sums[2][kTilePixels * kTileOutputs];
    Finisher<Finish> before(out);
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
            const int64_t output = first_output(p.outputs, block);
            int32_t* to = sums[turn];
            if (plain) to = reinterpret_cast<int32_t*>(out.y + out.places[first]) + output;
            for (int64_t n = 0; n < kTileOutputs; n += kHalf, w += half) {
                if (pixels > kSide) {
                    sum_up<true>(p, from, w, to + n, row, before);
                } else {
                    sum_up<false>(p, from, w, to + n, row, before);
                }
            }
            if (!plain) before.begin(sums[turn], output, first, pixels, 2 * steps);
        }
    }
    before.complete();
    _tile_release();
}

using Part = void (*)(const TileProduct&, const uint8_t*, const std::byte*, const TileOutput&);

template <uint32_t act>
Part bytes_part(const TileOutput& out) {
    return out.rule.low < 0 ? run_part<BytesFinish<act, true>> : run_part<BytesFinish<act, false>>;
}

Part part_for(const TileOutput& out) {
    if (out.scale == nullptr) return run_part<SumsFinish>;
    switch (out.act) {
        case ENPU_UNARY_RELU:
            return bytes_part<ENPU_UNARY_RELU>(out);
        case ENPU_UNARY_LEAKY_RELU:
            return bytes_part<ENPU_UNARY_LEAKY_RELU>(out);
        case ENPU_UNARY_CLIP:
            return bytes_part<ENPU_UNARY_CLIP>(out);
        default:
            return bytes_part<ENPU_UNARY_IDENTITY>(out);
    }
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
    const Part run = part_for(out);
    if (parts == 1) return run(product, x, weights, out);
    parallel_each(0, parts, [&](int64_t part) {
        const int64_t begin = product.pixels * part / parts;
        TileProduct own = product;
        own.pixels = product.pixels * (part + 1) / parts - begin;
        TileOutput to = out;
        to.places += begin;
        run(own, x + begin * product.pixel_step, weights, to);
    });
}

}  // namespace enpu::ops
