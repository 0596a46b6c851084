// SPDX-License-Identifier: MIT
// Many small copies in one submission.
#include "copy_merge.h"
#include "stream.h"

using namespace enpu::rt;

namespace {

rt_status resolve_copy(const rt_device_impl& device, const rt_copy& copy, uint32_t index,
                       const char* origin, enpu_hal_place& dst, enpu_hal_place& src) {
    rt_status status = !copy.dst || !copy.src
                           ? make_status(RT_INVALID_ARGUMENT, origin, "%s is null",
                                         copy.dst ? "source" : "destination")
                           : device.resolve(copy.dst, copy.bytes, origin, "destination", dst);
    if (!status) status = device.resolve(copy.src, copy.bytes, origin, "source", src);
    if (status) status->message = "copy " + std::to_string(index) + ": " + status->message;
    return status;
}

rt_status submit(rt_stream_impl& stream, CopyList& list, const char* origin) {
    if (list.empty()) return RT_OK;
    RT_TRY(stream.enqueue(
        {list.commands(), list.count(), nullptr, "merged copies", origin, nullptr}, nullptr));
    auto& counted = stream.device->counted;
    counted.copies.fetch_add(list.copies(), std::memory_order_relaxed);
    counted.copies_merged.fetch_add(list.copies() - 1, std::memory_order_relaxed);
    list.clear();
    return RT_OK;
}

rt_status enqueue_batch(rt_stream_impl& stream, const rt_copy* copies, uint32_t count,
                        const char* origin) {
    if (count && !copies) return make_status(RT_INVALID_ARGUMENT, origin, "copies is null");
    const rt_device_impl& device = *stream.device;
    enpu_hal_place dst, src;
    // All are looked at before the first is enqueued.
    for (uint32_t i = 0; i < count; ++i)
        if (copies[i].bytes) RT_TRY(resolve_copy(device, copies[i], i, origin, dst, src));
    CopyList list;
    for (uint32_t i = 0; i < count; ++i) {
        if (copies[i].bytes == 0) continue;
        RT_TRY(resolve_copy(device, copies[i], i, origin, dst, src));
        if (list.add(dst, src, copies[i].bytes)) continue;
        RT_TRY(submit(stream, list, origin));
        list.add(dst, src, copies[i].bytes);
    }
    return submit(stream, list, origin);
}

}  // namespace

rt_status rt_memcpy_batch(rt_stream stream, const rt_copy* copies, uint32_t count) {
    RT_NOT_NULL(stream);
    return guarded(__func__,
                   [&] { return enqueue_batch(*stream, copies, count, "rt_memcpy_batch"); });
}

rt_status rt_stream_flush(rt_stream stream) {
    RT_NOT_NULL(stream);
    return guarded(__func__, [&] { return stream->flush("rt_stream_flush"); });
}

rt_status rt_prefetch(rt_stream stream, const rt_copy* copies, uint32_t count, rt_event after,
                      rt_event ready) {
    RT_NOT_NULL(stream);
    return guarded(__func__, [&]() -> rt_status {
        if (after) RT_TRY(rt_stream_wait_event(stream, after));
        RT_TRY(enqueue_batch(*stream, copies, count, "rt_prefetch"));
        return ready ? rt_event_record(ready, stream) : RT_OK;
    });
}
