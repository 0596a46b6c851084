// SPDX-License-Identifier: MIT
// Packets that move bytes and words: COPY, FILL, WAIT, SIGNAL, TIMESTAMP.
#include <algorithm>

#include "device.h"
#include "engine.h"

namespace enpu::model {
namespace {

constexpr uint64_t kTileBytes = 4 << 20;
constexpr uint64_t kTileRows = 16384;

}  // namespace

// Goes on behind the bytes that are done already.
Engine::Result Engine::run_copy(const enpu_copy_packet& packet, Failure& failure) {
    const bool flat = packet.height == 1 ||
                      (packet.dst_pitch == packet.width && packet.src_pitch == packet.width);
    const uint64_t total = packet.width * packet.height;
    const uint64_t width = flat ? total : packet.width;
    // Short rows take as long as ones of 256 bytes.
    const uint64_t tile = width < kTileBytes / kTileRows ? width * kTileRows : kTileBytes;
    uint64_t done = job.copied;
    while (done < total) {
        const uint64_t tile_end = done + std::min(total - done, tile);
        while (done < tile_end) {
            const uint64_t row = done / width, column = done % width;
            const uint64_t length = std::min(width - column, tile_end - done);
            Fault fault;
            if (!memory_.copy(as_id_, packet.dst + row * packet.dst_pitch + column,
                              packet.src + row * packet.src_pitch + column, length, fault))
                return failed(fault, failure);
            done += length;
        }
        if (done == total) break;
        {
            Lock lock(device_.mutex);
            job.copied = done;
        }
        if (const Result result = next_tile(); result != Result::kDone) return result;
    }
    return Result::kDone;
}

Engine::Result Engine::run_fill(const enpu_fill_packet& packet, Failure& failure) {
    uint64_t done = job.copied;
    while (done < packet.bytes) {
        const uint64_t length = std::min(packet.bytes - done, kTileBytes);
        Fault fault;
        if (!memory_.fill(as_id_, packet.dst + done, length, packet.pattern, packet.pattern_bytes,
                          fault))
            return failed(fault, failure);
        done += length;
        if (done == packet.bytes) break;
        {
            Lock lock(device_.mutex);
            job.copied = done;
        }
        if (const Result result = next_tile(); result != Result::kDone) return result;
    }
    return Result::kDone;
}

Engine::Result Engine::run_wait(const enpu_wait_packet& packet, Failure& failure) {
    {
        Lock lock(device_.mutex);
        wait_events_ = device_.write_events;
    }
    uint64_t word = 0;
    Fault fault;
    if (!memory_.read({true, as_id_}, packet.addr, &word, sizeof(word), ENPU_ACCESS_READ, fault))
        return failed(fault, failure);
    if (word >= packet.value) return Result::kDone;
    wait_ = packet;
    return Result::kWaiting;
}

Engine::Result Engine::write_word(uint64_t va, uint64_t value, Failure& failure) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    Fault fault;
    if (!memory_.write({true, as_id_}, va, &value, sizeof(value), fault))
        return failed(fault, failure);
    memory_.count(0, sizeof(value));
    return Result::kDone;
}

}  // namespace enpu::model
