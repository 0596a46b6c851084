// SPDX-License-Identifier: MIT
#include "peer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "layers/layers.h"
#include "stream.h"

namespace enpu::rt {

PeerLink::~PeerLink() {
    if (!from_) return;
    if (buffers_[0]) from_->hal.memory->free(buffers_[0]);
    if (buffers_[1]) to_->hal.memory->free(buffers_[1]);
    if (memory_) munmap(memory_, kChunk * kChunks);
    from_->release();
    to_->release();
}

// Pages of the process that both devices pin. False: one of them cannot.
bool PeerLink::share(rt_device_impl& from, rt_device_impl& to) {
    if (!(from.info.caps & to.info.caps & ENPU_HAL_CAP_USERPTR)) return false;
    void* memory =
        mmap(nullptr, kChunk * kChunks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    rt_device_impl* devices[] = {&from, &to};
    for (int i = 0; i < 2; ++i) {
        const rt_device_impl& device = *devices[i];
        if (device.hal.memory->wrap(device.handle, memory, kChunk * kChunks, &buffers_[i],
                                    nullptr) == ENPU_HAL_OK)
            continue;
        if (i == 1) from.hal.memory->free(buffers_[0]);
        buffers_[0] = buffers_[1] = nullptr;
        munmap(memory, kChunk * kChunks);
        return false;
    }
    memory_ = memory;
    return true;
}

rt_status PeerLink::open(rt_device_impl& from, rt_device_impl& to, const char* origin) {
    from.retain();
    to.retain();
    from_ = &from;
    to_ = &to;
    if (share(from, to)) {
        path_ = RT_PEER_SHARED;
        return RT_OK;
    }
    RT_TRY(from.allocate_host(kChunk * kChunks, origin, &buffers_[0], &hosts_[0]));
    RT_TRY(to.allocate_host(kChunk * kChunks, origin, &buffers_[1], &hosts_[1]));
    path_ = RT_PEER_STAGED;
    return RT_OK;
}

void PeerLink::carry(uint32_t index, uint64_t bytes) const {
    if (path_ != RT_PEER_STAGED) return;
    hal::note_host_access(static_cast<std::byte*>(hosts_[0]) + index * kChunk, bytes, false);
    hal::note_host_access(static_cast<std::byte*>(hosts_[1]) + index * kChunk, bytes, true);
    std::memcpy(static_cast<std::byte*>(hosts_[1]) + index * kChunk,
                static_cast<const std::byte*>(hosts_[0]) + index * kChunk, bytes);
}

}  // namespace enpu::rt

using namespace enpu::rt;

namespace {

constexpr const char* kOrigin = "rt_memcpy_peer";

rt_status copy_inside(rt_stream_impl& to, void* dst, rt_stream_impl& from, const void* src,
                      size_t bytes) {
    Point point;
    RT_TRY(from.last_point(kOrigin, point));
    RT_TRY(to.wait_event_point(point));
    RT_TRY(rt_memcpy_d2d(&to, dst, src, bytes));
    return to.sync(to.deadline(), kOrigin);
}

// The source device fills a chunk while the destination device empties the other.
rt_status copy_across(const PeerLink& link, rt_stream_impl& to, const enpu_hal_place& dst,
                      rt_stream_impl& from, const enpu_hal_place& src, uint64_t bytes) {
    constexpr uint64_t kChunk = PeerLink::kChunk;
    const uint64_t chunks = (bytes + kChunk - 1) / kChunk;
    const uint64_t until = to.deadline();  // of the whole copy
    uint64_t filled[PeerLink::kChunks] = {}, emptied[PeerLink::kChunks] = {};
    const auto size = [&](uint64_t i) { return std::min(kChunk, bytes - i * kChunk); };
    const auto fill = [&](uint64_t i) -> rt_status {
        const uint32_t slot = static_cast<uint32_t>(i % PeerLink::kChunks);
        if (emptied[slot]) RT_TRY(to.wait_for(emptied[slot], until, kOrigin));
        return from.enqueue_copy(link.written(slot), {src.buffer, src.offset + i * kChunk}, size(i),
                                 kOrigin, &filled[slot]);
    };
    RT_TRY(fill(0));
    for (uint64_t i = 0; i < chunks; ++i) {
        const uint32_t slot = static_cast<uint32_t>(i % PeerLink::kChunks);
        if (i + 1 < chunks) RT_TRY(fill(i + 1));
        RT_TRY(from.wait_for(filled[slot], until, kOrigin));
        link.carry(slot, size(i));
        RT_TRY(to.enqueue_copy({dst.buffer, dst.offset + i * kChunk}, link.read(slot), size(i),
                               kOrigin, &emptied[slot]));
    }
    return to.wait_for(emptied[(chunks - 1) % PeerLink::kChunks], until, kOrigin);
}

rt_status copy_peer(rt_stream_impl& to, void* dst, rt_stream_impl& from, const void* src,
                    size_t bytes, rt_peer_path& path) {
    if (bytes == 0) return RT_OK;
    if (to.device == from.device) {
        path = RT_PEER_SAME;
        return copy_inside(to, dst, from, src, bytes);
    }
    enpu_hal_place there, here;
    RT_TRY(to.device->resolve(dst, bytes, kOrigin, "destination", there));
    RT_TRY(from.device->resolve(src, bytes, kOrigin, "source", here));
    std::lock_guard lock(to.peer_mutex);
    if (!to.peer || to.peer->from() != from.device) {
        to.peer.reset();
        auto link = std::make_unique<PeerLink>();
        RT_TRY(link->open(*from.device, *to.device, kOrigin));
        to.peer = std::move(link);
    }
    path = to.peer->path();
    rt_status status = copy_across(*to.peer, to, there, from, here, bytes);
    if (status) {
        // Chunks may still be in use: the next copy begins when they are not.
        rt_status_free(from.sync(to.deadline(), kOrigin));
        rt_status_free(to.sync(to.deadline(), kOrigin));
        return status;
    }
    to.device->counted.bytes_d2d.fetch_add(bytes, std::memory_order_relaxed);
    return RT_OK;
}

}  // namespace

const char* rt_peer_path_name(enum rt_peer_path path) {
    switch (path) {
        case RT_PEER_SAME:
            return "same device";
        case RT_PEER_SHARED:
            return "shared buffer";
        case RT_PEER_STAGED:
            return "staged";
        default:
            return "none";
    }
}

rt_status rt_memcpy_peer(rt_stream dst_stream, void* dst, rt_stream src_stream, const void* src,
                         size_t bytes, enum rt_peer_path* path) {
    RT_NOT_NULL(dst_stream);
    RT_NOT_NULL(src_stream);
    RT_NOT_NULL(dst);
    RT_NOT_NULL(src);
    if (path) *path = RT_PEER_NONE;
    return guarded(__func__, [&]() -> rt_status {
        rt_peer_path taken = RT_PEER_NONE;
        RT_TRY(copy_peer(*dst_stream, dst, *src_stream, src, bytes, taken));
        if (path) *path = taken;
        return RT_OK;
    });
}
