// SPDX-License-Identifier: MIT
// Reads 4 KiB blocks of a block device by io_uring, as its documentation recommends for speed: direct
// I/O, a registered file and registered buffers, many completions reaped at once.
#pragma once

#include <linux/io_uring.h>

#include <cstdint>
#include <string>

namespace enpu::bench {

class NvmeReader {
  public:
    static constexpr uint32_t kBlock = 4096;
    static constexpr uint32_t kMaxDepth = 64;

    // Throws std::system_error that names what failed.
    explicit NvmeReader(const std::string& device);
    ~NvmeReader();
    NvmeReader(const NvmeReader&) = delete;
    NvmeReader& operator=(const NvmeReader&) = delete;

    // Reads `count` blocks with at most `depth` in flight.
    void read(uint64_t count, uint32_t depth);

  private:
    void map_rings(const io_uring_params& params);
    void queue(uint32_t slot);
    uint32_t reap();
    void enter(uint32_t submit, uint32_t wait);

    int file_ = -1, ring_ = -1;
    uint8_t* buffers_ = nullptr;
    uint8_t* rings_ = nullptr;
    size_t ring_bytes_ = 0;
    io_uring_sqe* entries_ = nullptr;
    size_t entry_bytes_ = 0;
    uint32_t *sq_tail_ = nullptr, *sq_array_ = nullptr, sq_mask_ = 0;
    uint32_t *cq_head_ = nullptr, *cq_tail_ = nullptr, cq_mask_ = 0;
    io_uring_cqe* completions_ = nullptr;
    uint32_t free_[kMaxDepth];
    uint32_t free_count_ = 0;
};

}  // namespace enpu::bench
