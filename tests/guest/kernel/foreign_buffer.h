// SPDX-License-Identifier: MIT
// Memory of another driver as a dma-buf: a memfd by way of udmabuf.
#pragma once

#include <cstdint>

namespace enpu::test {

class ForeignBuffer {
  public:
    // Skips the test where the kernel has no udmabuf.
    explicit ForeignBuffer(uint64_t bytes);
    ~ForeignBuffer();
    ForeignBuffer(const ForeignBuffer&) = delete;
    ForeignBuffer& operator=(const ForeignBuffer&) = delete;

    int fd() const { return fd_; }
    uint8_t* data() const { return data_; }
    uint64_t size() const { return bytes_; }

  private:
    uint64_t bytes_;
    int control_ = -1;
    int memory_ = -1;
    int fd_ = -1;
    uint8_t* data_ = nullptr;
};

}  // namespace enpu::test
