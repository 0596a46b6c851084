// SPDX-License-Identifier: MIT
// Memory, copies and fills of the double. A copy or fill that leaves a live allocation breaks the
// context, as it would on a GPU.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "double.h"

namespace enpu::hal::cuda::fake {
namespace {

constexpr uint64_t kPoolStep = 2u << 20;  // pools take memory in such pieces

uint64_t rounded(uint64_t bytes) {
    return (bytes + kPoolStep - 1) / kPoolStep * kPoolStep;
}

// With the lock held. Bytes of a GPU that nobody has.
uint64_t available(World& w, int device) {
    return device_bytes() - std::min(device_bytes(), w.taken[device]);
}

Result add_range(World& w, void* memory, const Range& range) {
    if (!memory) return kOutOfMemory;
    w.ranges[reinterpret_cast<uint64_t>(memory)] = range;
    if (range.kind == Range::kHost) ++w.live.host;
    if (range.kind == Range::kRegistered) ++w.live.registered;
    if (range.kind != Range::kLocal && range.kind != Range::kPooled) return kSuccess;
    ++w.live.local;
    w.live.local_bytes += static_cast<int64_t>(range.bytes);
    return kSuccess;
}

Result remove_range(World& w, uint64_t address, Range::Kind kind) {
    const auto found = w.ranges.find(address);
    if (found == w.ranges.end() || found->second.kind != kind) return kInvalidValue;
    const Range range = found->second;
    w.ranges.erase(found);
    if (kind == Range::kHost) --w.live.host;
    if (kind == Range::kRegistered) --w.live.registered;
    if (kind == Range::kLocal) w.taken[range.device] -= range.bytes;
    if (kind == Range::kPooled) range.pool->used -= range.bytes;
    if (kind == Range::kLocal || kind == Range::kPooled) {
        --w.live.local;
        w.live.local_bytes -= static_cast<int64_t>(range.bytes);
    }
    if (kind != Range::kRegistered) std::free(reinterpret_cast<void*>(address));
    return kSuccess;
}

// An operation on memory: fails when it was told to, or when an address is not that of memory.
Result begin_access(std::initializer_list<std::pair<uint64_t, uint64_t>> regions) {
    if (const int broken = world().breaking.exchange(kSuccess)) return static_cast<Result>(broken);
    for (const auto& [address, bytes] : regions)
        if (!is_memory(address, bytes)) return kIllegalAddress;
    return kSuccess;
}

template <typename T>
Result fill(Stream stream, DevicePtr dst, size_t pitch, T value, size_t width, size_t height) {
    if (dst % sizeof(T) != 0 || (height > 1 && pitch < width * sizeof(T))) return kInvalidValue;
    return enqueue(stream, [=] {
        const uint64_t span = (height - 1) * pitch + width * sizeof(T);
        if (const Result error = begin_access({{dst, span}})) return error;
        for (size_t row = 0; row < height; ++row)
            for (size_t i = 0; i < width; ++i)
                std::memcpy(reinterpret_cast<char*>(dst) + row * pitch + i * sizeof(T), &value,
                            sizeof(T));
        return kSuccess;
    });
}

}  // namespace

bool is_memory(uint64_t address, uint64_t bytes) {
    std::lock_guard lock(world().mutex);
    auto after = world().ranges.upper_bound(address);
    if (after == world().ranges.begin()) return false;
    const auto& [begin, range] = *--after;
    return address - begin <= range.bytes && bytes <= range.bytes - (address - begin);
}

Result cuMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
    ENPU_DOUBLE_ENTER(cuMemGetInfo);
    std::lock_guard lock(world().mutex);
    *free_bytes = available(world(), current()->device);
    *total_bytes = device_bytes();
    return kSuccess;
}

Result cuMemAlloc(DevicePtr* address, size_t bytes) {
    ENPU_DOUBLE_ENTER(cuMemAlloc);
    World& w = world();
    std::lock_guard lock(w.mutex);
    if (bytes == 0) return kInvalidValue;
    if (bytes > available(w, current()->device)) return kOutOfMemory;
    void* memory = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
    const Result error = add_range(w, memory, {bytes, Range::kLocal, current()->device, nullptr});
    if (error != kSuccess) return error;
    w.taken[current()->device] += bytes;
    *address = reinterpret_cast<DevicePtr>(memory);
    return kSuccess;
}

Result cuMemFree(DevicePtr address) {
    (void)enter("cuMemFree");
    std::lock_guard lock(world().mutex);
    return remove_range(world(), address, Range::kLocal);
}

Result cuMemPoolCreate(MemoryPool* pool, const PoolProps* props) {
    ENPU_DOUBLE_ENTER(cuMemPoolCreate);
    if (props->alloc_type != 1 || props->location_type != 1) return kInvalidValue;
    std::lock_guard lock(world().mutex);
    *pool = &world().pools.emplace_back(MemoryPoolObject{props->location_id, 0, 0});
    ++world().live.pools;
    return kSuccess;
}

Result cuMemPoolDestroy(MemoryPool pool) {
    (void)enter("cuMemPoolDestroy");
    std::lock_guard lock(world().mutex);
    world().taken[pool->device] -= pool->reserved;
    --world().live.pools;
    return kSuccess;  // not deleted: blocks that were not given back know it
}

Result cuMemPoolSetAttribute(MemoryPool, PoolAttribute attribute, void*) {
    ENPU_DOUBLE_ENTER(cuMemPoolSetAttribute);
    return attribute == kReleaseThreshold ? kSuccess : kInvalidValue;
}

Result cuMemPoolGetAttribute(MemoryPool pool, PoolAttribute attribute, void* value) {
    ENPU_DOUBLE_ENTER(cuMemPoolGetAttribute);
    std::lock_guard lock(world().mutex);
    *static_cast<uint64_t*>(value) = attribute == kUsedNow ? pool->used : pool->reserved;
    return attribute == kUsedNow || attribute == kReservedNow ? kSuccess : kInvalidValue;
}

Result cuMemPoolTrimTo(MemoryPool pool, size_t keep) {
    ENPU_DOUBLE_ENTER(cuMemPoolTrimTo);
    std::lock_guard lock(world().mutex);
    const uint64_t target = std::max<uint64_t>(rounded(pool->used), keep);
    if (target >= pool->reserved) return kSuccess;
    world().taken[pool->device] -= pool->reserved - target;
    pool->reserved = target;
    return kSuccess;
}

Result cuMemAllocFromPoolAsync(DevicePtr* address, size_t bytes, MemoryPool pool, Stream stream) {
    ENPU_DOUBLE_ENTER(cuMemAllocFromPoolAsync);
    World& w = world();
    {
        std::lock_guard lock(w.mutex);
        if (bytes == 0) return kInvalidValue;
        const uint64_t wanted = std::max(pool->reserved, rounded(pool->used + bytes));
        if (wanted - pool->reserved > available(w, pool->device)) return kOutOfMemory;
        void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
        const Result error = add_range(w, memory, {bytes, Range::kPooled, pool->device, pool});
        if (error != kSuccess) return error;
        w.taken[pool->device] += wanted - pool->reserved;
        pool->reserved = wanted;
        pool->used += bytes;
        *address = reinterpret_cast<DevicePtr>(memory);
    }
    return enqueue(stream, [] { return kSuccess; });
}

Result cuMemFreeAsync(DevicePtr address, Stream stream) {
    ENPU_DOUBLE_ENTER(cuMemFreeAsync);
    (void)stream;
    // At once and not in the stream's turn: who uses the memory after this is found out.
    std::lock_guard lock(world().mutex);
    return remove_range(world(), address, Range::kPooled);
}

Result cuMemHostAlloc(void** host, size_t bytes, unsigned) {
    ENPU_DOUBLE_ENTER(cuMemHostAlloc);
    if (bytes == 0 || bytes > (uint64_t{1} << 40)) return bytes ? kOutOfMemory : kInvalidValue;
    std::lock_guard lock(world().mutex);
    *host = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return add_range(world(), *host, {bytes, Range::kHost, 0, nullptr});
}

Result cuMemFreeHost(void* host) {
    (void)enter("cuMemFreeHost");
    std::lock_guard lock(world().mutex);
    return remove_range(world(), reinterpret_cast<uint64_t>(host), Range::kHost);
}

Result cuMemHostRegister(void* host, size_t bytes, unsigned) {
    ENPU_DOUBLE_ENTER(cuMemHostRegister);
    if (!host || bytes == 0) return kInvalidValue;
    std::lock_guard lock(world().mutex);
    const auto begin = reinterpret_cast<uint64_t>(host);
    for (const auto& [address, range] : world().ranges)
        if (begin < address + range.bytes && address < begin + bytes)
            return kHostMemoryAlreadyRegistered;
    return add_range(world(), host, {bytes, Range::kRegistered, 0, nullptr});
}

Result cuMemHostUnregister(void* host) {
    (void)enter("cuMemHostUnregister");
    std::lock_guard lock(world().mutex);
    return remove_range(world(), reinterpret_cast<uint64_t>(host), Range::kRegistered);
}

Result cuMemHostGetDevicePointer(DevicePtr* address, void* host, unsigned) {
    ENPU_DOUBLE_ENTER(cuMemHostGetDevicePointer);
    *address = reinterpret_cast<DevicePtr>(host);
    return is_memory(*address, 1) ? kSuccess : kInvalidValue;
}

Result cuMemcpyAsync(DevicePtr dst, DevicePtr src, size_t bytes, Stream stream) {
    ENPU_DOUBLE_ENTER(cuMemcpyAsync);
    return enqueue(stream, [=] {
        if (const Result error = begin_access({{dst, bytes}, {src, bytes}})) return error;
        std::memcpy(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), bytes);
        return kSuccess;
    });
}

Result cuMemcpy2DAsync(const Copy2D* given, Stream stream) {
    ENPU_DOUBLE_ENTER(cuMemcpy2DAsync);
    const Copy2D copy = *given;
    if (copy.src_type != kMemoryTypeUnified || copy.dst_type != kMemoryTypeUnified ||
        copy.height == 0 || copy.src_pitch < copy.width || copy.dst_pitch < copy.width ||
        copy.src_x || copy.src_y || copy.dst_x || copy.dst_y)
        return kInvalidValue;
    return enqueue(stream, [=] {
        const uint64_t dst_span = (copy.height - 1) * copy.dst_pitch + copy.width;
        const uint64_t src_span = (copy.height - 1) * copy.src_pitch + copy.width;
        if (const Result error =
                begin_access({{copy.dst_device, dst_span}, {copy.src_device, src_span}}))
            return error;
        for (size_t row = 0; row < copy.height; ++row)
            std::memcpy(reinterpret_cast<char*>(copy.dst_device) + row * copy.dst_pitch,
                        reinterpret_cast<const char*>(copy.src_device) + row * copy.src_pitch,
                        copy.width);
        return kSuccess;
    });
}

Result cuMemsetD8Async(DevicePtr dst, unsigned char value, size_t count, Stream stream) {
    ENPU_DOUBLE_ENTER(cuMemsetD8Async);
    return fill(stream, dst, 0, value, count, 1);
}
Result cuMemsetD16Async(DevicePtr dst, unsigned short value, size_t count, Stream stream) {
    ENPU_DOUBLE_ENTER(cuMemsetD16Async);
    return fill(stream, dst, 0, value, count, 1);
}
Result cuMemsetD32Async(DevicePtr dst, unsigned value, size_t count, Stream stream) {
    ENPU_DOUBLE_ENTER(cuMemsetD32Async);
    return fill(stream, dst, 0, value, count, 1);
}
Result cuMemsetD2D8Async(DevicePtr dst, size_t pitch, unsigned char value, size_t width,
                         size_t height, Stream stream) {
    ENPU_DOUBLE_ENTER(cuMemsetD2D8Async);
    return fill(stream, dst, pitch, value, width, height);
}
Result cuMemsetD2D32Async(DevicePtr dst, size_t pitch, unsigned value, size_t width, size_t height,
                          Stream stream) {
    ENPU_DOUBLE_ENTER(cuMemsetD2D32Async);
    return fill(stream, dst, pitch, value, width, height);
}

}  // namespace enpu::hal::cuda::fake
