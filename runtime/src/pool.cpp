// SPDX-License-Identifier: MIT
#include "pool.h"

#include <algorithm>
#include <bit>

#include "status.h"

namespace enpu::rt {

uint32_t size_class_of(uint64_t bytes) {
    if (bytes <= 256) return 0;
    if (bytes > kLargestClassBytes) return kLargeClass;
    // Classes 1 + 2n and 2 + 2n hold 512 << n and 768 << n bytes.
    const uint32_t n = static_cast<uint32_t>(std::bit_width(bytes - 1)) - 9;
    const uint64_t between = uint64_t{384} << n;  // 768 << (n - 1)
    return n > 0 && bytes <= between ? 2 * n : 1 + 2 * n;
}

uint64_t class_bytes(uint32_t size_class) {
    if (size_class == 0) return 256;
    const uint32_t n = (size_class - 1) / 2;
    return (size_class % 2 == 1 ? uint64_t{512} : uint64_t{768}) << n;
}

Pool::~Pool() {
    for (const auto& slab : slabs_) hal_.memory->free(slab->buffer);
}

void Pool::add_stream(StreamCache& cache) {
    std::lock_guard lock(mutex_);
    streams_.push_back(&cache);
}

void Pool::retire_stream(StreamCache& cache) {
    std::lock_guard lock(mutex_);
    for (uint32_t i = 0; i < kClasses; ++i) {
        while (Block* block = cache.lists[i]) {
            cache.lists[i] = block->next;
            block->next = free_[i];
            free_[i] = block;
        }
    }
}

void Pool::remove_stream(StreamCache& cache) {
    retire_stream(cache);
    std::lock_guard lock(mutex_);
    std::erase(streams_, &cache);
}

// Unlinks a block that fits. Blocks of the large class have many sizes: at most a quarter is
// wasted.
Block* Pool::take(FreeLists& lists, uint32_t size_class, uint64_t bytes) {
    for (Block** link = &lists[size_class]; Block* block = *link; link = &block->next) {
        const uint64_t size = block->slab->block_bytes;
        if (size_class == kLargeClass && (size < bytes || size - bytes > bytes / 4 + kSlabBytes))
            continue;
        *link = block->next;
        return block;
    }
    return nullptr;
}

Block* Pool::take_reusable(StreamCache& cache, uint32_t size_class, uint64_t bytes) {
    if (Block* block = take(cache.lists, size_class, bytes)) return block;
    if (Block* block = take(free_, size_class, bytes)) return block;
    for (StreamCache* other : streams_) reclaim_list(*other, size_class);
    return take(free_, size_class, bytes);
}

// Moves blocks whose stream has passed their free to the common list.
void Pool::reclaim_list(StreamCache& cache, uint32_t size_class) {
    for (Block** link = &cache.lists[size_class]; Block* block = *link;) {
        if (cache.timeline->settled(block->free_point)) {
            *link = block->next;
            block->next = free_[size_class];
            free_[size_class] = block;
        } else {
            link = &block->next;
        }
    }
}

void Pool::reclaim() {
    for (StreamCache* cache : streams_)
        for (uint32_t i = 0; i < kClasses; ++i) reclaim_list(*cache, i);
}

Block* Pool::hand_out(Block* block) {
    block->in_use.store(true, std::memory_order_relaxed);
    block->next = nullptr;
    ++block->slab->used;
    ++allocations_;
    ++live_;
    const uint64_t used = used_.load(std::memory_order_relaxed) + block->slab->block_bytes;
    used_.store(used, std::memory_order_relaxed);
    peak_ = std::max(peak_, used);
    return block;
}

uint32_t Pool::allocate_buffer(uint64_t bytes, Slab& slab, enpu_hal_status& status) {
    enpu_hal_buffer_desc desc{};
    desc.header = {sizeof(desc), ENPU_HAL_TYPE_BUFFER_DESC, nullptr};
    desc.bytes = bytes;
    desc.alignment = 256;
    desc.memory = ENPU_HAL_MEMORY_LOCAL;
    if (uint32_t code = hal_.memory->alloc(device_, &desc, &slab.buffer, &status)) return code;
    backend_allocations_.fetch_add(1);
    enpu_hal_buffer_info info{};
    info.header = {sizeof(info), ENPU_HAL_TYPE_BUFFER_INFO, nullptr};
    if (uint32_t code = hal_.memory->info(slab.buffer, &info, &status)) {
        hal_.memory->free(slab.buffer);
        return code;
    }
    slab.address = info.address;
    slab.bytes = bytes;
    return ENPU_HAL_OK;
}

// Called without the lock: the driver may take its time. *block is out of every list.
rt_status Pool::add_slab(uint32_t size_class, uint64_t bytes, Block** block) {
    auto slab = std::make_unique<Slab>();
    slab->size_class = size_class;
    slab->block_bytes = size_class == kLargeClass ? bytes : class_bytes(size_class);
    const uint64_t slab_bytes = size_class == kLargeClass ? bytes : kSlabBytes;
    slab->blocks = std::vector<Block>(slab_bytes / slab->block_bytes);
    enpu_hal_status status{};
    if (allocate_buffer(slab_bytes, *slab, status) != ENPU_HAL_OK)
        return from_hal(status, "rt_malloc");
    Range range{slab->address, slab_bytes, slab->buffer, slab.get()};
    if (!map_.insert(range)) {
        hal_.memory->free(slab->buffer);
        return make_status(RT_INTERNAL, "rt_malloc", "the backend gave two buffers one address");
    }
    std::lock_guard lock(mutex_);
    reserved_.fetch_add(slab_bytes);
    peak_reserved_ = std::max(peak_reserved_, reserved_.load());
    for (size_t i = slab->blocks.size(); i-- > 0;) {
        Block& entry = slab->blocks[i];
        entry.slab = slab.get();
        if (i == 0) {
            *block = hand_out(&entry);
        } else {
            entry.next = free_[size_class];
            free_[size_class] = &entry;
        }
    }
    slabs_.push_back(std::move(slab));
    return RT_OK;
}

rt_status Pool::allocate(StreamCache& cache, uint64_t bytes, uint64_t timeout_ns, void** pointer) {
    if (bytes == 0 || bytes > (uint64_t{1} << 46))
        return make_status(RT_INVALID_ARGUMENT, "rt_malloc", "bytes is %llu",
                           static_cast<unsigned long long>(bytes));
    const uint32_t size_class = size_class_of(bytes);
    if (size_class == kLargeClass) bytes = (bytes + kSlabBytes - 1) & ~(kSlabBytes - 1);
    Block* block = nullptr;
    {
        std::lock_guard lock(mutex_);
        if ((block = take_reusable(cache, size_class, bytes))) {
            hand_out(block);
            ++reuses_;
        }
    }
    // First as it is; then with what the pool can spare; then with what work in flight still holds.
    for (int attempt = 0; !block; ++attempt) {
        rt_status status = add_slab(size_class, bytes, &block);
        if (!status) break;
        if (attempt == 2 || rt_status_code(status) != RT_RESOURCE_EXHAUSTED) return status;
        rt_status_free(status);
        if (attempt == 1) wait_for_streams(timeout_ns);
        std::lock_guard lock(mutex_);
        trim_locked(0);
        if ((block = take_reusable(cache, size_class, bytes))) hand_out(block);
    }
    const uint64_t index = static_cast<uint64_t>(block - block->slab->blocks.data());
    *pointer = reinterpret_cast<void*>(block->slab->address + index * block->slab->block_bytes);
    return RT_OK;
}

rt_status Pool::free(StreamCache* cache, uint64_t point, void* pointer, const char* origin) {
    const uint64_t address = reinterpret_cast<uint64_t>(pointer);
    std::lock_guard lock(mutex_);
    Slab* found = map_.find(address).slab;
    if (!found)
        return make_status(RT_INVALID_ARGUMENT, origin, "%p is not memory of this device's pool",
                           pointer);
    Slab& slab = *found;
    const uint64_t offset = address - slab.address;
    const uint64_t index = offset / slab.block_bytes;
    if (offset % slab.block_bytes != 0 || index >= slab.blocks.size() || !slab.blocks[index].in_use)
        return make_status(RT_INVALID_ARGUMENT, origin,
                           "%p is not the start of a live allocation: freed twice?", pointer);
    Block& block = slab.blocks[index];
    block.in_use.store(false, std::memory_order_relaxed);
    --slab.used;
    --live_;
    used_.store(used_.load(std::memory_order_relaxed) - slab.block_bytes,
                std::memory_order_relaxed);
    Block*& list = (cache ? cache->lists : free_)[slab.size_class];
    block.free_point = point;
    block.next = list;
    list = &block;
    return RT_OK;
}

bool Pool::wait_for_streams(uint64_t timeout_ns) {
    std::vector<Point> points;
    {
        std::lock_guard lock(mutex_);
        ++waits_;
        for (StreamCache* cache : streams_) {
            uint64_t last = 0;
            for (Block* block : cache->lists)
                for (; block; block = block->next) last = std::max(last, block->free_point);
            if (last) points.push_back({cache->timeline, last});
        }
    }
    const uint64_t deadline = rt_deadline_ns(timeout_ns);
    bool all = true;
    for (const Point& point : points) {
        all &= point.wait(deadline, nullptr) == ENPU_HAL_OK;
    }
    return all;
}

void Pool::trim_locked(uint64_t keep_bytes) {
    reclaim();
    const auto idle = [](const Slab& slab) {
        return std::none_of(slab.blocks.begin(), slab.blocks.end(),
                            [](const Block& block) { return block.in_use.load(); });
    };
    // A slab can go when all of its blocks are in the common list.
    std::vector<Slab*> victims;
    for (const auto& slab : slabs_) {
        if (reserved_.load() <= keep_bytes) break;
        if (slab->used != 0 || !idle(*slab)) continue;
        size_t listed = 0;
        for (Block* block = free_[slab->size_class]; block; block = block->next)
            listed += block->slab == slab.get();
        if (listed != slab->blocks.size()) continue;
        for (Block** link = &free_[slab->size_class]; Block* block = *link;) {
            if (block->slab == slab.get())
                *link = block->next;
            else
                link = &block->next;
        }
        reserved_.fetch_sub(slab->bytes);
        victims.push_back(slab.get());
    }
    for (Slab* victim : victims) {
        map_.remove(victim->address);
        hal_.memory->free(victim->buffer);
        backend_frees_.fetch_add(1);
        std::erase_if(slabs_, [&](const auto& slab) { return slab.get() == victim; });
    }
}

void Pool::trim(uint64_t keep_bytes) {
    std::lock_guard lock(mutex_);
    ++trims_;
    trim_locked(keep_bytes);
}

Block* Pool::find_block(const void* pointer) {
    const uint64_t address = reinterpret_cast<uint64_t>(pointer);
    Slab* slab = map_.find(address).slab;
    if (!slab) return nullptr;
    const uint64_t index = (address - slab->address) / slab->block_bytes;
    return index < slab->blocks.size() ? &slab->blocks[index] : nullptr;
}

Pool::BlockState Pool::state(const void* pointer) {
    std::lock_guard lock(mutex_);
    const Block* block = find_block(pointer);
    if (!block || !block->in_use.load()) return {};
    return {block->slab->block_bytes, block->poisoned, block->freed_by};
}

void Pool::mark_poisoned(const void* pointer, bool poisoned, const char* freed_by) {
    std::lock_guard lock(mutex_);
    if (Block* block = find_block(pointer)) {
        block->poisoned = poisoned;
        block->freed_by = freed_by;
    }
}

void Pool::stats(rt_pool_stats& out) {
    std::lock_guard lock(mutex_);
    out.reserved_bytes = reserved_.load();
    out.used_bytes = used_.load();
    out.peak_used_bytes = peak_;
    out.peak_reserved_bytes = peak_reserved_;
    out.driver_calls = backend_allocations_.load() + backend_frees_.load();
    out.trims = trims_;
    out.allocations = allocations_;
    out.live = live_;
    out.reuses = reuses_;
    out.waits = waits_;
}

}  // namespace enpu::rt
