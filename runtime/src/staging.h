// SPDX-License-Identifier: MIT
// A ring of pinned memory through which pageable copies go.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "enpu_hal.h"
#include "rt.h"

namespace enpu::rt {

// Whoever transfers holds `mutex`. Regions are freed in the order they were taken, when the
// operation that uses them has been reached.
class Staging {
  public:
    static constexpr uint64_t kBytes = 4u << 20;
    static constexpr uint64_t kChunk = 1u << 20;  // largest region

    std::mutex mutex;

    struct Region {
        enpu_hal_place place;
        std::byte* host;
    };

    // True when a region of `bytes` (1 … kChunk) is free, the stream having reached the operation
    // `reached`.
    bool has_room(uint64_t bytes, uint64_t reached);
    // After has_room. It stays in use until the stream's operation that used_until names.
    Region take(uint64_t bytes);
    void used_until(uint64_t value) { regions_[(last_ - 1) % kRegions].value = value; }
    // The operation that must be reached before more room can appear.
    uint64_t oldest() const { return regions_[first_ % kRegions].value; }

    bool ready() const { return buffer_ != nullptr; }
    void set(enpu_hal_buffer* buffer, void* host) {
        buffer_ = buffer;
        host_ = static_cast<std::byte*>(host);
    }
    enpu_hal_buffer* buffer() const { return buffer_; }
    // All operations have ended.
    void reset() { head_ = tail_ = first_ = last_ = 0; }

  private:
    struct Used {
        uint64_t end;
        uint64_t value;
    };
    static constexpr uint64_t kRegions = 256;
    uint64_t start_for(uint64_t bytes) const;

    enpu_hal_buffer* buffer_ = nullptr;
    std::byte* host_ = nullptr;
    uint64_t head_ = 0, tail_ = 0;  // counts of bytes; the offset is modulo kBytes
    std::array<Used, kRegions> regions_{};
    uint64_t first_ = 0, last_ = 0;
};

}  // namespace enpu::rt
