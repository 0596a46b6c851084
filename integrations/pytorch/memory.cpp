// SPDX-License-Identifier: MIT
#include "memory.h"

#include <cstring>
#include <map>

namespace enpu::pytorch {
namespace {

// Ranges of pinned memory, by address.
struct Pinned {
    std::mutex lock;
    std::map<const char*, size_t> ranges;
};

Pinned& pinned() {
    static auto* made = new Pinned;
    return *made;
}

void free_pinned(void* data) {
    {
        const std::lock_guard guard(pinned().lock);
        pinned().ranges.erase(static_cast<const char*>(data));
    }
    rt_device device = Runtime::get().device();
    rt_status_free(rt_device_sync(device, rt_deadline_ms(kDeadlineMs)));
    rt_status_free(rt_host_free(device, data));
}

class PinnedAllocator final : public c10::Allocator {
  public:
    c10::DataPtr allocate(size_t bytes) override {
        void* data = nullptr;
        if (bytes == 0) return {nullptr, c10::Device(c10::DeviceType::CPU)};
        check(rt_host_alloc(Runtime::get().device(), bytes, &data), "pinned memory");
        const std::lock_guard guard(pinned().lock);
        pinned().ranges[static_cast<const char*>(data)] = bytes;
        return {data, data, &free_pinned, c10::Device(c10::DeviceType::CPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &free_pinned; }
    void copy_data(void* to, const void* from, size_t bytes) const override {
        std::memcpy(to, from, bytes);
    }
};

}  // namespace

c10::Allocator* pinned_allocator() {
    static auto* made = new PinnedAllocator;
    return made;
}

bool is_pinned(const void* data) {
    const auto* address = static_cast<const char*>(data);
    const std::lock_guard guard(pinned().lock);
    auto after = pinned().ranges.upper_bound(address);
    if (after == pinned().ranges.begin()) return false;
    const auto& [start, bytes] = *std::prev(after);
    return address < start + bytes;
}

void resize_storage(c10::StorageImpl* storage, size_t bytes) {
    TORCH_CHECK(storage->resizable(), "enpu: this storage cannot change its size");
    c10::DataPtr data = allocator()->allocate(bytes);
    const size_t kept = std::min(bytes, storage->nbytes());
    if (kept) allocator()->copy_data(data.get(), storage->data(), kept);
    storage->set_data_ptr_noswap(std::move(data));
    storage->set_nbytes(bytes);
}

}  // namespace enpu::pytorch
