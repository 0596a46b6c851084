// SPDX-License-Identifier: MIT
// Host functions in stream order, and notices of completion.
#include "fork.h"
#include "stream.h"

using namespace enpu::rt;

rt_status rt_launch_host_func(rt_stream stream, void (*function)(void* context), void* context) {
    RT_NOT_NULL(stream);
    RT_NOT_NULL(function);
    return guarded(__func__, [&]() -> rt_status {
        StreamWork work;
        work.what = "host function";
        work.origin = "rt_launch_host_func";
        work.function = function;
        work.context = context;
        return stream->enqueue(work, nullptr);
    });
}

rt_status rt_stream_on_completion(rt_stream stream,
                                  void (*function)(void* context, rt_status status),
                                  void* context) {
    RT_NOT_NULL(stream);
    RT_NOT_NULL(function);
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_stream_on_completion";
        RT_TRY(check_fork(*stream->device, kOrigin));
        RT_TRY(stream->device->start_host(kOrigin));
        Point point;
        RT_TRY(stream->last_point(kOrigin, point));
        stream->device->host->notify(point, stream, function, context);
        return RT_OK;
    });
}
