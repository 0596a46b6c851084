// SPDX-License-Identifier: MIT
// Products by tiles of 8-bit integers beside the same sums one by one, with the largest numbers there are.
#include "integer_tiles.h"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

#include "tiles.h"

namespace enpu::ops {
namespace {

class Quiet final : public Progress {
  public:
    bool proceed() override { return true; }
    void detail(unsigned, int64_t) override {}
    unsigned threads() const override { return 1; }
};

struct Shape {
    int64_t pixels, outputs, terms;
    std::vector<int64_t> lines;  // in terms
};

// Sums by tiles into rows of outputs + 1 numbers: the last of each is nobody's.
std::vector<int32_t> by_tiles(const Shape& s, unsigned threads, bool plain,
                              const std::vector<uint8_t>& x, const std::vector<int8_t>& w,
                              const std::vector<int32_t>& addends) {
    Quiet progress;
    const auto lines = static_cast<int64_t>(s.lines.size());
    std::vector<std::byte> packed(tile_weights_bytes(s.outputs, lines, s.terms));
    // Weights [o][line][term].
    REQUIRE(tile_weights(progress, s.outputs, lines, s.terms,
                         {w.data(), lines * s.terms, s.terms, 1}, packed.data()) == Outcome::kDone);
    std::vector<int32_t> y(static_cast<size_t>(s.pixels * (s.outputs + 1)), 77);
    std::vector<int64_t> places(static_cast<size_t>(s.pixels));
    for (int64_t i = 0; i < s.pixels; ++i)
        places[i] =
            !plain && i % 5 == 4 ? -1 : i * (s.outputs + 1) * static_cast<int64_t>(sizeof(int32_t));
    TileProduct product{s.pixels, s.outputs, s.terms, s.terms, s.lines};
    REQUIRE(static_cast<size_t>(product.input_bytes()) <= x.size());
    in_arena(threads, [&] {
        run_tiles(product, threads, x.data(), packed.data(),
                  {nullptr,
                   addends.data(),
                   {},
                   0,
                   reinterpret_cast<std::byte*>(y.data()),
                   places.data(),
                   plain ? (s.outputs + 1) * static_cast<int64_t>(sizeof(int32_t)) : 0});
    });
    return y;
}

// `plain`: nothing is added, and every pixel has a place.
void compare(const Shape& s, bool extreme, unsigned threads, bool plain = false) {
    std::mt19937 random(static_cast<unsigned>(s.pixels * 131 + s.terms));
    const auto lines = static_cast<int64_t>(s.lines.size());
    const TileProduct product{s.pixels, s.outputs, s.terms, s.terms, s.lines};
    std::vector<uint8_t> x(static_cast<size_t>(product.input_bytes()));
    std::vector<int8_t> w(static_cast<size_t>(s.outputs * lines * s.terms));
    std::vector<int32_t> addends(static_cast<size_t>(s.outputs));
    for (auto& v : x) v = extreme ? 255 : static_cast<uint8_t>(random());
    for (auto& v : w) v = extreme ? int8_t{-128} : static_cast<int8_t>(random());
    for (auto& v : addends) v = plain ? 0 : static_cast<int32_t>(random());
    const std::vector<int32_t> y = by_tiles(s, threads, plain, x, w, addends);
    int64_t wrong = 0;
    for (int64_t i = 0; i < s.pixels; ++i) {
        for (int64_t o = 0; o <= s.outputs; ++o) {
            uint32_t sum = 77;
            if (o < s.outputs && (plain || i % 5 != 4)) {
                sum = static_cast<uint32_t>(addends[o]);
                for (int64_t n = 0; n < lines; ++n)
                    for (int64_t t = 0; t < s.terms; ++t)
                        sum += static_cast<uint32_t>(x[i * s.terms + s.lines[n] + t] *
                                                     w[(o * lines + n) * s.terms + t]);
            }
            wrong += y[i * (s.outputs + 1) + o] != static_cast<int32_t>(sum);
        }
    }
    INFO(s.pixels << " pixels, " << s.outputs << " outputs, " << lines << " lines of " << s.terms);
    CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("tiles of 8-bit integers sum up exactly") {
    if (!has_integer_tiles()) SKIP("this processor has no tiles of 8-bit integers");
    for (const int64_t pixels : {1, 15, 16, 17, 31, 32, 33, 64, 100, 700}) {
        for (const int64_t outputs : {64, 65, 127, 128, 130}) {
            compare({pixels, outputs, 64, {0}}, false, 1);
            compare({pixels, outputs, 50, {0, 200, 7}}, false, 3);
        }
        compare({pixels, 64, 4096, {0}}, true, 2);
        compare({pixels, 130, 100, {0}}, false, 2, true);
        compare({pixels, 70, 130, {64, 0}}, true, 1);
    }
}

}  // namespace enpu::ops
