// SPDX-License-Identifier: MIT
// The runtime's stream-ordered pool as PyTorch's allocator. A block belongs to the stream that was
// current when it was made; it is not reused before the streams told by record_stream have passed it.
#include <c10/core/CachingDeviceAllocator.h>

#include "device.h"

namespace enpu::pytorch {
namespace {

struct Block {
    void* data = nullptr;
    rt_stream owner = nullptr;
    std::mutex lock;
    std::vector<rt_stream> users;  // beside the owner
};

// What the owner's stream must wait for before the block can go back.
void wait_for_user(const Block& block, rt_stream user) {
    rt_event event = nullptr;
    rt_status status = rt_event_create(Runtime::get().device(), RT_EVENT_DEFAULT, &event);
    if (status == RT_OK) status = rt_event_record(event, user);
    if (status == RT_OK) status = rt_stream_wait_event(block.owner, event);
    rt_event_destroy(event);
    if (status == RT_OK) return;
    TORCH_WARN("enpu: memory is freed without waiting for a stream that failed: ",
               rt_status_message(status));
    rt_status_free(status);
}

void free_block(void* context) {
    auto* block = static_cast<Block*>(context);
    for (rt_stream user : block->users) wait_for_user(*block, user);
    // A stream that failed refuses new work; its blocks come back when it is reset.
    rt_status_free(rt_free(block->owner, block->data));
    delete block;
}

class PoolAllocator final : public c10::DeviceAllocator {
  public:
    c10::DataPtr allocate(size_t bytes) override {
        if (bytes == 0) return {nullptr, npu()};
        Runtime& runtime = Runtime::get();
        auto block = std::make_unique<Block>();
        block->owner = runtime.current();
        check(rt_malloc(block->owner, bytes, &block->data), "memory");
        void* data = block->data;
        return {data, block.release(), &free_block, npu()};
    }

    void copy_data(void* to, const void* from, size_t bytes) const override {
        if (bytes) check(rt_memcpy_d2d(Runtime::get().current(), to, from, bytes), "copy");
    }

    bool initialized() override { return Runtime::opened(); }

    void emptyCache(c10::MempoolId_t) override {
        if (Runtime::opened()) check(rt_pool_trim(Runtime::get().device(), 0), "pool");
    }

    void recordStream(const c10::DataPtr& pointer, c10::Stream stream) override {
        if (!pointer.get_context() || pointer.get_deleter() != &free_block) return;
        auto* block = static_cast<Block*>(pointer.get_context());
        rt_stream user = Runtime::get().stream(stream.id());
        const std::lock_guard guard(block->lock);
        if (user != block->owner &&
            std::find(block->users.begin(), block->users.end(), user) == block->users.end())
            block->users.push_back(user);
    }

    c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
        c10::CachingDeviceAllocator::DeviceStats stats;
        if (!Runtime::opened()) return stats;
        rt_pool_stats pool{};
        pool.struct_size = sizeof(pool);
        check(rt_pool_get_stats(Runtime::get().device(), &pool), "pool");
        const auto set = [](auto& all, uint64_t now, uint64_t most) {
            all[0].current = static_cast<int64_t>(now);
            all[0].peak = static_cast<int64_t>(most);
        };
        set(stats.allocated_bytes, pool.used_bytes, pool.peak_used_bytes);
        set(stats.reserved_bytes, pool.reserved_bytes, pool.peak_reserved_bytes);
        set(stats.allocation, pool.live, pool.live);
        stats.num_device_alloc = static_cast<int64_t>(pool.driver_calls);
        return stats;
    }

    // The pool counts for its whole life.
    void resetAccumulatedStats(c10::DeviceIndex) override {
        TORCH_CHECK_NOT_IMPLEMENTED(false, "enpu: the pool's counters cannot be reset");
    }
    void resetPeakStats(c10::DeviceIndex) override {
        TORCH_CHECK_NOT_IMPLEMENTED(false, "enpu: the pool's counters cannot be reset");
    }

    std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) override {
        rt_device_info info{};
        info.struct_size = sizeof(info);
        check(rt_device_get_info(Runtime::get().device(), &info), "device");
        return {info.local_free, info.local_bytes};
    }
};

PoolAllocator& instance() {
    static auto* made = new PoolAllocator;  // outlives the destructors of the program
    return *made;
}

const bool registered = [] {
    c10::SetAllocator(c10::DeviceType::PrivateUse1, &instance());
    return true;
}();

}  // namespace

c10::Allocator* allocator() {
    return &instance();
}

}  // namespace enpu::pytorch
