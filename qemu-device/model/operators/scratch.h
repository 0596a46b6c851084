// SPDX-License-Identifier: MIT
// Temporary memory of an operator. Blocks are kept per thread, so that the next operator of an
// engine allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace enpu::ops {

// Bytes at 64-byte alignment, uninitialised. Throws std::bad_alloc.
class Scratch {
  public:
    Scratch() = default;
    explicit Scratch(size_t bytes);
    ~Scratch();
    Scratch(Scratch&& other) noexcept;
    Scratch& operator=(Scratch&& other) noexcept;

    void* data() const { return data_; }
    float* floats() const { return static_cast<float*>(data_); }
    std::byte* bytes() const { return static_cast<std::byte*>(data_); }

  private:
    void* data_ = nullptr;
    size_t capacity_ = 0;
};

inline Scratch scratch_floats(int64_t count) {
    return Scratch(static_cast<size_t>(count) * sizeof(float));
}

}  // namespace enpu::ops
