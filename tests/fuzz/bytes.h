// SPDX-License-Identifier: MIT
// The fuzzer's bytes, taken from the front. What is missing at the end reads as 0.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace enpu::fuzz {

class Bytes {
  public:
    Bytes(const uint8_t* data, size_t size) : left_(data, size) {}

    bool empty() const { return left_.empty(); }
    template <typename T>
    T take() {
        T value{};
        const size_t bytes = std::min(sizeof(T), left_.size());
        if (bytes != 0) std::memcpy(static_cast<void*>(&value), left_.data(), bytes);
        left_ = left_.subspan(bytes);
        return value;
    }
    uint8_t byte() { return take<uint8_t>(); }
    // Less than `limit`, which is not 0.
    uint32_t below(uint32_t limit) {
        return (limit <= 256 ? take<uint8_t>() : limit <= 65536 ? take<uint16_t>() : take<uint32_t>()) %
               limit;
    }
    std::span<const uint8_t> block(size_t most) {
        const auto taken = left_.first(std::min(most, left_.size()));
        left_ = left_.subspan(taken.size());
        return taken;
    }

  private:
    std::span<const uint8_t> left_;
};

}  // namespace enpu::fuzz
