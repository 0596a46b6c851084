// SPDX-License-Identifier: MIT
// The stream-ordered memory pool of a device. Blocks of one size class fill a slab; a block freed
// on a stream is reused by that stream at once, and by others when the stream has passed the point
// of the free.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "address_map.h"
#include "rt.h"
#include "timeline.h"

namespace enpu::rt {

struct Block {
    Block* next = nullptr;  // in a free list
    Slab* slab = nullptr;
    uint64_t free_point = 0;          // of the stream in whose list it is
    std::atomic<bool> in_use{false};  // read without the lock by whoever uses a pointer
    bool poisoned = false;            // filled with the pattern of freed memory
    const char* freed_by = "";        // static, of a poisoned block
};

struct Slab {
    enpu_hal_buffer* buffer = nullptr;
    uint64_t address = 0;
    uint64_t bytes = 0;
    uint64_t block_bytes = 0;
    uint32_t size_class = 0;
    uint32_t used = 0;
    std::vector<Block> blocks;

    uint64_t index_of(uint64_t at) const { return (at - address) / block_bytes; }
    // Whether the block is handed out.
    bool live(uint64_t index) const {
        return index < blocks.size() && blocks[index].in_use.load(std::memory_order_relaxed);
    }
};

// Size classes 256, 512, 768, 1024, 1536, 2048 … 1 MiB; what is larger gets a slab of its own, a
// multiple of 2 MiB.
constexpr uint64_t kSlabBytes = 2u << 20;
constexpr uint64_t kLargestClassBytes = 1u << 20;
constexpr uint32_t kLargeClass = 24;
constexpr uint32_t kClasses = kLargeClass + 1;

uint32_t size_class_of(uint64_t bytes);
uint64_t class_bytes(uint32_t size_class);  // not for kLargeClass

using FreeLists = std::array<Block*, kClasses>;

// What the pool keeps for each stream. Guarded by the pool.
struct StreamCache {
    FreeLists lists{};
    std::shared_ptr<Timeline> timeline;
};

class Pool {
  public:
    Pool(const enpu_hal_plugin& hal, enpu_hal_device* device, AddressMap& map)
        : hal_(hal), device_(device), map_(map) {}
    ~Pool();

    void add_stream(StreamCache& cache);
    // The stream is idle (or given up): its blocks belong to everybody.
    void retire_stream(StreamCache& cache);
    void remove_stream(StreamCache& cache);

    // Memory for work enqueued on the stream after now. `timeout_ns` bounds the wait for other
    // streams when the device is full.
    rt_status allocate(StreamCache& cache, uint64_t bytes, uint64_t timeout_ns, void** pointer);
    // `point`: value of the stream's timeline after which nothing uses the block; `cache` null:
    // nothing does already.
    rt_status free(StreamCache* cache, uint64_t point, void* pointer, const char* origin);

    // For poison mode (poison.h): the size of a live block, and what its memory was filled with.
    struct BlockState {
        uint64_t bytes = 0;
        bool poisoned = false;
        const char* freed_by = "";
    };
    BlockState state(const void* pointer);
    void mark_poisoned(const void* pointer, bool poisoned, const char* freed_by);

    void stats(rt_pool_stats& out);
    void trim(uint64_t keep_bytes);
    uint64_t backend_allocations() const { return backend_allocations_.load(); }
    uint64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }
    uint64_t reserved_bytes() const { return reserved_.load(std::memory_order_relaxed); }

  private:
    Block* take(FreeLists& lists, uint32_t size_class, uint64_t bytes);
    Block* take_reusable(StreamCache& cache, uint32_t size_class, uint64_t bytes);
    void reclaim();
    void reclaim_list(StreamCache& cache, uint32_t size_class);
    Block* hand_out(Block* block);
    Block* find_block(const void* pointer);
    rt_status add_slab(uint32_t size_class, uint64_t bytes, Block** block);
    uint32_t allocate_buffer(uint64_t bytes, Slab& slab, enpu_hal_status& status);
    void trim_locked(uint64_t keep_bytes);
    bool wait_for_streams(uint64_t timeout_ns);

    const enpu_hal_plugin& hal_;
    enpu_hal_device* const device_;
    AddressMap& map_;

    std::mutex mutex_;
    std::vector<StreamCache*> streams_;
    FreeLists free_{};  // nobody in flight uses these
    std::vector<std::unique_ptr<Slab>> slabs_;
    // Changed under the lock; the first two are also looked at without it.
    std::atomic<uint64_t> reserved_{0}, used_{0};
    uint64_t peak_ = 0, peak_reserved_ = 0, allocations_ = 0, live_ = 0, reuses_ = 0;
    uint64_t waits_ = 0, trims_ = 0;
    std::atomic<uint64_t> backend_allocations_{0}, backend_frees_{0};
};

}  // namespace enpu::rt
