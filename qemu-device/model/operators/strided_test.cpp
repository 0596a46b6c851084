// SPDX-License-Identifier: MIT
#include "strided.h"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

namespace enpu::ops {
namespace {

View make_view(std::vector<int64_t> dims, std::vector<int64_t> strides) {
    View view;
    view.rank = static_cast<unsigned>(dims.size());
    std::copy(dims.begin(), dims.end(), view.dims.begin());
    std::copy(strides.begin(), strides.end(), view.strides.begin());
    return view;
}

std::vector<int64_t> packed_strides(const std::vector<int64_t>& dims) {
    std::vector<int64_t> strides(dims.size());
    int64_t stride = 1;
    for (size_t axis = dims.size(); axis-- > 0; stride *= dims[axis]) strides[axis] = stride;
    return strides;
}

// Offsets of all elements of stream k, in the order of the loop.
std::vector<int64_t> offsets(const Loop& loop, unsigned k, int64_t limit) {
    std::vector<int64_t> result;
    int64_t next = 0;
    for_blocks(
        loop, 0, loop.count,
        [&](const Block& block) {
            REQUIRE(block.index == next);
            REQUIRE(block.size() > 0);
            REQUIRE(block.size() <= limit);
            next += block.size();
            for (int64_t r = 0; r < block.rows; ++r) {
                for (int64_t c = 0; c < block.cols; ++c) {
                    result.push_back(block.offset[k] + r * block.row_stride[k] +
                                     c * block.col_stride[k]);
                }
            }
        },
        limit);
    return result;
}

std::vector<int64_t> sorted_offsets_of(const View& view) {
    std::vector<int64_t> result{0};
    for (unsigned axis = 0; axis < view.rank; ++axis) {
        std::vector<int64_t> next;
        for (int64_t base : result) {
            for (int64_t i = 0; i < view.dims[axis]; ++i) {
                next.push_back(base + i * view.strides[axis]);
            }
        }
        result = std::move(next);
    }
    std::sort(result.begin(), result.end());
    return result;
}

}  // namespace

TEST_CASE("contiguous tensors become one line") {
    const std::vector<int64_t> dims{3, 1, 5, 7};
    const std::array views{make_view(dims, packed_strides(dims)),
                           make_view(dims, packed_strides(dims))};
    const Loop loop = make_loop(views);
    CHECK(loop.rank == 1);
    CHECK(loop.dims[0] == 105);
    CHECK(loop.strides[1][0] == 1);
}

TEST_CASE("channels-last tensors with a broadcast over the channels keep two axes") {
    const std::array views{make_view({2, 8, 5, 6}, {240, 1, 48, 8}),
                           make_view({2, 8, 5, 6}, {0, 1, 0, 0}),
                           make_view({2, 8, 5, 6}, {240, 1, 48, 8})};
    const Loop loop = make_loop(views);
    REQUIRE(loop.rank == 2);
    CHECK(loop.dims[0] == 60);
    CHECK(loop.dims[1] == 8);
    CHECK(loop.strides[1][0] == 0);
    CHECK(loop.strides[1][1] == 1);
}

TEST_CASE("a scalar is a loop of one element") {
    const std::array views{View{}, View{}};
    const Loop loop = make_loop(views);
    CHECK(loop.count == 1);
    CHECK(offsets(loop, 0, 16) == std::vector<int64_t>{0});
}

TEST_CASE("blocks visit every element of every stream once, in step") {
    std::mt19937 random(20261);
    const auto pick = [&](int64_t low, int64_t high) {
        return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    for (int round = 0; round < 300; ++round) {
        std::vector<int64_t> dims(static_cast<size_t>(pick(0, 5)));
        for (auto& dim : dims) dim = pick(1, 6);
        // The output stores the axes in a random order, some of them backwards; the input
        // broadcasts some.
        std::vector<size_t> order(dims.size());
        for (size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), random);
        std::vector<int64_t> y_strides(dims.size());
        int64_t stride = pick(1, 2);
        for (size_t axis : order) {
            y_strides[axis] = pick(0, 3) == 0 ? -stride : stride;
            stride *= dims[axis];
        }
        std::vector<int64_t> x_strides = packed_strides(dims);
        for (auto& s : x_strides) s = pick(0, 3) == 0 ? 0 : s;
        const std::array views{make_view(dims, x_strides), make_view(dims, y_strides)};
        const Loop loop = make_loop(views);
        const int64_t limit = pick(1, 40);
        const std::vector<int64_t> x = offsets(loop, 0, limit);
        std::vector<int64_t> y = offsets(loop, 1, limit);
        REQUIRE(static_cast<int64_t>(x.size()) == loop.count);
        // In step: the position in y tells the indices, and these the position in x.
        for (size_t i = 0; i < x.size(); ++i) {
            int64_t left = y[i];
            int64_t expected = 0;
            for (size_t axis = order.size(); axis-- > 0;) {
                const size_t a = order[axis];
                if (dims[a] == 1) continue;
                const int64_t step = std::abs(y_strides[a]);
                int64_t low = 0;  // what the inner axes can contribute at least
                for (size_t inner = 0; inner < axis; ++inner) {
                    const size_t b = order[inner];
                    if (y_strides[b] < 0) low += y_strides[b] * (dims[b] - 1);
                }
                for (int64_t n = 0; n < dims[a]; ++n) {
                    const int64_t rest = left - n * y_strides[a];
                    if (rest >= low && rest < low + step) {
                        left = rest;
                        expected += n * x_strides[a];
                        break;
                    }
                }
            }
            REQUIRE(x[i] == expected);
        }
        std::sort(y.begin(), y.end());
        REQUIRE(y == sorted_offsets_of(views[1]));
    }
}

}  // namespace enpu::ops
