// SPDX-License-Identifier: MIT
// Copies and fills. Pageable memory goes through the stream's ring of pinned memory.
#include <algorithm>
#include <cstring>

#include "layers/layers.h"
#include "stream.h"

using namespace enpu::rt;

namespace {

rt_status enqueue_copy(rt_stream_impl& stream, const enpu_hal_place& dst, const enpu_hal_place& src,
                       uint64_t bytes, const char* origin, uint64_t* value = nullptr) {
    return stream.enqueue_copy(dst, src, bytes, origin, value);
}

// A region of the ring that the operation enqueued next will use; waits for room. Called without
// the stream's lock, by one thread at a time (Transfer).
class Transfer {
  public:
    Transfer(rt_stream_impl& stream, const char* origin)
        : stream_(stream), origin_(origin), lock_(stream.staging.mutex) {}

    rt_status region(uint64_t bytes, Staging::Region& region) {
        Staging& staging = stream_.staging;
        if (!staging.ready()) {
            enpu_hal_buffer* buffer = nullptr;
            void* host = nullptr;
            RT_TRY(stream_.device->allocate_host(Staging::kBytes, origin_, &buffer, &host));
            staging.set(buffer, host);
        }
        while (!staging.has_room(bytes, reached_)) {
            const uint64_t oldest = staging.oldest();
            RT_TRY(stream_.wait_for(oldest, stream_.deadline(), origin_));
            reached_ = std::max(reached_, oldest);
        }
        region = staging.take(bytes);
        return RT_OK;
    }
    void used_until(uint64_t value) { stream_.staging.used_until(value); }

  private:
    rt_stream_impl& stream_;
    const char* origin_;
    std::lock_guard<std::mutex> lock_;
    uint64_t reached_ = 0;
};

rt_status pageable_h2d(rt_stream_impl& stream, enpu_hal_place dst, const std::byte* src,
                       uint64_t bytes, const char* origin) {
    Transfer transfer(stream, origin);
    for (uint64_t done = 0; done < bytes;) {
        const uint64_t chunk = std::min(bytes - done, Staging::kChunk);
        Staging::Region region;
        RT_TRY(transfer.region(chunk, region));
        enpu::hal::note_host_access(region.host, chunk, true);
        std::memcpy(region.host, src + done, chunk);
        uint64_t value = 0;
        rt_status status = enqueue_copy(stream, {dst.buffer, dst.offset + done}, region.place,
                                        chunk, origin, &value);
        transfer.used_until(value);
        RT_TRY(status);
        done += chunk;
    }
    return RT_OK;
}

// The device copies the next chunk while the host empties the one before.
rt_status pageable_d2h(rt_stream_impl& stream, std::byte* dst, enpu_hal_place src, uint64_t bytes,
                       const char* origin) {
    Transfer transfer(stream, origin);
    struct Pending {
        Staging::Region region{};
        uint64_t at = 0, bytes = 0, value = 0;
    } before;
    const auto finish = [&](const Pending& pending) -> rt_status {
        if (pending.bytes == 0) return RT_OK;
        RT_TRY(stream.wait_for(pending.value, stream.deadline(), origin));
        enpu::hal::note_host_access(pending.region.host, pending.bytes, false);
        std::memcpy(dst + pending.at, pending.region.host, pending.bytes);
        return RT_OK;
    };
    for (uint64_t done = 0; done < bytes;) {
        Pending now;
        now.at = done;
        now.bytes = std::min(bytes - done, Staging::kChunk);
        RT_TRY(transfer.region(now.bytes, now.region));
        rt_status status = enqueue_copy(stream, now.region.place, {src.buffer, src.offset + done},
                                        now.bytes, origin, &now.value);
        transfer.used_until(now.value);
        RT_TRY(status);
        RT_TRY(finish(before));
        before = now;
        done += now.bytes;
    }
    return finish(before);
}

rt_status check_copy(rt_stream stream, const void* dst, const void* src, size_t bytes,
                     const char* origin) {
    if (!stream || !dst || !src)
        return make_status(RT_INVALID_ARGUMENT, origin, "%s is null",
                           !stream ? "stream"
                           : !dst  ? "destination"
                                   : "source");
    (void)bytes;
    return RT_OK;
}

rt_status copy_h2d(rt_stream stream, void* dst, const void* src, size_t bytes, bool pageable,
                   const char* origin) {
    RT_TRY(check_copy(stream, dst, src, bytes, origin));
    if (bytes == 0) return RT_OK;
    rt_device_impl& device = *stream->device;
    enpu_hal_place to, from;
    RT_TRY(device.resolve(dst, bytes, origin, "destination", to));
    if (device.resolve_pinned(src, bytes, from)) {
        RT_TRY(enqueue_copy(*stream, to, from, bytes, origin));
    } else if (pageable) {
        RT_TRY(pageable_h2d(*stream, to, static_cast<const std::byte*>(src), bytes, origin));
    } else {
        return make_status(RT_INVALID_ARGUMENT, origin,
                           "source: %p is not pinned (rt_host_alloc, rt_host_register)", src);
    }
    device.counted.bytes_h2d.fetch_add(bytes, std::memory_order_relaxed);
    return RT_OK;
}

rt_status copy_d2h(rt_stream stream, void* dst, const void* src, size_t bytes, bool pageable,
                   const char* origin) {
    RT_TRY(check_copy(stream, dst, src, bytes, origin));
    if (bytes == 0) return RT_OK;
    rt_device_impl& device = *stream->device;
    enpu_hal_place to, from;
    RT_TRY(device.resolve(src, bytes, origin, "source", from));
    if (device.resolve_pinned(dst, bytes, to)) {
        RT_TRY(enqueue_copy(*stream, to, from, bytes, origin));
    } else if (pageable) {
        RT_TRY(pageable_d2h(*stream, static_cast<std::byte*>(dst), from, bytes, origin));
    } else {
        return make_status(RT_INVALID_ARGUMENT, origin,
                           "destination: %p is not pinned (rt_host_alloc, rt_host_register)", dst);
    }
    device.counted.bytes_d2h.fetch_add(bytes, std::memory_order_relaxed);
    return RT_OK;
}

}  // namespace

rt_status rt_memcpy_h2d(rt_stream stream, void* device_dst, const void* host_src, size_t bytes) {
    return guarded(__func__, [&] {
        return copy_h2d(stream, device_dst, host_src, bytes, true, "rt_memcpy_h2d");
    });
}

rt_status rt_memcpy_d2h(rt_stream stream, void* host_dst, const void* device_src, size_t bytes) {
    return guarded(__func__, [&] {
        return copy_d2h(stream, host_dst, device_src, bytes, true, "rt_memcpy_d2h");
    });
}

rt_status rt_memcpy_h2d_async(rt_stream stream, void* device_dst, const void* pinned_src,
                              size_t bytes) {
    return guarded(__func__, [&] {
        return copy_h2d(stream, device_dst, pinned_src, bytes, false, "rt_memcpy_h2d_async");
    });
}

rt_status rt_memcpy_d2h_async(rt_stream stream, void* pinned_dst, const void* device_src,
                              size_t bytes) {
    return guarded(__func__, [&] {
        return copy_d2h(stream, pinned_dst, device_src, bytes, false, "rt_memcpy_d2h_async");
    });
}

rt_status rt_memcpy_d2d(rt_stream stream, void* device_dst, const void* device_src, size_t bytes) {
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_memcpy_d2d";
        RT_TRY(check_copy(stream, device_dst, device_src, bytes, kOrigin));
        if (bytes == 0) return RT_OK;
        enpu_hal_place to, from;
        RT_TRY(stream->device->resolve(device_dst, bytes, kOrigin, "destination", to));
        RT_TRY(stream->device->resolve(device_src, bytes, kOrigin, "source", from));
        RT_TRY(enqueue_copy(*stream, to, from, bytes, kOrigin));
        stream->device->counted.bytes_d2d.fetch_add(bytes, std::memory_order_relaxed);
        return RT_OK;
    });
}

rt_status rt_memcpy_2d(rt_stream stream, void* dst, size_t dst_pitch, const void* src,
                       size_t src_pitch, size_t width, size_t height) {
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_memcpy_2d";
        RT_TRY(check_copy(stream, dst, src, width, kOrigin));
        if (width == 0 || height == 0) return RT_OK;
        uint64_t dst_bytes = 0, src_bytes = 0;
        if ((height > 1 && (dst_pitch < width || src_pitch < width)) ||
            __builtin_mul_overflow(dst_pitch, height - 1, &dst_bytes) ||
            __builtin_mul_overflow(src_pitch, height - 1, &src_bytes) ||
            __builtin_add_overflow(dst_bytes, width, &dst_bytes) ||
            __builtin_add_overflow(src_bytes, width, &src_bytes))
            return make_status(RT_INVALID_ARGUMENT, kOrigin,
                               "a pitch is smaller than the width of %zu, or overflows", width);
        enpu_hal_place to, from;
        const rt_device_impl& device = *stream->device;
        RT_TRY(device.resolve(dst, dst_bytes, kOrigin, "destination", to));
        RT_TRY(device.resolve(src, src_bytes, kOrigin, "source", from));
        if (device.info.caps & ENPU_HAL_CAP_COPY_2D) {
            enpu_hal_command command{};
            command.kind = ENPU_HAL_COMMAND_COPY;
            command.u.copy = {to, from, width, height, dst_pitch, src_pitch};
            return stream->enqueue({&command, 1, nullptr, "2D copy", kOrigin}, nullptr);
        }
        for (size_t row = 0; row < height; ++row)
            RT_TRY(enqueue_copy(*stream, {to.buffer, to.offset + row * dst_pitch},
                                {from.buffer, from.offset + row * src_pitch}, width, kOrigin));
        return RT_OK;
    });
}

rt_status rt_fill(rt_stream stream, void* device_dst, uint64_t pattern, uint32_t pattern_bytes,
                  size_t bytes) {
    RT_NOT_NULL(stream);
    RT_NOT_NULL(device_dst);
    return guarded(__func__, [&]() -> rt_status {
        if (bytes == 0) return RT_OK;
        enpu_hal_command command{};
        command.kind = ENPU_HAL_COMMAND_FILL;
        RT_TRY(stream->device->resolve(device_dst, bytes, "rt_fill", "destination",
                                       command.u.fill.dst));
        command.u.fill.bytes = bytes;
        command.u.fill.pattern = pattern;
        command.u.fill.pattern_bytes = pattern_bytes;
        return stream->enqueue({&command, 1, nullptr, "fill", "rt_fill"}, nullptr);
    });
}
