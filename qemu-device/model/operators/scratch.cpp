// SPDX-License-Identifier: MIT
#include "scratch.h"

#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

namespace enpu::ops {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t kKeepBlocks = 8;
constexpr size_t kKeepBytes = size_t{64} << 20;  // of one block; larger ones go back at once
// More than any packet inside the limits needs. Memory is overcommitted, so asking for too much
// would not fail but kill.
constexpr size_t kLargest = size_t{8} << 30;

struct Block {
    void* data;
    size_t capacity;
};

struct Kept {
    std::vector<Block> blocks;
    ~Kept() {
        for (const Block& block : blocks) std::free(block.data);
    }
};
thread_local Kept kept;

Block take(size_t bytes) {
    auto& blocks = kept.blocks;
    size_t best = blocks.size();
    for (size_t i = 0; i < blocks.size(); ++i) {
        const bool fits = blocks[i].capacity >= bytes;
        if (fits && (best == blocks.size() || blocks[i].capacity < blocks[best].capacity)) best = i;
    }
    if (best == blocks.size()) return {nullptr, 0};
    const Block block = blocks[best];
    blocks[best] = blocks.back();
    blocks.pop_back();
    return block;
}

void give_back(Block block) {
    auto& blocks = kept.blocks;
    if (block.capacity > kKeepBytes) return std::free(block.data);
    if (blocks.size() < kKeepBlocks) return blocks.push_back(block);
    size_t smallest = 0;
    for (size_t i = 1; i < blocks.size(); ++i) {
        if (blocks[i].capacity < blocks[smallest].capacity) smallest = i;
    }
    if (blocks[smallest].capacity < block.capacity) std::swap(blocks[smallest], block);
    std::free(block.data);
}

}  // namespace

Scratch::Scratch(size_t bytes) {
    if (bytes > kLargest) throw std::bad_alloc();
    kept.blocks.reserve(kKeepBlocks);
    const Block block = take(bytes);
    data_ = block.data;
    capacity_ = block.capacity;
    if (data_ != nullptr) return;
    // A quarter more, so that slightly larger operators find it useful too.
    const size_t capacity = (bytes + bytes / 4 + kAlign) / kAlign * kAlign;
    data_ = std::aligned_alloc(kAlign, capacity);
    if (data_ == nullptr) throw std::bad_alloc();
    capacity_ = capacity;
}

Scratch::~Scratch() {
    if (data_ != nullptr) give_back({data_, capacity_});
}

Scratch::Scratch(Scratch&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}

Scratch& Scratch::operator=(Scratch&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
}

}  // namespace enpu::ops
