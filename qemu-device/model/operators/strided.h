// SPDX-License-Identifier: MIT
// Loops over several strided tensors at once: dims collapsed, visited as small two-dimensional
// blocks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "operator.h"

namespace enpu::ops {

constexpr unsigned kMaxLoopRank = 10;     // ENPU_MAX_RANK, and room for a split dim
constexpr unsigned kMaxStreams = 8;       // tensors in one loop
constexpr int64_t kBlockElements = 1024;  // a block of every stream stays in the L1 cache

// A strided tensor; strides count elements.
struct View {
    std::byte* data = nullptr;
    uint32_t dtype = 0;
    unsigned rank = 0;
    std::array<int64_t, kMaxLoopRank> dims{};
    std::array<int64_t, kMaxLoopRank> strides{};
};
View view_of(const Operand& operand);
int64_t element_count(const View& view);

// The index space shared by several tensors. Strides of stream k are strides[k].
struct Loop {
    unsigned rank = 0;  // at least 1
    unsigned streams = 0;
    int64_t count = 1;
    std::array<int64_t, kMaxLoopRank> dims{};
    std::array<std::array<int64_t, kMaxLoopRank>, kMaxStreams> strides{};
};

enum class Order {
    kByLast,  // axes sorted by the strides of the last view, so that it is walked in memory order
    kAsGiven,
};
// All views have the dims of the last one. Drops dims of 1 and merges neighbours that every view
// walks evenly.
Loop make_loop(std::span<const View> views, Order order = Order::kByLast);
// The same for dims and strides that are in `loop` already.
void sort_axes(Loop& loop, unsigned by_stream);
void merge_axes(Loop& loop);
// Gives axes of size 1 so large a stride in a stream (it is never used) that sort_axes puts them
// outside.
void outermost_ones(Loop& loop, unsigned stream);

// A piece of a loop: element (r, c) of stream k lies at offset[k] + r * row_stride[k] + c *
// col_stride[k].
struct Block {
    int64_t index = 0;  // position of its first element in the loop
    int64_t rows = 0;
    int64_t cols = 0;
    std::array<int64_t, kMaxStreams> offset{};
    std::array<int64_t, kMaxStreams> row_stride{};
    std::array<int64_t, kMaxStreams> col_stride{};

    int64_t size() const { return rows * cols; }
};
// The largest block that starts at position `begin` of the loop and has at most `limit` elements.
Block block_at(const Loop& loop, int64_t begin, int64_t limit);

// Visits the positions [begin, end) of a loop in order.
template <class Body>
void for_blocks(const Loop& loop, int64_t begin, int64_t end, Body&& body,
                int64_t limit = kBlockElements) {
    while (begin < end) {
        const Block block = block_at(loop, begin, std::min(limit, end - begin));
        body(block);
        begin += block.size();
    }
}

}  // namespace enpu::ops
