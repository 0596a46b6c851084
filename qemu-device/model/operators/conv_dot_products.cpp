// SPDX-License-Identifier: MIT
// CONV2D of i8 and u8 by kernels for integers, where the processor has them: sum x w in 32 bits, then less the
// zero point of x times the sum of the weights. Padding is the zero point too, so it is written out.
#include <cstring>
#include <vector>

#include "conv2d.h"
#include "convert.h"
#include "integer_tiles.h"
#include "integer_weights.h"
#include "requantise.h"

namespace enpu::ops {
namespace {

constexpr unsigned kX = ENPU_CONV2D_OPERAND_X, kW = ENPU_CONV2D_OPERAND_WEIGHTS;

// Kernels take unsigned x and signed w; these are what the other kinds become by flipping the highest bit.
int32_t unsigned_zero_point(const enpu_tensor& x) {
    return x.zero_point + (x.dtype == ENPU_DTYPE_I8 ? 128 : 0);
}
int32_t signed_zero_point(const enpu_tensor& w) {
    return w.zero_point - (w.dtype == ENPU_DTYPE_U8 ? 128 : 0);
}

class DotProductConv {
  public:
    explicit DotProductConv(const Call& call);
    // Nothing if there is no kernel.
    std::optional<Outcome> run();

  private:
    bool is_in_place(const ConvTile& tile) const;
    ConvSpec spec_of(const ConvTile& tile) const;
    const void* input(const ConvTile& tile);
    const uint8_t* padded_input(const ConvTile& tile, int64_t w, int64_t bytes);
    bool has_rows_of_bytes(const View& window, const ConvTile& tile) const;
    void copy_rows(const View& window, const ConvTile& tile, int64_t w, std::byte* to) const;
    Outcome run_tile(const ConvTile& tile);
    void finish(const ConvTile& tile, int32_t* sums);
    // By tiles of the processor.
    struct Grid;
    const uint8_t* grid_input(const ConvTile& tile, const Grid& grid);
    Outcome run_on_grid(const ConvTile& tile);

    const Call& call_;
    const ConvShape shape_;
    const View x_, y_;
    const int32_t zero_point_;
    const Requantiser requantiser_;
    IntegerWeights weights_{ENPU_PACK_KIND_CONV2D};
    std::vector<int32_t> corrections_;
    Scratch x_tile_, sums_, bytes_;
    bool no_kernel_ = false;
    const std::byte* tiles_ = nullptr;  // weights for them
    std::vector<int32_t> addends_;      // corrections and bias
};

DotProductConv::DotProductConv(const Call& call)
    : call_(call),
      shape_(conv_shape(call.packet)),
      x_(view_of(call.operands[kX])),
      y_(view_of(call.operands[ENPU_CONV2D_OPERAND_Y])),
      zero_point_(unsigned_zero_point(call.packet.operands[kX])),
      requantiser_(call, kX, kW, ENPU_CONV2D_OPERAND_BIAS, ENPU_CONV2D_OPERAND_SCALE,
                   ENPU_CONV2D_OPERAND_Y, shape_.o,
                   {call.packet.params.conv2d.act, call.packet.params.conv2d.alpha,
                    call.packet.params.conv2d.beta}) {}

// Dense channels-last elements of one byte over the rows and columns of a tile.
bool is_dense_bytes(const View& view, const ConvTile& tile, bool whole_rows) {
    const auto walks = [&](unsigned axis, int64_t stride) {
        return view.dims[axis] == 1 || view.strides[axis] == stride;
    };
    return whole_rows && walks(1, 1) && walks(3, view.dims[1]) &&
           walks(2, view.dims[3] * view.dims[1]) &&
           (tile.images == 1 || view.strides[0] == view.dims[1] * view.dims[2] * view.dims[3]);
}

bool DotProductConv::is_in_place(const ConvTile& t) const {
    if (x_.dtype != ENPU_DTYPE_U8 || t.rows.empty || t.cols.empty) return false;
    const bool pads =
        t.rows.pad_before + t.rows.pad_after + t.cols.pad_before + t.cols.pad_after > 0;
    const bool whole = t.cols.size == shape_.w && (t.images == 1 || t.rows.size == shape_.h);
    return (!pads || zero_point_ == 0) && is_dense_bytes(x_, t, whole);
}

ConvSpec DotProductConv::spec_of(const ConvTile& tile) const {
    ConvSpec spec = conv_spec(shape_, tile, call_.progress.threads());
    if (is_in_place(tile)) return spec;
    spec.h += spec.pad[0] + spec.pad[2];
    spec.w += spec.pad[1] + spec.pad[3];
    std::fill(std::begin(spec.pad), std::end(spec.pad), 0);
    return spec;
}

const void* DotProductConv::input(const ConvTile& t) {
    View window = slice(x_, 0, t.image, t.images);
    window = slice(slice(window, 2, t.rows.first, t.rows.size), 3, t.cols.first, t.cols.size);
    if (is_in_place(t)) return window.data;
    return padded_input(t, t.cols.size + t.cols.pad_before + t.cols.pad_after, 0);
}

// u8 whose rows have no gaps, and no row that only stands for padding.
bool DotProductConv::has_rows_of_bytes(const View& window, const ConvTile& t) const {
    return window.dtype == ENPU_DTYPE_U8 && !t.rows.empty && !t.cols.empty &&
           (shape_.c == 1 || window.strides[1] == 1) &&
           (t.cols.size == 1 || window.strides[3] == shape_.c);
}

// Such a window and its padding, row by row: each byte is written once.
void DotProductConv::copy_rows(const View& window, const ConvTile& t, int64_t w,
                               std::byte* to) const {
    const int64_t c = shape_.c, left = t.cols.pad_before * c, bytes = t.cols.size * c;
    const auto fill = [&](int64_t count) {
        std::memset(to, zero_point_, static_cast<size_t>(count));
        to += count;
    };
    for (int64_t image = 0; image < t.images; ++image) {
        fill(t.rows.pad_before * w * c);
        for (int64_t row = 0; row < t.rows.size; ++row) {
            fill(left);
            to = std::copy_n(window.data + image * window.strides[0] + row * window.strides[2],
                             bytes, to);
            fill(w * c - left - bytes);
        }
        fill(t.rows.pad_after * w * c);
    }
}

// The window of a tile with its padding, `w` columns wide, and in memory of at least so many bytes.
const uint8_t* DotProductConv::padded_input(const ConvTile& t, int64_t w, int64_t bytes) {
    View window = slice(x_, 0, t.image, t.images);
    window = slice(slice(window, 2, t.rows.first, t.rows.size), 3, t.cols.first, t.cols.size);
    const int64_t h = t.rows.size + t.rows.pad_before + t.rows.pad_after;
    const auto count = static_cast<size_t>(t.images * h * w * shape_.c);
    x_tile_ = {};
    x_tile_ = Scratch(std::max(count, static_cast<size_t>(bytes)));
    if (has_rows_of_bytes(window, t)) {
        copy_rows(window, t, w, x_tile_.bytes());
        return static_cast<const uint8_t*>(x_tile_.data());
    }
    // Of the larger pictures most is not padding, but a fill costs little beside the products.
    if (h != t.rows.size || w != t.cols.size || t.rows.empty || t.cols.empty)
        std::memset(x_tile_.data(), zero_point_, count);
    if (t.rows.empty || t.cols.empty) return static_cast<const uint8_t*>(x_tile_.data());
    View to = channels_last_view(nullptr, t.images, shape_.c, h, w);
    to.dtype = ENPU_DTYPE_U8;
    to.data = x_tile_.bytes();
    to = slice(slice(to, 2, t.rows.pad_before, t.rows.size), 3, t.cols.pad_before, t.cols.size);
    copy_bytes(window, to, x_.dtype == ENPU_DTYPE_I8 ? 0x80 : 0);
    return static_cast<const uint8_t*>(x_tile_.data());
}

void DotProductConv::finish(const ConvTile& t, int32_t* sums) {
    const int64_t pixels = t.images * t.rows.count * t.cols.count;
    View window = slice(y_, 0, t.image, t.images);
    window = slice(slice(window, 2, t.rows.begin, t.rows.count), 3, t.cols.begin, t.cols.count);
    const View dense = channels_last_view(nullptr, t.images, shape_.o, t.rows.count, t.cols.count);
    if (!requantiser_.makes_bytes()) {
        if (zero_point_ != 0) add_to_channels(sums, corrections_.data(), pixels, shape_.o);
        requantiser_.finish(sums, pixels, 0, shape_.o);
        return store_integers(integer_view(dense, sums), window);
    }
    const bool whole = t.cols.count == shape_.ow && (t.images == 1 || t.rows.count == shape_.oh);
    const bool in_place = is_dense_bytes(y_, t, whole);
    if (!in_place) {
        bytes_ = {};
        bytes_ = Scratch(static_cast<size_t>(pixels * shape_.o));
    }
    std::byte* to = in_place ? window.data : bytes_.bytes();
    requantiser_.finish_bytes(sums, corrections_.data(), pixels, 0, shape_.o, to);
    if (in_place) return;
    View from = dense;
    from.dtype = window.dtype;
    from.data = to;
    copy_bytes(from, window, 0);
}

Outcome DotProductConv::run_tile(const ConvTile& tile) {
    const unsigned threads = call_.progress.threads();
    const ConvSpec spec = spec_of(tile);
    std::shared_ptr<const IntegerConvKernel> kernel;
    in_arena(threads, [&] { kernel = integer_conv_kernel(spec); });
    if (!kernel) {
        no_kernel_ = true;
        return Outcome::kStopped;
    }
    const void* weights = nullptr;
    const Outcome outcome = weights_.as(call_.progress, kernel->weights(), weights);
    if (outcome != Outcome::kDone) return outcome;
    sums_ = {};
    sums_ =
        Scratch(static_cast<size_t>(tile.images * tile.rows.count * tile.cols.count * shape_.o) *
                sizeof(int32_t));
    auto* sums = static_cast<int32_t*>(sums_.data());
    in_arena(threads, [&] {
        kernel->run(input(tile), weights, sums);
        finish(tile, sums);
    });
    return Outcome::kDone;
}

// A picture of a tile as one row of pixels, each so far from the next as the windows of two outputs are. Where rows of
// the picture end there are pixels that no output is for.
struct DotProductConv::Grid {
    Grid(const ConvShape& s, const ConvTile& t)
        : columns(divide_up(t.cols.size + t.cols.pad_before + t.cols.pad_after, s.stride[1]) *
                  s.stride[1]),
          image(columns * s.c * (t.rows.size + t.rows.pad_before + t.rows.pad_after)) {
        for (int64_t y = 0; y < s.kh; ++y)
            for (int64_t x = 0; x < s.kw; ++x)
                lines.push_back((y * s.dilation[0] * columns + x * s.dilation[1]) * s.c);
        pitch = columns * s.stride[0] / s.stride[1];
        product = {(t.rows.count - 1) * pitch + t.cols.count, s.o, s.c, s.stride[1] * s.c, lines};
    }

    int64_t columns, image;  // of the padded picture; its bytes
    int64_t pitch = 0;       // pixels from a row of outputs to the next
    std::vector<int64_t> lines;
    TileProduct product;
};

const uint8_t* DotProductConv::grid_input(const ConvTile& t, const Grid& grid) {
    const bool fits = grid.columns == t.cols.size && grid.product.input_bytes() <= grid.image;
    const bool pads =
        t.rows.pad_before + t.rows.pad_after + t.cols.pad_before + t.cols.pad_after > 0;
    if (fits && !pads && is_in_place(t)) return static_cast<const uint8_t*>(input(t));
    return padded_input(t, grid.columns, (t.images - 1) * grid.image + grid.product.input_bytes());
}

Outcome DotProductConv::run_on_grid(const ConvTile& t) {
    const Grid grid(shape_, t);
    View window = slice(y_, 0, t.image, t.images);
    window = slice(slice(window, 2, t.rows.begin, t.rows.count), 3, t.cols.begin, t.cols.count);
    const bool in_place =
        window.strides[1] == 1 && window.strides[2] >= 0 && window.strides[3] >= 0;
    View to = window;
    const int64_t element = requantiser_.makes_bytes() ? 1 : sizeof(int32_t);
    if (!in_place) {
        to = channels_last_view(nullptr, t.images, shape_.o, t.rows.count, t.cols.count);
        bytes_ = {};
        bytes_ = Scratch(static_cast<size_t>(element_count(window) * element));
        to.dtype = window.dtype;
        to.data = bytes_.bytes();
    }
    std::vector<int64_t> places(static_cast<size_t>(grid.product.pixels), -1);
    for (int64_t row = 0; row < t.rows.count; ++row)
        for (int64_t column = 0; column < t.cols.count; ++column)
            places[row * grid.pitch + column] =
                (row * to.strides[2] + column * to.strides[3]) * element;
    in_arena(call_.progress.threads(), [&] {
        const uint8_t* x = grid_input(t, grid);
        for (int64_t image = 0; image < t.images; ++image) {
            const TileOutput out{requantiser_.scales(),
                                 addends_.data(),
                                 requantiser_.rule(),
                                 requantiser_.activation(),
                                 to.data + image * to.strides[0] * element,
                                 places.data()};
            run_tiles(grid.product, call_.progress.threads(), x + image * grid.image, tiles_, out);
        }
        if (in_place) return;
        if (requantiser_.makes_bytes()) return copy_bytes(to, window, 0);
        store_integers(to, window);
    });
    return Outcome::kDone;
}

std::optional<Outcome> DotProductConv::run() {
    Outcome outcome =
        weights_.open(call_.progress, call_.operands[kW], kW, static_cast<uint32_t>(shape_.groups));
    if (outcome != Outcome::kDone) return outcome;
    const int32_t* sums = nullptr;
    corrections_.assign(static_cast<size_t>(shape_.o), 0);
    if (zero_point_ != 0) {
        outcome = weights_.sums(call_.progress, sums);
        if (outcome != Outcome::kDone) return outcome;
        for (size_t o = 0; o < corrections_.size(); ++o)
            corrections_[o] = static_cast<int32_t>(-static_cast<uint32_t>(zero_point_) *
                                                   static_cast<uint32_t>(sums[o]));
    }
    addends_ = corrections_;
    requantiser_.add_bias(0, addends_);
    if (shape_.groups == 1 && suits_tiles(shape_.o, shape_.c))
        tiles_ = weights_.tiles(tile_weights_bytes(shape_.o, shape_.kh * shape_.kw, shape_.c));
    outcome = for_conv_tiles(shape_, call_.progress, [&](const ConvTile& tile) {
        return tiles_ != nullptr ? run_on_grid(tile) : run_tile(tile);
    });
    // Tiles before the one without a kernel are written once more, by other means.
    if (no_kernel_) return std::nullopt;
    return outcome;
}

}  // namespace

std::optional<Outcome> conv2d_dot_products(const Call& call) {
    if (!has_integer_dot_products()) return std::nullopt;
    if (signed_zero_point(call.packet.operands[kW]) != 0) return std::nullopt;
    // Too large to be stopped in time.
    if (conv_shape(call.packet).work_per_output_pixel() > kTileWork) return std::nullopt;
    return DotProductConv(call).run();
}

}  // namespace enpu::ops
