// SPDX-License-Identifier: MIT
// The way between two devices: two chunks of host memory that both reach, or two of each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "enpu_hal.h"
#include "rt.h"

struct rt_device_impl;

namespace enpu::rt {

class PeerLink {
  public:
    static constexpr uint64_t kChunk = 1u << 20;
    static constexpr uint32_t kChunks = 2;

    PeerLink() = default;
    ~PeerLink();
    PeerLink(const PeerLink&) = delete;

    rt_status open(rt_device_impl& from, rt_device_impl& to, const char* origin);
    const rt_device_impl* from() const { return from_; }
    rt_peer_path path() const { return path_; }

    // Where the source device writes chunk `index`, and where the destination device reads it.
    enpu_hal_place written(uint32_t index) const { return {buffers_[0], index * kChunk}; }
    enpu_hal_place read(uint32_t index) const { return {buffers_[1], index * kChunk}; }
    // The host's part: nothing on a shared way.
    void carry(uint32_t index, uint64_t bytes) const;

  private:
    bool share(rt_device_impl& from, rt_device_impl& to);

    rt_device_impl* from_ = nullptr;  // holds a reference to both
    rt_device_impl* to_ = nullptr;
    rt_peer_path path_ = RT_PEER_NONE;
    void* memory_ = nullptr;  // shared, of this process
    enpu_hal_buffer* buffers_[2] = {};
    void* hosts_[2] = {};
};

}  // namespace enpu::rt
